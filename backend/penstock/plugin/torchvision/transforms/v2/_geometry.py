"""Transforms of where pixels are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from penstock.plugin.torchvision._kinds import call, kind_of
from penstock.plugin.torchvision._on_pixels import perspective_terms
from penstock.plugin.torchvision._random import numbers, torch
from penstock.plugin.torchvision._settings import (
    angles_of,
    borders_of,
    fills_of,
    pair_of,
    range_of,
    several,
)
from penstock.plugin.torchvision._typing import Fills, Floats, Interpolation, Leaf, Params, Size, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import (
    Applied,
    RandomlyApplied,
    common_size,
    fill_for,
)

_TRIALS = 10


class RandomHorizontalFlip(RandomlyApplied):
    """Left to right, with a probability."""

    function = "horizontal_flip"


class RandomVerticalFlip(RandomlyApplied):
    """Upside down, with a probability."""

    function = "vertical_flip"


class Resize(Applied):
    """Another size.

    Args:
        size: height and width, or the shorter side, or None: ``max_size`` is the longer one.
        interpolation: an `InterpolationMode`, its value, or Pillow's number.
        max_size: the most that the longer side may have.
        antialias: of tensors; PIL's images always are.
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
            raise ValueError(f"`max_size` is a number where `size` is None. Got: {max_size!r}")
        is_list = isinstance(size, (list, tuple)) and len(size) in (1, 2)
        if size is not None and not isinstance(size, int) and not is_list:
            raise ValueError(f"`size` is a number, one or two in a list, or None. Got: {size!r}")
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
    """The middle; a smaller image is padded with black.

    Args:
        size: height and width, or both in one.
    """

    function = "center_crop"

    def __init__(self, size: Size) -> None:
        self.size = pair_of(size)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"output_size": self.size}


class RandomResizedCrop(Applied):
    """A random region, resized.

    Args:
        size: height and width of the result, or both in one.
        scale: the region's share of the area, from and to.
        ratio: its width over its height, from and to.
        interpolation, antialias: as of `Resize`.
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

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        for _ in range(_TRIALS):
            area = height * width * numbers().between(*self.scale)
            ratio = numbers().exponential(*self.ratio)
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top = numbers().below(0, height - h + 1)
                return {"top": top, "left": numbers().below(0, width - w + 1), "height": h, "width": w}
        # None fitted: the middle, of the nearest ratio.
        ratio, h, w = width / height, height, width
        if ratio < min(self.ratio):
            h = round(width / min(self.ratio))
        elif ratio > max(self.ratio):
            w = round(height * max(self.ratio))
        return {"top": (height - h) // 2, "left": (width - w) // 2, "height": h, "width": w}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "size": self.size, "interpolation": self.interpolation, "antialias": self.antialias}


def _rising(bounds: Sequence[float], name: str) -> Sequence[float]:
    """Two numbers; warns if the second is less."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise TypeError(f"`{name}` is a sequence of two numbers. Got: {bounds!r}")
    if bounds[0] > bounds[1]:
        warnings.warn(f"`{name}` goes from {bounds[0]} to {bounds[1]}, which is less", stacklevel=3)
    return bounds


class FiveCrop(Applied):
    """A tuple of the four corners and the middle.

    Args:
        size: height and width of each, or both in one.
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
    """The same, and of the mirrored image.

    Args:
        size: as of `FiveCrop`.
        vertical_flip: it is upside down, and not left to right.
    """

    function = "ten_crop"

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"size": self.size, "vertical_flip": self.vertical_flip}


def check_padding_mode(mode: str) -> str:
    """A mode of padding.

    Raises:
        ValueError: there is no such mode.
    """
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"`padding_mode` is constant, edge, reflect or symmetric. Got: {mode!r}")
    return mode


class Pad(Applied):
    """A border on each side.

    Args:
        padding: one number, two (left and right, top and bottom), or four (left, top, right, bottom).
        fill: of `constant`: one value, one for each channel, or a dictionary of them by type.
        padding_mode: `constant`, `edge`, `reflect` or `symmetric`.
    """

    function = "pad"

    def __init__(self, padding: Size, fill: Fills = 0, padding_mode: str = "constant") -> None:
        try:
            borders_of(padding)
        except TypeError as error:
            raise ValueError(str(error)) from None
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fill = fills_of(fill)
        self.padding_mode = check_padding_mode(padding_mode)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"padding": self.padding, "fill": fill_for(self._fill, inpt), "padding_mode": self.padding_mode}


class RandomZoomOut(RandomlyApplied):
    """The image somewhere on a larger canvas, with a probability.

    Args:
        fill: around it; as of `Pad`.
        side_range: how much larger, from and to.
        p: the probability.
    """

    function = "pad"

    def __init__(self, fill: Fills = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self.fill = fill
        self._fill = fills_of(fill)
        self.side_range = several(side_range, "side_range")
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"`side_range` goes from at least 1 to more. Got: {side_range}")

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        low, high = self.side_range
        factor = np.float32(low) + numbers().fractions(1)[0] * np.float32(high - low)
        wide, high_ = int(np.float32(width) * factor), int(np.float32(height) * factor)
        places = numbers().fractions(2)
        left, top = int(np.float32(wide - width) * places[0]), int(np.float32(high_ - height) * places[1])
        return {"padding": [left, top, wide - (left + width), high_ - (top + height)]}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "fill": fill_for(self._fill, inpt)}


class _Warp(Applied):
    """Takes `interpolation` and `fill`."""

    interpolation: Interpolation
    fill: Fills

    def _filled(self, fill: Fills, interpolation: Interpolation) -> None:
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_of(fill)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "interpolation": self.interpolation, "fill": fill_for(self._fill, inpt)}


class RandomRotation(_Warp):
    """A rotation, counter-clockwise.

    Args:
        degrees: from and to, or one number x for -x to x.
        interpolation: `nearest`, `bilinear`, and of PIL's images `bicubic`.
        expand: the image grows, so that nothing is lost.
        center: x and y of the centre; None: the middle.
        fill: of the corners; as of `Pad`.
    """

    function = "rotate"

    def __init__(
        self,
        degrees: Floats,
        interpolation: Interpolation = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Fills = 0,
    ) -> None:
        self.degrees = angles_of(degrees, "degrees")
        self.expand = expand
        self.center = center if center is None else several(center, "center")
        self._filled(fill, interpolation)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"angle": numbers().between(*self.degrees)}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "expand": self.expand, "center": self.center}


class RandomAffine(_Warp):
    """A rotation, a translation, a scaling and a shear about the centre.

    Args:
        degrees: of the rotation: from and to, or one number x for -x to x.
        translate: the most across and down, as shares of width and height.
        scale: factors, from and to.
        shear: degrees along x, or along x and y (four): from and to, or one number.
        interpolation, fill, center: as of `RandomRotation`.
    """

    function = "affine"

    def __init__(
        self,
        degrees: Floats,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Floats | None = None,
        interpolation: Interpolation = "nearest",
        fill: Fills = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        self.degrees = angles_of(degrees, "degrees")
        self.translate = translate if translate is None else several(translate, "translate")
        if self.translate is not None and not all(0.0 <= share <= 1.0 for share in self.translate):
            raise ValueError(f"`translate` are shares from 0 to 1. Got: {translate}")
        self.scale = scale if scale is None else several(scale, "scale")
        if self.scale is not None and min(self.scale) <= 0:
            raise ValueError(f"`scale` are positive factors. Got: {scale}")
        self.shear = shear if shear is None else angles_of(shear, "shear", (2, 4))
        self.center = center if center is None else several(center, "center")
        self._filled(fill, interpolation)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        angle, moved, shear = numbers().between(*self.degrees), (0, 0), [0.0, 0.0]
        if self.translate is not None:
            across, down = float(self.translate[0] * width), float(self.translate[1] * height)
            moved = round(numbers().between(-across, across)), round(numbers().between(-down, down))
        scale = 1.0 if self.scale is None else numbers().between(*self.scale)
        for axis, place in enumerate(range(0, len(self.shear or ()), 2)):
            shear[axis] = numbers().between(*(self.shear or ())[place : place + 2])
        return {"angle": angle, "translate": moved, "scale": scale, "shear": tuple(shear)}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "center": self.center}


class RandomCrop(Applied):
    """A random region.

    Args:
        size: height and width, or both in one.
        padding: before that; as of `Pad`.
        pad_if_needed: smaller images are padded on both sides.
        fill, padding_mode: as of `Pad`.
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
        self.padding = borders_of(padding) if padding else None
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fill = fills_of(fill)
        self.padding_mode = check_padding_mode(padding_mode)

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
        return {
            "padding": [before[1], before[0], after[1], after[0]],
            "place": (*anchors, *self.size),
            "crops": tuple(extents) != self.size,
        }

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        if any(params["padding"]):
            fill = fill_for(self._fill, inpt)
            inpt = self.call("pad", inpt, params["padding"], fill=fill, padding_mode=self.padding_mode)
        return self.call("crop", inpt, *params["place"]) if params["crops"] else inpt


class RandomPerspective(RandomlyApplied, _Warp):
    """The corners moved inwards, with a probability.

    Args:
        distortion_scale: how far: 1 is to the middle.
        p: the probability.
        interpolation, fill: as of `RandomRotation`.
    """

    function = "perspective"

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Interpolation = "bilinear", fill: Fills = 0
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"`distortion_scale` is between 0 and 1. Got: {distortion_scale}")
        self.distortion_scale = distortion_scale
        self._filled(fill, interpolation)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        across = int(self.distortion_scale * (width // 2)) + 1
        down = int(self.distortion_scale * (height // 2)) + 1
        corners = []
        for is_right, is_low in ((False, False), (True, False), (True, True), (False, True)):
            x = numbers().below(width - across, width) if is_right else numbers().below(0, across)
            y = numbers().below(height - down, height) if is_low else numbers().below(0, down)
            corners.append([x, y])
        edges = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return {"coefficients": perspective_terms(edges, corners, None)}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "startpoints": None, "endpoints": None}


class ElasticTransform(_Warp):
    """Each pixel moved by a smooth random field. It needs PyTorch.

    Args:
        alpha: how far, across and down.
        sigma: how smoothly: the deviation of a Gaussian filter, across and down.
        interpolation, fill: as of `RandomRotation`.
    """

    function = "elastic"

    def __init__(
        self, alpha: Floats = 50.0, sigma: Floats = 5.0, interpolation: Interpolation = "bilinear", fill: Fills = 0
    ) -> None:
        self.alpha = range_of(alpha, "alpha")
        self.sigma = range_of(sigma, "sigma")
        self._filled(fill, interpolation)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        library, fields = torch(), []
        for axis, extent in enumerate((width, height)):
            field = library.rand(1, 1, height, width) * 2 - 1
            if self.sigma[axis] > 0.0:
                taps = int(8 * self.sigma[axis] + 1) | 1
                field = call("gaussian_blur", field, [taps, taps], list(self.sigma))
            fields.append(field * self.alpha[axis] / extent)
        return {"displacement": library.concat(fields, 1).permute(0, 2, 3, 1)}


class RandomIoUCrop(Applied):
    """A random region that covers a box by at least a random share, as the detector SSD was trained.

    Args:
        min_scale, max_scale: of the region's sides.
        min_aspect_ratio, max_aspect_ratio: width over height.
        sampler_options: the shares; from 1 on: the whole image.
        trials: for each share.
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
            least = self.options[numbers().below(0, len(self.options))]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                place = self._place(height, width)
                covered = place and _covered(corners, place, least)
                if place is not None and covered is not None:
                    top, left, h, w = place
                    return {"place": {"top": top, "left": left, "height": h, "width": w}, "covered": covered}

    def _place(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        span = np.float32(self.max_scale - self.min_scale)
        across, down = np.float32(self.min_scale) + span * numbers().fractions(2)
        w, h = int(np.float32(width) * across), int(np.float32(height) * down)
        if not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        places = numbers().fractions(2)
        left, top = int(np.float32(width - w) * places[0]), int(np.float32(height - h) * places[1])
        return (top, left, h, w) if w and h else None

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        if not params:
            return inpt
        result = self.call("crop", inpt, **params["place"])
        if kind_of(result) == "boxes":
            result[~params["covered"]] = 0
        return result


def _covered(corners: Tensor, place: tuple[int, int, int, int], least: float) -> Tensor | None:
    """Which boxes have their centres in a region, or None if none of these shares enough with it."""
    top, left, height, width = place
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
    own = (held[:, 2] - held[:, 0]) * (held[:, 3] - held[:, 1])
    area = (region[2] - region[0]) * (region[3] - region[1])
    shares = common / (own + area - common)
    return None if bool(shares.max() < least) else inside


def _upcast(values: Tensor) -> Tensor:
    """Wide enough for areas."""
    library = torch()
    if values.is_floating_point():
        return values if values.dtype in (library.float32, library.float64) else values.float()
    return values if values.dtype in (library.int32, library.int64) else values.int()


class ScaleJitter(Applied):
    """A random size, relative to what fits into a target.

    Args:
        target_size: height and width.
        scale_range: factors, from and to.
        interpolation, antialias: as of `Resize`.
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
    """A shorter side drawn from some.

    Args:
        min_size: of the shorter side: one, or some to draw from.
        max_size: the most that the longer side may have.
        interpolation, antialias: as of `Resize`.
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
    """A shorter side from ``min_size`` to below ``max_size``.

    Args:
        min_size, max_size: of the shorter side.
        interpolation, antialias: as of `Resize`.
    """

    def __init__(
        self, min_size: int, max_size: int, interpolation: Interpolation = "bilinear", antialias: bool | None = True
    ) -> None:
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"size": [numbers().below(self.min_size, self.max_size)]}
