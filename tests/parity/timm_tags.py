"""Records, for the tests, the results of timm's evaluation transform for a picture, with each data configuration of timm's
models.

PYTHONPATH=backend:tests/parity .venv-parity/bin/python tests/parity/timm_tags.py

It needs timm, which `.venv-parity` does not have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from libraries import torchvision_functional
from PIL import Image

RECORDED = Path(__file__).parent / "recorded" / "timm.json"
_SETTINGS = ("input_size", "crop_pct", "crop_mode", "interpolation", "mean", "std")


def picture() -> Image.Image:
    """Return a picture of noise."""
    return Image.fromarray(np.random.default_rng(5).integers(0, 256, (97, 333, 3), np.uint8))


def configuration_of(data: str) -> dict[str, Any]:
    """Return a configuration for `transformers` with a data configuration of timm, which is given as JSON."""
    return {"image_processor_type": "TimmWrapperImageProcessor", "pretrained_cfg": json.loads(data)}


def digest_of(values: np.ndarray) -> str:
    """Return a digest of an array: of its type, its shape and its values."""
    return hashlib.blake2b(f"{values.dtype} {values.shape}".encode() + values.tobytes(), digest_size=8).hexdigest()


def main() -> None:
    """Record each distinct data configuration, the number of models with it, and a digest of its result."""
    torchvision_functional()
    import timm
    from timm.data import create_transform, resolve_data_config
    from timm.models._registry import _model_pretrained_cfgs  # private: the only list of all tags

    def result(settings: Mapping[str, Any]) -> str:
        transform = create_transform(**resolve_data_config(pretrained_cfg=settings), is_training=False)
        return digest_of(transform(picture()).numpy())

    tags: dict[str, int] = {}
    for cfg in _model_pretrained_cfgs.values():
        held = cfg.to_dict()
        data = json.dumps({key: held[key] for key in _SETTINGS if held.get(key) is not None})
        tags[data] = tags.get(data, 0) + 1
    told = {data: {"tags": count, "digest": result(json.loads(data))} for data, count in tags.items()}
    lines = ",\n".join(f"{json.dumps(data)}: {json.dumps(each)}" for data, each in told.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
    print(f"timm {timm.__version__}: {sum(tags.values())} tags, {len(told)} data configurations")


if __name__ == "__main__":
    main()
