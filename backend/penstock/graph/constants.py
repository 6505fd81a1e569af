"""Constants as graph nodes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT32,
    INT64,
    UINT64,
    DALIDataType,
    ScalarConstant,
    _install_constant_node,
    dtype_name,
    enum_type,
    from_numpy_dtype,
    numpy_dtype,
)

if TYPE_CHECKING:
    from penstock.graph.nodes import DataNode

_FLOATING = (FLOAT, FLOAT16, FLOAT64)


def is_constant(value: Any) -> bool:
    """Whether a value can become a constant node: numbers, arrays, sequences of numbers, constants."""
    if isinstance(value, (bool, int, float, np.number, np.bool_, np.ndarray, ScalarConstant)):
        return True
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, Enum) for item in value):
            return enum_type(value) is not None
        return all(is_constant(item) and enum_type(item) is None for item in value)
    return hasattr(value, "__array_interface__") or (hasattr(value, "__dlpack__") and hasattr(value, "__array__"))


def constant_node(
    value: Any,
    dtype: DALIDataType | None = None,
    shape: Sequence[int] | int | None = None,
    layout: str | None = None,
    device: str = "cpu",
    **arguments: Any,
) -> DataNode:
    """A node that gives the same tensor for every sample.

    Args:
        value: a number, or an array or (nested) sequence of them.
        dtype: of the result; by default that of the value, where 64-bit values of Python and numpy become 32-bit.
        shape: of the result; a single value is repeated.
    """
    from penstock.graph.calls import call_operator

    if isinstance(value, ScalarConstant):
        dtype, value = dtype or value.dtype, value.value
    if dtype is None:
        dtype = enum_type(value)
    array = np.asarray(value)
    if dtype is None:
        dtype = _default_dtype(array)
    _check_range(array, dtype)
    if shape is None:
        shape = array.shape
    elif isinstance(shape, (int, np.integer)):
        shape = (int(shape),)
    count = int(np.prod(shape)) if len(shape) else 1
    if array.size not in (1, count):
        raise ValueError(f"A constant of shape {tuple(shape)} needs {count} values, got {array.size}")
    data = array.reshape(-1)
    given = dict(arguments, shape=[int(extent) for extent in shape], dtype=dtype)
    if dtype in _FLOATING:
        given["fdata"] = [float(x) for x in data]
    else:
        given["idata"] = [int(x) for x in data]
    if layout:
        given["layout"] = layout
    return call_operator("Constant", (), given, device=device)


def _default_dtype(array: np.ndarray) -> DALIDataType:
    if array.dtype == np.float64:
        return FLOAT
    if array.dtype == np.int64:
        return INT32
    if array.dtype.kind not in "biuf":
        raise TypeError(f"A constant must hold numbers, got {array.dtype}")
    return from_numpy_dtype(array.dtype)


def _check_range(array: np.ndarray, dtype: DALIDataType) -> None:
    if dtype in _FLOATING or dtype in (BOOL, INT64, UINT64) or array.dtype.kind == "f" or not array.size:
        return
    info = np.iinfo(numpy_dtype(dtype))
    if array.min() < info.min or array.max() > info.max:
        raise OverflowError(f"The constant {array.tolist()} does not fit in {dtype_name(dtype)}")


def to_node(value: Any, device: str = "cpu") -> DataNode:
    """``value`` as a node: itself, or a constant."""
    from penstock.graph.nodes import DataNode

    return value if isinstance(value, DataNode) else constant_node(value, device=device)


_install_constant_node(constant_node)
