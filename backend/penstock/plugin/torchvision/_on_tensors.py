"""The functions, for tensors of images (..., C, H, W): PyTorch's arithmetic, in torchvision's order of operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from penstock.kernels import pillow
from penstock.plugin.torchvision._kinds import Boxes, function_for
from penstock.plugin.torchvision._on_pixels import (
    five_places,
    perspective_terms,
    shears_of,
    through_tensor,
)
from penstock.plugin.torchvision._pixels import Pixels
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._settings import (
    borders_of,
    crop_anchor,
    crop_borders,
    filter_name,
    pair_of,
    resized_extents,
)
from penstock.plugin.torchvision._typing import (
    Canvas,
    Corners,
    Device,
    DType,
    Fill,
    Floats,
    Function,
    Interpolation,
    Size,
    Tensor,
)

_COLOURS = (1, 3)
# Weights of red, green and blue.
_LUMA = (0.2989, 0.587, 0.114)


def most_of(dtype: DType) -> int:
    """What white is in a type: 1 of floats.

    Raises:
        TypeError: images have no such type.
    """
    library = torch()
    if dtype.is_floating_point:
        return 1
    if dtype in (library.uint8, library.int8, library.int16, library.uint16, library.int32, library.int64):
        return int(library.iinfo(dtype).max)
    raise TypeError(f"Images are of integers or floats. Got: {dtype}")


def _check_colours(image: Tensor, name: str) -> int:
    channels = int(image.shape[-3])
    if channels not in _COLOURS:
        raise TypeError(f"`{name}` takes images of 1 or 3 channels. Got {channels}")
    return channels


def _check_factor(factor: float, name: str) -> None:
    if factor < 0:
        raise ValueError(f"`{name}` is not negative. Got: {factor}")


def _bounded(values: Tensor, like: Tensor) -> Tensor:
    """Floats as values of an image of the type of ``like``."""
    values = values.clamp_(0, most_of(like.dtype))
    return values if like.is_floating_point() else values.to(like.dtype)


def _blend(image: Tensor, other: Tensor, ratio: float) -> Tensor:
    return _bounded(image.mul(ratio).add_(other, alpha=1.0 - ratio), image)


def _lightness(image: Tensor) -> Tensor:
    """In floats, (..., 1, H, W)."""
    red, green, blue = image.unbind(dim=-3)
    return red.mul(_LUMA[0]).add_(green, alpha=_LUMA[1]).add_(blue, alpha=_LUMA[2]).unsqueeze(-3)


@function_for("rgb_to_grayscale", "tensor")
def _grey(image: Tensor, num_output_channels: int = 1) -> Tensor:
    if num_output_channels not in _COLOURS:
        raise ValueError(f"The number of channels is 1 or 3. Got: {num_output_channels}")
    if image.shape[-3] == 1:
        return image.clone() if num_output_channels == 1 else _tripled(image)
    grey = _lightness(image).to(image.dtype)
    return grey.expand(image.shape) if num_output_channels == 3 else grey


def _tripled(image: Tensor) -> Tensor:
    times = [1] * image.ndim
    times[-3] = 3
    return image.repeat(times)


@function_for("grayscale_to_rgb", "tensor")
def _coloured(image: Tensor) -> Tensor:
    return image if image.shape[-3] >= 3 else _grey(image, 3)


@function_for("adjust_brightness", "tensor", "video")
def _brightness(image: Tensor, brightness_factor: float) -> Tensor:
    _check_factor(brightness_factor, "brightness_factor")
    _check_colours(image, "adjust_brightness")
    return _bounded(image.mul(brightness_factor), image)


@function_for("adjust_saturation", "tensor", "video")
def _saturation(image: Tensor, saturation_factor: float) -> Tensor:
    _check_factor(saturation_factor, "saturation_factor")
    if _check_colours(image, "adjust_saturation") == 1:
        return image
    return _blend(image, _whole(_lightness(image), image), float(saturation_factor))


def _whole(values: Tensor, like: Tensor) -> Tensor:
    return values if like.is_floating_point() else values.floor_()


@function_for("adjust_contrast", "tensor", "video")
def _contrast(image: Tensor, contrast_factor: float) -> Tensor:
    _check_factor(contrast_factor, "contrast_factor")
    if _check_colours(image, "adjust_contrast") == 3:
        grey = _whole(_lightness(image), image)
    else:
        grey = image if image.is_floating_point() else image.to(torch().float32)
    return _blend(image, grey.mean(dim=(-3, -2, -1), keepdim=True), float(contrast_factor))


@function_for("adjust_sharpness", "tensor", "video")
def _sharpness(image: Tensor, sharpness_factor: float) -> Tensor:
    channels = _check_colours(image, "adjust_sharpness")
    _check_factor(sharpness_factor, "sharpness_factor")
    if image.numel() == 0 or min(image.shape[-2:]) <= 2:
        return image
    library, shape, floats = torch(), image.shape, image.is_floating_point()
    batch = image.reshape(-1, *shape[-3:]) if image.ndim > 4 else image
    kernel = library.full((3, 3), 1.0 / 13.0, dtype=image.dtype if floats else library.float32, device=image.device)
    kernel[1, 1] = 5.0 / 13.0
    result = batch.to(kernel.dtype, copy=True)
    softer = library.nn.functional.conv2d(result, kernel.expand(channels, 1, 3, 3), groups=channels)
    softer = softer if floats else softer.round_()
    inside = result[..., 1:-1, 1:-1]
    inside.add_(softer.sub_(inside), alpha=1.0 - sharpness_factor)
    return _bounded(result, image).reshape(shape)


@function_for("adjust_hue", "tensor", "video")
def _hue(image: Tensor, hue_factor: float) -> Tensor:
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"`hue_factor` is in [-0.5, 0.5]. Got: {hue_factor}")
    if _check_colours(image, "adjust_hue") == 1 or image.numel() == 0:
        return image
    hue, saturation, value = _hsv(converted(image, torch().float32, True))
    hue.add_(hue_factor).remainder_(1.0)
    return converted(_rgb(hue, saturation, value), image.dtype, True)


def _hsv(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    library = torch()
    red, green, _ = image.unbind(dim=-3)
    least, most = library.aminmax(image, dim=-3)
    grey, span, ones = most == least, most - least, library.ones_like(most)
    saturation = span / library.where(grey, ones, most)
    away = (most.unsqueeze(-3) - image) / library.where(grey, ones, span).unsqueeze(-3)
    r, g, b = away.unbind(dim=-3)
    is_red, is_green = most == red, most == green
    # Each pixel's hue is one of these, and the others are zero.
    of_green = ((r + 2.0) - b) * (is_green & ~is_red)
    of_red = (b - g) * is_red
    of_blue = ((g + 4.0) - r) * ~(is_red | is_green)
    hue = (of_red + of_green + of_blue).mul_(1.0 / 6.0).add_(1.0).fmod_(1.0)
    return hue, saturation, most


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    library = torch()
    sixths = hue * 6
    sector = sixths.floor()
    rest, number = sixths - sector, sector.to(library.int32).remainder(6)
    share, less = saturation * rest, 1.0 - saturation
    q = ((1.0 - share) * value).clamp_(0.0, 1.0)
    t = ((share + less) * value).clamp_(0.0, 1.0)
    p = (less * value).clamp_(0.0, 1.0)
    # For each sector, which of them are red, green and blue.
    parts = library.stack((value, p, q, t), dim=-3)
    orders = library.tensor([[0, 2, 1, 1, 3, 0], [3, 0, 0, 2, 1, 1], [1, 1, 3, 0, 0, 2]], device=hue.device)
    chosen = orders[:, number]
    return parts.gather(-3, chosen.moveaxis(0, -3) if chosen.ndim > 3 else chosen)


@function_for("adjust_gamma", "tensor", "video")
def _gamma(image: Tensor, gamma: float, gain: float = 1.0) -> Tensor:
    _check_factor(gamma, "gamma")
    floats = image if image.is_floating_point() else converted(image, torch().float32, True)
    result = floats.pow(gamma)
    if gain != 1.0:
        result = result.mul_(gain).clamp_(0.0, 1.0)
    return converted(result, image.dtype, True)


@function_for("posterize", "tensor", "video")
def _posterize(image: Tensor, bits: int) -> Tensor:
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"`bits` is a number from 0 to 8. Got: {bits!r}")
    if image.is_floating_point():
        levels = 1 << bits
        return image.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    kept = most_of(image.dtype).bit_length()
    return image if bits >= kept else image & (((1 << bits) - 1) << (kept - bits))


@function_for("solarize", "tensor", "video")
def _solarize(image: Tensor, threshold: float) -> Tensor:
    if threshold > most_of(image.dtype):
        raise TypeError(f"`threshold` is at most {most_of(image.dtype)}, white. Got: {threshold}")
    return torch().where(image >= threshold, _invert(image), image)


@function_for("invert", "tensor", "video")
def _invert(image: Tensor) -> Tensor:
    if image.is_floating_point():
        return 1.0 - image
    return image.bitwise_not() if image.dtype == torch().uint8 else image.bitwise_xor(most_of(image.dtype))


@function_for("autocontrast", "tensor", "video")
def _autocontrast(image: Tensor) -> Tensor:
    _check_colours(image, "autocontrast")
    if image.numel() == 0:
        return image
    library, most = torch(), most_of(image.dtype)
    floats = image if image.is_floating_point() else image.to(library.float32)
    low, high = (edge(dim=(-2, -1), keepdim=True) for edge in (floats.amin, floats.amax))
    flat = low == high
    scale = library.where(flat, 1.0, (high - low) * (1.0 / most))
    low = library.where(flat, 0.0, low)
    return ((floats - low) / scale).clamp_(0, most).to(image.dtype)


@function_for("equalize", "tensor", "video")
def _equalize(image: Tensor) -> Tensor:
    if image.numel() == 0:
        return image
    library, dtype = torch(), image.dtype
    levels = converted(image, library.uint8, True)
    planes = levels.reshape(-1, levels.shape[-2] * levels.shape[-1]).long()
    tables = library.arange(256).repeat(len(planes), 1)
    for plane, table in zip(planes, tables):
        histogram = library.bincount(plane, minlength=256)
        step = int(plane.numel() - histogram[histogram.nonzero()[-1, 0]]) // 255
        if step:
            table[0] = 0
            table[1:] = ((histogram.cumsum(0)[:-1] + step // 2) // step).clamp_(0, 255)
    result = tables.to(library.uint8).gather(-1, planes).reshape(levels.shape)
    return converted(result, dtype, True)


@function_for("permute_channels", "tensor", "video")
def _permute(image: Tensor, permutation: Sequence[int]) -> Tensor:
    if len(permutation) != image.shape[-3]:
        raise ValueError(f"`permutation` has {len(permutation)} numbers for {image.shape[-3]} channels")
    order = torch().as_tensor([int(number) for number in permutation], device=image.device)
    return image.index_select(-3, order)


@function_for("normalize", "tensor", "video")
def _normalize(image: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    if not image.is_floating_point():
        raise TypeError(
            f"`normalize` takes tensors of floats. Got {image.dtype}: convert it with `to_dtype(..., scale=True)`"
        )
    if image.ndim < 3:
        raise ValueError(f"`normalize` takes tensors (..., C, H, W). Got the shape {tuple(image.shape)}")
    offset, spread = (
        torch().as_tensor(values, dtype=image.dtype, device=image.device).reshape(-1, 1, 1) for values in (mean, std)
    )
    if not spread.all():
        raise ValueError(f"`std` is zero, which nothing is divided by. Got: {std}")
    return (image.sub_(offset) if inplace else image - offset).div_(spread)


@function_for("gaussian_blur", "tensor", "video")
def _blur(image: Tensor, kernel_size: Size, sigma: Floats | None = None) -> Tensor:
    sizes, widths = blur_of(kernel_size, sigma)
    if image.numel() == 0:
        return image
    library, floats = torch(), image.is_floating_point()
    dtype = image.dtype if floats else library.float32
    across, down = (_bell(size, width, dtype, image.device) for size, width in zip(sizes, widths))
    kernel = (down.unsqueeze(-1) * across).expand(image.shape[-3], 1, sizes[1], sizes[0])
    batch = image.reshape(-1, *image.shape[-3:]).to(dtype)
    borders = [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2]
    batch = library.nn.functional.pad(batch, borders, mode="reflect")
    result = library.nn.functional.conv2d(batch, kernel, groups=image.shape[-3]).reshape(image.shape)
    return result if floats else result.round_().to(image.dtype)


def blur_of(kernel_size: Size, sigma: Floats | None) -> tuple[list[int], list[float]]:
    """Sizes and standard deviations, across and down.

    Raises:
        TypeError, ValueError: they are none.
    """
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(size <= 0 or size % 2 == 0 for size in sizes):
        raise ValueError(f"`kernel_size` is one or two odd positive numbers. Got: {kernel_size!r}")
    if sigma is None:
        return sizes, [size * 0.15 + 0.35 for size in sizes]
    if not isinstance(sigma, (int, float, list, tuple)):
        raise TypeError(f"`sigma` is one or two numbers. Got: {sigma!r}")
    widths = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else list(sigma)
    widths = widths * 2 if len(widths) == 1 else widths
    if len(widths) != 2 or any(width <= 0 for width in widths):
        raise ValueError(f"`sigma` is one or two positive numbers. Got: {sigma!r}")
    return sizes, widths


def blur_kernel(kernel_size: Size, sigma: Floats) -> np.ndarray:
    """The weights that PyTorch computes, float32 of shape (rows, columns)."""
    library = torch()
    sizes, widths = blur_of(kernel_size, sigma)
    across, down = (_bell(size, width, library.float32, "cpu") for size, width in zip(sizes, widths))
    return (down.unsqueeze(-1) * across).numpy()


def _bell(size: int, width: float, dtype: DType, device: Device) -> Tensor:
    edge = (size - 1) / (2.0 * math.sqrt(2.0))
    places = torch().linspace(-edge, edge, steps=size, dtype=dtype, device=device)
    return places.div(width).pow(2).neg().softmax(dim=0)


@function_for("gaussian_noise", "tensor", "video")
def _noise(image: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Tensor:
    library = torch()
    _check_factor(sigma, "sigma")
    if image.is_floating_point():
        result = image + (library.randn_like(image) * sigma + mean)
        return result.clamp(0, 1) if clip else result
    if image.dtype != library.uint8:
        raise ValueError(f"`gaussian_noise` takes images of uint8 or floats. Got: {image.dtype}")
    noise = (library.randn_like(image, dtype=library.float32) * (sigma * 255) + mean * 255).to(library.int16)
    result = image + noise
    return (result.clamp(0, 255) if clip else result).to(library.uint8)


@function_for("gaussian_noise", "pixels")
def _no_noise(image: Pixels, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> NoReturn:
    raise ValueError("`gaussian_noise` takes tensors, and not PIL's images: convert them with `to_image`")


@function_for("to_dtype", "tensor", "video")
def converted(image: Tensor, dtype: DType | None = None, scale: bool = False) -> Tensor:
    """An image of another type; with ``scale`` white stays white.

    Raises:
        RuntimeError: the type holds more than the floats can tell apart.
    """
    library = torch()
    dtype = library.float32 if dtype is None else dtype
    if image.dtype == dtype or not scale:
        return image.to(dtype)
    if image.is_floating_point():
        return image.to(dtype) if dtype.is_floating_point else _as_integers(image, dtype)
    if dtype.is_floating_point:
        return image.to(dtype).mul_(1.0 / most_of(image.dtype))
    bits = most_of(dtype).bit_length() - most_of(image.dtype).bit_length()
    if bits < 0:
        # Shifts of uint16 are not there.
        narrower = image / 2**-bits if image.dtype == library.uint16 else image.bitwise_right_shift(-bits)
        return narrower.to(dtype)
    wider = image.to(dtype)
    return wider * 2**bits if dtype == library.uint16 else wider.bitwise_left_shift_(bits)


def _as_integers(image: Tensor, dtype: DType) -> Tensor:
    library = torch()
    exact = {library.float32: (library.int32, library.int64), library.float64: (library.int64,)}
    if dtype in exact.get(image.dtype, ()):
        raise RuntimeError(f"{image.dtype} cannot tell all values of {dtype} apart")
    # All integers get equal shares of the floats, but for 1.0, which becomes the largest.
    return image.mul(float(most_of(dtype)) + 1.0 - 1e-3).to(dtype)


@function_for("to_dtype", "mask", "boxes", "points")
def _converted_other(
    values: Tensor, *told: Boxes | Canvas, dtype: DType | None = None, scale: bool = False
) -> Tensor | tuple[Tensor, Canvas]:
    result = values.to(dtype)
    if not told:
        return result
    return result, told[0].canvas if isinstance(told[0], Boxes) else told[0]


@function_for("horizontal_flip", "tensor", "video", "mask")
def _mirrored(image: Tensor) -> Tensor:
    return image.flip(-1)


@function_for("vertical_flip", "tensor", "video", "mask")
def _upside_down(image: Tensor) -> Tensor:
    return image.flip(-2)


@function_for("resize", "tensor", "video")
def resized(
    image: Tensor,
    size: Size | None,
    interpolation: Interpolation = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    """A tensor of images in another size."""
    library, name = torch(), filter_name(interpolation)
    extents = resized_extents((int(image.shape[-2]), int(image.shape[-1])), size, max_size)
    if extents == tuple(image.shape[-2:]):
        return image
    nearest = name.startswith("nearest")
    if name == "lanczos" and not antialias:
        raise ValueError("`interpolation='lanczos'` needs `antialias=True`")
    shape = (*image.shape[:-2], *extents)
    if image.numel() == 0:
        return image.reshape(shape)
    known = (library.float32, library.float64, library.uint8)
    batch = _pixels_first(image.reshape(-1, *image.shape[-3:]))
    batch = batch if image.dtype in known else batch.to(library.float32)
    result = library.nn.functional.interpolate(
        batch,
        size=list(extents),
        mode=name,
        align_corners=None if nearest else False,
        antialias=bool(antialias) and not nearest,
    )
    if image.dtype not in known and not image.is_floating_point():
        result = result.round_()
    return result.to(image.dtype).reshape(shape)


def _pixels_first(batch: Tensor) -> Tensor:
    """A single image whose channels come last in memory, so that PyTorch sees that."""
    library = torch()
    count, *shape = batch.shape
    if count == 1 and batch.is_contiguous(memory_format=library.channels_last) and batch.stride(0) != batch.numel():
        return batch.as_strided((1, *shape), (batch.numel(), *batch.stride()[1:]))
    return batch


@function_for("resize", "mask")
def _resized_mask(
    mask: Tensor,
    size: Size | None,
    interpolation: Interpolation = "nearest",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    name = filter_name(interpolation)
    return resized(mask, size, name if name.startswith("nearest") else "nearest", max_size)


@function_for("crop", "tensor", "video", "mask")
def cropped(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A region, black beyond the image."""
    rows, columns = image.shape[-2:]
    bottom, right = top + height, left + width
    part = image[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= columns and bottom <= rows:
        return part
    borders = [
        max(min(right, 0) - left, 0),
        max(right - max(columns, left), 0),
        max(min(bottom, 0) - top, 0),
        max(bottom - max(rows, top), 0),
    ]
    return torch().nn.functional.pad(part, borders)


@function_for("center_crop", "tensor", "video", "mask")
def _middle(image: Tensor, output_size: Size) -> Tensor:
    size = pair_of(output_size, "output_size")
    if image.numel() == 0:
        return image.reshape(*image.shape[:-2], *size)
    left, top, right, bottom = crop_borders((int(image.shape[-2]), int(image.shape[-1])), size)
    if left or top or right or bottom:
        image = torch().nn.functional.pad(image, [left, right, top, bottom])
    rows, columns = image.shape[-2:]
    if (rows, columns) == size:
        return image
    top, left = crop_anchor((int(rows), int(columns)), size)
    return image[..., top : top + size[0], left : left + size[1]]


@function_for("resized_crop", "tensor", "video")
def _resized_crop(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = "bilinear",
    antialias: bool | None = True,
) -> Tensor:
    return resized(cropped(image, top, left, height, width), size, interpolation, None, antialias)


@function_for("resized_crop", "mask")
def _resized_crop_mask(
    mask: Tensor, top: int, left: int, height: int, width: int, size: Size, **_unused: object
) -> Tensor:
    return resized(cropped(mask, top, left, height, width), size, "nearest")


@function_for("pad", "tensor", "video")
def padded(image: Tensor, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Tensor:
    """A border on each side."""
    left, top, right, bottom = borders_of(padding)
    if padding_mode not in pillow.PAD_MODES:
        raise ValueError(f"`padding_mode` is one of {', '.join(pillow.PAD_MODES)}. Got: {padding_mode!r}")
    values = [0.0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(values) > 1 and padding_mode != "constant":
        raise ValueError(f"`padding_mode='{padding_mode}'` has no use for several values to fill in")
    if padding_mode == "constant":
        return _framed(image, (left, top, right, bottom), values)
    if padding_mode == "symmetric":
        return _symmetric(image, (left, top, right, bottom))
    library = torch()
    batch = image.reshape(-1, *image.shape[-3:])
    floats = batch if image.is_floating_point() else batch.to(library.float32)
    mode = "replicate" if padding_mode == "edge" else "reflect"
    result = library.nn.functional.pad(floats, [left, right, top, bottom], mode=mode).to(image.dtype)
    return result.reshape(*image.shape[:-2], *result.shape[-2:])


def _framed(image: Tensor, borders: tuple[int, int, int, int], values: Sequence[float]) -> Tensor:
    library, (left, top, right, bottom) = torch(), borders
    if len(values) == 1:
        return library.nn.functional.pad(image, [left, right, top, bottom], value=float(values[0]))
    result = library.nn.functional.pad(image, [left, right, top, bottom])
    colours = library.tensor(list(values), device=image.device).to(image.dtype).reshape(-1, 1, 1)
    height, width = result.shape[-2:]
    for place in (
        (slice(0, max(top, 0)), slice(None)),
        (slice(None), slice(0, max(left, 0))),
        (slice(height - max(bottom, 0), height), slice(None)),
        (slice(None), slice(width - max(right, 0), width)),
    ):
        rows, columns = place
        result[..., rows, columns] = colours
    return result


def _symmetric(image: Tensor, borders: tuple[int, int, int, int]) -> Tensor:
    library, (left, top, right, bottom) = torch(), borders
    inside = image[
        ...,
        max(-top, 0) : image.shape[-2] - max(-bottom, 0),
        max(-left, 0) : image.shape[-1] - max(-right, 0),
    ]
    rows, columns = (
        library.cat([places[:before].flip(0), places, places.flip(0)[:after]])
        for places, before, after in (
            (library.arange(inside.shape[-2]), max(top, 0), max(bottom, 0)),
            (library.arange(inside.shape[-1]), max(left, 0), max(right, 0)),
        )
    )
    return inside[..., rows[:, None], columns[None, :]]


@function_for("pad", "mask")
def _padded_mask(mask: Tensor, padding: Size, fill: Fill = None, padding_mode: str = "constant") -> Tensor:
    if isinstance(fill, (tuple, list)):
        raise ValueError(f"Masks are filled with one value. Got: {fill!r}")
    return padded(mask, padding, fill, padding_mode)


def _sampled(image: Tensor, grid: Tensor, name: str, fill: Fill) -> Tensor:
    """The values at places of a grid (1, h, w, 2)."""
    library = torch()
    channels, extents = image.shape[-3], tuple(grid.shape[1:3])
    shape = (*image.shape[:-2], *extents)
    if image.numel() == 0:
        return image.reshape(shape)
    batch = image.reshape(-1, *image.shape[-3:])
    floats = batch.to(grid.dtype)
    if fill is not None:
        floats = library.cat((floats, library.ones_like(floats[:, :1])), dim=1)
    places = grid.expand(len(floats), -1, -1, -1)
    values = library.nn.functional.grid_sample(floats, places, mode=name, padding_mode="zeros", align_corners=False)
    if fill is not None:
        values, inside = values[:, :channels], values[:, channels:].expand(-1, channels, -1, -1)
        filled = [float(fill)] if isinstance(fill, (int, float)) else list(fill)
        colours = library.tensor(filled, dtype=values.dtype, device=values.device).reshape(1, -1, 1, 1)
        if name == "nearest":
            values = library.where(inside < 0.5, colours.expand_as(values), values)
        else:
            values = (values - colours) * inside + colours
    return (values if batch.dtype == grid.dtype else values.round().to(image.dtype)).reshape(shape)


def _check_warp(image: Tensor, interpolation: Interpolation, fill: Fill) -> str:
    name = filter_name(interpolation)
    if name not in ("nearest", "bilinear"):
        raise ValueError(f"Warps of tensors are nearest or bilinear. Got: {name}")
    if isinstance(fill, (tuple, list)) and len(fill) not in (1, image.shape[-3]):
        raise ValueError(f"`fill` has {len(fill)} values for {image.shape[-3]} channels")
    return name


def _type_of(image: Tensor) -> DType:
    return image.dtype if image.is_floating_point() else torch().float32


def _centred_grid(terms: Sequence[float], image: Tensor, extents: tuple[int, int]) -> Tensor:
    """Where the pixels of an output of ``extents`` come from, where terms count from the middle."""
    library, dtype = torch(), _type_of(image)
    places = library.empty(1, *extents, 3, dtype=dtype, device=image.device)
    height, width = extents
    places[..., 0] = library.linspace((1.0 - width) * 0.5, (width - 1.0) * 0.5, steps=width, device=image.device)
    down = library.linspace((1.0 - height) * 0.5, (height - 1.0) * 0.5, steps=height, device=image.device)
    places[..., 1] = down.unsqueeze(-1)
    places[..., 2] = 1
    matrix = library.tensor(list(terms), dtype=dtype, device=image.device).reshape(1, 2, 3).transpose(1, 2)
    halves = library.tensor([0.5 * image.shape[-1], 0.5 * image.shape[-2]], dtype=dtype, device=image.device)
    return places.reshape(1, -1, 3).bmm(matrix / halves).reshape(1, height, width, 2)


def _from_middle(center: Sequence[float] | None, image: Tensor) -> list[float]:
    if center is None:
        return [0.0, 0.0]
    return [place - extent * 0.5 for place, extent in zip(center, (image.shape[-1], image.shape[-2]))]


@function_for("affine", "tensor", "video")
def _affine(
    image: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation = "nearest",
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    if scale <= 0:
        raise ValueError(f"`scale` is positive. Got: {scale}")
    name = _check_warp(image, interpolation, fill)
    moved = [float(distance) for distance in translate]
    terms = pillow.inverse_affine(_from_middle(center, image), float(angle), moved, scale, shears_of(shear))
    return _sampled(image, _centred_grid(terms, image, (image.shape[-2], image.shape[-1])), name, fill)


@function_for("affine", "mask")
def _affine_mask(
    mask: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: Interpolation | None = None,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    return _affine(mask, angle, translate, scale, shear, "nearest", fill, center)


def expanded_extents(terms: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """The height and width that hold a whole rotated image."""
    library = torch()
    half_width, half_height = 0.5 * width, 0.5 * height
    corners = [[x, y, 1.0] for x, y in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
    corners = [[x * half_width, y * half_height, one] for x, y, one in corners]
    points = library.tensor(corners).matmul(library.tensor(list(terms)).reshape(2, 3).T)
    middle = library.tensor((half_width, half_height))
    # Differences below a ten-thousandth are roundings.
    low, high = (((edge(dim=0) + middle) * (1.0 / 1e-4)).trunc() * 1e-4 for edge in (points.amin, points.amax))
    size = high.ceil() - low.floor()
    return int(size[1]), int(size[0])


@function_for("rotate", "tensor", "video")
def _rotate(
    image: Tensor,
    angle: float,
    interpolation: Interpolation = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    angle = angle % 360
    if center is None:
        if angle == 0:
            return image.clone()
        square = expand or image.shape[-1] == image.shape[-2]
        if angle == 180 or (angle in (90, 270) and square):
            return torch().rot90(image, k=int(angle // 90), dims=(-2, -1))
    name = _check_warp(image, interpolation, fill)
    terms = pillow.inverse_affine(_from_middle(center, image), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    extents = (int(image.shape[-2]), int(image.shape[-1]))
    if expand:
        extents = expanded_extents(terms, extents[1], extents[0])
    return _sampled(image, _centred_grid(terms, image, extents), name, fill)


@function_for("rotate", "mask")
def _rotate_mask(
    mask: Tensor,
    angle: float,
    interpolation: Interpolation | None = None,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    return _rotate(mask, angle, "nearest", expand, center, fill)


@function_for("perspective", "tensor", "video")
def _perspective(
    image: Tensor,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation = "bilinear",
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    terms = perspective_terms(startpoints, endpoints, coefficients)
    name = _check_warp(image, interpolation, fill)
    library, dtype, device = torch(), _type_of(image), image.device
    height, width = image.shape[-2:]
    places = library.empty(1, height, width, 3, dtype=dtype, device=device)
    places[..., 0] = library.linspace(0.5, width - 0.5, steps=width, dtype=dtype, device=device)
    places[..., 1] = library.linspace(0.5, height - 0.5, steps=height, dtype=dtype, device=device).unsqueeze(-1)
    places[..., 2] = 1
    places = places.reshape(1, -1, 3)
    above = library.tensor([terms[:3], terms[3:6]], dtype=dtype, device=device).T
    above = above / library.tensor([0.5 * width, 0.5 * height], dtype=dtype, device=device)
    below = library.tensor([[terms[6], terms[7], 1.0]] * 2, dtype=dtype, device=device).T
    grid = places.bmm(above[None]) / places.bmm(below[None]) - 1.0
    return _sampled(image, grid.reshape(1, height, width, 2), name, fill)


@function_for("perspective", "mask")
def _perspective_mask(
    mask: Tensor,
    startpoints: Corners | None,
    endpoints: Corners | None,
    interpolation: Interpolation | None = None,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    return _perspective(mask, startpoints, endpoints, "nearest", fill, coefficients)


def relative_places(height: int, width: int, like: Tensor) -> Tensor:
    """(1, H, W, 2): the centres of all pixels, from -1 to 1."""
    library, dtype = torch(), _type_of(like)
    places = library.empty(1, height, width, 2, dtype=dtype, device=like.device)
    for axis, extent in enumerate((width, height)):
        edge = (extent - 1) / extent
        line = library.linspace(-edge, edge, extent, dtype=dtype, device=like.device)
        places[..., axis] = line if axis == 0 else line.unsqueeze(-1)
    return places


def check_displacement(displacement: Tensor, height: int, width: int) -> None:
    """Raises an error unless it moves each pixel of an image of this size.

    Raises:
        TypeError, ValueError: it is no tensor, or of another shape.
    """
    if not isinstance(displacement, torch().Tensor):
        raise TypeError(f"`displacement` is a tensor. Got: {type(displacement).__name__}")
    if tuple(displacement.shape) != (1, height, width, 2):
        raise ValueError(f"`displacement` has the shape {(1, height, width, 2)}. Got: {tuple(displacement.shape)}")


@function_for("elastic", "tensor", "video")
def _elastic(
    image: Tensor, displacement: Tensor, interpolation: Interpolation = "bilinear", fill: Fill = None
) -> Tensor:
    height, width = image.shape[-2:]
    check_displacement(displacement, height, width)
    name = _check_warp(image, interpolation, fill)
    places = relative_places(height, width, image)
    return _sampled(image, places + displacement.to(places), name, fill)


@function_for("elastic", "mask")
def _elastic_mask(
    mask: Tensor, displacement: Tensor, interpolation: Interpolation | None = None, fill: Fill = None
) -> Tensor:
    return _elastic(mask, displacement, "nearest", fill)


@function_for("five_crop", "tensor", "video")
def _five(image: Tensor, size: Size) -> tuple[Tensor, ...]:
    extents = (int(image.shape[-2]), int(image.shape[-1]))
    return tuple(cropped(image, *place) for place in five_places(extents, size))


@function_for("ten_crop", "tensor", "video")
def _ten(image: Tensor, size: Size, vertical_flip: bool = False) -> tuple[Tensor, ...]:
    return _five(image, size) + _five(image.flip(-2 if vertical_flip else -1), size)


@function_for("erase", "tensor", "video")
def _erase(image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    image = image if inplace else image.clone()
    image[..., i : i + h, j : j + w] = v
    return image


@function_for("jpeg", "tensor", "video")
def _compressed(image: Tensor, quality: int) -> Tensor:
    import io

    from PIL import Image

    library = torch()
    if image.dtype != library.uint8 or image.shape[-3] not in _COLOURS:
        raise ValueError(f"`jpeg` takes images of uint8 of 1 or 3 channels. Got {image.dtype}, {tuple(image.shape)}")
    results = []
    for one in image.reshape(-1, *image.shape[-3:]):
        file, array = io.BytesIO(), one.permute(1, 2, 0).numpy()
        Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(file, "JPEG", quality=quality)
        results.append(library.from_numpy(np.array(Image.open(file), ndmin=3).reshape(array.shape)).permute(2, 0, 1))
    return library.stack(results).reshape(image.shape) if results else image.clone()


@function_for("uniform_temporal_subsample", "tensor", "video")
def _frames(video: Tensor, num_samples: int) -> Tensor:
    last = video.shape[-4] - 1
    return video.index_select(-4, torch().linspace(0, last, num_samples, device=video.device).long())


def _declare_for_pixels(functions: dict[str, Function]) -> None:
    for name, function in functions.items():
        through_tensor(name, function)


_declare_for_pixels({"gaussian_blur": _blur, "elastic": _elastic, "erase": _erase})
