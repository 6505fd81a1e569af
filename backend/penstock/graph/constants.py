"""Constants as users write them: numbers for arithmetic, and nodes that have the same tensor for every sample."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, NamedEnum, ScalarConstant
from penstock.graph.calls import constant_node

_CTYPES_SCALAR = ctypes._SimpleCData  # private: the only common base of ctypes' numbers


def ConstantNode(device: str | None, value: Any, dtype: Any, shape: Any, layout: str | None, **kwargs: Any) -> object:
    """Return a graph node that has the same tensor for every sample."""
    return constant_node(value, dtype=dtype, shape=shape, layout=layout, device=device or "cpu", **kwargs)


def _is_scalar_value(value: object) -> bool:
    if isinstance(value, NamedEnum):
        return False
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return True
    return (isinstance(value, np.ndarray) and not value.ndim) or isinstance(value, _CTYPES_SCALAR)


def _is_scalar_shape(shape: object) -> bool:
    return shape is None or shape == 1 or tuple(shape if isinstance(shape, (list, tuple)) else (shape,)) in ((), (1,))


def Constant(
    value: object,
    dtype: DALIDataType | None = None,
    shape: object = None,
    layout: str | None = None,
    device: str | None = None,
    **kwargs: object,
) -> Any:
    """Wrap a constant for use in a pipeline.

    A scalar without shape, layout or device becomes a :class:`ScalarConstant`, which takes part in arithmetic; anything else (lists, NumPy
    arrays, scalars with a shape) becomes a node that has this tensor for every sample.
    """
    if device is None and not kwargs and _is_scalar_shape(shape) and layout is None and _is_scalar_value(value):
        return ScalarConstant(value, dtype)
    return ConstantNode(device, value, dtype, shape, layout, **kwargs)
