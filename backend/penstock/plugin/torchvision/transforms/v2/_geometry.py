"""Transforms that mirror, resize, crop or pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.plugin.torchvision._kinds import kind_of
from penstock.plugin.torchvision._random import numbers
from penstock.plugin.torchvision._settings import checked_padding, fills_of, pair_of, several
from penstock.plugin.torchvision._typing import Fills, Interpolation, Leaf, Params, Size
from penstock.plugin.torchvision.transforms.v2._transform import Applied, RandomlyApplied, common_size, fill_for


class RandomHorizontalFlip(RandomlyApplied):
    """Mirrors left to right with probability ``p``."""

    function = "horizontal_flip"


class RandomVerticalFlip(RandomlyApplied):
    """Mirrors top to bottom with probability ``p``."""

    function = "vertical_flip"


class Resize(Applied):
    """Resizes the image.

    Args:
        size: height and width, or the length of the shorter side; None: ``max_size`` is the length of the longer side.
        interpolation: an `InterpolationMode`, its value, or Pillow's number.
        max_size: the largest length of the longer side.
        antialias: whether to filter tensors that are made smaller; PIL images are always filtered.
    """

    function = "resize"

    def __init__(
        self,
        size: Size | None,
        interpolation: Interpolation = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        if size is None and not isinstance(max_size, int):
            raise ValueError(f"`max_size` must be a number where `size` is None. Got: {max_size!r}")
        is_list = isinstance(size, (list, tuple)) and len(size) in (1, 2)
        if size is not None and not isinstance(size, int) and not is_list:
            raise ValueError(f"`size` must be a number, one or two in a list, or None. Got: {size!r}")
        self.size = [size] if isinstance(size, int) else None if size is None else list(size)
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {
            "size": self.size,
            "interpolation": self.interpolation,
            "max_size": self.max_size,
            "antialias": self.antialias,
        }


class CenterCrop(Applied):
    """Crops the middle; a smaller image is padded with black.

    Args:
        size: height and width, or one number for both.
    """

    function = "center_crop"

    def __init__(self, size: Size) -> None:
        self.size = pair_of(size)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"output_size": self.size}


class FiveCrop(Applied):
    """Returns a tuple of five crops: at the four corners and in the middle.

    Args:
        size: height and width of each crop, or one number for both.
    """

    function = "five_crop"

    def __init__(self, size: Size) -> None:
        self.size = pair_of(size)

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        if any(kind_of(leaf) in ("boxes", "mask") for leaf in flat_inputs):
            raise TypeError(f"{type(self).__name__} is for images, and not for boxes and masks")

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"size": self.size}


class TenCrop(FiveCrop):
    """Returns a tuple of ten crops: the regions of `FiveCrop`, from the image and from its mirror image.

    Args:
        size: see `FiveCrop`.
        vertical_flip: whether the mirror image is mirrored top to bottom instead of left to right.
    """

    function = "ten_crop"

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"size": self.size, "vertical_flip": self.vertical_flip}


def check_padding_mode(mode: str) -> str:
    """Return a padding mode after checking it.

    Raises:
        ValueError: there is no such mode.
    """
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"`padding_mode` must be constant, edge, reflect or symmetric. Got: {mode!r}")
    return mode


class Pad(Applied):
    """Adds a border on each side.

    Args:
        padding: one number, two (left and right, top and bottom), or four (left, top, right, bottom).
        fill: the values for `constant`: one, or one for each channel, or a dictionary of these by type.
        padding_mode: `constant`, `edge`, `reflect` or `symmetric`.
    """

    function = "pad"

    def __init__(self, padding: Size, fill: Fills = 0, padding_mode: str = "constant") -> None:
        checked_padding(padding)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fill = fills_of(fill)
        self.padding_mode = check_padding_mode(padding_mode)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"padding": self.padding, "fill": fill_for(self._fill, inpt), "padding_mode": self.padding_mode}


class RandomZoomOut(RandomlyApplied):
    """Puts the image at a random position on a larger canvas, with a probability.

    Args:
        fill: the values around the image; see `Pad`.
        side_range: the range of the canvas's size, as a multiple of the image's.
        p: the probability.
    """

    function = "pad"

    def __init__(self, fill: Fills = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self.fill = fill
        self._fill = fills_of(fill)
        self.side_range = several(side_range, "side_range")
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"`side_range` must be a range of numbers from 1 on. Got: {side_range}")

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        low, high = self.side_range
        factor = np.float32(low) + numbers().fractions(1)[0] * np.float32(high - low)
        wide, high_ = int(np.float32(width) * factor), int(np.float32(height) * factor)
        fractions = numbers().fractions(2)
        left, top = int(np.float32(wide - width) * fractions[0]), int(np.float32(high_ - height) * fractions[1])
        return {"padding": [left, top, wide - (left + width), high_ - (top + height)]}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "fill": fill_for(self._fill, inpt)}


class ScaleJitter(Applied):
    """Resizes to a random multiple of the largest size that fits into a target size.

    Args:
        target_size: height and width of the target.
        scale_range: the range of the factor.
        interpolation, antialias: see `Resize`.
    """

    function = "resize"

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        self.target_size, self.scale_range = target_size, scale_range
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        low, high = self.scale_range
        factor = np.float32(low) + numbers().fractions(1)[0] * np.float32(high - low)
        factor = np.float32(min(self.target_size[1] / height, self.target_size[0] / width)) * factor
        return {"size": (int(np.float32(height) * factor), int(np.float32(width) * factor))}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "interpolation": self.interpolation, "antialias": self.antialias}


class RandomShortestSize(ScaleJitter):
    """Resizes the shorter side to one of several sizes, drawn at random.

    Args:
        min_size: the length of the shorter side: a number, or several from which to draw.
        max_size: the largest length of the longer side.
        interpolation, antialias: see `Resize`.
    """

    def __init__(
        self,
        min_size: Size,
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        factor = self.min_size[numbers().below(0, len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class RandomResize(ScaleJitter):
    """Resizes the shorter side to a random size from ``min_size`` to below ``max_size``.

    Args:
        min_size, max_size: the range of the length of the shorter side.
        interpolation, antialias: see `Resize`.
    """

    def __init__(
        self, min_size: int, max_size: int, interpolation: Interpolation = "bilinear", antialias: bool | None = True
    ) -> None:
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"size": [numbers().below(self.min_size, self.max_size)]}
