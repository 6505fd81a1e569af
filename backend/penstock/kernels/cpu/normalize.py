"""Crop, mirror, normalize, convert and transpose in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.halves import round_to_halves
from penstock.kernels.cpu.options import OPTIONS, kernel, njit
from penstock.kernels.cpu.simd import load, load_pixels, store


@njit(inline="always", **OPTIONS)
def normalized(value: float, mean: np.float32, factor: np.float32, shift: np.float32) -> np.float32:
    """One value, normalized in float32; all kernels that normalize images use this order of operations."""
    return (np.float32(value) - mean) * factor + shift


@kernel
def _to_planes(
    source: np.ndarray,
    mirror: bool,
    mean: np.ndarray,
    factor: np.ndarray,
    shift: np.float32,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """source (H, W, C), contiguous in its last two dimensions -> target (C', H, W)."""
    height, width, channels = source.shape
    for c in range(channels):
        offset, scale = mean[c], factor[c]
        for y in range(height):
            row = source[y]
            out = target[c, y]
            if mirror:
                for x in range(width):
                    out[x] = converted(normalized(row[width - 1 - x, c], offset, scale, shift), like)
            else:
                for x in range(width):
                    out[x] = converted(normalized(row[x, c], offset, scale, shift), like)


# Pixels normalized at a time.
_LANES = 8


@kernel
def _pixels_to_planes(
    source: np.ndarray, mirror: bool, mean: np.ndarray, factor: np.ndarray, shift: np.float32, target: np.ndarray
) -> None:
    """source (H, W, 3) -> target (3, H, W) of float32; both contiguous in their last dimensions, W at least ``_LANES``."""
    height, width, _ = source.shape
    mean_r, mean_g, mean_b = mean[0], mean[1], mean[2]
    factor_r, factor_g, factor_b = factor[0], factor[1], factor[2]
    for y in range(height):
        row = source[y]
        red, green, blue = target[0, y], target[1, y], target[2, y]
        x = 0
        while x < width:
            # The last block overlaps the previous one, so that all blocks have the same size.
            x = min(x, width - _LANES)
            if mirror:
                r, g, b = load_pixels(row, (width - _LANES - x) * 3, _LANES, 3, True)
            else:
                r, g, b = load_pixels(row, x * 3, _LANES, 3, False)
            store(red, x, (r - mean_r) * factor_r + shift)
            store(green, x, (g - mean_g) * factor_g + shift)
            store(blue, x, (b - mean_b) * factor_b + shift)
            x += _LANES


@kernel
def _planes_to_planes(
    source: np.ndarray, mirror: bool, mean: np.ndarray, factor: np.ndarray, shift: np.float32, target: np.ndarray
) -> None:
    """source (C, H, W) -> target (C, H, W) of float32; both contiguous in W, which is at least ``_LANES``."""
    channels, height, width = source.shape
    for c in range(channels):
        offset, scale = mean[c], factor[c]
        for y in range(height):
            row, out = source[c, y], target[c, y]
            x = 0
            while x < width:
                x = min(x, width - _LANES)
                if mirror:
                    (values,) = load_pixels(row, width - _LANES - x, _LANES, 1, True)
                else:
                    values = load(row, x, _LANES)
                store(out, x, (values - offset) * scale + shift)
                x += _LANES


@kernel
def _to_pixels(
    source: np.ndarray,
    mirror: bool,
    mean: np.ndarray,
    factor: np.ndarray,
    shift: np.float32,
    target: np.ndarray,
    like: np.generic,
) -> None:
    """source (H, W, C) -> target (H, W, C')."""
    height, width, channels = source.shape
    for y in range(height):
        row = source[y]
        out = target[y]
        for x in range(width):
            pixel = row[width - 1 - x] if mirror else row[x]
            for c in range(channels):
                out[x, c] = converted(normalized(pixel[c], mean[c], factor[c], shift), like)


def crop_mirror_normalize(
    source: np.ndarray, layout: str, plan: Any, permutation: list[int], target: np.ndarray
) -> None:
    """Fills ``target`` according to ``plan`` (a ``CmnPlan``).

    Args:
        source: of ``layout``.
        layout: with one C.
        plan: of the sample.
        permutation: for each output dimension, the input dimension.
        target: contiguous.
    """
    if target.dtype == np.float16:
        wide = np.empty(target.shape, np.float32)
        crop_mirror_normalize(source, layout, plan, permutation, wide)
        round_to_halves(wide, target)
        return
    inside, place = plan.region.overlap(source.shape)
    part = source[inside]
    output = "".join(layout[axis] for axis in permutation)
    channels = part.shape[layout.index("C")]
    if plan.channels != channels or part.shape != plan.region.extents:
        shape = [-1 if letter == "C" else 1 for letter in output]
        target[...] = converted_fill(plan.fill, target.dtype).reshape(shape)
    if not part.size:
        return
    place = _mirrored_place(place, layout, plan)
    window = target[tuple(slice(0, channels) if layout[axis] == "C" else place[axis] for axis in permutation)]
    _normalize(part, layout, plan, window, output)


def _mirrored_place(place: tuple[slice, ...], layout: str, plan: Any) -> tuple[slice, ...]:
    if not plan.mirror:
        return place
    axis = layout.index("W")
    width = plan.region.extents[axis]
    mirrored = slice(width - place[axis].stop, width - place[axis].start)
    return (*place[:axis], mirrored, *place[axis + 1 :])


def converted_fill(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Fill values in the output's type."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.where(values >= 0, np.floor(values + 0.5), np.ceil(values - 0.5)), limits.min, limits.max).astype(
        dtype
    )


def _normalize(part: np.ndarray, layout: str, plan: Any, window: np.ndarray, output: str) -> None:
    """Both as stacks of images: (..., H, W, C) in, (..., C, H, W) or (..., H, W, C) out."""
    outer = [letter for letter in layout if letter not in "HWC"]
    pixels = part.transpose([layout.index(letter) for letter in (*outer, "H", "W", "C")])
    planes = output.index("C") < output.index("W")
    order = (*outer, "C", "H", "W") if planes else (*outer, "H", "W", "C")
    result = window.transpose([output.index(letter) for letter in order])
    shift = np.float32(plan.shift)
    for index in np.ndindex(pixels.shape[: len(outer)]) if outer else ((),):
        image, out = pixels[index], result[index]
        if planes and _vectorized(image, out):
            if image.strides[1] == image.itemsize:
                _planes_to_planes(image.transpose(2, 0, 1), plan.mirror, plan.mean, plan.factor, shift, out)
            else:
                _pixels_to_planes(image, plan.mirror, plan.mean, plan.factor, shift, out)
        else:
            kernel = _to_planes if planes else _to_pixels
            kernel(image, plan.mirror, plan.mean, plan.factor, shift, out, window.dtype.type(0))


def _vectorized(image: np.ndarray, out: np.ndarray) -> bool:
    """Whether the kernels for blocks of pixels take (H, W, C) -> (C, H, W)."""
    if image.shape[1] < _LANES or out.dtype != np.float32 or out.strides[2] != out.itemsize:
        return False
    if image.dtype != np.float32 and (image.dtype.kind not in "iu" or image.itemsize > 2):
        return False
    size = image.itemsize
    return image.strides[1] == size or (image.shape[2] == 3 and image.strides[1:] == (3 * size, size))
