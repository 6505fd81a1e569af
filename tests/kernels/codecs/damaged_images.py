"""Decodes damaged variants of the recorded images; run by test_image_codec.py in a separate process.

A library that crashes on a damaged file ends its process: here the tests must survive that, and in production the server.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from penstock import types
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import ImageError, read_header

_KINDS = [types.RGB, types.GRAY, types.ANY_DATA, types.YCbCr]
_MOST_VALUES = 10**7


def main(recording: Path, trials: int) -> None:
    files = np.load(recording)
    intact = [files[key] for key in files.files if key.startswith("file/") and files[key].size > 100]
    generator = np.random.default_rng(0)
    for trial in range(trials):
        data = intact[trial % len(intact)].copy()
        reach = min(data.size, 600) if trial % 2 else data.size
        places = generator.integers(0, reach, generator.integers(1, 8))
        data[places] = generator.integers(0, 256, places.size)
        try:
            header = read_header(data)
            kind = _KINDS[trial % len(_KINDS)]
            shape = header.shape(kind)
            if np.prod(shape, dtype=float) < _MOST_VALUES:
                decode(data, header, np.empty(shape, np.uint8), kind)
        except ImageError:
            continue


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
