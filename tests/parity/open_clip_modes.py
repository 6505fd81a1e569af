"""Records the results of open_clip's evaluation transform for pictures, with each of its ways of resizing, for the tests.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/open_clip_modes.py

It needs open_clip_torch, which `.venv-parity` does not have.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from libraries import torchvision_functional
from processors import pictures
from timm_tags import digest_of

RECORDED = Path(__file__).parent / "recorded" / "open_clip.json"
FAILED = "failed"
_SIZES = 31, [40, 27], [24, 60]
_OTHERS: tuple[dict[str, Any], ...] = ({}, {"fill_color": 90, "mean": 0.5, "std": [0.2, 0.3, 0.4]})


def configurations() -> Iterator[dict[str, Any]]:
    """Yield possible contents of `open_clip_config.json`."""
    modes, filters = (None, "shortest", "longest", "squash"), (None, "bicubic", "bilinear", "random")
    for mode, interpolation, size, others in itertools.product(modes, filters, _SIZES, _OTHERS):
        settings = {"resize_mode": mode, "interpolation": interpolation, **others}
        yield {"preprocess_cfg": settings, "model_cfg": {"vision_cfg": {"image_size": size}}}


def images() -> list[Any]:
    """Return pictures, of which some are slender and one is grey."""
    return [picture.image for picture in pictures(10, 120, 3, slender=True)]


def main() -> None:
    """Record, for each configuration and picture, a digest of the library's result, or that the library fails."""
    torchvision_functional()
    from open_clip.transform import PreprocessCfg, image_transform_v2

    def result(transform: Any, image: Any) -> str:
        try:
            return digest_of(transform(image).numpy())
        except (ValueError, ZeroDivisionError):
            return FAILED

    told: dict[str, Any] = {"versions": f"open_clip_torch {version('open_clip_torch')}"}
    for configuration in configurations():
        size = configuration["model_cfg"]["vision_cfg"]["image_size"]
        settings = {key: value for key, value in configuration["preprocess_cfg"].items() if value is not None}
        sides = tuple(size) if isinstance(size, list) else size
        transform = image_transform_v2(PreprocessCfg(size=sides, **settings), is_train=False)
        told[json.dumps(configuration)] = " ".join(result(transform, image) for image in images())
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in told.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
    print(f"{told['versions']}: {len(told) - 1} configurations")


if __name__ == "__main__":
    main()
