"""Values that can be constants of a graph, and the arguments of the operator for such a constant."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from penstock.data_types import (
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT32,
    UINT32,
    DALIDataType,
    ScalarConstant,
    dtype_name,
    enum_type,
    from_numpy_dtype,
    numpy_dtype,
)

_FLOATING = (FLOAT, FLOAT16, FLOAT64)


def is_constant(value: object) -> bool:
    """Return whether a value can become a constant input: a number, an array, a flat sequence of numbers, or a constant."""
    if isinstance(value, (bool, int, float, np.number, ScalarConstant)) or _is_array(value):
        return True
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, Enum) for item in value):
            return enum_type(value) is not None
        return all(isinstance(item, (bool, int, float, np.number, np.bool_)) for item in value)
    return False


def _is_array(value: object) -> bool:
    """Return whether a value is a plain NumPy array or a PyTorch tensor."""
    return type(value) is np.ndarray or _is_of_torch(value)


def _is_of_torch(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def constant_arguments(
    value: object,
    dtype: DALIDataType | None = None,
    shape: Sequence[int] | int | None = None,
    layout: str | None = None,
) -> dict[str, object]:
    """Return the arguments of the operator ``Constant`` for ``value``; the parameters are those of
    :func:`~penstock.graph.calls.constant_node`.
    """
    if isinstance(value, ScalarConstant):
        dtype, value = dtype or value.dtype, value.value
    if isinstance(value, (list, tuple)):
        nested = next((item for item in value if isinstance(item, (list, tuple))), None)
        if nested is not None:
            raise TypeError(f"Unexpected type: {type(nested)}. A constant is a number, a flat sequence or an array.")
    elif isinstance(value, np.ndarray) and not _is_array(value) and value.size != 1:
        raise ValueError(
            f"Only an array of size 1 of the class {type(value).__name__} can be a constant: got {value!r}"
        )
    if dtype is None:
        dtype = enum_type(value)
    array = np.asarray(value)
    is_known = isinstance(value, (bool, int, float, list, tuple, np.generic, np.ndarray)) or _is_of_torch(value)
    if not is_known or array.dtype.kind not in "biuf":
        raise TypeError(
            f"Expected scalar value of type 'bool', 'int' or 'float', got {type(value)}. Arrays of them are constants as well."
        )
    if dtype is None:
        dtype = from_numpy_dtype(array.dtype) if _is_of_torch(value) else _default_dtype(array)
        if isinstance(value, np.ndarray):
            _check_range(array, dtype)
    if shape is None:
        shape = array.shape
    elif isinstance(shape, (int, np.integer)):
        shape = (int(shape),)
    if isinstance(value, np.ndarray):
        array = array.reshape([int(extent) for extent in shape])
    data = array.reshape(-1)
    arguments: dict[str, object] = {"shape": [int(extent) for extent in shape], "dtype": dtype}
    if dtype in _FLOATING or array.dtype.kind == "f":
        arguments["fdata"] = [float(x) for x in data]
    else:
        arguments["idata"] = [int(x) for x in data]
    if layout:
        arguments["layout"] = layout
    return arguments


def _default_dtype(array: np.ndarray) -> DALIDataType:
    if array.dtype == np.float64:
        return FLOAT
    if array.dtype == np.int64:
        return INT32
    if array.dtype == np.uint64:
        return UINT32
    return from_numpy_dtype(array.dtype)


def _check_range(array: np.ndarray, dtype: DALIDataType) -> None:
    if array.dtype.kind not in "iu" or not array.size:
        return
    info = np.iinfo(numpy_dtype(dtype))
    for value in (int(array.min()), int(array.max())):
        if not info.min <= value <= info.max:
            raise OverflowError(f"Integer {value} out of range for {dtype_name(dtype)}")
