"""Records the results of the installed torchvision, with which tests compare where torchvision is not installed.

PYTHONPATH=backend:tests/parity python tests/plugin/torchvision/record_transforms.py
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from transform_cases import AUTOMATIC, COLOURS, COMPOSED, GEOMETRY, Make, picture

RECORDED = Path(__file__).parent / "recorded.json"
ON_PIL = {**GEOMETRY, **COLOURS, **AUTOMATIC, **COMPOSED}
SEEDS = (1, 2, 3)


def digests(result: Any) -> list[str]:
    """Return the shape and a hash of a PIL image, or of each of several."""
    images = result if isinstance(result, tuple) else (result,)
    arrays = [np.ascontiguousarray(np.asarray(image)) for image in images]
    return [f"{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}" for array in arrays]


def cases() -> Iterator[tuple[str, str, int, Make]]:
    """Yield the key, the transform's name, the seed and the transform's factory of each case."""
    for name, make in ON_PIL.items():
        for seed in SEEDS:
            yield f"{name} {seed}", name, seed, make


def main() -> None:
    """Rewrite the file of recorded results."""
    from libraries import torchvision_functional, versions
    from PIL import Image

    torchvision_functional()
    import torch
    from torchvision.transforms import AutoAugmentPolicy, v2

    warnings.simplefilter("ignore")
    v2.AutoAugmentPolicy = AutoAugmentPolicy
    found: dict[str, Any] = {"versions": versions("torchvision")}
    for key, _, seed, make in cases():
        torch.manual_seed(seed)
        found[key] = digests(make(v2)(Image.fromarray(picture(seed))))
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
