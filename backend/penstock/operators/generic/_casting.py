"""Checks which conversions the cast operators support."""

from __future__ import annotations

from penstock.data_types import ENUM_TYPES, FLOAT, FLOAT16, FLOAT64, DALIDataType, dtype_name


def check_castable(source: DALIDataType, target: DALIDataType) -> None:
    """Raise RuntimeError if one type is an enumeration and the other a floating-point type."""
    reals = (FLOAT, FLOAT16, FLOAT64)
    if (source in ENUM_TYPES and target in reals) or (target in ENUM_TYPES and source in reals):
        raise RuntimeError(
            f"Cannot cast from {dtype_name(source)} to {dtype_name(target)}. Enums can only participate in casts "
            "with integral types, but not floating point types."
        )
