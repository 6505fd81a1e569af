"""The functions for PIL images of modes other than L, LA, RGB and RGBA, implemented with Pillow's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.kernels import pillow
from penstock.plugin.torchvision._conversion import pil_to_tensor, to_pil_image
from penstock.plugin.torchvision._kinds import function_for, function_of
from penstock.plugin.torchvision._on_pixels import (
    compressed,
    five_regions,
    perspective_terms,
    shears_of,
    warn_of_antialiasing,
)
from penstock.plugin.torchvision._settings import (
    borders_of,
    crop_anchor,
    crop_borders,
    filter_name,
    pair_of,
    resized_extents,
)
from penstock.plugin.torchvision._typing import Corners, Fill, Floats, Interpolation, PilImage, Size

_FILTERS = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
_AFFINE, _PERSPECTIVE = 0, 2
_WITHOUT_HUE = ("1", "I", "F")
# Functions that convert the image to a tensor and back, and whether the result has the mode of the image.
_THROUGH_TENSORS = {"elastic": True, "erase": True, "gaussian_blur": True, "permute_channels": False}


def _filter(interpolation: Interpolation) -> Any:
    return _FILTERS[filter_name(interpolation)]


def _colour(fill: Fill, image: PilImage) -> Any:
    """Return the fill value in the form that Pillow accepts."""
    bands = len(image.getbands())
    values: list[float] = [fill or 0] if fill is None or isinstance(fill, (int, float)) else list(fill)
    values = values * bands if len(values) == 1 else values
    if len(values) != bands:
        raise ValueError(f"`fill` has {len(values)} values for an image of {bands} channels")
    values = values if image.mode == "F" else [int(value) for value in values]
    return values[0] if bands == 1 else tuple(values)


def _size(image: PilImage) -> tuple[int, int]:
    return image.height, image.width


@function_for("horizontal_flip", "picture")
def _mirrored(image: PilImage) -> PilImage:
    from PIL import Image

    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


@function_for("vertical_flip", "picture")
def _upside_down(image: PilImage) -> PilImage:
    from PIL import Image

    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


@function_for("crop", "picture")
def _crop(image: PilImage, top: int, left: int, height: int, width: int) -> PilImage:
    return image.crop((left, top, left + width, top + height))


@function_for("center_crop", "picture")
def _middle(image: PilImage, output_size: Size) -> PilImage:
    size = pair_of(output_size, "output_size")
    borders = crop_borders(_size(image), size)
    image = _pad(image, list(borders)) if any(borders) else image
    return image if _size(image) == size and any(borders) else _crop(image, *crop_anchor(_size(image), size), *size)


@function_for("resize", "picture")
def _resize(
    image: PilImage,
    size: Size | None,
    interpolation: Interpolation = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> PilImage:
    warn_of_antialiasing(antialias)
    extents = resized_extents(_size(image), size, max_size)
    return image if extents == _size(image) else image.resize(extents[::-1], _filter(interpolation))


@function_for("resized_crop", "picture")
def _resized_crop(
    image: PilImage,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = "bilinear",
    antialias: bool | None = True,
) -> PilImage:
    return _resize(_crop(image, top, left, height, width), size, interpolation, None, antialias)


@function_for("pad", "picture")
def _pad(image: PilImage, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> PilImage:
    from PIL import Image, ImageOps

    borders = borders_of(padding)
    if padding_mode not in pillow.PAD_MODES:
        raise ValueError(f"`padding_mode` must be one of {', '.join(pillow.PAD_MODES)}. Got: {padding_mode!r}")
    palette = image.getpalette() if image.mode == "P" else None
    if padding_mode == "constant":
        result = ImageOps.expand(image, border=borders, fill=_colour(fill, image))
    else:
        left, top, right, bottom = (max(border, 0) for border in borders)
        cut = [max(-border, 0) for border in borders]
        if any(cut):
            image = image.crop((cut[0], cut[1], image.width - cut[2], image.height - cut[3]))
        array = np.asarray(image)
        widths = [(top, bottom), (left, right), (0, 0)][: array.ndim]
        result = Image.fromarray(np.pad(array, widths, mode=padding_mode))  # type: ignore[call-overload]
    if palette is not None:
        result.putpalette(palette)
    return result


@function_for("affine", "picture")
def _affine(
    image: PilImage,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> PilImage:
    middle = [image.width * 0.5, image.height * 0.5] if center is None else [float(region) for region in center]
    terms = pillow.inverse_affine(middle, float(angle), list(translate), scale, shears_of(shear))
    colour = _colour(fill, image)
    return image.transform(image.size, _AFFINE, terms, _filter(interpolation), fillcolor=colour)  # type: ignore[arg-type]


@function_for("rotate", "picture")
def _rotate(
    image: PilImage,
    angle: float,
    interpolation: Interpolation = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> PilImage:
    middle: Any = None if center is None else tuple(center)
    return image.rotate(angle, _filter(interpolation), expand, middle, fillcolor=_colour(fill, image))


@function_for("perspective", "picture")
def _perspective(
    image: PilImage,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation = "bilinear",
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> PilImage:
    terms = perspective_terms(startpoints, endpoints, coefficients)
    colour = _colour(fill, image)
    return image.transform(image.size, _PERSPECTIVE, terms, _filter(interpolation), fillcolor=colour)  # type: ignore[arg-type]


@function_for("five_crop", "picture")
def _five_crops(image: PilImage, size: Size) -> tuple[PilImage, ...]:
    return tuple(_crop(image, *region) for region in five_regions(_size(image), size))


@function_for("ten_crop", "picture")
def _ten_crops(image: PilImage, size: Size, vertical_flip: bool = False) -> tuple[PilImage, ...]:
    return _five_crops(image, size) + _five_crops(_upside_down(image) if vertical_flip else _mirrored(image), size)


@function_for("grayscale_to_rgb", "picture")
def _coloured(image: PilImage) -> PilImage:
    return image.convert("RGB")


@function_for("rgb_to_grayscale", "picture")
def _grey(image: PilImage, num_output_channels: int = 1) -> PilImage:
    if num_output_channels not in (1, 3):
        raise ValueError(f"The number of channels must be 1 or 3. Got: {num_output_channels}")
    from PIL import Image

    grey = image.convert("L")
    return grey if num_output_channels == 1 else Image.merge("RGB", (grey, grey, grey))


@function_for("adjust_hue", "picture")
def _hue(image: PilImage, hue_factor: float) -> PilImage:
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"The hue factor must be in [-0.5, 0.5]. Got: {hue_factor:g}")
    if image.mode in _WITHOUT_HUE:
        return image
    from PIL import Image

    hue, saturation, value = image.convert("HSV").split()
    turned = np.array(hue) + np.int32(hue_factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(image.mode)


@function_for("adjust_gamma", "picture")
def _gamma(image: PilImage, gamma: float, gain: float = 1.0) -> PilImage:
    if gamma < 0:
        raise ValueError(f"Gamma must be at least 0. Got: {gamma:g}")
    table = [int((255 + 1 - 0.001) * gain * pow(value / 255.0, gamma)) for value in range(256)]
    return image.convert("RGB").point(table * 3).convert(image.mode)


def _enhanced(name: str, kind: str) -> None:
    """Declare a function of `ImageEnhance`, whose argument is a factor."""

    @function_for(name, "picture")
    def _(image: PilImage, *factor: float, **named: float) -> PilImage:
        from PIL import ImageEnhance

        return getattr(ImageEnhance, kind)(image).enhance(*factor, *named.values())


def _operated(name: str) -> None:
    """Declare a function of `ImageOps`, which takes one argument or none."""

    @function_for(name, "picture")
    def _(image: PilImage, *argument: float, **named: float) -> PilImage:
        from PIL import ImageOps

        return getattr(ImageOps, name)(image, *argument, *named.values())


for _name, _kind in (("brightness", "Brightness"), ("contrast", "Contrast"), ("saturation", "Color")):
    _enhanced(f"adjust_{_name}", _kind)
_enhanced("adjust_sharpness", "Sharpness")
for _name in ("autocontrast", "equalize", "invert", "posterize", "solarize"):
    _operated(_name)


@function_for("jpeg", "picture")
def _jpeg(image: PilImage, quality: int) -> PilImage:
    return compressed(image, quality)


def _through_tensors(name: str, keeps_mode: bool) -> None:
    function: Callable[..., Any] | None = function_of(name, "tensor")
    assert function is not None

    @function_for(name, "picture")
    def _(image: PilImage, *args: object, **kwargs: object) -> PilImage:
        result = function(pil_to_tensor(image), *args, **kwargs)
        return to_pil_image(result, image.mode if keeps_mode else None)


for _name, _keeps in _THROUGH_TENSORS.items():
    _through_tensors(_name, _keeps)
