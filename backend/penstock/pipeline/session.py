"""The running state of a pipeline: its batches, the sources that feed it, and the consumer's position."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, PipelineAPIType, dtype_name
from penstock.errors import did_you_mean
from penstock.graph import Graph
from penstock.runtime import BatchQueue, Executor, Plan
from penstock.runtime.batches import Result
from penstock.runtime.checkpoints import Position, restore_checkpoint, save_checkpoint
from penstock.runtime.executor import NOTHING
from penstock.runtime.feeding import to_batch
from penstock.runtime.settings import PipelineSettings
from penstock.runtime.sources import Source, fetch_all
from penstock.runtime.tolerance import SkippedSamples
from penstock.runtime.trace import Kind
from penstock.tensors.cuda import device_lost, require_cupy


class Session:
    """The state of a pipeline while it runs. It outlives executors, as a closed pipeline can run again.

    Args:
        settings: the pipeline's settings.

    Attributes:
        queue: the queue of batches; None before the pipeline is built and after it is closed.
        sources: the sources with callbacks, from which the pipeline takes data.
        feeds: the steps that are fed data, by name.
        readers: the steps that are readers, by name.
        skipped: the samples that were skipped or replaced.
        kept: ``Result.kept`` of the batch that was taken last.
        epoch: the epoch of the batch that was started last.
        exhausted: whether a source is at its end.
        failed: whether a batch of the epoch raised an error.
        position: the consumer's position, without prefetched batches.
        iterator_state: the state of an iterator in the checkpoint from which the pipeline continues.
        restored: whether the pipeline continues from a checkpoint.
        api_check: whether mixing the APIs for running a pipeline is rejected.
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self.settings = settings
        self.queue: BatchQueue | None = None
        self.sources: list[Source] = []
        self.feeds: dict[str, Any] = {}
        self.readers: dict[str, Any] = {}
        self.skipped = SkippedSamples(settings.max_errors)
        self.kept: list[int] | None = None
        self.epoch = 0
        self.exhausted = False
        self.failed = False
        self.position = Position()
        self.iterator_state: object = None
        self.restored = False
        self._first_iteration = True
        self._to_consume = 0
        self.api_check = True
        # The number of batches that were started ahead, before the consumer scheduled them.
        self._ahead = 0
        self._api: PipelineAPIType | None = None
        # Whether no batch needs data that the user feeds.
        self._feeds_itself = False

    # -- beginning and end -----------------------------------------------------------------------------------------

    @property
    def executor(self) -> Executor | None:
        """The executor; None before the pipeline is built and after it is closed."""
        queue = self.queue
        return None if queue is None else queue.executor

    def start(self, plan: Plan, depth: int) -> Executor:
        """Make the executor of a plan, and a queue with this prefetch depth; return the executor."""
        settings = self.settings
        executor = Executor(
            plan,
            settings.batch_size or 0,
            settings.num_threads or 1,
            settings.device_id,
            settings.affinity(),
            settings.on_error,
            self.skipped,
        )
        self.queue = BatchQueue(executor, depth)
        self.feeds = {step.node.name: step for step in plan.operators if hasattr(step.operator, "feed")}
        self.readers = {step.node.name: step for step in plan.operators if hasattr(step.operator, "reader_meta")}
        self._feeds_itself = all(isinstance(step.node.payload, Source) for step in self.feeds.values())
        return executor

    def keep_states(self, executor: Executor) -> None:
        """Make all operators and sources save the states needed for checkpoints."""
        executor.keep_states = True
        for step in self.readers.values():
            step.operator.keep_checkpoints()

    def close(self, timeout: float | None = None) -> None:
        """End the threads and worker processes; wait up to ``timeout`` seconds for the current batch."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.close(timeout)
        for source in self.sources:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    # -- feeding ---------------------------------------------------------------------------------------------------

    def feed_step(self, name: str) -> Any:
        """Return the step of the input operator with this name; raise KeyError if there is none."""
        step = self.feeds.get(name)
        if step is None:
            raise KeyError(f'Could not find an input operator with name "{name}".{did_you_mean(name, self.feeds)}')
        return step

    def feed_input(self, executor: Executor, name: str, data: object, layout: str | None) -> None:
        """Feed the user's batch to an external source; raise RuntimeError if the source has a callback."""
        step = self.feed_step(name)
        if isinstance(step.node.payload, Source):
            raise RuntimeError(
                f"Cannot use `feed_input` on the external source '{name}' with a `source` argument specified."
            )
        feed(executor, step, data, layout, copy=not step.node.arguments.get("no_copy"))

    def feed_from_sources(self, executor: Executor) -> None:
        """Call the callbacks of external sources, and feed their data for the next batch."""
        if not self.sources:
            return
        with NOTHING if executor.trace is None else executor.trace.span("external sources", Kind.SOURCE):
            for source, outputs in fetch_all(self.sources, executor.max_batch_size, self.epoch):
                for name, data, layout in zip(source.names, outputs, source.layouts):
                    if name in self.feeds:
                        feed(executor, self.feeds[name], data, layout, copy=not source.no_copy)

    def _initial_depth(self) -> int:
        """Return the number of batches to start at the beginning of an epoch: the prefetch depth, or as many as the user has fed
        data for, but at least one.
        """
        fed = (step for step in self.feeds.values() if not isinstance(step.node.payload, Source))
        return max(1, int(min([max(self.settings.depths), *map(_batches_of, fed)])))

    # -- running ---------------------------------------------------------------------------------------------------

    def schedule(self, queue: BatchQueue, before_batch: Callable[[], None], completes: bool = False) -> None:
        """Start the next batch, or as many as are prefetched at the start of an epoch.

        Args:
            queue: the queue of the batches.
            before_batch: a function to call before each batch.
            completes: whether the caller takes a batch next; see :meth:`BatchQueue.schedule`.
        """
        if not (self._first_iteration and self.settings.exec_pipelined):
            self._schedule_next(queue, before_batch, completes)
            return
        self._first_iteration = False
        # Counted before any batch is started: the prefetching thread takes fed data while further batches are scheduled.
        for _ in range(self._initial_depth()):
            self._schedule_one(queue, before_batch)

    def _schedule_next(self, queue: BatchQueue, before_batch: Callable[[], None], completes: bool) -> None:
        """Start one batch, and more if that keeps the GPU's decoders busy; later calls then start fewer."""
        wanted = queue.batches_ahead if self._feeds_itself else 0
        if self._ahead > wanted:
            self._ahead -= 1
            return
        self._schedule_one(queue, before_batch, completes)
        while self._ahead < wanted and not self.exhausted:
            self._ahead += 1
            self._schedule_one(queue, before_batch)

    def _schedule_one(self, queue: BatchQueue, before_batch: Callable[[], None], completes: bool = False) -> None:
        if self.exhausted:
            return
        try:
            before_batch()
            self.feed_from_sources(queue.executor)
        except StopIteration:
            self.exhausted = True
            return
        except Exception:
            self.failed = True
            raise
        queue.schedule(completes)
        self._to_consume += 1

    def take(self, queue: BatchQueue | None, cuda_stream: object) -> tuple[Any, ...]:
        """Return the outputs of the oldest started batch; raise StopIteration if there is none."""
        if self._to_consume == 0 or queue is None:
            raise StopIteration
        self._to_consume -= 1
        try:
            result = queue.next_result()
            self._wait_for(result, queue.executor, cuda_stream)
        except Exception as error:
            self.failed = True
            lost = device_lost(error)
            if lost is None:
                raise
            raise lost from error
        self.kept = result.kept
        self.position.iteration += 1
        self.position.batches += 1
        self.position.states = result.states
        self.check_outputs(result.outputs)
        return tuple(result.outputs)

    @staticmethod
    def _wait_for(result: Result, executor: Executor, cuda_stream: object) -> None:
        """Make the caller, or the stream ``cuda_stream``, wait for the outputs on the GPU."""
        if result.ready is None:
            return
        if cuda_stream is None:
            result.ready.synchronize()
        else:
            from penstock.tensors.tensor import as_cupy_stream

            # The default stream depends on the current device.
            with require_cupy().cuda.Device(executor.device_id):
                as_cupy_stream(cuda_stream).wait_event(result.ready)
        executor.release_ready_event(result)

    def check_outputs(self, outputs: Sequence[Any]) -> None:
        """Raise RuntimeError if an output does not have its declared type, rank or layout."""
        settings, count = self.settings, len(outputs)
        if settings.output_dtype is None and settings.output_ndim is None and settings.output_layout is None:
            return
        declared = zip(
            outputs, settings.output_dtypes(count), settings.output_ndims(count), settings.output_layouts(count)
        )
        for index, (batch, dtype, ndim, layout) in enumerate(declared):
            for what, expected, received in (
                ("Data type", dtype, batch.dtype),
                ("Number of dimensions", ndim, batch.ndim()),
                ("Layout", layout or None, batch.layout()),
            ):
                if expected is not None and expected != received:
                    names = [dtype_name(x) if isinstance(x, DALIDataType) else x for x in (expected, received)]
                    raise RuntimeError(
                        f"{what} in the output_idx={index} does not match. Expected: {names[0]}. Received: {names[1]}."
                    )

    def run(self, queue: BatchQueue, before_batch: Callable[[], None], cuda_stream: object) -> tuple[Any, ...]:
        """Start the next batch, and return the outputs of the oldest one; for the arguments, see :meth:`schedule` and
        :meth:`take`.
        """
        checked = self._check_api(PipelineAPIType.BASIC)
        try:
            self.schedule(queue, before_batch, completes=True)
            return self.take(queue, cuda_stream)
        finally:
            self.api_check = checked

    def running_through(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Raise RuntimeError if another API for running the pipeline was used; calls inside the context are not checked."""
        return _ApiUnchecked(self, self._check_api(api))

    def _check_api(self, api: PipelineAPIType) -> bool:
        """Raise RuntimeError if another API was used; then disable checks, and return whether they were enabled."""
        checked = self.api_check
        if checked:
            self._api = self._api or api
            if self._api != api:
                raise RuntimeError(f"Mixing pipeline API type. Currently used: {self._api}, but trying to use {api}")
        self.api_check = False
        return checked

    def end_epoch(self) -> None:
        """Discard the rest of the epoch: batches in flight, and data that was not read yet."""
        queue = self.queue
        while self._to_consume and queue is not None:
            self._to_consume -= 1
            # Errors of discarded batches are of no interest.
            with contextlib.suppress(Exception):
                queue.next_result()
        for step in self.feeds.values():
            if isinstance(step.node.payload, Source):
                step.operator.drop()
        for step in self.readers.values():
            step.operator.end_epoch()
        for source in self.sources:
            source.restart(self.settings)
        self.exhausted, self.failed = True, False

    def reset(self) -> None:
        """Start the next epoch if the current one is over or has failed."""
        if self.failed:
            self.end_epoch()
        if not self.exhausted:
            return
        self._first_iteration = True
        self._ahead = 0
        self.exhausted = False
        self.epoch += 1
        self.position.epoch += 1
        self.position.iteration = 0
        for source in self.sources:
            source.reset()

    @property
    def empty(self) -> bool:
        """Whether no batch is in flight."""
        return self._to_consume == 0

    # -- looking ---------------------------------------------------------------------------------------------------

    def reader_meta(self, name: str) -> dict[str, Any]:
        """Return the sharding and padding of the reader with this name; raise RuntimeError if there is none."""
        if name not in self.readers:
            raise RuntimeError(
                f"Operator {name} not found or does not expose valid metadata.{did_you_mean(name, self.readers)} "
                f"The pipeline's readers: {sorted(self.readers)}"
            )
        meta: dict[str, Any] = self.readers[name].operator.reader_meta()
        return meta

    def shared_memory(self) -> dict[str, list[int]]:
        """Return the size in bytes of each shared-memory buffer of the workers of parallel external sources."""
        statistics = [source.shared_memory() for source in self.sources if hasattr(source, "shared_memory")]
        return {
            "capacities": [size for capacities, _ in statistics for size in capacities],
            "per_sample_capacities": [size for _, per_sample in statistics for size in per_sample],
        }

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def checkpoint(self, executor: Executor, iterator: object) -> bytes:
        """Return a checkpoint, from which another pipeline with the same graph continues."""
        return save_checkpoint(executor.plan, self.position, iterator)

    def restore(self, executor: Executor, checkpoint: str | bytes) -> None:
        """Continue from a checkpoint."""
        self.position, self.iterator_state = restore_checkpoint(executor.plan, checkpoint)
        self.epoch, executor.iteration = self.position.epoch, self.position.batches
        for source in self.sources:
            source.skip(self.position.iteration, executor.max_batch_size)
        self.restored = True


class _ApiUnchecked(contextlib.AbstractContextManager[None]):
    """Inside the context, any API for running the pipeline may be used; ``checked``: whether APIs are checked again afterwards."""

    __slots__ = ("_checked", "_session")

    def __init__(self, session: Session, checked: bool) -> None:
        self._session, self._checked = session, checked

    def __exit__(self, *_: object) -> None:
        self._session.api_check = self._checked


def _batches_of(step: Any) -> float:
    """Return the number of batches for which a fed operator has data; infinity if the operator waits for more data, or repeats
    the last batch.
    """
    arguments, operator = step.node.arguments, step.operator
    if arguments.get("blocking") or (arguments.get("repeat_last") and operator.has_data()):
        return math.inf
    count: int = operator.waiting
    return count


def feed(executor: Executor, step: Any, data: object, layout: str | None, copy: bool) -> None:
    """Convert one batch of data, and feed it to a step."""
    on_host = isinstance(data, list) and bool(data) and isinstance(data[0], np.ndarray)
    given = data, layout, executor.max_batch_size, executor.pool_of(step), executor.workers, copy
    if on_host and not step.feeds_gpu:
        step.operator.feed(to_batch(*given))
    else:
        with executor.on_device():
            step.operator.feed(to_batch(*given))


def memory_statistics(executor: Executor) -> dict[str, dict[str, list[int]]]:
    """Return the bytes of each operator's outputs under DALI's names: the largest sum of a batch, and the largest sample."""
    return {
        name: {
            "real_memory_size": [total],
            "max_real_memory_size": [largest],
            "reserved_memory_size": [total],
            "max_reserved_memory_size": [largest],
        }
        for name, (total, largest) in executor.peak_bytes.items()
    }


def check_checkpointing(graph: Graph) -> None:
    """Raise RuntimeError if operators were defined outside the pipeline; warn of sources whose state is not saved."""
    detached = [op.name for op in graph.operators if op.detached]
    if detached:
        raise RuntimeError(
            "The pipeline does not support checkpointing, because it contains operators that were defined outside the pipeline: "
            f"{', '.join(detached)}. Call them in the function that defines it."
        )
    for source in sources_of(graph):
        if not source.takes_info:
            warnings.warn(
                "Checkpointing is enabled in a pipeline with an external source operator whose source does not take the number of "
                "the sample or batch. Penstock like DALI doesn't capture state of such 'source'. Items of an iterable are skipped when a "
                "checkpoint is loaded; a callback continues wherever it is.",
                UserWarning,
                stacklevel=3,
            )


def sources_of(graph: Graph) -> list[Source]:
    """Return the external sources with callbacks in a graph, each once."""
    found: list[Source] = []
    for op in graph.operators:
        if isinstance(op.payload, Source) and op.payload not in found:
            found.append(op.payload)
    return found


def warn_of_unused_outputs(sources: Sequence[Source], graph: Graph) -> None:
    """Warn of external sources some of whose outputs are unused."""
    used = {op.name for op in graph.operators}
    for source in sources:
        unused = [str(index) for index, name in enumerate(source.names) if name not in used]
        if not unused:
            continue
        which = "outputs at the indices" if len(unused) > 1 else "output at the index"
        warnings.warn(
            f"The external source node '{str(source.source)[:100]}' produces {len(source.names)} outputs, but the {which} "
            f"{', '.join(unused)} {'are' if len(unused) > 1 else 'is'} not used. Its callback could do less.",
            Warning,
            stacklevel=3,
        )
