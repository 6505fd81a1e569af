"""The entries for inputs and outputs in a model's configuration from Triton: types and dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.data_types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    dtype_name,
)
from penstock.serving.probing import TensorInfo
from penstock.serving.settings import ConfigurationError

TRITON_TYPES = {
    BOOL: "TYPE_BOOL",
    UINT8: "TYPE_UINT8",
    UINT16: "TYPE_UINT16",
    UINT32: "TYPE_UINT32",
    UINT64: "TYPE_UINT64",
    INT8: "TYPE_INT8",
    INT16: "TYPE_INT16",
    INT32: "TYPE_INT32",
    INT64: "TYPE_INT64",
    FLOAT16: "TYPE_FP16",
    FLOAT: "TYPE_FP32",
    FLOAT64: "TYPE_FP64",
}
BYTES = "TYPE_STRING"
UNKNOWN_TYPE = "TYPE_INVALID"  # Triton's value for a missing type


def triton_type(name: str, dtype: DALIDataType) -> str:
    """Triton's name of a type; raises ConfigurationError if it has none."""
    if dtype not in TRITON_TYPES:
        raise ConfigurationError(f"'{name}' is of the type {dtype_name(dtype)}, which Triton does not know")
    return TRITON_TYPES[dtype]


def tensor_dims(of_sample: Sequence[int], batched: bool) -> list[int]:
    """The dims of a tensor in the configuration: without batching, the number of samples comes first."""
    return (list(of_sample) or [1]) if batched else [-1, *of_sample]


def data_type_of(entry: Mapping[str, Any]) -> str | None:
    """Its type, or None."""
    given = entry.get("data_type")
    return None if given == UNKNOWN_TYPE else given


def dims_of(entry: Mapping[str, Any]) -> list[int]:
    """Its extents, which Triton may spell as strings; empty if it has none."""
    return [int(extent) for extent in entry.get("dims") or ()]


def own_dims_of(entry: Mapping[str, Any]) -> Sequence[Any]:
    """An entry's dims as seen by the model, rather than the client."""
    reshaped = entry.get("reshape")
    return reshaped.get("shape", ()) if reshaped else entry["dims"]


def info_of(entry: Mapping[str, Any], batched: bool) -> TensorInfo:
    """Its properties of a sample."""
    if data_type_of(entry) == BYTES:
        return TensorInfo(entry["name"], UINT8, (-1,))
    dtype = next((dtype for dtype, name in TRITON_TYPES.items() if name == entry.get("data_type")), None)
    dims = tuple(dims_of(entry)[0 if batched else 1 :])
    return TensorInfo(entry["name"], dtype, dims if entry.get("dims") else None)
