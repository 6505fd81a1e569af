"""Sums and squared deviations along dimensions that lie beside each other, and what is normalized with them.

Arrays are seen as (outer, reduced, inner). A sum is kept for each of a few dozen elements of a row, so that adjacent ones
are added side by side, without waiting for each other; in the end those of one output are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.cpu.convert import converted

_OPTIONS: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
# Elements that have a sum of their own, at least.
_ABREAST = 64


@njit(**_OPTIONS)
def _step(inner):  # type: ignore[no-untyped-def]
    """How many elements of a row have a sum of their own: whole groups of ``inner``."""
    return inner * ((_ABREAST + inner - 1) // inner)


@njit(**_OPTIONS)
def _sums(source, outer, inner, out):  # type: ignore[no-untyped-def]
    size, step = source.size // outer, _step(inner)
    totals = np.empty(step, np.float64)
    for o in range(outer):
        row = source[o * size : (o + 1) * size]
        totals[:] = 0
        for begin in range(0, size, step):
            part = row[begin : begin + step]
            for j in range(part.size):
                totals[j] += np.float64(part[j])
        for j in range(step):
            out[o, j % inner] += totals[j]


@njit(**_OPTIONS)
def _squared_deviations(source, outer, inner, mean, out):  # type: ignore[no-untyped-def]
    size, step = source.size // outer, _step(inner)
    totals, means = np.empty(step, np.float64), np.empty(step, np.float32)
    for o in range(outer):
        row = source[o * size : (o + 1) * size]
        for j in range(step):
            totals[j], means[j] = 0, mean[o, j % inner]
        for begin in range(0, size, step):
            part = row[begin : begin + step]
            for j in range(part.size):
                difference = np.float32(part[j]) - means[j]
                totals[j] += np.float64(difference * difference)
        for j in range(step):
            out[o, j % inner] += totals[j]


@njit(**_OPTIONS)
def _normalize(source, outer, inner, mean, factor, shift, target, like):  # type: ignore[no-untyped-def]
    size, step = source.size // outer, _step(inner)
    means, factors = np.empty(step, np.float32), np.empty(step, np.float32)
    for o in range(outer):
        row, out = source[o * size : (o + 1) * size], target[o * size : (o + 1) * size]
        for j in range(step):
            means[j], factors[j] = mean[o, j % inner], factor[o, j % inner]
        for begin in range(0, size, step):
            part, place = row[begin : begin + step], out[begin : begin + step]
            for j in range(part.size):
                place[j] = converted((np.float32(part[j]) - means[j]) * factors[j] + shift, like)


def around(data: np.ndarray, axes: Sequence[int]) -> tuple[int, int] | None:
    """The volumes of the dimensions before and behind the ``axes``; None where these kernels are not for the array.

    That is where the axes are not beside each other or short, and for halves and booleans.
    """
    shape = data.shape
    if data.dtype == np.float16 or data.dtype.kind == "b" or not data.size:
        return None
    if not axes or sorted(axes) != list(range(min(axes), max(axes) + 1)):
        return None
    outer, inner = math.prod(shape[: min(axes)]), math.prod(shape[max(axes) + 1 :])
    return (outer, inner) if data.size // outer >= 4 * max(inner, _ABREAST) else None


def sums(data: np.ndarray, volumes: tuple[int, int]) -> np.ndarray:
    """The sums of the elements in float64, of the shape of ``volumes`` (see :func:`around`)."""
    out = np.zeros(volumes, np.float64)
    _sums(np.ascontiguousarray(data).reshape(-1), *volumes, out)
    return out


def squared_deviations(data: np.ndarray, volumes: tuple[int, int], mean: np.ndarray) -> np.ndarray:
    """The sums of the squared differences from ``mean``; the squares are of float32, the sums of float64.

    Args:
        data, volumes: see :func:`around`.
        mean: one, or one for each sum, in their order.
    """
    out = np.zeros(volumes, np.float64)
    _squared_deviations(np.ascontiguousarray(data).reshape(-1), *volumes, _spread(mean, volumes), out)
    return out


def normalize(
    data: np.ndarray, volumes: tuple[int, int], mean: np.ndarray, factor: np.ndarray, shift: float, target: np.ndarray
) -> None:
    """``(data - mean) * factor + shift`` in single precision, converted to the type of ``target``.

    Args:
        data, volumes: see :func:`around`.
        mean, factor: one, or one for each element that the axes leave, in their order.
        shift: added last.
        target: contiguous, no float16.
    """
    source, flat = np.ascontiguousarray(data).reshape(-1), target.reshape(-1)
    parameters = _spread(mean, volumes), _spread(factor, volumes)
    _normalize(source, *volumes, *parameters, np.float32(shift), flat, target.dtype.type(0))


def _spread(values: np.ndarray, volumes: tuple[int, int]) -> np.ndarray:
    """One value or as many as ``volumes`` tell, as float32 of that shape."""
    single = values.astype(np.float32, copy=False)
    return np.full(volumes, single) if single.size == 1 else np.ascontiguousarray(single).reshape(volumes)
