"""Runs a call of an operator as in serving: inputs are fed, and samples fail individually."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock import Pipeline, fn, pipeline_def
from penstock.data_types import DALIDataType, from_numpy_dtype
from penstock.errors import PenstockError
from penstock.schema import Schema
from penstock.schema.examples import Call
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorList, TensorListCPU

BATCH_SIZE = 3


@dataclass(frozen=True)
class Output:
    """One output of a batch; a sample that failed is None."""

    samples: list[np.ndarray | None]
    layout: str
    dtype: int


@dataclass(frozen=True)
class Outcome:
    """The outcome of a batch."""

    outputs: list[Output]
    failures: dict[int, PenstockError] = field(default_factory=dict)


@dataclass(frozen=True)
class Tensors:
    """The values of an argument for each sample, fed as an input of the graph."""

    values: Sequence[np.ndarray]
    layout: str = ""
    dtype: DALIDataType | None = None


class Cancelling:
    """Watches a run, and reports some samples as cancelled."""

    def __init__(self, indices: Collection[int]) -> None:
        self._indices = indices

    def operator_ran(self, step: object, seconds: float) -> None:
        """Ignore the time that an operator took."""

    def cancelled(self) -> Collection[int]:
        return self._indices


def pipeline_of(
    schema: Schema,
    call: Call,
    device: str = "cpu",
    computed: Mapping[str, Tensors] | None = None,
    batch_size: int = BATCH_SIZE,
) -> Pipeline:
    """Return a pipeline that calls one operator; the operator's inputs and computed arguments are external sources."""
    function = operator.attrgetter(schema.fn_path)(fn)
    arguments = {name: value for name, value in call.arguments.items() if name not in (computed or {})}
    if schema.random:
        arguments.setdefault("seed", 7)

    def define() -> Any:
        inputs = []
        for index, samples in enumerate(call.inputs):
            node = fn.external_source(name=f"input_{index}", layout=samples.layout or None)
            on_gpu = device == "gpu" and schema.input(index).device != "cpu"
            inputs.append(node.gpu() if on_gpu else node)
        tensors = {
            name: fn.external_source(name=name, layout=tensor.layout or None)
            for name, tensor in (computed or {}).items()
        }
        outputs = function(*inputs, device=device, **arguments, **tensors)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    return pipeline_def(
        define,
        batch_size=batch_size,
        num_threads=1,
        device_id=0 if device == "gpu" else None,
        seed=5,
        prefetch_queue_depth=1,
        exec_async=False,
        exec_pipelined=False,
    )()


def batches_of(
    call: Call, indices: Sequence[int], computed: Mapping[str, Tensors] | None = None
) -> dict[str, TensorList]:
    """Return the batches to feed: the samples with these indices, by the name of the external source."""
    fed: dict[str, TensorList] = {}
    for number, samples in enumerate(call.inputs):
        fed[f"input_{number}"] = _batch([samples.make(index) for index in indices], samples.make(0), samples.layout)
    for name, tensor in (computed or {}).items():
        fed[name] = _batch([tensor.values[index] for index in indices], tensor.values[0], tensor.layout, tensor.dtype)
    return fed


def _batch(samples: list[np.ndarray], like: np.ndarray, layout: str, dtype: DALIDataType | None = None) -> TensorList:
    return TensorListCPU.of_samples(samples, layout, dtype or from_numpy_dtype(like.dtype), like.ndim)


def run(pipeline: Pipeline, batches: Mapping[str, TensorList], count: int, cancelled: Collection[int] = ()) -> Outcome:
    """Run the pipeline on a batch, in which samples fail individually; return the outcome."""
    pipeline.build()
    result = PipelineRunner(pipeline).run(batches, count, Cancelling(cancelled) if cancelled else None)
    outputs = []
    for batch in result.outputs:
        on_cpu = batch.as_cpu()
        samples = [None if i in result.failures else np.array(sample) for i, sample in enumerate(on_cpu.samples)]
        outputs.append(Output(samples, on_cpu.layout() or "", int(on_cpu.dtype)))
    return Outcome(outputs, result.failures)


def outcome(
    schema: Schema,
    call: Call,
    device: str = "cpu",
    computed: Mapping[str, Tensors] | None = None,
    indices: Sequence[int] = range(BATCH_SIZE),
    cancelled: Collection[int] = (),
) -> Outcome:
    """Build a pipeline for a call, and return the outcome of its first batch, which consists of the samples with these indices."""
    pipeline = pipeline_of(schema, call, device, computed, len(indices) or 1)
    try:
        return run(pipeline, batches_of(call, indices, computed), len(indices), cancelled)
    finally:
        pipeline.close()
