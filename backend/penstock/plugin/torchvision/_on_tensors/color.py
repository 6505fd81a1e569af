"""Functions that change colours and pixel values."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plugin.torchvision._kinds import function_for
from penstock.plugin.torchvision._on_tensors.dtypes import converted, max_value_of
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Tensor

COLOURS = (1, 3)


# Weights of red, green and blue.
_LUMA = (0.2989, 0.587, 0.114)


def _check_colours(image: Tensor, name: str) -> int:
    channels = int(image.shape[-3])
    if channels not in COLOURS:
        raise TypeError(f"`{name}` takes images of 1 or 3 channels. Got {channels}")
    return channels


def check_factor(factor: float, name: str) -> None:
    if factor < 0:
        raise ValueError(f"`{name}` must not be negative. Got: {factor}")


def _bounded(values: Tensor, like: Tensor) -> Tensor:
    """Clamp floats to the range of the type of ``like``, and convert them to this type."""
    values = values.clamp_(0, max_value_of(like.dtype))
    return values if like.is_floating_point() else values.to(like.dtype)


def _blend(image: Tensor, other: Tensor, ratio: float) -> Tensor:
    return _bounded(image.mul(ratio).add_(other, alpha=1.0 - ratio), image)


def _lightness(image: Tensor) -> Tensor:
    """Return the lightness as floats, (..., 1, H, W)."""
    red, green, blue = image.unbind(dim=-3)
    return red.mul(_LUMA[0]).add_(green, alpha=_LUMA[1]).add_(blue, alpha=_LUMA[2]).unsqueeze(-3)


@function_for("rgb_to_grayscale", "tensor")
def _grey(image: Tensor, num_output_channels: int = 1) -> Tensor:
    if num_output_channels not in COLOURS:
        raise ValueError(f"The number of channels must be 1 or 3. Got: {num_output_channels}")
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
    check_factor(brightness_factor, "brightness_factor")
    _check_colours(image, "adjust_brightness")
    return _bounded(image.mul(brightness_factor), image)


@function_for("adjust_saturation", "tensor", "video")
def _saturation(image: Tensor, saturation_factor: float) -> Tensor:
    check_factor(saturation_factor, "saturation_factor")
    if _check_colours(image, "adjust_saturation") == 1:
        return image
    return _blend(image, _rounded_as(_lightness(image), image), float(saturation_factor))


def _rounded_as(values: Tensor, like: Tensor) -> Tensor:
    return values if like.is_floating_point() else values.floor_()


@function_for("adjust_contrast", "tensor", "video")
def _contrast(image: Tensor, contrast_factor: float) -> Tensor:
    check_factor(contrast_factor, "contrast_factor")
    if _check_colours(image, "adjust_contrast") == 3:
        grey = _rounded_as(_lightness(image), image)
    else:
        grey = image if image.is_floating_point() else image.to(torch().float32)
    return _blend(image, grey.mean(dim=(-3, -2, -1), keepdim=True), float(contrast_factor))


@function_for("adjust_sharpness", "tensor", "video")
def _sharpness(image: Tensor, sharpness_factor: float) -> Tensor:
    channels = _check_colours(image, "adjust_sharpness")
    check_factor(sharpness_factor, "sharpness_factor")
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
        raise ValueError(f"`hue_factor` must be in [-0.5, 0.5]. Got: {hue_factor}")
    if _check_colours(image, "adjust_hue") == 1 or image.numel() == 0:
        return image
    hue, saturation, value = _hsv(converted(image, torch().float32, True))
    hue.add_(hue_factor).remainder_(1.0)
    return converted(_rgb(hue, saturation, value), image.dtype, True)


def _hsv(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    library = torch()
    red, green, _ = image.unbind(dim=-3)
    low, high = library.aminmax(image, dim=-3)
    grey, span, ones = high == low, high - low, library.ones_like(high)
    saturation = span / library.where(grey, ones, high)
    away = (high.unsqueeze(-3) - image) / library.where(grey, ones, span).unsqueeze(-3)
    r, g, b = away.unbind(dim=-3)
    is_red, is_green = high == red, high == green
    # The hue of each pixel is one of these three values; the others are zero there.
    of_green = ((r + 2.0) - b) * (is_green & ~is_red)
    of_red = (b - g) * is_red
    of_blue = ((g + 4.0) - r) * ~(is_red | is_green)
    hue = (of_red + of_green + of_blue).mul_(1.0 / 6.0).add_(1.0).fmod_(1.0)
    return hue, saturation, high


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    library = torch()
    sixths = hue * 6
    sector = sixths.floor()
    rest, number = sixths - sector, sector.to(library.int32).remainder(6)
    share, less = saturation * rest, 1.0 - saturation
    q = ((1.0 - share) * value).clamp_(0.0, 1.0)
    t = ((share + less) * value).clamp_(0.0, 1.0)
    p = (less * value).clamp_(0.0, 1.0)
    # For each sector of the hue, which of the four values are red, green and blue.
    parts = library.stack((value, p, q, t), dim=-3)
    orders = library.tensor([[0, 2, 1, 1, 3, 0], [3, 0, 0, 2, 1, 1], [1, 1, 3, 0, 0, 2]], device=hue.device)
    chosen = orders[:, number]
    return parts.gather(-3, chosen.moveaxis(0, -3) if chosen.ndim > 3 else chosen)


@function_for("adjust_gamma", "tensor", "video")
def _gamma(image: Tensor, gamma: float, gain: float = 1.0) -> Tensor:
    check_factor(gamma, "gamma")
    floats = image if image.is_floating_point() else converted(image, torch().float32, True)
    result = floats.pow(gamma)
    if gain != 1.0:
        result = result.mul_(gain).clamp_(0.0, 1.0)
    return converted(result, image.dtype, True)


@function_for("posterize", "tensor", "video")
def _posterize(image: Tensor, bits: int) -> Tensor:
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"`bits` must be a number from 0 to 8. Got: {bits!r}")
    if image.is_floating_point():
        levels = 1 << bits
        return image.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    num_bits = max_value_of(image.dtype).bit_length()
    return image if bits >= num_bits else image & (((1 << bits) - 1) << (num_bits - bits))


@function_for("solarize", "tensor", "video")
def _solarize(image: Tensor, threshold: float) -> Tensor:
    if threshold > max_value_of(image.dtype):
        raise TypeError(f"`threshold` must be at most {max_value_of(image.dtype)}, white. Got: {threshold}")
    return torch().where(image >= threshold, _invert(image), image)


@function_for("invert", "tensor", "video")
def _invert(image: Tensor) -> Tensor:
    if image.is_floating_point():
        return 1.0 - image
    return image.bitwise_not() if image.dtype == torch().uint8 else image.bitwise_xor(max_value_of(image.dtype))


@function_for("autocontrast", "tensor", "video")
def _autocontrast(image: Tensor) -> Tensor:
    _check_colours(image, "autocontrast")
    if image.numel() == 0:
        return image
    library, white = torch(), max_value_of(image.dtype)
    floats = image if image.is_floating_point() else image.to(library.float32)
    low, high = (edge(dim=(-2, -1), keepdim=True) for edge in (floats.amin, floats.amax))
    flat = low == high
    scale = library.where(flat, 1.0, (high - low) * (1.0 / white))
    low = library.where(flat, 0.0, low)
    return ((floats - low) / scale).clamp_(0, white).to(image.dtype)


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
        raise ValueError(f"`std` must not be zero, as values are divided by it. Got: {std}")
    return (image.sub_(offset) if inplace else image - offset).div_(spread)
