"""Conversion of decoded video frames from planes of luma and half-size chroma to RGB, grey, or YCbCr."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import copy_joined

_ONE, _NEAR, _FAR, _MIDDLE = np.float32(1), np.float32(0.75), np.float32(0.25), np.float32(128)
_LUMA_SCALE, _LUMA_BASE, _CHROMA_SCALE = np.float32(255 / 219), np.float32(16), np.float32(255 / 224)
_TO_STUDIO, _CHROMA_TO_STUDIO = np.float32(219 / 255), np.float32(224 / 255)
# The coefficients of ITU-R BT.601.
_V_TO_R, _U_TO_G, _V_TO_G, _U_TO_B = np.float32(1.402), np.float32(-0.344136), np.float32(-0.714136), np.float32(1.772)
# Adding this number and subtracting it again rounds small numbers to integers, halves to even.
_ROUNDER = np.float32(3 << 22)
_LANES = 64
_LOWEST, _HIGHEST = np.float32(0), np.float32(255)


@kernel
def _level(value: np.float32) -> np.uint8:
    return np.uint8((min(max(value, _LOWEST), _HIGHEST) + _ROUNDER) - _ROUNDER)


@inner
def _upsampled(
    plane: np.ndarray, row: int, unit: np.float32, scale: np.float32, line: np.ndarray, output: np.ndarray
) -> None:
    """Compute one row of a chroma plane upsampled in both directions; in each direction, a sample lies in the middle between two pixels.

    Args:
        plane: an array of shape (H / 2, W / 2).
        row: the number of the row of the upsampled plane.
        unit: the factor that maps the plane's values to the scale from 0 to 255.
        scale: the factor by which differences from the middle value are multiplied.
        line: float32 of shape (W / 2,): scratch memory.
        output: filled; float32 of shape (W,).
    """
    near = row // 2
    far = min(max(near + (1 if row % 2 else -1), 0), len(plane) - 1)
    first, second, width = plane[near], plane[far], len(line)
    for x in range(width):
        a = (np.float32(first[x]) * unit - _MIDDLE) * scale
        b = (np.float32(second[x]) * unit - _MIDDLE) * scale
        line[x] = a * _NEAR + b * _FAR
    for x in range(1, width - 1):
        output[2 * x] = line[x] * _NEAR + line[x - 1] * _FAR
        output[2 * x + 1] = line[x] * _NEAR + line[x + 1] * _FAR
    for x in (0, width - 1):
        output[2 * x] = line[x] * _NEAR + line[max(x - 1, 0)] * _FAR
        output[2 * x + 1] = line[x] * _NEAR + line[min(x + 1, width - 1)] * _FAR


@kernel
def _join(colours: np.ndarray, pixels: np.ndarray, first: int) -> None:
    """Interleave ``colours``, which holds all reds, then all greens, then all blues, to a row of pixels from pixel ``first`` on."""
    width = len(colours) // 3
    whole = width - width % _LANES
    for x in range(0, whole, _LANES):
        copy_joined(colours, x, width, pixels, (first + x) * 3, _LANES)
    for x in range(whole, width):
        for channel in range(3):
            pixels[(first + x) * 3 + channel] = colours[channel * width + x]


@kernel
def planes_to_rgb(
    luma: np.ndarray, u: np.ndarray, v: np.ndarray, unit: np.float32, full_range: bool, output: np.ndarray
) -> None:
    """Convert a frame of YCbCr 4:2:0 to RGB by BT.601, with bilinear upsampling of chroma, in float32.

    Args:
        luma: uint8 or uint16 of shape (H, W), with even sides.
        u, v: arrays of shape (H / 2, W / 2).
        unit: the factor that maps values to the scale from 0 to 255: 1 for 8 bits, 1/4 for 10 bits.
        full_range: whether the range of values is 0 to 255 on that scale, instead of 16 to 235 (chroma: 16 to 240).
        output: filled; uint8 of shape (H, W, 3), contiguous.
    """
    height, width = luma.shape
    line = np.empty(width // 2, np.float32)
    across_u, across_v = np.empty(width, np.float32), np.empty(width, np.float32)
    scale, base = (_ONE, _LOWEST) if full_range else (_LUMA_SCALE, _LUMA_BASE)
    chroma_scale = _ONE if full_range else _CHROMA_SCALE
    colours, pixels = np.empty(3 * width, np.uint8), output.reshape(-1)
    red, green, blue = colours[:width], colours[width : 2 * width], colours[2 * width :]
    for row in range(height):
        _upsampled(u, row, unit, chroma_scale, line, across_u)
        _upsampled(v, row, unit, chroma_scale, line, across_v)
        bright = luma[row]
        for x in range(width):
            grey = (np.float32(bright[x]) * unit - base) * scale
            red[x] = _level(grey + _V_TO_R * across_v[x])
            green[x] = _level((grey + _U_TO_G * across_u[x]) + _V_TO_G * across_v[x])
            blue[x] = _level(grey + _U_TO_B * across_u[x])
        _join(colours, pixels, row * width)


@kernel
def luma_to_grey(luma: np.ndarray, unit: np.float32, full_range: bool, output: np.ndarray) -> None:
    """Convert luma to the brightness of the frame's RGB, from 0 to 255.

    Args:
        luma, unit, full_range: as for :func:`planes_to_rgb`.
        output: filled; uint8 of shape (H, W, 1), contiguous.
    """
    height, width = luma.shape
    grey = output.reshape(height, width)
    scale, base = (_ONE, _LOWEST) if full_range else (_LUMA_SCALE, _LUMA_BASE)
    for row in range(height):
        bright, line = luma[row], grey[row]
        for x in range(width):
            line[x] = _level((np.float32(bright[x]) * unit - base) * scale)


@kernel
def planes_to_ycbcr(
    luma: np.ndarray, u: np.ndarray, v: np.ndarray, unit: np.float32, full_range: bool, output: np.ndarray
) -> None:
    """Convert a frame of YCbCr 4:2:0 to pixels of YCbCr in studio range, with bilinear upsampling of chroma.

    Args:
        luma, u, v, unit, full_range: as for :func:`planes_to_rgb`.
        output: filled; uint8 of shape (H, W, 3), contiguous.
    """
    height, width = luma.shape
    line = np.empty(width // 2, np.float32)
    across_u, across_v = np.empty(width, np.float32), np.empty(width, np.float32)
    scale, base = (_TO_STUDIO, _LUMA_BASE) if full_range else (_ONE, _LOWEST)
    chroma_scale = _CHROMA_TO_STUDIO if full_range else _ONE
    colours, pixels = np.empty(3 * width, np.uint8), output.reshape(-1)
    grey, blue, red = colours[:width], colours[width : 2 * width], colours[2 * width :]
    for row in range(height):
        _upsampled(u, row, unit, chroma_scale, line, across_u)
        _upsampled(v, row, unit, chroma_scale, line, across_v)
        bright = luma[row]
        for x in range(width):
            grey[x] = _level((np.float32(bright[x]) * unit) * scale + base)
            blue[x] = _level(across_u[x] + _MIDDLE)
            red[x] = _level(across_v[x] + _MIDDLE)
        _join(colours, pixels, row * width)
