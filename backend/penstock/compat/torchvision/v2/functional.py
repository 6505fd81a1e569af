"""The module ``nvidia.dali.experimental.torchvision.v2.functional``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from penstock.compat.torchvision._devices import check_device
from penstock.plugin.torchvision._conversion import to_tensor as _to_tensor  # private: wraps the plugin
from penstock.plugin.torchvision._kinds import size_of  # private: wraps the plugin
from penstock.plugin.torchvision.transforms.v2 import functional as penstock_functional

__all__ = [
    "center_crop",
    "crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_size",
    "get_size",
    "horizontal_flip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vertical_flip",
]


def _with_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with an additional parameter for the device."""

    @functools.wraps(function)
    def with_device(*args: object, device: str = "cpu", **kwargs: object) -> Any:
        check_device(device)
        return function(*args, **kwargs)

    return with_device


center_crop = _with_device(penstock_functional.center_crop)
crop = _with_device(penstock_functional.crop)
gaussian_blur = _with_device(penstock_functional.gaussian_blur)
horizontal_flip = _with_device(penstock_functional.horizontal_flip)
normalize = _with_device(penstock_functional.normalize)
pad = _with_device(penstock_functional.pad)
resize = _with_device(penstock_functional.resize)
resized_crop = _with_device(penstock_functional.resized_crop)
rgb_to_grayscale = _with_device(penstock_functional.rgb_to_grayscale)
to_grayscale = rgb_to_grayscale
vertical_flip = _with_device(penstock_functional.vertical_flip)
get_dimensions, get_size = penstock_functional.get_dimensions, penstock_functional.get_size
pil_to_tensor, to_pil_image = penstock_functional.pil_to_tensor, penstock_functional.to_pil_image
to_tensor = _to_tensor


def get_image_size(inpt: object) -> list[int]:
    """Return the width and height of an image."""
    return list(size_of(inpt))[::-1]
