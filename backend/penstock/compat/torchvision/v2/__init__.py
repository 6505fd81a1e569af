"""Transforms with the names and arguments of ``nvidia.dali.experimental.torchvision``.

They are the transforms of `penstock.plugin.torchvision`, whose results equal torchvision's. In resizing, DALI's results differ from these
by up to one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

from penstock.compat.torchvision._devices import check_device
from penstock.compat.torchvision.v2 import functional
from penstock.compat.torchvision.v2.operator import Operator, OperatorSteps
from penstock.plugin.torchvision._conversion import pil_to_tensor  # private: wraps the plugin
from penstock.plugin.torchvision._kinds import kind_of  # private: wraps the plugin
from penstock.plugin.torchvision._settings import InterpolationMode  # private: wraps the plugin
from penstock.plugin.torchvision._typing import (  # private: wraps the plugin
    Fills,
    Floats,
    Function,
    Interpolation,
    Leaf,
    Params,
    Size,
)
from penstock.plugin.torchvision.transforms import v2

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToPureTensor",
    "functional",
]


class CenterCrop(v2.CenterCrop):
    """Crops the centre."""

    def __init__(self, size: Size, device: str = "cpu") -> None:
        super().__init__(size)
        self.device = check_device(device)


class ColorJitter(v2.ColorJitter):
    """Changes brightness, contrast, saturation and hue at random."""

    def __init__(
        self,
        brightness: Floats = 0.0,
        contrast: Floats = 0.0,
        saturation: Floats = 0.0,
        hue: Floats = 0.0,
        device: str = "cpu",
    ) -> None:
        super().__init__(brightness, contrast, saturation, hue)
        self.device = check_device(device)


class Compose(v2.Compose):
    """Applies one transform after another. The settings for threads and for the number of images have no effect."""

    def __init__(
        self, op_list: Sequence[Function], batch_size: int = 16, num_threads: int = 1, **pipeline: object
    ) -> None:
        steps: list[Function] = []
        for are_operators, group in itertools.groupby(op_list, lambda step: isinstance(step, Operator)):
            if are_operators:
                steps.append(OperatorSteps(cast(list[Operator], list(group)), num_threads=num_threads, **pipeline))
            else:
                steps += group
        super().__init__(steps)


class GaussianBlur(v2.GaussianBlur):
    """Blurs with a Gaussian filter."""

    def __init__(self, kernel_size: Size, sigma: Floats = (0.1, 2.0), device: str = "cpu", seed: int = -1) -> None:
        super().__init__(kernel_size, sigma)
        self.device = check_device(device)


class Grayscale(v2.Grayscale):
    """Converts to grey values."""

    def __init__(self, num_output_channels: int = 1, device: str = "cpu") -> None:
        super().__init__(num_output_channels)
        self.device = check_device(device)


class Normalize(v2.Normalize):
    """Returns ``(x - mean) / std``; also for PIL images, whose values range up to 255."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False, device: str = "cpu") -> None:
        if inplace:
            raise NotImplementedError("`inplace` is not supported")
        super().__init__(mean, std)
        self.device = check_device(device)

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        """Accept all inputs: PIL images can be normalized, too."""

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        tensor = pil_to_tensor(inpt) if kind_of(inpt) == "pixels" else inpt
        return super().transform(tensor if tensor.is_floating_point() else tensor.float(), params)


class Pad(v2.Pad):
    """Adds a border on each side."""

    def __init__(self, padding: Size, fill: Fills = 0, padding_mode: str = "constant", device: str = "cpu") -> None:
        super().__init__(padding, fill, padding_mode)
        self.device = check_device(device)


class PILToTensor(v2.PILToTensor):
    """Converts a PIL image to a uint8 tensor of shape (C, H, W)."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = check_device(device)


class RandomApply(v2.RandomApply):
    """Applies a list of transforms with a probability."""

    def __init__(self, op_list: Sequence[Function], p: float = 0.5, device: str = "cpu") -> None:
        super().__init__(op_list, p)
        self.device = check_device(device)


class RandomCrop(v2.RandomCrop):
    """Crops a random region."""

    def __init__(
        self,
        size: Size,
        padding: Size | None = None,
        pad_if_needed: bool = False,
        fill: Fills = 0,
        padding_mode: str = "constant",
        device: str = "cpu",
    ) -> None:
        super().__init__(size, padding, pad_if_needed, fill, padding_mode)
        self.device = check_device(device)


class RandomGrayscale(v2.RandomGrayscale):
    """Converts to grey values with a probability."""

    def __init__(self, p: float = 0.1, device: str = "cpu") -> None:
        super().__init__(p)
        self.device = check_device(device)


class RandomHorizontalFlip(v2.RandomHorizontalFlip):
    """Mirrors left to right with a probability."""

    def __init__(self, p: float = 0.5, device: str = "cpu") -> None:
        super().__init__(p)
        self.device = check_device(device)


class RandomResizedCrop(v2.RandomResizedCrop):
    """Crops a random region, and resizes it."""

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
        device: str = "cpu",
    ) -> None:
        super().__init__(size, scale, ratio, interpolation, antialias)
        self.device = check_device(device)


class RandomVerticalFlip(v2.RandomVerticalFlip):
    """Mirrors top to bottom with a probability."""

    def __init__(self, p: float = 0.5, device: str = "cpu") -> None:
        super().__init__(p)
        self.device = check_device(device)


class Resize(v2.Resize):
    """Resizes images."""

    def __init__(
        self,
        size: Size | None,
        interpolation: Interpolation = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
        device: str = "cpu",
    ) -> None:
        super().__init__(size, interpolation, max_size, antialias)
        self.device = check_device(device)


class ToPILImage(v2.ToPILImage):
    """Converts a tensor to a PIL image."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.device = check_device(device)


class ToPureTensor(v2.ToPureTensor):
    """Converts a subclass of tensor, or a PIL image, to a plain tensor."""

    kinds = v2.ToPureTensor.kinds | {"pixels"}

    def __init__(self, device: str = "cpu") -> None:
        self.device = check_device(device)

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return pil_to_tensor(inpt) if kind_of(inpt) == "pixels" else super().transform(inpt, params)
