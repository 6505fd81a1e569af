"""The same pipeline in Penstock and in DALI, ready to run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.types

import penstock

MODULES = {"DALI": nvidia.dali, "Penstock": penstock}
Work = Callable[[Any, Any], Any]
# A batch with which an input is fed repeatedly, or a function that returns another batch in each call.
Batches = Sequence[Any] | Callable[[], Sequence[Any]]
_ORDERS = 64


def prepared(
    module: Any,
    work: Work,
    batches: Sequence[Batches],
    threads: int,
    gpu: bool,
    layout: str | Sequence[str | None] | None = None,
    device_id: int = 0,
    batch_size: int = 0,
    conditionals: bool = False,
    on_gpu: bool = False,
) -> Callable[[], Any]:
    """Return a function that runs one batch through ``work(module, *inputs)`` and returns the outputs.

    The arguments are those of :func:`pipeline_of`.
    """
    return pipeline_of(module, work, batches, threads, gpu, layout, device_id, batch_size, conditionals, on_gpu).run


def pipeline_of(
    module: Any,
    work: Work,
    batches: Sequence[Batches],
    threads: int,
    gpu: bool,
    layout: str | Sequence[str | None] | None = None,
    device_id: int = 0,
    batch_size: int = 0,
    conditionals: bool = False,
    on_gpu: bool = False,
) -> Any:
    """Return a built pipeline that runs batches through ``work(module, *inputs)``.

    Each of ``batches`` is for one input: a batch that is passed repeatedly without a copy, of NumPy arrays or of CuPy arrays on the GPU; or
    a function that returns another batch each time, of NumPy arrays or, with ``on_gpu``, of CuPy arrays. ``layout`` is the layout of all
    inputs, or one for each.
    If samples differ in shape, they come in another order each time, so that no two batches are alike. On a CPU, nothing
    is done ahead of time, so that the work for a run is measured with that run; on a GPU, two batches are in flight,
    as in a training loop. Work without inputs, or with functions as inputs, needs a ``batch_size``; with
    ``conditionals``, it may have branches that depend on samples.
    """
    sizes = [batch_size, *(len(batch) for batch in batches if not callable(batch))]
    options: dict[str, Any] = {"batch_size": next(filter(None, sizes)), "num_threads": threads}
    if conditionals:
        options["enable_conditionals"] = True
    layouts = [layout] * len(batches) if layout is None or isinstance(layout, str) else layout
    if gpu:
        options |= {"device_id": device_id, "prefetch_queue_depth": 2}
    else:
        options |= {"device_id": None, "prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}

    @module.pipeline_def(**options)
    def define() -> Any:
        inputs = [
            module.fn.external_source(
                source=batch if callable(batch) else _again(batch),
                batch=True,
                no_copy=True,
                layout=own,
                device="gpu" if (on_gpu if callable(batch) else not isinstance(batch[0], np.ndarray)) else "cpu",
            )
            for batch, own in zip(batches, layouts)
        ]
        return work(module, *inputs)

    pipeline = define()
    pipeline.build()
    return pipeline


def _again(batch: Sequence[Any]) -> Callable[[], Any]:
    if all(sample.shape == batch[0].shape for sample in batch):
        return lambda: batch
    rng = random.Random(0)
    orders = itertools.cycle([rng.sample(list(batch), len(batch)) for _ in range(_ORDERS)])
    return lambda: next(orders)


def both(
    work: Work,
    batches: Sequence[Sequence[Any]],
    threads: int,
    gpu: bool,
    layout: str | Sequence[str | None] | None = None,
    batch_size: int = 0,
) -> dict[str, Callable[[], Any]]:
    """Return functions that run one batch, with DALI and with Penstock."""
    return {
        name: prepared(module, work, batches, threads, gpu, layout, batch_size=batch_size)
        for name, module in MODULES.items()
    }
