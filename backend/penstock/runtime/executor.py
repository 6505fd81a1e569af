"""Runs plans, one batch at a time, optionally prefetching ahead of the consumer."""

from __future__ import annotations

import atexit
import contextlib
import functools
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from time import perf_counter
from typing import Any

from penstock.data_types import NO_TYPE
from penstock.errors import OperatorError, operator_error
from penstock.runtime.batches import (
    Batch,
    Result,
    Watch,
    check_batch_sizes,
    kept_of,
    local_failures,
    nothing_left,
    propagate_sources,
)
from penstock.runtime.plan import Plan, Step, Transfer
from penstock.runtime.streams import PipelineStream
from penstock.runtime.tolerance import SkippedSample, SkippedSamples, kept_samples, policy_for, tolerated
from penstock.runtime.trace import Kind, Trace
from penstock.runtime.workers import Parallel, WorkerPool
from penstock.schema.input_operator import InputOperator
from penstock.schema.operator import Operator
from penstock.schema.tolerance import RAISE, REPLACE
from penstock.schema.workspace import Destination, SampleFailure, Workspace
from penstock.tensors import HostPool, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.cuda import device_lost, find_device_lost


class _Event(Enum):
    """A message to the prefetching thread."""

    SCHEDULED = auto()
    WANTED = auto()
    ENDED = auto()


# How long the prefetching thread waits for the next batch to be scheduled before it completes those in flight.
_IDLE_SECONDS = 0.002

_NOTHING = contextlib.nullcontext()


_prefetching: weakref.WeakSet[Executor] = weakref.WeakSet()


@atexit.register
def _finish_batches() -> None:
    """Ends prefetching threads: one inside a C++ library would abort the interpreter at its exit."""
    for executor in list(_prefetching):
        executor.finish(timeout=5)


def _empty(device: str) -> TensorList:
    """A batch without samples, and so without a type."""
    return (TensorListCPU if device == "cpu" else TensorListGPU).of_samples([])


class Executor:
    """Runs a plan, batch after batch.

    Args:
        plan: the plan to run.
        max_batch_size: the largest batch, and the batch size if no source sets one.
        num_threads: CPU threads.
        device_id: the GPU to use, or None.
        depth: batches prefetched by a thread, ahead of the consumer; 0: each runs when scheduled. A plan that runs
            entirely on the GPU needs no thread: its work is asynchronous.
        affinity: CPU cores to bind threads to.
        on_error: the policy for samples that fail in readers and decoders without a policy of their own.
        skipped: the list of skipped samples.
    """

    def __init__(
        self,
        plan: Plan,
        max_batch_size: int,
        num_threads: int,
        device_id: int | None,
        depth: int,
        affinity: Any = None,
        on_error: str = RAISE,
        skipped: SkippedSamples | None = None,
    ) -> None:
        self.plan = plan
        self.max_batch_size = max_batch_size
        self.device_id = device_id
        self.host_pool = HostPool()
        self.workers = WorkerPool(num_threads, affinity)
        self.iteration = 0
        self._on_error = on_error
        self._skipped = SkippedSamples() if skipped is None else skipped
        self._tolerates = tolerated((step.node for step in plan.operators), on_error)
        self._depth = depth
        self._is_threaded = depth > 0 and not plan.is_cheap_on_host
        self._stream = None if device_id is None else PipelineStream(device_id)
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        # When the last run began and returned, without a thread.
        self._began_at = self._returned_at = perf_counter()
        # Counts of batches that the prefetching thread has completed, and that the consumer has requested.
        self._completed = self._wanted = 0
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self._begun: deque[Batch | Result | BaseException] = deque()
        self._thread: threading.Thread | None = None
        self._finishing = False
        self._closed = False
        self.peak_bytes: dict[str, list[int]] = {}
        self.enable_memory_stats = False
        self.keep_states = False
        self.trace: Trace | None = None
        # Entered around each run: makes the pipeline the current one.
        self.run_context: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext

    # -- ahead of the consumer -----------------------------------------------------------------------------------

    def schedule(self) -> None:
        """Starts the next batch: on the prefetching thread, or at once if there is none.

        If another thread has closed this executor meanwhile, the batch fails.
        """
        if not self._is_threaded and self._depth and self.plan.early:
            # The first batches show what can be started early.
            self._is_threaded = not self.plan.is_cheap_on_host
        if not self._is_threaded:
            if self._consumer_is_slower():
                self._complete_decoded()
            try:
                self._begun.append(self._begin_when_ready())
            except Exception as error:
                self._begun.append(error)
            return
        if self._closed:
            self._results.put(_closed_while_waiting())
            return
        if self._thread is None:
            self._finishing = self._closed
            self._thread = threading.Thread(target=self._prefetch, name="penstock-prefetch", daemon=True)
            self._thread.start()
            _prefetching.add(self)
        self._events.put(_Event.SCHEDULED)

    def _prefetch(self) -> None:
        while self._next_event() and not self._finishing:
            pass
        if self._closed:
            # A thread that waits for a dropped batch must not wait forever.
            self._results.put(_closed_while_waiting())
            self._release()

    def _next_event(self) -> bool:
        """Starts the batch that is scheduled next, or completes one: each is only completed once the next one is
        started.

        Returns False when the thread should end.
        """
        try:
            with self.span("consumer", Kind.NO_DEMAND):
                event = self._events.get(timeout=_IDLE_SECONDS if self._begun else None)
        except queue.Empty:
            self._complete_begun()
            return True
        if event is _Event.SCHEDULED:
            if self._begun and not self._is_fed():
                # The feeding thread may be waiting for the batch in flight.
                self._complete_begun()
            try:
                self._begun.append(self._begin_when_ready())
            except BaseException as error:
                self._begun.append(error)
            if not self.plan.early:
                self._complete_begun()
        elif event is _Event.WANTED:
            self._wanted += 1
        while self._begun and self._completed < self._wanted:
            self._complete_oldest()
        return event is not _Event.ENDED

    def _consumer_is_slower(self) -> bool:
        """Whether the consumer took longer for the last batch than this executor; notes that a run begins."""
        began, self._began_at = self._began_at, perf_counter()
        return self._began_at - self._returned_at > self._returned_at - began

    def _complete_decoded(self) -> None:
        """Completes the oldest batch if it waits for nothing: then the GPU is at work while the next batch is started.

        Otherwise the next batch comes first, to keep the decoders at work.
        """
        oldest = self._begun[0] if self._begun else None
        if isinstance(oldest, Batch) and oldest.begun and self._is_decoded(oldest):
            try:
                self._begun[0] = self._complete(oldest)
            except Exception as error:
                self._begun[0] = error

    def _is_decoded(self, batch: Batch) -> bool:
        return all(step.operator.is_ready(batch.begun[step.node.name]) for step in self.plan.early)

    def _complete_begun(self) -> None:
        while self._begun:
            self._complete_oldest()

    def _complete_oldest(self) -> None:
        self._completed += 1
        try:
            self._results.put(self._complete(self._begun.popleft()))
        except BaseException as error:
            self._results.put(error)

    def _is_fed(self) -> bool:
        return all(operator.has_data() for operator in self.input_operators.values())

    def _begin_when_ready(self) -> Batch:
        """Starts the next batch as soon as the blocking sources have data."""
        for name, operator in self._blocking:
            with self.span(name, Kind.NO_INPUT):
                operator.wait_for_data(lambda: self._finishing)
        return self._begin(tolerant=self._tolerates)

    @property
    def batches_ahead(self) -> int:
        """The number of batches beyond the prefetch depth that are worth scheduling."""
        if self._depth < 2 or self._is_threaded:
            return 0
        return max((step.operator.batches_ahead for step in self.plan.early), default=0)

    def span(self, name: str, kind: Kind) -> AbstractContextManager[None]:
        """Records the time until the context ends, if the pipeline is traced."""
        return _NOTHING if self.trace is None else self.trace.span(name, kind)

    @functools.cached_property
    def input_operators(self) -> dict[str, InputOperator]:
        """The operators that the program feeds, by node name."""
        steps = self.plan.operators
        return {step.node.name: step.operator for step in steps if isinstance(step.operator, InputOperator)}

    @functools.cached_property
    def _blocking(self) -> list[tuple[str, InputOperator]]:
        """The input operators that wait for data."""
        return [(name, operator) for name, operator in self.input_operators.items() if operator.args["blocking"]]

    @functools.cached_property
    def _sources(self) -> list[Step]:
        """The operators that may know how many samples the next batch has."""
        return [
            step
            for step in self.plan.operators
            if type(step.operator).pending_batch_size is not Operator.pending_batch_size
        ]

    def next_result(self) -> Result:
        """The oldest scheduled batch; waits for it, and raises what its run raised."""
        if self.trace is not None:
            self.trace.consumed(self._results.qsize())
        if not self._is_threaded:
            try:
                return self._complete(self._begun.popleft())
            finally:
                self._returned_at = perf_counter()
        self._events.put(_Event.WANTED)
        with self.span("pipeline", Kind.NO_BATCH):
            result = self._results.get()
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                # An error referenced from a frame of its own traceback would keep everything those frames refer to
                # alive.
                del result
        return result

    def close(self, timeout: float | None = None) -> None:
        """Ends the threads; batches that were not taken are dropped.

        Args:
            timeout: how long to wait for a batch in flight, in seconds; afterwards its thread ends by itself.
        """
        self._closed = True
        self.finish(timeout)
        if self._thread is None:
            self._release()

    def _release(self) -> None:
        """Releases the resources for running, once nothing runs."""
        self.workers.close()
        self.plan.decoding.close()
        if self._stream is not None:
            self._stream.release()

    def finish(self, timeout: float | None = None) -> None:
        """Ends the prefetching thread after its current batch, without waiting for data any longer."""
        self._finishing = True
        for operator in self.input_operators.values():
            operator.wake()
        thread = self._thread
        if thread is None:
            return
        self._events.put(_Event.ENDED)
        # Garbage collection may close the pipeline on this very thread.
        if thread is not threading.current_thread():
            thread.join(timeout)
            if not thread.is_alive():
                self._thread = None

    # -- one batch -------------------------------------------------------------------------------------------------

    def run_once(
        self, isolate: bool = False, watch: Watch | None = None, destinations: Mapping[int, Destination] | None = None
    ) -> Result:
        """Runs the plan on the sources' next batch, on the calling thread and the workers.

        Args:
            isolate: record the error of a failing sample and continue with the others.
            watch: notified of each operator. Samples it reports as cancelled fail with ``CancelledError``; if none is
                left, the run stops, and sources that have not run yet keep their data.
            destinations: where outputs on the CPU are to be written if their operators allow it, by their numbers.
        """
        slots = {self.plan.outputs[number]: destination for number, destination in (destinations or {}).items()}
        return self._complete(self._begin(isolate, watch, destinations=slots))

    def _begin(
        self,
        isolate: bool = False,
        watch: Watch | None = None,
        tolerant: bool = False,
        destinations: Mapping[int, Destination] | None = None,
    ) -> Batch:
        """Runs the steps that don't depend on operators started early, then starts those."""
        slots = [None] * self.plan.num_slots
        batch = Batch(
            self._batch_size(), self.iteration, isolate or tolerant, watch, slots, tolerant, destinations or {}
        )
        with self.run_context(), self.on_device():
            self._run_steps(batch, self.plan.steps[: self.plan.num_prepared])
            for step in () if batch.result.stopped else self.plan.early:
                self._begin_operator(step, batch)
        if not self.plan.early:
            # Now, as work submitted before the batch is taken belongs to later batches.
            self._mark_ready(batch.result)
        if not batch.result.stopped:
            batch.result.taken = {name: operator.taken for name, operator in self.input_operators.items()}
        self.iteration += 1
        if self.keep_states:
            # Operators started early are already in the state that follows this batch.
            batch.result.states = self.plan.states([*self.plan.steps[: self.plan.num_prepared], *self.plan.early])
        return batch

    def _complete(self, begun: Batch | Result | BaseException) -> Result:
        """Runs the remaining steps of a batch, if there are any, or raises the error with which its start failed."""
        if isinstance(begun, Result):
            return begun
        if isinstance(begun, BaseException):
            try:
                raise begun
            finally:
                # As in `next_result`.
                del begun
        waiting, result = self.plan.steps[self.plan.num_prepared :], begun.result
        if waiting and not result.stopped:
            with self.run_context(), self.on_device():
                self._run_steps(begun, waiting)
                if self._stream is not None and not begun.tolerated:
                    self._record_ready(result, self._stream)
        if result.stopped:
            result.taken = {}
        else:
            result.outputs = [begun.slots[slot] for slot in self.plan.outputs]
            if begun.tolerated:
                result.kept = kept_samples(begun.size, begun.tolerated)
                result.outputs = [kept_of(batch, result.kept) for batch in result.outputs]
        self._mark_ready(result)
        if result.states is not None:
            result.states = self.plan.states(waiting) | result.states
        return result

    def on_device(self) -> AbstractContextManager[None]:
        """Makes the pipeline's device and stream the current ones; does nothing on the CPU."""
        return _NOTHING if self._stream is None else self._stream.as_current()

    def _mark_ready(self, result: Result) -> None:
        """Marks a result as ready once all work submitted to the pipeline's stream so far is done."""
        if self._stream is not None and result.ready is None:
            with self.on_device():
                self._record_ready(result, self._stream)

    def _record_ready(self, result: Result, stream: PipelineStream) -> None:
        # A thread that waits for the event should sleep, and leave the driver to this thread.
        result.ready = stream.event(block=self._thread is not None)

    @property
    def stream(self) -> Any:
        """The CuPy stream of GPU work; None if the pipeline uses no GPU."""
        return None if self._stream is None else self._stream.stream

    def _run_steps(self, batch: Batch, steps: Sequence[Step | Transfer]) -> None:
        """Runs steps in order, until all samples are cancelled or have failed."""
        slots, watch = batch.slots, batch.watch
        for step in steps:
            if watch is not None and nothing_left(batch.result.failures, watch.cancelled(), batch.size):
                batch.result.stopped = True
                return
            if isinstance(step, Step):
                began = perf_counter()
                self._run_operator(step, batch)
                if watch is not None:
                    watch.operator_ran(step, perf_counter() - began)
            else:
                slots[step.target] = self._transfer(step, slots[step.source])
            for slot in step.release:
                slots[slot] = None

    def _batch_size(self) -> int:
        """The batch size that the sources will return; raises RuntimeError if they disagree."""
        sizes: dict[int, Step] = {}
        for step in self._sources:
            size = step.operator.pending_batch_size()
            if size is not None:
                # A source may hold more samples than fit a batch.
                sizes.setdefault(min(size, self.max_batch_size), step)
        if len(sizes) > 1:
            sides = ", ".join(f"{size} in '{step.node.name}'" for size, step in sizes.items())
            step = list(sizes.values())[-1]
            raise OperatorError(
                f"Batch size clash: the sources of one iteration returned different numbers of samples: {sides}.",
                step.node.display_name,
                step.node.device,
                None,
                step.node.origin,
            )
        return next(iter(sizes), self.max_batch_size)

    def run_step(self, step: Step, slots: list[Any], batch_size: int) -> None:
        """Runs one operator alone, on the data in ``slots``."""
        with self.on_device():
            self._run_operator(step, Batch(batch_size, self.iteration, False, None, slots))

    def _workspace(self, step: Step, batch: Batch) -> Workspace:
        """The workspace of an operator for a batch."""
        slots = batch.slots
        inputs = [slots[slot] for slot in step.inputs]
        arguments = {name: slots[slot] for name, slot in step.arguments.items()} if step.arguments else {}
        first = inputs[0] if inputs and not step.node.schema.merges else next(iter(arguments.values()), None)
        workspace = Workspace(
            inputs=inputs,
            arguments=arguments,
            batch_size=batch.size if first is None else len(first),
            device="cpu" if step.node.device == "cpu" else "gpu",
            isolate=batch.isolate,
            parallel=self._parallel(step),
            start=self.workers.start,
            pool=self.host_pool,
            max_batch_size=self.max_batch_size,
            iteration=batch.iteration,
            num_threads=self.workers.num_threads,
            positions=first.positions if first is not None else None,
            decoding=self.plan.decoding,
        )
        if batch.destinations and workspace.positions is None:
            outputs = enumerate(step.outputs)
            workspace.destinations = {n: batch.destinations[slot] for n, slot in outputs if slot in batch.destinations}
        if batch.result.failures:
            workspace.failures = local_failures(batch.result.failures, workspace)
        return workspace

    def _begin_operator(self, step: Step, batch: Batch) -> None:
        workspace = self._workspace(step, batch)
        try:
            self._attempt(step, workspace, step.operator.begin)
        except BaseException:
            workspace.samples = []  # As in `_run_operator`.
            raise
        batch.begun[step.node.name] = workspace
        if workspace.failures:
            self._note_failures(step, workspace, batch)

    def _run_operator(self, step: Step, batch: Batch) -> None:
        workspace = batch.begun.pop(step.node.name, None) or self._workspace(step, batch)
        try:
            if not workspace.batch_size and any(each.dtype == NO_TYPE for each in workspace.inputs):
                # The operator could not tell the types of its outputs either.
                workspace.outputs = [_empty(workspace.device) for _ in step.outputs]
            else:
                self._attempt(step, workspace, step.operator.run)
        finally:
            # Samples and workspace refer to each other: the buffers would stay in use until the next garbage collection.
            workspace.samples = []
        if not step.node.schema.merges:
            propagate_sources(workspace)
        for slot, outputs in zip(step.outputs, workspace.outputs):
            if outputs.positions is None:
                outputs.positions = workspace.positions
            batch.slots[slot] = outputs
            if self.enable_memory_stats:
                self._note_memory(step, outputs)
        if workspace.failures:
            self._note_failures(step, workspace, batch)

    def _attempt(self, step: Step, workspace: Workspace, action: Callable[[Workspace], None]) -> None:
        """Calls an operator; errors name it and the sample."""
        failure: tuple[BaseException, int | None] | None = None
        try:
            if not step.node.schema.merges:
                check_batch_sizes(workspace)
            if self.trace is None:
                action(workspace)
            else:
                with self.trace.operator(step.node.name, None if step.node.device == "cpu" else self.stream):
                    action(workspace)
        except SampleFailure as error:
            positions = workspace.positions
            failure = error.cause, error.index if positions is None else positions[error.index]
        except Exception as error:
            failure = error, None
        if failure is not None:
            try:
                # Not in the handler: a fused operator's error would get its wrapper as its context.
                raise self._error(step, *failure)
            finally:
                del failure

    def _parallel(self, step: Step) -> Parallel:
        parallel = self.workers.parallel
        return parallel if self.trace is None else self.trace.parallel(parallel, step.node.name)

    def _note_failures(self, step: Step, workspace: Workspace, batch: Batch) -> None:
        """Sets the samples that failed in an operator aside, with errors that name it."""
        positions = workspace.positions
        for index, cause in workspace.failures.items():
            position = index if positions is None else positions[index]
            if position not in batch.result.failures:
                batch.result.failures[position] = self._error(step, cause, position)
                if batch.tolerant:
                    named = [each.source_infos for each in workspace.outputs if len(each) == workspace.batch_size]
                    sources = [infos[index] for infos in named if infos]
                    self._tolerate(step, batch, position, next(filter(None, sources), ""))

    def _tolerate(self, step: Step, batch: Batch, position: int, source: str) -> None:
        """Records that a sample is skipped or replaced; raises its error if neither applies, or if there are too
        many."""
        error = batch.result.failures[position]
        policy = batch.tolerated[position] = policy_for(step.node, error, self._on_error)
        if policy == RAISE or not isinstance(error, OperatorError):
            raise error
        self._skipped.add(
            SkippedSample(source, error.reason, error.operator, batch.iteration, position, policy == REPLACE)
        )

    def _error(self, step: Step, cause: BaseException, sample: int | None) -> OperatorError:
        node = step.node
        if sample is None and self.device_id is not None:
            with self.on_device():
                # What fails on a lost device may not say so.
                cause = device_lost(cause) or find_device_lost() or cause
        return operator_error(cause, node.display_name, node.device, sample, node.origin)

    def _note_memory(self, step: Step, batch: TensorList) -> None:
        sizes = [int(sample.nbytes) for sample in batch.samples]
        peak = self.peak_bytes.setdefault(f"{step.node.device.upper()}_{step.node.name}", [0, 0])
        peak[0] = max(peak[0], sum(sizes))
        peak[1] = max(peak[1], max(sizes, default=0))

    def _transfer(self, step: Transfer, batch: Any) -> object:
        moved = TensorListGPU.upload(batch) if step.device == "gpu" else batch.as_cpu()
        moved.positions = batch.positions
        return moved


def _closed_while_waiting() -> RuntimeError:
    return RuntimeError("The pipeline was closed while a batch of it was waited for.")
