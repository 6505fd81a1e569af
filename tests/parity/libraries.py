"""The installed libraries whose results presets must equal."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any

VERSIONED = {
    "pil": ("pillow",),
    "opencv": ("opencv-python-headless",),
    "torchvision": ("torchvision", "torch"),
    "pillow_function": ("pillow",),
    "opencv_function": ("opencv-python-headless",),
    "transforms": ("torchvision", "torch", "pillow"),
    "transformers": ("transformers", "torchvision", "torch", "pillow"),
}


def versions(library: str) -> str:
    """Return the installed versions of a library, and of the libraries that it computes with, as text."""
    return ", ".join(f"{name} {version(name)}" for name in VERSIONED[library])


@functools.cache
def torchvision_functional() -> Any:
    """Return `torchvision.transforms.v2.functional`."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        # torchvision's compiled part needs a PyTorch for CUDA. No transform uses it, but its operators must be declared.
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)
    return functional
