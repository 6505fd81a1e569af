"""Images whose pixels come from where maps say, on CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.cpu.convert import converted

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _tap(source, y, x, c, fill):  # type: ignore[no-untyped-def]
    if 0 <= y < source.shape[0] and 0 <= x < source.shape[1]:
        return np.float32(source[y, x, c])
    return fill


@njit(**_OPTIONS)
def _remap(source, mapx, mapy, shift, linear, fill, target, like):  # type: ignore[no-untyped-def]
    # In one addition: where it is none, what is just below a pixel's edge stays there.
    to_nearest = shift + np.float32(0.5)
    for y in range(target.shape[0]):
        for x in range(target.shape[1]):
            sx, sy = mapx[y, x] + shift, mapy[y, x] + shift
            # Also false for NaN.
            if not (-1 < sx < source.shape[1] and -1 < sy < source.shape[0]):
                target[y, x, :] = converted(fill, like)
                continue
            if not linear:
                x0, y0 = math.floor(mapx[y, x] + to_nearest), math.floor(mapy[y, x] + to_nearest)
                for c in range(source.shape[2]):
                    target[y, x, c] = converted(_tap(source, y0, x0, c, fill), like)
                continue
            x0, y0 = math.floor(sx), math.floor(sy)
            fx, fy = np.float32(sx - x0), np.float32(sy - y0)
            for c in range(source.shape[2]):
                a, b = _tap(source, y0, x0, c, fill), _tap(source, y0, x0 + 1, c, fill)
                d, e = _tap(source, y0 + 1, x0, c, fill), _tap(source, y0 + 1, x0 + 1, c, fill)
                top, low = a + (b - a) * fx, d + (e - d) * fx
                target[y, x, c] = converted(np.float32(top + (low - top) * fy), like)


def remap(
    source: np.ndarray,
    mapx: np.ndarray,
    mapy: np.ndarray,
    shift: float,
    linear: bool,
    target: np.ndarray,
    fill: float = 0.0,
) -> None:
    """Takes the pixels of an image (H, W, C) at (mapx + shift, mapy + shift), counted from the first pixel's centre.

    Args:
        source, mapx, mapy: contiguous; the maps are float32 of the output's height and width.
        linear: interpolate; else the nearest pixel is taken.
        target: its dtype tells how results are rounded.
        fill: what lies beyond the source's border.
    """
    _remap(source, mapx, mapy, np.float32(shift), linear, np.float32(fill), target, target.dtype.type(0))
