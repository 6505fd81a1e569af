"""Conversion between types with the rounding of all operators: half away from zero, saturating, NaN to zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.deferred import overload


def converted(value: Any, like: Any) -> Any:
    """Return ``value`` in the type of ``like``; integers are rounded half away from zero and saturate. For use in
    kernels.
    """
    raise TypeError("this function can only be called in numba kernels")


# numba compares the signatures of overloads, annotations included, so these functions have none.
@overload(converted)
def _converted(value, like):  # type: ignore[no-untyped-def]
    if isinstance(like, types.Float):
        return lambda value, like: type(like)(value)
    if isinstance(like, types.Boolean):
        if isinstance(value, types.Float):
            # As for integers, the value is rounded first. NaN becomes True.
            return lambda value, like: not (abs(value) < 0.5)
        return lambda value, like: value != 0
    if isinstance(value, types.Boolean):
        return lambda value, like: type(like)(value)
    if isinstance(value, types.Float):
        return _float_to_integer(like, np.dtype(value.name).type)
    return _integer_to_integer(value, like)


def below_half(kind: type[np.floating]) -> np.floating:
    """Return the largest number below one half. Adding it to a positive number and dropping the fraction rounds halves away from zero.

    A fraction below one half stays below 1 after the addition; from one half on, the sum is rounded to 1 or more.
    """
    return np.nextafter(kind(0.5), kind(0))


def _float_to_integer(like: Any, kind: type[np.floating]) -> Any:
    lowest, highest = np.iinfo(like.name).min, np.iinfo(like.name).max
    low, high, half = float(lowest), float(highest), below_half(kind)
    nan_value = 0
    if like.bitwidth == 64 or (like.bitwidth == 32 and like.signed):
        # Conversion instructions return this for values out of range.
        nan_value = lowest if like.signed else 1 << 63

    if like.bitwidth <= 16 and not like.signed:
        # The first comparison also replaces NaN by 0; after it, no number is negative.
        def narrow_unsigned(value, like):  # type: ignore[no-untyped-def]
            inside = value if value > low else type(value)(low)
            inside = inside if inside < high else type(value)(high)
            return type(like)(np.int32(inside + half))

        return narrow_unsigned

    if like.bitwidth <= 16:
        # Without branches, so that loops are vectorized. 16-bit integers, and these plus one half, are exact in float32 and float64.
        def narrow(value, like):  # type: ignore[no-untyped-def]
            inside = value if value > low else type(value)(low)
            inside = inside if inside < high else type(value)(high)
            inside = inside if value == value else type(value)(0)
            return type(like)(np.int32(inside + (half if inside > 0 else -half)))

        return narrow

    def convert(value, like):  # type: ignore[no-untyped-def]
        if value != value:
            return type(like)(nan_value)
        if value <= low:
            return type(like)(lowest)
        if value >= high:
            return type(like)(highest)
        if value >= 0:
            whole = np.floor(value)
            return type(like)(whole + 1 if value - whole >= 0.5 else whole)
        whole = np.ceil(value)
        return type(like)(whole - 1 if whole - value >= 0.5 else whole)

    return convert


def _integer_to_integer(value: Any, like: Any) -> Any:
    lowest, highest = np.iinfo(like.name).min, np.iinfo(like.name).max
    from_lowest, from_highest = np.iinfo(value.name).min, np.iinfo(value.name).max
    check_low, check_high = from_lowest < lowest, from_highest > highest
    # The limits are of the source's type: comparing it with another integer type could convert both to floating point.
    source = np.dtype(value.name).type
    low = source(max(lowest, from_lowest))
    high = source(min(highest, from_highest))

    def convert(value, like):  # type: ignore[no-untyped-def]
        if check_low and value < low:
            return type(like)(lowest)
        if check_high and value > high:
            return type(like)(highest)
        return type(like)(value)

    return convert
