"""Runs one batch of a pipeline with fed inputs; used by operators' tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import PenstockError
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU

Define = Callable[[], Any]
Batches = list[list[np.ndarray]]


def _built(define: Define, batch_size: int, device_id: int | None) -> Pipeline:
    def defined() -> Any:
        result = define()
        return tuple(result) if isinstance(result, (list, tuple)) else result

    return pipeline_def(defined, batch_size=batch_size, num_threads=2, device_id=device_id, prefetch_queue_depth=1)()


def outputs(define: Define, device_id: int | None = None, **inputs: Sequence[np.ndarray]) -> Batches:
    """Run one batch with the samples of each input; return the samples of each output."""
    pipeline = _built(define, len(next(iter(inputs.values()))), device_id)
    try:
        return [[np.array(sample) for sample in batch.as_cpu()] for batch in pipeline.run(**inputs)]
    finally:
        pipeline.close()


def one_sample(make: Callable[[Any], Any], sample: np.ndarray) -> np.ndarray:
    """Return the result of the node that ``make`` makes, for one sample of float32."""
    ((result,),) = outputs(lambda: make(fn.external_source(name="x", dtype=types.FLOAT, ndim=sample.ndim)), x=[sample])
    return result


def isolated(define: Define, **inputs: Sequence[np.ndarray]) -> tuple[Batches, dict[int, PenstockError]]:
    """Run one batch in which failing samples do not affect the others, as in serving.

    Return the samples of each output, and the errors by the failed samples' numbers.
    """
    count = len(next(iter(inputs.values())))
    pipeline = _built(define, count, None)
    try:
        pipeline.build()
        fed = {
            name: TensorListCPU([np.ascontiguousarray(sample) for sample in samples])
            for name, samples in inputs.items()
        }
        result = PipelineRunner(pipeline).run(fed, count)
        return [[np.array(sample) for sample in batch.samples] for batch in result.outputs], result.failures
    finally:
        pipeline.close()
