"""Write the seeds that `parsers.cc` mutates into a folder, and print the path of the library that inflates PNGs.

PYTHONPATH=backend python tests/fuzz/write_seeds.py FOLDER
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.image_seeds import image_seeds
from fuzzing.other_seeds import audio_seeds

FORMATS = ("jpeg", "png", "wav")


def main() -> None:
    """Write the seeds and print the path."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (format, data) in enumerate(itertools.chain(image_seeds(), audio_seeds())):
        if format in FORMATS:
            (folder / f"{format}-{number:04}").write_bytes(data)
    deflate = importlib.util.find_spec("deflate")
    assert deflate is not None
    (library,) = (
        path for place in deflate.submodule_search_locations or () for path in Path(place).glob("_deflate*.so")
    )
    print(library)


if __name__ == "__main__":
    main()
