"""Pillow's functions with exactly its results, on uint8 images (H, W, C), where C is 1 (mode L), 2 (LA), 3 (RGB) or 4 (RGBA).

These are the functions that `torchvision.transforms.v2` calls for images of the class `PIL.Image`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}
"""The filters for warps, and their numbers."""

PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def _is_translucent(image: np.ndarray) -> bool:
    return image.shape[2] in (2, 4)


def grey(image: np.ndarray, channels: int = 1) -> np.ndarray:
    """Return the image in mode L, with ``channels`` equal channels.

    Raises:
        ValueError: ``channels`` is neither 1 nor 3.
    """
    if channels not in (1, 3):
        raise ValueError(f"The number of channels must be 1 or 3. Got: {channels}")
    one = image[:, :, :1]
    if image.shape[2] >= 3:
        from penstock.kernels.cpu.pillow import luma

        one = np.empty((*image.shape[:2], 1), np.uint8)
        luma(image.reshape(-1, image.shape[2]), one.reshape(-1))
    return one.copy() if channels == 1 else one.repeat(3, axis=2)


def _blended(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """Return the result of `Image.blend`."""
    from penstock.kernels.cpu.pillow import blend

    if share in (0.0, 1.0):
        return (second if share else first).copy()
    result = np.empty(second.shape, np.uint8)
    before, after = (np.ascontiguousarray(image).reshape(-1) for image in (first, second))
    blend(before, after, np.float32(share), result.reshape(-1))
    return result


def _with_colours(image: np.ndarray, colours: np.ndarray | int) -> np.ndarray:
    """Return an image of these colours with the alpha channel of ``image``, if it has one."""
    result = image.copy()
    result[:, :, : image.shape[2] - _is_translucent(image)] = colours
    return result


def adjust_brightness(image: np.ndarray, factor: float) -> np.ndarray:
    """Return the result of `ImageEnhance.Brightness`."""
    return _blended(_with_colours(image, 0), image, factor)


def adjust_contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Return the result of `ImageEnhance.Contrast`."""
    lightness = grey(image)
    mean = int(int(lightness.sum(dtype=np.int64)) / lightness.size + 0.5)
    return _blended(_with_colours(image, mean), image, factor)


def adjust_saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Return the result of `ImageEnhance.Color`."""
    if image.shape[2] < 3 or factor == 1.0:
        return image.copy()
    from penstock.kernels.cpu.pillow import blend_grey

    result, channels = np.empty(image.shape, np.uint8), image.shape[2]
    blend_grey(image.reshape(-1, channels), np.float32(factor), result.reshape(-1, channels))
    return result


def adjust_sharpness(image: np.ndarray, factor: float) -> np.ndarray:
    """Return the result of `ImageEnhance.Sharpness`."""
    from penstock.kernels.cpu.pillow import smooth

    softer = image
    if min(image.shape[:2]) >= 3:
        softer = np.empty(image.shape, np.uint8)
        smooth(np.ascontiguousarray(image), softer)
        if _is_translucent(image):
            softer[:, :, -1] = image[:, :, -1]
    return _blended(softer, image, factor)


def adjust_hue(image: np.ndarray, factor: float) -> np.ndarray:
    """Return the image with its hue, in mode HSV, rotated by the fraction ``factor`` of a full turn; the result is opaque.

    Raises:
        ValueError: the factor is not in [-0.5, 0.5].
    """
    if not -0.5 <= factor <= 0.5:
        raise ValueError(f"The hue factor must be in [-0.5, 0.5]. Got: {factor:g}")
    result = np.full(image.shape, 255, np.uint8)
    if image.shape[2] < 3:
        result[..., 0] = image[..., 0]
        return result
    from penstock.kernels.cpu.pillow import shift_hue

    shift = int(np.int32(factor * 255).astype(np.uint8))
    channels = image.shape[2]
    shift_hue(image.reshape(-1, channels), shift, result.reshape(-1, channels))
    return result


def _refuse(image: np.ndarray, channels: Sequence[int], name: str) -> None:
    if image.shape[2] not in channels:
        modes = " or ".join(_MODES[known] for known in channels)
        # Pillow raises an OSError here, and operators raise a ValueError for invalid values; this error is both.
        raise io.UnsupportedOperation(f"`{name}` requires an image of mode {modes}. Got: {_MODES[image.shape[2]]}")


def _looked_up(image: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the image with its values looked up in a table of shape (256,), for all channels, or (C, 256)."""
    from penstock.kernels.cpu.pillow import look_up_levels

    result, channels = np.empty(image.shape, np.uint8), image.shape[2]
    tables = np.ascontiguousarray(np.broadcast_to(table, (channels, 256)))
    look_up_levels(image.reshape(-1, channels), tables, result.reshape(-1, channels))
    return result


def adjust_gamma(image: np.ndarray, gamma: float, gain: float = 1.0) -> np.ndarray:
    """Return ``255.999 * gain * (x / 255) ** gamma``; the result is opaque.

    Raises:
        ValueError: gamma is negative.
    """
    if gamma < 0:
        raise ValueError(f"Gamma must be at least 0. Got: {gamma:g}")
    table = [int((255 + 1 - 0.001) * gain * pow(value / 255.0, gamma)) for value in range(256)]
    result = _looked_up(image, np.clip(table, 0, 255).astype(np.uint8))
    if _is_translucent(image):
        result[:, :, -1] = 255
    return result


def posterize(image: np.ndarray, bits: int) -> np.ndarray:
    """Return the result of `ImageOps.posterize`: only the upper ``bits`` bits of each value, 1 to 8, are kept."""
    _refuse(image, (1, 3), "posterize")
    if not 1 <= bits <= 8:
        raise ValueError(f"Posterizing must keep 1 to 8 bits. Got: {bits}")
    return image & np.uint8(~(2 ** (8 - int(bits)) - 1) & 255)


def solarize(image: np.ndarray, threshold: float) -> np.ndarray:
    """Return the result of `ImageOps.solarize`: values from the threshold on are inverted."""
    _refuse(image, (1, 3), "solarize")
    values = np.arange(256)
    return _looked_up(image, np.where(values < threshold, values, 255 - values).astype(np.uint8))


def invert(image: np.ndarray) -> np.ndarray:
    """Return the result of `ImageOps.invert`."""
    _refuse(image, (1, 3), "invert")
    return np.bitwise_not(image)


def _histograms(image: np.ndarray) -> np.ndarray:
    from penstock.kernels.cpu.pillow import count_levels

    counts = np.zeros((image.shape[2], 256), np.int64)
    count_levels(image.reshape(-1, image.shape[2]), counts)
    return counts


def autocontrast(image: np.ndarray) -> np.ndarray:
    """Return the result of `ImageOps.autocontrast`: each channel's range of values is stretched to 0 to 255."""
    _refuse(image, (1, 3), "autocontrast")
    values, tables = np.arange(256), []
    for histogram in _histograms(image):
        used = np.flatnonzero(histogram)
        low, high = (int(used[0]), int(used[-1])) if used.size else (0, 0)
        table = values
        if high > low:
            scale = 255.0 / (high - low)
            table = np.clip(np.trunc(values * scale + -low * scale), 0, 255)
        tables.append(table.astype(np.uint8))
    return _looked_up(image, np.stack(tables))


def equalize(image: np.ndarray) -> np.ndarray:
    """Return the result of `ImageOps.equalize`: each channel's histogram is equalized."""
    _refuse(image, (1, 3), "equalize")
    tables = []
    for histogram in _histograms(image):
        used = histogram[histogram > 0]
        step = int(used.sum() - used[-1]) // 255 if len(used) > 1 else 0
        before = np.concatenate([[0], np.cumsum(histogram)[:-1]])
        table = (step // 2 + before) // step if step else np.arange(256)
        tables.append(np.clip(table, 0, 255).astype(np.uint8))
    return _looked_up(image, np.stack(tables))


def crop(image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Return a region of an image; beyond the image, pixels are black and transparent."""
    rows, columns = image.shape[:2]
    if top >= 0 and left >= 0 and top + height <= rows and left + width <= columns:
        return image[top : top + height, left : left + width]
    result = np.zeros((max(height, 0), max(width, 0), *image.shape[2:]), image.dtype)
    first, last = max(top, 0), min(top + height, rows)
    begin, end = max(left, 0), min(left + width, columns)
    if first < last and begin < end:
        result[first - top : last - top, begin - left : end - left] = image[first:last, begin:end]
    return result


def pad(
    image: np.ndarray,
    left: int,
    top: int,
    right: int,
    bottom: int,
    fill: Sequence[float] = (0,),
    mode: str = "constant",
) -> np.ndarray:
    """Return the image with a border on each side; a negative border cuts pixels off.

    Args:
        image: an image (H, W, C) of any type.
        left, top, right, bottom: the borders, in pixels.
        fill: the values for `constant`: one for each channel, or one for all.
        mode: one of :data:`PAD_MODES`.
    """
    height, width = image.shape[0] + top + bottom, image.shape[1] + left + right
    if mode == "constant":
        result = np.empty((height, width, image.shape[2]), image.dtype)
        result[...] = np.asarray(fill_of(image, fill), image.dtype)
        inside = crop(image, max(-top, 0), max(-left, 0), image.shape[0], image.shape[1])
        rows, columns = max(top, 0), max(left, 0)
        part = inside[: min(height, image.shape[0] + top) - rows, : min(width, image.shape[1] + left) - columns]
        result[rows : rows + part.shape[0], columns : columns + part.shape[1]] = part
        return result
    if mode not in PAD_MODES:
        raise ValueError(f"The padding mode must be one of {', '.join(PAD_MODES)}. Got: {mode!r}")
    cut = [max(-border, 0) for border in (left, top, right, bottom)]
    image = image[cut[1] : image.shape[0] - cut[3], cut[0] : image.shape[1] - cut[2]]
    borders = ((max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0))
    return np.pad(image, borders, mode=mode)  # type: ignore[call-overload]


def fill_of(image: np.ndarray, fill: Sequence[float]) -> list[int]:
    """Return a fill value for each channel of an image.

    Raises:
        ValueError: ``fill`` has neither one value nor as many as the image has channels.
    """
    channels = image.shape[2]
    if len(fill) not in (1, channels):
        raise ValueError(f"`fill` must have one value, or one for each of {channels} channels. Got: {len(fill)} values")
    return [int(value) for value in fill] * (channels if len(fill) == 1 else 1)


def affine(
    image: np.ndarray,
    terms: Sequence[float],
    kind: str = "nearest",
    fill: Sequence[float] = (0,),
    extents: tuple[int, int] | None = None,
) -> np.ndarray:
    """Return the result of `Image.transform` with AFFINE or PERSPECTIVE.

    Args:
        image: an image (H, W, C).
        terms: the coefficients of the map from output to input coordinates: six, or eight for PERSPECTIVE.
        kind: one of :data:`FILTERS`.
        fill: the value outside the image: one for each channel, or one for all.
        extents: the output's height and width; None: the image's.

    Raises:
        ValueError: ``kind`` is not a filter for warps.
    """
    from penstock.kernels.cpu.pillow import warp
    from penstock.kernels.cpu.translucency import premultiplied, unmultiply

    if kind not in FILTERS:
        raise ValueError(f"The interpolation of a warped PIL image must be one of {', '.join(FILTERS)}. Got: {kind!r}")
    result = np.empty((*(extents or image.shape[:2]), image.shape[2]), np.uint8)
    result[...] = np.array(fill_of(image, fill)).astype(np.uint8)
    weighed = _is_translucent(image) and kind != "nearest"
    source = np.ascontiguousarray(image)
    warp(premultiplied(source) if weighed else source, np.array(terms, np.float64), FILTERS[kind], result)
    if weighed:
        unmultiply(result)
    return result


perspective = affine


def rotated_extents(height: int, width: int, angle: float, expand: bool) -> tuple[int, int]:
    """Return the height and width of the result of :func:`rotate`."""
    if not expand:
        return height, width
    if angle % 360.0 in (90, 270):
        return width, height
    if angle % 360.0 in (0, 180):
        return height, width
    return _rotation(height, width, angle % 360.0, None, True)[1]


def _rotation(
    height: int, width: int, angle: float, centre: Sequence[float] | None, expand: bool
) -> tuple[list[float], tuple[int, int]]:
    """Return the arguments ``terms`` and ``extents`` of :func:`affine` for a rotation."""
    middle = centre or (width / 2, height / 2)
    radians = -math.radians(angle)
    cosine, sine = round(math.cos(radians), 15), round(math.sin(radians), 15)
    opposite = round(-math.sin(radians), 15)

    def moved(x: float, y: float, c: float, f: float) -> tuple[float, float]:
        return cosine * x + sine * y + c, opposite * x + cosine * y + f

    across, down = moved(-middle[0], -middle[1], 0.0, 0.0)
    across, down = across + middle[0], down + middle[1]
    if expand:
        corners = [moved(x, y, across, down) for x, y in ((0, 0), (width, 0), (width, height), (0, height))]
        wide, high = (
            math.ceil(max(corner[axis] for corner in corners)) - math.floor(min(corner[axis] for corner in corners))
            for axis in (0, 1)
        )
        across, down = moved(-(wide - width) / 2.0, -(high - height) / 2.0, across, down)
        height, width = high, wide
    return [cosine, sine, across, opposite, cosine, down], (height, width)


def rotate(
    image: np.ndarray,
    angle: float,
    kind: str = "nearest",
    expand: bool = False,
    centre: Sequence[float] | None = None,
    fill: Sequence[float] = (0,),
) -> np.ndarray:
    """Return the result of `Image.rotate`: the image rotated counter-clockwise by ``angle`` degrees."""
    angle = angle % 360.0
    if not centre:
        square = expand or image.shape[0] == image.shape[1]
        if angle in (0, 180) or (angle in (90, 270) and square):
            return np.ascontiguousarray(np.rot90(image, int(angle // 90)))
    terms, extents = _rotation(image.shape[0], image.shape[1], angle, centre, expand)
    return affine(image, terms, kind, fill, extents)


def convolve(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the rounded result of PyTorch's `conv2d` on each channel of an image, which is padded by reflection.

    Args:
        image: a uint8 image (H, W, C) with at least two channels.
        kernel: float32, with an odd number of rows and of columns.

    Raises:
        ValueError: the image has one channel, for which PyTorch has other kernels; or the filter is too large for the image.
    """
    from penstock.kernels.cpu import pillow as kernels

    if image.shape[2] < 2:
        raise ValueError("A filter requires an image with at least two channels. Got: mode L")
    if any(size // 2 >= extent for size, extent in zip(kernel.shape, image.shape)):
        raise ValueError(f"A filter of shape {kernel.shape} is too large for an image of shape {image.shape[:2]}")
    result = np.empty(image.shape, np.uint8)
    kernels.convolve(image, np.ascontiguousarray(kernel, np.float32), result)
    return result


def inverse_affine(
    centre: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Return the coefficients of the map that undoes a shear, a rotation and a scaling about the centre, and a translation; angles are
    in degrees.

    As in torchvision, the matrix is R(angle - y) * shear / cos(y), where R is a rotation and y is the vertical angle of ``shear``.
    """
    a, b, c, d = _shorn_rotation(angle, shear)
    inverse = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    x, y = centre[0] + translate[0], centre[1] + translate[1]
    inverse[2] += centre[0] - inverse[0] * x - inverse[1] * y
    inverse[5] += centre[1] - inverse[3] * x - inverse[4] * y
    return inverse


def forward_affine(
    centre: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Return the coefficients of the map whose inverse is :func:`inverse_affine`: it maps input to output coordinates."""
    a, b, c, d = _shorn_rotation(angle, shear)
    terms = [a * scale, b * scale, 0.0, c * scale, d * scale, 0.0]
    terms[2] += centre[0] + translate[0] - terms[0] * centre[0] - terms[1] * centre[1]
    terms[5] += centre[1] + translate[1] - terms[3] * centre[0] - terms[4] * centre[1]
    return terms


def _shorn_rotation(angle: float, shear: Sequence[float]) -> tuple[float, float, float, float]:
    turn, along, across = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    cosine, tangent = math.cos(across), math.tan(along)
    a, c = math.cos(turn - across) / cosine, math.sin(turn - across) / cosine
    return a, -(a * tangent + math.sin(turn)), c, math.cos(turn) - c * tangent
