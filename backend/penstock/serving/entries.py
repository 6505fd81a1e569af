"""Reads and writes the entries for inputs and outputs in a model's configuration: types and dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.data_types import (
    BFLOAT16,
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
from penstock.serving.settings import ConfigurationError, ModelConfig

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
    BFLOAT16: "TYPE_BF16",
}
Entry = Mapping[str, Any]
"""The entry of an input, an output or a control in a configuration."""

BYTES = "TYPE_STRING"
# The fields of a control that contain its values for false and true; which field is set tells the control's type.
_CONTROL_TYPES = {"int32_false_true": "TYPE_INT32", "fp32_false_true": "TYPE_FP32", "bool_false_true": "TYPE_BOOL"}
UNKNOWN_TYPE = "TYPE_INVALID"  # Triton's value for a missing type


def triton_type(name: str, dtype: DALIDataType) -> str:
    """Return Triton's name for a type; raise ConfigurationError if there is none."""
    if dtype not in TRITON_TYPES:
        raise ConfigurationError(f"'{name}' has the type {dtype_name(dtype)}, which Triton does not support")
    return TRITON_TYPES[dtype]


def tensor_dims(of_sample: Sequence[int], batched: bool) -> list[int]:
    """Return the dims of a tensor in the configuration: without batching, the first one is the number of samples."""
    return (list(of_sample) or [1]) if batched else [-1, *of_sample]


def data_type_of(entry: Entry) -> str | None:
    """Return the type in an entry; None if it is missing."""
    data_type = entry.get("data_type")
    return None if data_type == UNKNOWN_TYPE else data_type


def dims_of(entry: Entry) -> list[int]:
    """Return the dims in an entry as integers, as Triton may write them as strings; an empty list if they are missing."""
    return [int(extent) for extent in entry.get("dims") or ()]


def own_dims_of(entry: Entry) -> Sequence[Any]:
    """Return the dims of the model's tensor, which differ from the client's if the entry has the field ``reshape``."""
    reshaped = entry.get("reshape")
    return reshaped.get("shape", ()) if reshaped else entry["dims"]


def info_of(entry: Entry, batched: bool) -> TensorInfo:
    """Return the properties of the samples in a tensor, derived from the tensor's entry."""
    if data_type_of(entry) == BYTES:
        strings = strings_of_sample(entry, batched) if entry.get("dims") else [1]
        return TensorInfo(entry["name"], UINT8, (-1,) if strings in ([], [1], [-1]) else (*strings, -1))
    dtype = next((dtype for dtype, name in TRITON_TYPES.items() if name == entry.get("data_type")), None)
    dims = tuple(dims_of(entry)[0 if batched else 1 :])
    return TensorInfo(entry["name"], dtype, dims if entry.get("dims") else None)


def control_entries(config: ModelConfig) -> list[Entry]:
    """Return entries for the controls of a sequence batcher: inputs that Triton adds to each request, with one value."""
    controls = (config.get("sequence_batching") or {}).get("control_input") or ()
    return [{"name": control["name"], "data_type": _control_type(control), "dims": [1]} for control in controls]


def _control_type(control: Entry) -> str:
    (kind,) = control["control"]
    return next(
        (name for field, name in _CONTROL_TYPES.items() if kind.get(field)), kind.get("data_type", UNKNOWN_TYPE)
    )


def strings_of_sample(entry: Entry, batched: bool) -> list[int]:
    """Return the dims of the strings in a sample, from an entry of type BYTES; [1] or [] if a sample is a single string."""
    return [int(extent) for extent in own_dims_of(entry)][0 if batched else 1 :]


def strings_of(info: TensorInfo) -> tuple[int, ...]:
    """Return the dims of the strings in a sample. The last dimension of the data contains the bytes of each string, so if there
    is no other dimension, a sample is a single string.
    """
    return (1,) if info.dims is None or len(info.dims) < 2 else info.dims[:-1]
