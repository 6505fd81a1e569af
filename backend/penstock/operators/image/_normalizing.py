"""Tables of the 256 normalized values of a byte, computed with the arithmetic of the library that a model's image processor uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.schema import Argument

SPLIT = np.float32((1 << 16) + 1)
"""The factor of Veltkamp's split: with ``more = x * SPLIT``, ``more - (more - x)`` is x rounded from 24 to 8 bits."""
REFERENCES = ("torchvision", "numpy", "bfloat16", "to_dtype", "to_tensor")
NORMALIZING_ARGUMENTS = (
    Argument("divisor", "float", 255.0, "Values are divided by it; 1: they are not."),
    Argument("mean", "float[]", [], "Subtracted from each channel, or from all; none: not normalized."),
    Argument(
        "reference",
        "string",
        "torchvision",
        "The order of operations. `torchvision`: in single precision, with mean and deviation multiplied by the divisor. `numpy`: "
        "divided in double precision, then normalized in single. `bfloat16`: divided, then normalized, each result rounded "
        "to that type. `to_dtype`, `to_tensor`: multiplied with the divisor's reciprocal, or divided by it, then "
        "normalized, all in single precision, as torchvision's `ToDtype` or `ToTensor` and `Normalize`.",
        choices=REFERENCES,
    ),
    Argument("std", "float[]", [], "Each channel, or all, are divided by it."),
)


def checked_table(divisor: float, mean: Sequence[float], reference: str, std: Sequence[float]) -> np.ndarray:
    """Check the values of :data:`NORMALIZING_ARGUMENTS`, and return the table for them: see :func:`table_of`.

    Raises:
        ValueError: an argument is not valid, or ``mean`` and ``std`` differ in length.
    """
    if len(mean) != len(std):
        raise ValueError(f"`mean` and `std` must have equally many values. Got: {len(mean)} and {len(std)}")
    if not divisor or 0.0 in std:
        raise ValueError("`divisor` and `std` must not be 0: values are divided by them")
    if reference not in REFERENCES:
        raise ValueError(f"`reference` must be one of {', '.join(REFERENCES)}. Got: {reference!r}")
    return table_of(reference, divisor, mean, std)


def table_of(reference: str, divisor: float, mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """Return the normalized value of each byte: float32 of shape (C, 256), or (1, 256) for all channels.

    Args:
        reference: the library whose arithmetic to use, one of ``REFERENCES``.
        divisor: the number by which values are divided first.
        mean, std: one value for each channel, or one for all; if empty, values are only divided by ``divisor``.
    """
    values = np.arange(256, dtype=np.float32)[None]
    offset, spread = (np.array(numbers, np.float32)[:, None] for numbers in (mean, std))
    if reference == "torchvision" and len(mean):
        return (values - offset * np.float32(divisor)) / (spread * np.float32(divisor))
    rescaled = _rescaled(reference, values, divisor)
    if not len(mean):
        return rescaled
    if reference == "bfloat16":
        return _as_bfloat16(_as_bfloat16(rescaled - _as_bfloat16(offset)) / _as_bfloat16(spread))
    return (rescaled - offset) / spread


def factors_of(
    table: np.ndarray, divisor: float, mean: Sequence[float], reference: str, std: Sequence[float]
) -> np.ndarray:
    """Return factors a, b and c for which ``(value * a - b) / c`` in single precision equals the table's values bit for bit.

    Args:
        table: the result of :func:`table_of` for the other arguments.

    Returns:
        float32 of shape (3, 4): for each of three channels, a, b, c, and 1 if each step must be rounded to bfloat16, else 0;
        of shape (0, 4) if no factors were found.
    """
    if len(table) not in (1, 3):
        return np.empty((0, 4), np.float32)
    whole, one, short = np.float32(divisor), np.float32(1), np.float32(reference == "bfloat16")
    offset, spread = (np.array(numbers or [none], np.float32) for numbers, none in ((mean, 0), (std, 1)))
    step = _short if short else _as_it_is
    candidates = (one, offset * whole, spread * whole), (np.float32(1.0 / divisor), step(offset), step(spread))
    values = np.arange(256, dtype=np.float32)
    for candidate in candidates:
        factors = np.array(np.broadcast_arrays(*candidate, short, np.empty(3))[:4], np.float32).T
        a, b, c, _ = factors.T[:, :, None]
        computed = step(step(step(values * a) - b) / c)
        if np.array_equal(computed.view(np.int32), np.broadcast_to(table, (3, 256)).view(np.int32)):
            return np.ascontiguousarray(factors)
    return np.empty((0, 4), np.float32)


def _as_it_is(values: np.ndarray) -> np.ndarray:
    return values


def _short(values: np.ndarray) -> np.ndarray:
    """Round float32 values to bfloat16 as ``compute_row`` does: like :func:`_as_bfloat16`, except perhaps for ties."""
    more = values * SPLIT
    return more - (more - values)


def _rescaled(reference: str, values: np.ndarray, divisor: float) -> np.ndarray:
    """Return the values divided by ``divisor``, float32."""
    if reference == "numpy":
        return (values.astype(np.float64) * (1.0 / divisor)).astype(np.float32)
    if reference == "to_tensor":
        return values / np.float32(divisor)
    scaled = values * np.float32(1.0 / divisor)
    return _as_bfloat16(scaled) if reference == "bfloat16" else scaled


def _as_bfloat16(values: np.ndarray) -> np.ndarray:
    """Return values as float32, rounded to the 8 bits of precision of bfloat16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)
