"""The module ``nvidia.dali.experimental.torchvision.v2.functional``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from penstock.compat.torchvision._devices import check_device
from penstock.plugin.torchvision._conversion import to_tensor as _to_tensor  # private: the plugin's, under DALI's names
from penstock.plugin.torchvision._kinds import size_of  # private: the plugin's, under DALI's names
from penstock.plugin.torchvision.transforms.v2 import functional as own

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
    """The same function, which may be told a device."""

    @functools.wraps(function)
    def told(*args: object, device: str = "cpu", **kwargs: object) -> Any:
        check_device(device)
        return function(*args, **kwargs)

    return told


center_crop = _with_device(own.center_crop)
crop = _with_device(own.crop)
gaussian_blur = _with_device(own.gaussian_blur)
horizontal_flip = _with_device(own.horizontal_flip)
normalize = _with_device(own.normalize)
pad = _with_device(own.pad)
resize = _with_device(own.resize)
resized_crop = _with_device(own.resized_crop)
rgb_to_grayscale = _with_device(own.rgb_to_grayscale)
to_grayscale = rgb_to_grayscale
vertical_flip = _with_device(own.vertical_flip)
get_dimensions, get_size = own.get_dimensions, own.get_size
pil_to_tensor, to_pil_image = own.pil_to_tensor, own.to_pil_image
to_tensor = _to_tensor


def get_image_size(inpt: object) -> list[int]:
    """Width and height."""
    return list(size_of(inpt))[::-1]
