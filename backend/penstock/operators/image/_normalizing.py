"""How models' image processors rescale and normalize: tables of the 256 values, with the arithmetic of their library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.schema import Argument

REFERENCES = ("torchvision", "numpy", "bfloat16")
NORMALIZING_ARGUMENTS = (
    Argument("divisor", "float", 255.0, "Values are divided by it; 1: they are not."),
    Argument("mean", "float[]", [], "Subtracted from each channel, or from all; none: not normalized."),
    Argument(
        "reference",
        "string",
        "torchvision",
        "Whose arithmetic: `torchvision`, of tensors, with the divisor in mean and deviation; `numpy`, one after the "
        "other; or `bfloat16`, one after the other, each rounded to that type.",
        choices=REFERENCES,
    ),
    Argument("std", "float[]", [], "Each channel, or all, are divided by it."),
)


def checked_table(divisor: float, mean: Sequence[float], reference: str, std: Sequence[float]) -> np.ndarray:
    """The table that :data:`NORMALIZING_ARGUMENTS` ask for: see :func:`table_of`.

    Raises:
        ValueError: they contradict each other.
    """
    if len(mean) != len(std):
        raise ValueError(f"`mean` and `std` have as many values: got {len(mean)} and {len(std)}")
    if not divisor or 0.0 in std:
        raise ValueError("`divisor` and `std` are not 0: values are divided by them")
    if reference not in REFERENCES:
        raise ValueError(f"`reference` is one of {', '.join(REFERENCES)}. Got: {reference!r}")
    return table_of(reference, divisor, mean, std)


def table_of(reference: str, divisor: float, mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """What each of the 256 values becomes in each channel, or in all: float32 of shape (C, 256).

    Args:
        reference: `torchvision`: mean and deviation are multiplied by the divisor, in single precision, where there are any.
            `numpy`: values are divided in double precision, and then normalized in single precision. `bfloat16`: values
            are divided and normalized, each result rounded to that type.
        divisor: values are multiplied with its reciprocal.
        mean, std: one for each channel, or one for all; none: values are not normalized.
    """
    values = np.arange(256, dtype=np.float32)[None]
    offset, spread = (np.array(numbers, np.float32)[:, None] for numbers in (mean, std))
    scale = 1.0 / divisor
    if reference == "bfloat16":
        scaled = _as_bfloat16(values * np.float32(scale))
        if not len(mean):
            return scaled
        return _as_bfloat16(_as_bfloat16(scaled - _as_bfloat16(offset)) / _as_bfloat16(spread))
    if not len(mean):
        return (
            values * np.float32(scale)
            if reference == "torchvision"
            else (values.astype(np.float64) * scale).astype(np.float32)
        )
    if reference == "torchvision":
        return (values - offset * np.float32(divisor)) / (spread * np.float32(divisor))
    return ((values.astype(np.float64) * scale).astype(np.float32) - offset) / spread


def _as_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 rounded to 8 bits of precision, halves to even."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)
