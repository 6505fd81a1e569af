"""Which image, video and sound processors of the installed transformers have a preset, and which have none.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/classes.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from libraries import torchvision_functional, versions

from penstock.presets import PresetError, read_configuration

_KEYS = {
    "image_processing": "image_processor_type",
    "video_processing": "video_processor_type",
    "feature_extraction": "feature_extractor_type",
}
_MODEL = re.compile(rf"transformers\.models\.(?!auto\.)\w+\.({'|'.join(_KEYS)})_\w+")


def main() -> None:
    """Prints both lists."""
    told: dict[bool, list[str]] = {True: [], False: []}
    for name, key in classes():
        told[is_followed(name, key)].append(name)
    print(versions("transformers"))
    for follows, names in told.items():
        print(f"{len(names)} classes {'have a preset' if follows else 'have none'}: {', '.join(names)}")


def classes() -> Iterator[tuple[str, str]]:
    """The classes of models, without variants for PIL, and the setting that names them in a configuration."""
    torchvision_functional()
    import transformers

    for name in dir(transformers):
        if name.endswith(("ImageProcessor", "VideoProcessor", "FeatureExtractor")):
            # What needs a library that is missing is defined elsewhere.
            found = _MODEL.fullmatch(getattr(transformers, name).__module__)
            if found:
                yield name, _KEYS[found[1]]


def is_followed(name: str, key: str) -> bool:
    """Whether there is a family for a class, perhaps with other settings than its own."""
    try:
        read_configuration({key: name})
    except PresetError as error:
        return not str(error).startswith("No preset follows")
    return True


if __name__ == "__main__":
    main()
