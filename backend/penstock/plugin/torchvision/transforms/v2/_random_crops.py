"""Transforms that crop at random."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from penstock.plugin.torchvision._kinds import kind_of, size_of
from penstock.plugin.torchvision._random import numbers, torch
from penstock.plugin.torchvision._settings import checked_padding, fills_of, pair_of
from penstock.plugin.torchvision._typing import Fills, Interpolation, Leaf, Params, Size, Tensor
from penstock.plugin.torchvision.transforms.v2._geometry import check_padding_mode
from penstock.plugin.torchvision.transforms.v2._transform import Applied, common_size, fill_for

_MAX_ATTEMPTS = 10
_CROP_ARGUMENTS = ("top", "left", "height", "width")


class RandomResizedCrop(Applied):
    """Crops a random region, and resizes it.

    Args:
        size: height and width of the result, or one number for both.
        scale: the range of the region's area, as a fraction of the image's.
        ratio: the range of the region's width divided by its height.
        interpolation, antialias: see `Resize`.
    """

    function = "resized_crop"

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        self.size = pair_of(size)
        self.scale, self.ratio = _rising(scale, "scale"), _rising(ratio, "ratio")
        self.interpolation = interpolation
        self.antialias = antialias

    @staticmethod
    def get_params(img: Leaf, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Return top, left, height and width of a random region of an image."""
        return _region(*size_of(img), scale, ratio)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        region = _region(*common_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(_CROP_ARGUMENTS, region))

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "size": self.size, "interpolation": self.interpolation, "antialias": self.antialias}


def _region(height: int, width: int, scale: Sequence[float], ratios: Sequence[float]) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a random region of an image of this size."""
    for _ in range(_MAX_ATTEMPTS):
        area = height * width * numbers().between(*scale)
        ratio = numbers().exponential(*ratios)
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            top = numbers().below(0, height - h + 1)
            return top, numbers().below(0, width - w + 1), h, w
    # No region fitted: crop the centre with the allowed aspect ratio nearest to the image's.
    ratio, h, w = width / height, height, width
    if ratio < min(ratios):
        h = round(width / min(ratios))
    elif ratio > max(ratios):
        w = round(height * max(ratios))
    return (height - h) // 2, (width - w) // 2, h, w


def _rising(bounds: Sequence[float], name: str) -> Sequence[float]:
    """Return a pair of numbers; warn if the second is less than the first."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise TypeError(f"`{name}` must be a sequence of two numbers. Got: {bounds!r}")
    if bounds[0] > bounds[1]:
        warnings.warn(f"`{name}` goes from {bounds[0]} to {bounds[1]}, which is less", stacklevel=3)
    return bounds


class RandomCrop(Applied):
    """Crops a random region.

    Args:
        size: height and width, or one number for both.
        padding: a border that is added first; see `Pad`.
        pad_if_needed: whether to pad images that are smaller than the crop, on both sides.
        fill, padding_mode: see `Pad`.
    """

    def __init__(
        self,
        size: Size,
        padding: Size | None = None,
        pad_if_needed: bool = False,
        fill: Fills = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size = pair_of(size)
        self.padding = checked_padding(padding) if padding else None
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fill = fills_of(fill)
        self.padding_mode = check_padding_mode(padding_mode)

    @staticmethod
    def get_params(img: Leaf, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return top, left, height and width of a random region of an image.

        Raises:
            ValueError: the image is smaller than the region.
        """
        (height, width), (h, w) = size_of(img), output_size
        if height < h or width < w:
            raise ValueError(f"A crop of {(h, w)} does not fit into an image of {(height, width)}")
        if (height, width) == (h, w):
            return 0, 0, h, w
        top = numbers().below(0, height - h + 1)
        return top, numbers().below(0, width - w + 1), h, w

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        extents = list(common_size(flat_inputs))
        left, top, right, bottom = self.padding or (0, 0, 0, 0)
        before, after = [top, left], [bottom, right]
        anchors = [0, 0]
        for axis in (0, 1):
            extents[axis] += before[axis] + after[axis]
            lack = self.size[axis] - extents[axis]
            if self.pad_if_needed and lack > 0:
                before[axis] += lack
                after[axis] += lack
                extents[axis] += 2 * lack
        if extents[0] < self.size[0] or extents[1] < self.size[1]:
            raise ValueError(
                f"A crop of {self.size} does not fit into {'a padded' if self.padding else 'an'} image of {tuple(extents)}"
            )
        for axis in (0, 1):
            if extents[axis] > self.size[axis]:
                anchors[axis] = numbers().below(0, extents[axis] - self.size[axis] + 1)
        padding = [before[1], before[0], after[1], after[0]]
        return {
            "needs_crop": tuple(extents) != self.size,
            "top": anchors[0],
            "left": anchors[1],
            "height": self.size[0],
            "width": self.size[1],
            "needs_pad": any(padding),
            "padding": padding,
        }

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        if params["needs_pad"]:
            fill = fill_for(self._fill, inpt)
            inpt = self.call("pad", inpt, params["padding"], fill=fill, padding_mode=self.padding_mode)
        if not params["needs_crop"]:
            return inpt
        return self.call("crop", inpt, **{name: params[name] for name in _CROP_ARGUMENTS})


class RandomIoUCrop(Applied):
    """Crops a random region whose IoU with a box is at least a random threshold, as in the training of SSD.

    Args:
        min_scale, max_scale: the range of the region's sides, as fractions of the image's sides.
        min_aspect_ratio, max_aspect_ratio: the range of the region's width divided by its height.
        sampler_options: the thresholds from which to draw; with 1 or more, the image is not cropped.
        trials: the number of random regions to try for each threshold drawn.
    """

    function = "crop"

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
    ) -> None:
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        kinds = {kind_of(leaf) for leaf in flat_inputs}
        if "boxes" not in kinds or not kinds & {"pixels", "image", "tensor"}:
            raise TypeError(f"{type(self).__name__} needs an image and its bounding boxes")

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        boxes = next(leaf for leaf in flat_inputs if kind_of(leaf) == "boxes")
        from penstock.plugin.torchvision._on_boxes import converted

        corners = converted(boxes.as_subclass(torch().Tensor), boxes.format.value, "XYXY")
        while True:
            min_overlap = self.options[numbers().below(0, len(self.options))]
            if min_overlap >= 1.0:
                return {}
            for _ in range(self.trials):
                region = self._candidate_region(height, width)
                covered = region and _covered(corners, region, min_overlap)
                if region is not None and covered is not None:
                    return {**dict(zip(_CROP_ARGUMENTS, region)), "is_within_crop_area": covered}

    def _candidate_region(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        span = np.float32(self.max_scale - self.min_scale)
        across, down = np.float32(self.min_scale) + span * numbers().fractions(2)
        w, h = int(np.float32(width) * across), int(np.float32(height) * down)
        if not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        fractions = numbers().fractions(2)
        left, top = int(np.float32(width - w) * fractions[0]), int(np.float32(height - h) * fractions[1])
        return (top, left, h, w) if w and h else None

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        if not params:
            return inpt
        result = self.call("crop", inpt, **{name: params[name] for name in _CROP_ARGUMENTS})
        if kind_of(result) == "boxes":
            result[~params["is_within_crop_area"]] = 0
        return result


def _covered(corners: Tensor, crop: tuple[int, int, int, int], min_overlap: float) -> Tensor | None:
    """Return a mask of the boxes whose centres lie in a region, or None if no such box overlaps it enough."""
    top, left, height, width = crop
    right, bottom = left + width, top + height
    x, y = 0.5 * (corners[..., 0] + corners[..., 2]), 0.5 * (corners[..., 1] + corners[..., 3])
    inside = (left < x) & (x < right) & (top < y) & (y < bottom)
    if not inside.any():
        return None
    held = corners[inside]
    region = torch().tensor([left, top, right, bottom], dtype=held.dtype, device=held.device)
    first, last = held[:, :2].maximum(region[:2]), held[:, 2:].minimum(region[2:])
    held, region, last, first = (_upcast(values) for values in (held, region, last, first))
    common = (last - first).clamp(min=0).prod(dim=1)
    areas = (held[:, 2] - held[:, 0]) * (held[:, 3] - held[:, 1])
    area = (region[2] - region[0]) * (region[3] - region[1])
    shares = common / (areas + area - common)
    return None if bool(shares.max() < min_overlap) else inside


def _upcast(values: Tensor) -> Tensor:
    """Convert coordinates to a type wide enough for areas."""
    library = torch()
    if values.is_floating_point():
        return values if values.dtype in (library.float32, library.float64) else values.float()
    return values if values.dtype in (library.int32, library.int64) else values.int()
