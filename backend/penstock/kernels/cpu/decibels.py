"""Logarithms of whole arrays, in float32.

Source: the mantissa's logarithm is a series of the inverse hyperbolic tangent (Abramowitz and Stegun, 4.1.27). Its first
five terms have a relative error of 3e-9 for mantissas from sqrt(1/2) to sqrt(2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import larger, load, store, zeros

# The number of partial maxima, which are independent of each other so that they can be vectorized.
_ABREAST = 32
_LN2 = np.float32(np.log(2))
_THIRD, _FIFTH, _SEVENTH, _NINTH = (np.float32(1 / k) for k in (3, 5, 7, 9))
_ROOT_HALF_BITS = int(np.float32(np.sqrt(0.5)).view(np.int32))
_INFINITY = np.float32(np.inf)
_SMALLEST_NORMAL, _UP, _UP_EXPONENT = np.float32(2.0**-126), np.float32(2.0**25), np.float32(25)


@kernel
def _bits(number: np.float32) -> np.int32:
    return np.float32(number).view(np.int32)


@inner
def _float_from_bits(bits: int) -> np.float32:
    return np.int32(bits).view(np.float32)


@kernel
def largest(source: np.ndarray) -> np.float32:
    """Return the maximum, or 0 if no element is positive."""
    maxima, last = zeros(_ABREAST), source.size - source.size % _ABREAST
    for i in range(0, last, _ABREAST):
        maxima = larger(load(source, i, _ABREAST), maxima)
    lanes = np.empty(_ABREAST, np.float32)
    store(lanes, 0, maxima)
    result = np.float32(0)
    for value in lanes:
        result = max(result, value)
    for i in range(last, source.size):
        if source[i] > result:
            result = source[i]
    return result


@inner
def inverse_unit(source: np.ndarray, relative: bool, reference: np.float32) -> np.float32:
    """Return the factor that divides values by the reference or, if ``relative``, by the maximum of the source."""
    unit = largest(source) if relative else reference
    return np.float32(1) / (unit if unit != 0 or not relative else np.float32(1))


@inner
def scaled_decibels(
    source: np.ndarray, scale: np.float32, smallest: np.float32, factor: np.float32, out: np.ndarray
) -> None:
    """Compute ``factor * log(max(source * scale, smallest))`` for as many elements from the first on as ``out`` has."""
    any_tiny = smallest < _SMALLEST_NORMAL
    for i in range(out.size):
        ratio = source[i] * scale
        # This also replaces NaN by the smallest ratio.
        ratio = ratio if ratio > smallest else smallest
        tiny = any_tiny and ratio < _SMALLEST_NORMAL
        normal = ratio * _UP if tiny else ratio
        # Split the number into an exponent and a mantissa from sqrt(1/2) to sqrt(2).
        bits = np.int32(_bits(normal) - _ROOT_HALF_BITS)
        mantissa = _float_from_bits(np.int32((bits & 0x007FFFFF) + _ROOT_HALF_BITS))
        exponent = np.float32(bits >> 23) - (_UP_EXPONENT if tiny else np.float32(0))
        s = (mantissa - np.float32(1)) / (mantissa + np.float32(1))
        z = s * s
        series = z * (_THIRD + z * (_FIFTH + z * (_SEVENTH + z * _NINTH)))
        logarithm = exponent * _LN2 + (s + s) * (np.float32(1) + series)
        out[i] = (ratio if ratio == _INFINITY else logarithm) * factor


@kernel
def _to_decibels(
    source: np.ndarray, relative: bool, reference: np.float32, smallest: np.float32, factor: np.float32, out: np.ndarray
) -> None:
    scaled_decibels(source, inverse_unit(source, relative, reference), smallest, factor, out)


class Logarithm(NamedTuple):
    """A logarithmic scale.

    Attributes:
        relative: whether 0 dB is the largest positive element, or 1 if there is none, instead of the reference.
        reference: the value of 0 dB.
        smallest: the minimum to which ratios are clamped; positive.
        factor: the factor by which the natural logarithm is multiplied.
    """

    relative: bool
    reference: np.float32
    smallest: np.float32
    factor: np.float32


def to_decibels(source: np.ndarray, logarithm: Logarithm, out: np.ndarray) -> None:
    """Compute ``factor * log(max(source / reference, smallest))`` with a relative error of 2e-7; arrays are float32, contiguous."""
    _to_decibels(source.reshape(-1), *logarithm, out.reshape(-1))
