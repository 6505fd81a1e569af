"""Transforms that rotate, shear, bend, or change the perspective."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plugin.torchvision._kinds import call
from penstock.plugin.torchvision._on_pixels import perspective_terms
from penstock.plugin.torchvision._random import numbers, torch
from penstock.plugin.torchvision._settings import angles_of, fills_of, range_of, several
from penstock.plugin.torchvision._typing import Fills, Floats, Interpolation, Leaf, Params, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import Applied, RandomlyApplied, common_size, fill_for


class _Warp(Applied):
    """Base class of transforms with `interpolation` and `fill`."""

    interpolation: Interpolation
    fill: Fills

    def _filled(self, fill: Fills, interpolation: Interpolation) -> None:
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_of(fill)

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**params, "interpolation": self.interpolation, "fill": fill_for(self._fill, inpt)}


class RandomRotation(_Warp):
    """Rotates counter-clockwise by a random angle.

    Args:
        degrees: the range of angles, or one number x for -x to x.
        interpolation: `nearest`, `bilinear`, or, for PIL images only, `bicubic`.
        expand: whether the image grows, so that all of it remains visible.
        center: x and y of the centre of rotation; None: the middle of the image.
        fill: the values of pixels outside the image; see `Pad`.
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

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Return a random angle."""
        return numbers().between(float(degrees[0]), float(degrees[1]))

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"angle": self.get_params(self.degrees)}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "expand": self.expand, "center": self.center}


class RandomAffine(_Warp):
    """Rotates, translates, scales and shears about the centre, at random.

    Args:
        degrees: the range of angles, or one number x for -x to x.
        translate: the largest shifts across and down, as fractions of width and height.
        scale: the range of the factor.
        shear: the range of the shear along x in degrees, or four numbers for x and y; one number x for -x to x along x.
        interpolation, fill, center: see `RandomRotation`.
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
            raise ValueError(f"`translate` must be shares from 0 to 1. Got: {translate}")
        self.scale = scale if scale is None else several(scale, "scale")
        if self.scale is not None and min(self.scale) <= 0:
            raise ValueError(f"`scale` must be positive factors. Got: {scale}")
        self.shear = shear if shear is None else angles_of(shear, "shear", (2, 4))
        self.center = center if center is None else several(center, "center")
        self._filled(fill, interpolation)

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Return a random angle, translation, scale and shear for an image of width and height ``img_size``."""
        angle, moved, shear = numbers().between(float(degrees[0]), float(degrees[1])), (0, 0), [0.0, 0.0]
        if translate is not None:
            across, down = float(translate[0] * img_size[0]), float(translate[1] * img_size[1])
            moved = round(numbers().between(-across, across)), round(numbers().between(-down, down))
        scale = 1.0 if scale_ranges is None else numbers().between(*scale_ranges)
        for axis, offset in enumerate(range(0, len(shears or ()), 2)):
            shear[axis] = numbers().between(*(shears or ())[offset : offset + 2])
        return angle, moved, scale, (shear[0], shear[1])

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))
        return dict(zip(("angle", "translate", "scale", "shear"), drawn))

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "center": self.center}


class RandomPerspective(RandomlyApplied, _Warp):
    """Changes the perspective by moving the corners inwards, with a probability.

    Args:
        distortion_scale: how far corners move at most; 1: to the middle of the image.
        p: the probability.
        interpolation, fill: see `RandomRotation`.
    """

    function = "perspective"

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Interpolation = "bilinear", fill: Fills = 0
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"`distortion_scale` must be between 0 and 1. Got: {distortion_scale}")
        self.distortion_scale = distortion_scale
        self._filled(fill, interpolation)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """Return the corners of an image, and the random points to which they move."""
        across = int(distortion_scale * (width // 2)) + 1
        down = int(distortion_scale * (height // 2)) + 1
        corners = []
        for is_right, is_low in ((False, False), (True, False), (True, True), (False, True)):
            x = numbers().below(width - across, width) if is_right else numbers().below(0, across)
            y = numbers().below(height - down, height) if is_low else numbers().below(0, down)
            corners.append([x, y])
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], corners

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        height, width = common_size(flat_inputs)
        return {"coefficients": perspective_terms(*self.get_params(width, height, self.distortion_scale), None)}

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {**super().arguments(inpt, params), "startpoints": None, "endpoints": None}


class ElasticTransform(_Warp):
    """Moves each pixel by a smooth random field. Needs PyTorch.

    Args:
        alpha: the strength of the displacement, across and down.
        sigma: the smoothness of the displacement, across and down: the standard deviation of a Gaussian filter.
        interpolation, fill: see `RandomRotation`.
    """

    function = "elastic"

    def __init__(
        self, alpha: Floats = 50.0, sigma: Floats = 5.0, interpolation: Interpolation = "bilinear", fill: Fills = 0
    ) -> None:
        self.alpha = range_of(alpha, "alpha")
        self.sigma = range_of(sigma, "sigma")
        self._filled(fill, interpolation)

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """Return a random displacement (1, H, W, 2) for an image of height and width ``size``."""
        (height, width), library, fields = size, torch(), []
        for axis, extent in enumerate((width, height)):
            field = library.rand(1, 1, height, width) * 2 - 1
            if sigma[axis] > 0.0:
                taps = int(8 * sigma[axis] + 1) | 1
                field = call("gaussian_blur", field, [taps, taps], list(sigma))
            fields.append(field * alpha[axis] / extent)
        return library.concat(fields, 1).permute(0, 2, 3, 1)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"displacement": self.get_params(self.alpha, self.sigma, common_size(flat_inputs))}
