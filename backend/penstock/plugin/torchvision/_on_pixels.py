"""The functions for PIL images that are stored as pixels, with Pillow's arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from penstock.kernels import pillow
from penstock.plugin.torchvision._kinds import function_for
from penstock.plugin.torchvision._pixels import Pixels, joined_fill
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import (
    borders_of,
    crop_anchor,
    crop_borders,
    filter_name,
    pair_of,
    resized_extents,
)
from penstock.plugin.torchvision._typing import Corners, Fill, Floats, Interpolation, PilImage, Size, Tensor

# Pillow has a single nearest filter, which torchvision uses for both of its nearest modes.
_NAMES = {"nearest-exact": "nearest"}
_CORNERS = 4


def _pixelwise(name: str, function: Callable[..., np.ndarray]) -> None:
    """Declare a function of arrays as the implementation of ``name``."""

    @function_for(name, "pixels")
    def _(image: Pixels, *args: object, **kwargs: object) -> Pixels:
        return image.in_same_form(function(image.array, *args, **kwargs))


_ON_ARRAYS: dict[str, Callable[..., np.ndarray]] = {
    "adjust_brightness": lambda image, brightness_factor: pillow.adjust_brightness(image, brightness_factor),
    "adjust_contrast": lambda image, contrast_factor: pillow.adjust_contrast(image, contrast_factor),
    "adjust_saturation": lambda image, saturation_factor: pillow.adjust_saturation(image, saturation_factor),
    "adjust_sharpness": lambda image, sharpness_factor: pillow.adjust_sharpness(image, sharpness_factor),
    "adjust_hue": lambda image, hue_factor: pillow.adjust_hue(image, hue_factor),
    "adjust_gamma": lambda image, gamma, gain=1.0: pillow.adjust_gamma(image, gamma, gain),
    "posterize": lambda image, bits: pillow.posterize(image, bits),
    "solarize": lambda image, threshold: pillow.solarize(image, threshold),
    "autocontrast": pillow.autocontrast,
    "equalize": pillow.equalize,
    "invert": pillow.invert,
    "rgb_to_grayscale": lambda image, num_output_channels=1: pillow.grey(image, num_output_channels),
    "permute_channels": lambda image, permutation: image[:, :, [int(channel) for channel in permutation]],
}
for _name, _function in _ON_ARRAYS.items():
    _pixelwise(_name, _function)


@function_for("grayscale_to_rgb", "pixels")
def _coloured(image: Pixels) -> Pixels:
    array = image.array
    return image.in_same_form(array[:, :, :1].repeat(3, axis=2) if image.channels < 3 else array[:, :, :3])


@function_for("horizontal_flip", "pixels")
def _mirrored(image: Pixels) -> Pixels:
    return image.mirrored()


@function_for("vertical_flip", "pixels")
def _upside_down(image: Pixels) -> Pixels:
    return image.mirrored(vertically=True)


@function_for("crop", "pixels")
def _crop(image: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    return image.cropped(top, left, height, width)


@function_for("center_crop", "pixels")
def _middle(image: Pixels, output_size: Size) -> Pixels:
    size = pair_of(output_size, "output_size")
    borders = crop_borders(image.size, size)
    if any(borders):
        image = image.in_same_form(pillow.pad(image.array, *borders))
        if image.size == size:
            return image
    return image.cropped(*crop_anchor(image.size, size), *size)


def warn_of_antialiasing(antialias: bool | None) -> None:
    """Warn if antialiasing is disabled, which has no effect."""
    if antialias is False:
        warnings.warn("PIL's images are resized with antialiasing, whatever `antialias` says", stacklevel=5)


@function_for("resize", "pixels")
def _resize(
    image: Pixels,
    size: Size | None,
    interpolation: Interpolation = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Pixels:
    warn_of_antialiasing(antialias)
    extents = resized_extents(image.size, size, max_size)
    name = filter_name(interpolation)
    return image if extents == image.size else image.resized(*extents, _NAMES.get(name, name))


@function_for("resized_crop", "pixels")
def _resized_crop(
    image: Pixels,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = "bilinear",
    antialias: bool | None = True,
) -> Pixels:
    return _resize(image.cropped(top, left, height, width), size, interpolation, None, antialias)


@function_for("pad", "pixels")
def _pad(image: Pixels, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Pixels:
    return image.in_same_form(pillow.pad(image.array, *borders_of(padding), joined_fill(fill), padding_mode))


def _warp_name(interpolation: Interpolation) -> str:
    name = filter_name(interpolation)
    return _NAMES.get(name, name)


@function_for("affine", "pixels")
def _affine(
    image: Pixels,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Pixels:
    height, width = image.size
    middle = [width * 0.5, height * 0.5] if center is None else [float(region) for region in center]
    terms = pillow.inverse_affine(middle, float(angle), list(translate), scale, shears_of(shear))
    return image.in_same_form(pillow.affine(image.array, terms, _warp_name(interpolation), joined_fill(fill)))


def shears_of(shear: Floats) -> list[float]:
    """Return the shear along x and y. A number is the shear along x; a sequence of one number is the shear along both."""
    if isinstance(shear, (int, float)):
        return [float(shear), 0.0]
    angles = [float(angle) for angle in shear]
    return angles * 2 if len(angles) == 1 else angles


@function_for("rotate", "pixels")
def _rotate(
    image: Pixels,
    angle: float,
    interpolation: Interpolation = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Pixels:
    rotated = pillow.rotate(image.array, angle, _warp_name(interpolation), expand, center, joined_fill(fill))
    return image.in_same_form(rotated)


@function_for("perspective", "pixels")
def _perspective(
    image: Pixels,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation = "bilinear",
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Pixels:
    terms = perspective_terms(startpoints, endpoints, coefficients)
    return image.in_same_form(pillow.affine(image.array, terms, _warp_name(interpolation), joined_fill(fill)))


def perspective_terms(
    startpoints: Corners | None, endpoints: Corners | None, coefficients: Sequence[float] | None
) -> list[float]:
    """Return the eight coefficients of a perspective: ``coefficients`` if set, otherwise those that map ``endpoints`` to
    ``startpoints``.

    Raises:
        ValueError: both coefficients and points are set, or neither, or the number of values is wrong.
    """
    if (coefficients is None) == (startpoints is None or endpoints is None):
        raise ValueError("Either `coefficients` or `startpoints` and `endpoints` must be passed")
    if coefficients is not None:
        if len(coefficients) != 8:
            raise ValueError(f"`coefficients` must be eight numbers. Got {len(coefficients)}")
        return list(coefficients)
    assert startpoints is not None
    assert endpoints is not None
    if len(startpoints) != _CORNERS or len(endpoints) != _CORNERS:
        raise ValueError(
            f"`startpoints` and `endpoints` must be four corners each. Got {len(startpoints)} and {len(endpoints)}"
        )
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    return _solved(np.array(rows, np.float64), np.array(startpoints, np.float64).reshape(-1))


def _solved(matrix: np.ndarray, values: np.ndarray) -> list[float]:
    """Return the least-squares solution, computed in double precision and rounded to single precision."""
    try:
        library = torch()
    except ImportError:
        return np.linalg.lstsq(matrix, values, rcond=None)[0].astype(np.float32).tolist()
    found = library.linalg.lstsq(library.from_numpy(matrix), library.from_numpy(values), driver="gels").solution
    return found.to(library.float32).tolist()


@function_for("five_crop", "pixels")
def _five_crops(image: Pixels, size: Size) -> tuple[Pixels, ...]:
    return tuple(image.cropped(*region) for region in five_regions(image.size, size))


def five_regions(extents: tuple[int, int], size: Size) -> list[tuple[int, int, int, int]]:
    """Return top, left, height and width of five regions: at the four corners and in the middle.

    Raises:
        ValueError: the image is smaller than a region.
    """
    height, width = pair_of(size)
    if height > extents[0] or width > extents[1]:
        raise ValueError(f"Crops of {(height, width)} do not fit into an image of {tuple(extents)}")
    bottom, right = extents[0] - height, extents[1] - width
    anchors = [(0, 0), (0, right), (bottom, 0), (bottom, right), crop_anchor(extents, (height, width))]
    return [(*anchor, height, width) for anchor in anchors]


@function_for("ten_crop", "pixels")
def _ten_crops(image: Pixels, size: Size, vertical_flip: bool = False) -> tuple[Pixels, ...]:
    return _five_crops(image, size) + _five_crops(image.mirrored(vertical_flip), size)


def compressed(image: PilImage, quality: int) -> PilImage:
    """Compress an image as JPEG, and return the decoded result."""
    import io

    from PIL import Image

    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).copy()


@function_for("jpeg", "pixels")
def _compressed(image: Pixels, quality: int) -> Pixels:
    array = np.asarray(compressed(image.picture(), quality))
    return image.in_same_form(array[:, :, None] if array.ndim == 2 else array)


def tensor_of(image: Pixels) -> Tensor:
    """Return a uint8 tensor (C, H, W) that shares no memory with the image."""
    array = image.array
    # A resized image has newly computed memory, which nothing else uses.
    shared = image.plan is None
    return torch().from_numpy(array.copy() if shared else array).permute(2, 0, 1)


def through_tensor(name: str, function: Callable[..., Tensor]) -> None:
    """Declare a function of tensors as the implementation for PIL images, which are converted to tensors and back."""

    @function_for(name, "pixels")
    def _(image: Pixels, *args: object, **kwargs: object) -> Pixels:
        result = function(tensor_of(image), *args, **kwargs)
        return image.in_same_form(result.permute(1, 2, 0).numpy())
