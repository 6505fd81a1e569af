"""Noise drawn from random streams: each kernel reads an array and fills another array of the same type."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.distributions import NORMALS_AT_ONCE, fill_normals, fma, normal_double
from penstock.kernels.cpu.options import njit
from penstock.kernels.cpu.philox import ELEMENT_STRIDE, fill_units
from penstock.kernels.random_keys import Key


@njit(nogil=True)
def add_normal(
    out: np.ndarray,
    source: np.ndarray,
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    mean: np.float32,
    stddev: np.float32,
) -> None:
    """Add normally distributed noise to ``source``, in single precision."""
    numbers, like = np.empty(NORMALS_AT_ONCE, np.float32), out.dtype.type(0)
    for first in range(0, out.size, NORMALS_AT_ONCE):
        part, given = out[first : first + NORMALS_AT_ONCE], source[first : first + NORMALS_AT_ONCE]
        fill_normals(key, stream, start + np.uint64(ELEMENT_STRIDE * first), numbers[: part.size])
        for e in range(part.size):
            part[e] = converted(np.float32(given[e]) + fma(numbers[e], stddev, mean), like)


@njit(nogil=True)
def add_normal_double(
    out: np.ndarray, source: np.ndarray, key: Key, stream: np.uint64, start: np.uint64, mean: float, stddev: float
) -> None:
    """Same as :func:`add_normal`, in double precision, for integers that float32 cannot represent."""
    for e in range(out.size):
        noise = fma(normal_double(key, stream, start + np.uint64(ELEMENT_STRIDE * e)), stddev, mean)
        out[e] = converted(np.float64(source[e]) + noise, out[e])


@njit(nogil=True)
def sprinkle(
    out: np.ndarray,
    source: np.ndarray,
    key: Key,
    stream: np.uint64,
    start: np.uint64,
    probability: np.float32,
    salt_probability: np.float32,
    salt: np.generic,
    pepper: np.generic,
) -> None:
    """Replace random pixels with ``salt`` or ``pepper``. Arrays are (planes, pixels, channels); one draw decides about each pixel."""
    units = np.empty(1024, np.float32)
    for first in range(0, out.shape[1], units.size):
        count = min(units.size, out.shape[1] - first)
        fill_units(key, stream, start + np.uint64(ELEMENT_STRIDE * first), units[:count])
        for plane in range(out.shape[0]):
            for place in range(count):
                u, pixel = units[place], first + place
                for channel in range(out.shape[2]):
                    if u >= probability:
                        out[plane, pixel, channel] = source[plane, pixel, channel]
                    else:
                        out[plane, pixel, channel] = salt if u < salt_probability else pepper
