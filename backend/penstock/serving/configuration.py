"""A model's Triton configuration: completed from its pipeline, and held against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.graph import OpNode
from penstock.pipeline import Pipeline
from penstock.serving.probing import OutputInfo, probe, source_steps
from penstock.serving.settings import ConfigurationError
from penstock.types import (
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
)

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


@dataclass(frozen=True)
class TensorConfiguration:
    """One input or output in a model's configuration.

    Attributes:
        name: as clients call it.
        data_type: as the configuration calls it, e.g. ``TYPE_FP32``.
        dims: extents without the batch dimension, -1 where they vary.
        ragged: requests of different sizes may meet in one batch.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    ragged: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The entry as Triton's auto-completion takes it, which knows no ragged inputs."""
        return {"name": self.name, "data_type": self.data_type, "dims": list(self.dims)}


@dataclass(frozen=True)
class ModelConfiguration:
    """What a pipeline wants of its model's configuration."""

    max_batch_size: int
    inputs: tuple[TensorConfiguration, ...]
    outputs: tuple[TensorConfiguration, ...]


def expected_inputs(pipeline: Pipeline) -> tuple[TensorConfiguration, ...]:
    """The inputs that a pipeline's external sources stand for.

    A source that declares neither type nor rank takes encoded data: bytes of any length.
    """
    return tuple(_expected_input(op) for op in source_steps(pipeline))


def _expected_input(op: OpNode) -> TensorConfiguration:
    dtype, ndim, layout = (op.arguments.get(key) for key in ("dtype", "ndim", "layout"))
    if ndim is None:
        ndim = len(layout) if layout else 1
    dims = (-1,) * ndim or (1,)
    return TensorConfiguration(op.name, TRITON_TYPES[UINT8 if dtype is None else dtype], dims, ragged=-1 in dims)


def expected_configuration(pipeline: Pipeline, max_batch_size: int) -> ModelConfiguration:
    """The whole configuration; the pipeline is built and run to learn what its outputs are."""
    return ModelConfiguration(
        max_batch_size, expected_inputs(pipeline), tuple(_expected_output(info) for info in probe(pipeline))
    )


def _expected_output(info: OutputInfo) -> TensorConfiguration:
    if info.dtype is None or info.dims is None:
        raise ConfigurationError(
            f"the type and rank of the output '{info.name}' are not known before real data comes: list the outputs in "
            "config.pbtxt, or give `output_dtype` and `output_ndim` in the pipeline's definition"
        )
    return TensorConfiguration(info.name, TRITON_TYPES[info.dtype], info.dims or (1,))


def check_inputs(configured: Sequence[dict[str, Any]], pipeline: Pipeline) -> None:
    """Raises ConfigurationError unless the configured inputs are what the pipeline takes."""
    expected = {item.name: item for item in expected_inputs(pipeline)}
    names = [item["name"] for item in configured]
    missing, unknown = sorted(expected.keys() - set(names)), sorted(set(names) - expected.keys())
    if missing or unknown:
        raise ConfigurationError(
            f"the inputs in the configuration are {names}, but the pipeline's external sources are {sorted(expected)}"
        )
    declared = {op.name: op.arguments for op in source_steps(pipeline)}
    for item in configured:
        want = expected[item["name"]]
        dtype, ndim = declared[item["name"]].get("dtype"), declared[item["name"]].get("ndim")
        if item["data_type"] == BYTES and dtype in (None, UINT8) and ndim in (None, 1):
            continue
        if dtype is not None and item["data_type"] != want.data_type:
            raise ConfigurationError(
                f"input '{want.name}' is of {item['data_type']} in the configuration, but the pipeline declares {want.data_type}"
            )
        if ndim is not None and len(item["dims"]) != len(want.dims):
            raise ConfigurationError(
                f"input '{want.name}' has {len(item['dims'])} dims in the configuration, but the pipeline declares "
                f"{len(want.dims)} (without the batch dimension)"
            )


def output_order(configured: Sequence[dict[str, Any]], pipeline: Pipeline) -> list[int]:
    """For each configured output, which of the pipeline's it is: by name where all names are known, else by position."""
    names = [node.name for node in pipeline.graph.outputs]
    wanted = [item["name"] for item in configured]
    if len(wanted) > len(names):
        raise ConfigurationError(
            f"the configuration lists {len(wanted)} outputs {wanted}, but the pipeline has {len(names)}: {names}"
        )
    if all(name in names for name in wanted):
        return [names.index(name) for name in wanted]
    return list(range(len(wanted)))


def check_outputs(configured: Sequence[dict[str, Any]], known: Sequence[OutputInfo], order: Sequence[int]) -> None:
    """Raises ConfigurationError where a configured output has another type or rank than the pipeline gives."""
    for item, index in zip(configured, order):
        info = known[index]
        if info.dtype is not None and item["data_type"] not in _accepted_types(info):
            raise ConfigurationError(
                f"output '{item['name']}' is of {item['data_type']} in the configuration, but the pipeline gives "
                f"{TRITON_TYPES[info.dtype]}"
            )
        if info.dims is None or item["data_type"] == BYTES:
            continue
        dims, given = info.dims or (1,), tuple(int(extent) for extent in item["dims"])
        if len(given) != len(dims) or any(g != d and -1 not in (g, d) for g, d in zip(given, dims)):
            raise ConfigurationError(
                f"output '{item['name']}' has dims {list(given)} in the configuration, but the pipeline gives {list(dims)}"
            )


def _accepted_types(info: OutputInfo) -> tuple[str, ...]:
    assert info.dtype is not None
    own = TRITON_TYPES[info.dtype]
    return (own, BYTES) if info.dtype == UINT8 and info.dims is not None and len(info.dims) == 1 else (own,)


def dali_type(data_type: str) -> DALIDataType | None:
    """The type of a configured tensor; None for BYTES."""
    return next((dtype for dtype, name in TRITON_TYPES.items() if name == data_type), None)
