"""Runs plans, one batch at a time; `runtime/batch_queue.py` decides when, and on which thread."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from time import perf_counter
from typing import Any, TypeVar

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
from penstock.runtime.memory import BatchMemory
from penstock.runtime.plan import Plan, Step, Transfer
from penstock.runtime.streams import AsCurrent, PipelineStream
from penstock.runtime.tolerance import SkippedSample, SkippedSamples, kept_samples, policy_for, tolerated
from penstock.runtime.trace import Kind, Trace
from penstock.runtime.workers import Parallel, WorkerPool
from penstock.schema.input_operator import InputOperator
from penstock.schema.operator import Operator
from penstock.schema.tolerance import RAISE, REPLACE
from penstock.schema.workspace import Destination, SampleFailure, Workspace
from penstock.tensors import HostPool, TensorList, TensorListCPU, TensorListGPU
from penstock.tensors.batch import kind_of
from penstock.tensors.cuda import device_lost, find_device_lost
from penstock.tensors.pinned import PinnedPool, copies_in_flight
from penstock.tensors.streams import Stream
from penstock.tensors.transfers import Threads, release_unused

_T = TypeVar("_T")
_SHAPES = attrgetter("shapes")

Started = Batch | Result | BaseException
"""A batch that was started: still in flight, its result, or the error that starting or completing it raised."""

NOTHING = contextlib.nullcontext()
"""A context that changes nothing."""


def _is_without_samples(workspace: Workspace) -> bool:
    """Return whether an operator has no samples to work on, such as in a branch that no sample takes."""
    batches = [*workspace.inputs, *workspace.arguments.values()]
    return bool(batches) and not any(map(len, batches))


def _has_state(operator: Operator) -> bool:
    """Return whether an operator, or one that it replaces, has state that changes with each run, or calls the user's
    functions.
    """
    return operator.schema.stateful or any(_has_state(part) for _, part in operator.parts())


def _empty(device: str) -> TensorList:
    """Return a batch without samples and without a type."""
    return (TensorListCPU if device == "cpu" else TensorListGPU).of_samples([])


class Executor:
    """Runs a plan, one batch after another.

    Args:
        plan: the plan to run.
        max_batch_size: the largest number of samples in a batch; also the batch size if no source sets one.
        num_threads: CPU threads.
        device_id: the GPU to use, or None.
        affinity: CPU cores to bind threads to.
        on_error: the policy for samples that fail in readers and decoders that have no policy set.
        skipped: where samples that were skipped or replaced are recorded.

    Attributes:
        iteration: the index of the next batch.
        blocks_on_events: whether threads sleep while they wait for a result, which leaves the CUDA driver to the thread that runs batches.
        run_context: a context entered around each run, on whatever thread, if the plan calls the user's functions; it makes
            the pipeline the current one.
    """

    def __init__(
        self,
        plan: Plan,
        max_batch_size: int,
        num_threads: int,
        device_id: int | None,
        affinity: Sequence[int] | None = None,
        on_error: str = RAISE,
        skipped: SkippedSamples | None = None,
    ) -> None:
        self.plan = plan
        self.max_batch_size = max_batch_size
        self.device_id = device_id
        self.host_pool = HostPool()
        self.pinned_pool = PinnedPool(device_id)
        self.workers = WorkerPool(num_threads, affinity)
        self.iteration = 0
        self._on_error = on_error
        self._skipped = SkippedSamples() if skipped is None else skipped
        self._stream = None if device_id is None else PipelineStream(device_id)
        self.blocks_on_events = False
        self.peak_bytes: dict[str, list[int]] = {}
        self.enable_memory_stats = False
        self.keep_states = False
        self.trace: Trace | None = None
        self.run_context: AbstractContextManager[object] = NOTHING

    def span(self, name: str, kind: Kind) -> AbstractContextManager[None]:
        """Record the time until the context ends, if the pipeline is traced."""
        return NOTHING if self.trace is None else self.trace.span(name, kind)

    @functools.cached_property
    def input_operators(self) -> dict[str, InputOperator]:
        """The operators that the program feeds, by node name."""
        steps = self.plan.operators
        return {step.node.name: step.operator for step in steps if isinstance(step.operator, InputOperator)}

    @functools.cached_property
    def _blocking(self) -> list[tuple[str, InputOperator]]:
        """The input operators with `blocking=True`, by node name."""
        return [(name, operator) for name, operator in self.input_operators.items() if operator.args["blocking"]]

    @functools.cached_property
    def tolerates(self) -> bool:
        """Whether batches may go on without samples that fail in readers or decoders."""
        return tolerated((step.node for step in self.plan.operators), self._on_error)

    @functools.cached_property
    def _sources(self) -> list[Step]:
        """The operators that may determine the size of the next batch."""
        return [
            step
            for step in self.plan.operators
            if type(step.operator).pending_batch_size is not Operator.pending_batch_size
        ]

    @property
    def leaves_work(self) -> bool:
        """Whether work continues after :meth:`begin_once`: on a GPU, or in operators that start early."""
        return self._stream is not None or bool(self.plan.early)

    def pool_of(self, step: Step) -> HostPool:
        """Return the pool that allocates a step's outputs and inputs on the CPU."""
        return self.pinned_pool if step.feeds_gpu and self._stream is not None else self.host_pool

    @property
    def pools(self) -> tuple[HostPool, ...]:
        """The pools of CPU buffers."""
        return self.host_pool, self.pinned_pool

    # -- data fed by the program ------------------------------------------------------------------------------------------

    def has_data(self) -> bool:
        """Return whether all input operators have data for a batch."""
        return all(operator.has_data() for operator in self.input_operators.values())

    def wait_for_data(self, cancelled: Callable[[], bool]) -> None:
        """Wait until the blocking input operators have data, unless cancelled; see :meth:`wake_inputs`."""
        for name, operator in self._blocking:
            with self.span(name, Kind.NO_INPUT):
                operator.wait_for_data(cancelled)

    def wake_inputs(self) -> None:
        """Make threads that wait for data check whether they were cancelled."""
        for operator in self.input_operators.values():
            operator.wake()

    # -- batches -----------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Release what runs need: threads, decoders, pinned and staging memory. No batch may be running."""
        self.workers.close()
        self.plan.decoding.close()
        if self._stream is not None:
            from penstock.kernels.cuda.launch import release_staging

            self._stream.release()
            copies_in_flight.wait()
            self.pinned_pool.release()
            release_unused(self._stream.device_id)
            release_staging(self._stream.device_id)

    def run_once(
        self,
        isolate: bool = False,
        watch: Watch | None = None,
        destinations: Mapping[int, Destination] | None = None,
        allowance: BatchMemory | None = None,
    ) -> Result:
        """Run the plan on the sources' next batch, on the calling thread and the workers, and wait for the results.

        Args:
            isolate: record the error of a failing sample and continue with the others.
            watch: notified of each operator. Samples it reports as cancelled fail with ``CancelledError``; if all are
                cancelled, the run stops, and sources that have not run yet keep their data.
            destinations: buffers for outputs on the CPU, by the output's number; outputs are written into them if their operators
                allow it.
            allowance: the memory limit of the batch; None: no limit.
        """
        result = self.complete_once(self.begin_once(isolate, watch, destinations, allowance))
        if result.ready is not None:
            result.ready.synchronize()
        return result

    def begin_once(
        self,
        isolate: bool = False,
        watch: Watch | None = None,
        destinations: Mapping[int, Destination] | None = None,
        allowance: BatchMemory | None = None,
    ) -> Batch:
        """Begin a batch, which runs as with :meth:`run_once`. Batches must be completed in the order in which they were begun.

        Another thread may complete the batch, but not while this thread begins the next one; see :meth:`await_begun`.
        """
        slots = {self.plan.outputs[number]: destination for number, destination in (destinations or {}).items()}
        with self.surroundings():
            try:
                return self.begin(isolate, watch, destinations=slots, allowance=allowance)
            except BaseException:
                # Copies of fed data may still read the caller's memory, which the caller may reuse from here on.
                copies_in_flight.wait()
                raise

    def complete_once(self, batch: Batch) -> Result:
        """Complete a batch of :meth:`begin_once`; outputs on the GPU are valid after the result's event."""
        with self.surroundings():
            try:
                return self.complete(batch)
            except BaseException:
                copies_in_flight.wait()
                raise

    def await_begun(self, batch: Batch) -> None:
        """Wait for the work that a batch's early operators have begun; meanwhile, another thread may begin the next batch."""
        # Errors are ignored here: the operator's run raises them again, with the operator's name.
        with contextlib.suppress(Exception), self.on_device():
            for step in self.plan.early:
                workspace = batch.begun.get(step.node.name)
                if workspace is not None:
                    step.operator.await_begun(workspace)

    def begin(
        self,
        isolate: bool = False,
        watch: Watch | None = None,
        tolerant: bool = False,
        destinations: Mapping[int, Destination] | None = None,
        allowance: BatchMemory | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Batch:
        """Run the steps that don't depend on early operators, then start the early ones. Call within :meth:`surroundings`.

        Args:
            isolate, watch, destinations, allowance: see :meth:`run_once`.
            tolerant: whether samples that fail in readers and decoders are skipped or replaced, by the operator's policy.
            meanwhile: a function to call after early operators are prepared and before they start, while threads read their data.
        """
        plan, slots = self.plan, [None] * self.plan.num_slots
        batch = Batch(
            self._batch_size(),
            self.iteration,
            isolate or tolerant,
            watch,
            slots,
            tolerant,
            destinations or {},
            allowance,
            waiting=plan.waiting,
        )
        if allowance is not None:
            allowance.attach(slots)
        result = batch.result
        self._run_steps(batch, plan.prepared, ahead=True)
        if not plan.early and not batch.arrivals and not result.stopped:
            # The remaining steps have nothing to wait for, so they run now.
            batch.waiting = ()
            self._run_steps(batch, plan.waiting)
        early: Sequence[Step] = () if result.stopped else plan.early
        if meanwhile is not None:
            for step in early:
                self._start_operator(step, batch, step.operator.prepare)
            meanwhile()
        for step in early:
            started = self._start_operator(step, batch, step.operator.begin)
            if started is not None:
                batch.early = started if batch.early is None else batch.early.joined(started)
        if self._stream is not None and not plan.early and not batch.arrivals:
            # Recorded now: work submitted between now and when the consumer takes this batch belongs to later batches.
            self._record_ready(result, self._stream)
        if not result.stopped:
            for name, operator in self.input_operators.items():
                result.taken[name] = operator.taken
        self.iteration += 1
        if self.keep_states:
            # The states of operators started early are already those after this batch.
            result.states = plan.states(plan.steps if not batch.waiting else [*plan.prepared, *plan.early])
        return batch

    def complete(self, batch: Batch) -> Result:
        """Run the remaining steps of a batch, if there are any. Call it within :meth:`surroundings`."""
        waiting, result = batch.waiting, batch.result
        try:
            batch.arrive()
            if waiting and not result.stopped:
                self._run_steps(batch, waiting)
        finally:
            if batch.begun:
                batch.end()
        if result.stopped:
            result.taken = {}
        else:
            result.outputs = list(map(batch.slots.__getitem__, self.plan.outputs))
            if batch.tolerated:
                result.kept = kept_samples(batch.size, batch.tolerated)
                result.outputs = [kept_of(output, result.kept) for output in result.outputs]
        if self._stream is not None and result.ready is None:
            self._record_ready(result, self._stream)
        if result.states is not None:
            result.states = self.plan.states(waiting) | result.states
        return result

    def result_of(self, started: Started) -> Result:
        """Complete a batch if necessary, and return its result or raise its error."""
        if isinstance(started, Result):
            return started
        if isinstance(started, Batch):
            with self.surroundings():
                return self.complete(started)
        try:
            raise started
        finally:
            # A local variable would keep alive everything that the frames in the error's traceback refer to, this frame included.
            del started

    def drop(self, batches: deque[Started]) -> None:
        """Drop batches whose results nobody will take."""
        for started in batches:
            if isinstance(started, Batch):
                started.end()
        batches.clear()

    def surroundings(self) -> AbstractContextManager[None]:
        """Return the context to run steps in: makes the device and stream current and, for the user's functions, the pipeline."""
        if self.run_context is not NOTHING:
            return self._as_users_expect()
        return NOTHING if self._stream is None else AsCurrent(self._stream)

    @contextlib.contextmanager
    def _as_users_expect(self) -> Iterator[None]:
        with self.run_context, self.on_device():
            yield

    def on_device(self) -> AbstractContextManager[None]:
        """Return a context that makes the pipeline's device and stream current; on the CPU, one that changes nothing."""
        return NOTHING if self._stream is None else AsCurrent(self._stream)

    def use_stream(self, stream: Stream) -> None:
        """Use the stream of another executor from now on; call this only if this executor has a GPU."""
        assert self._stream is not None
        self._stream.give(stream)

    def _record_ready(self, result: Result, stream: PipelineStream) -> None:
        """Mark a result as ready once all work submitted to the pipeline's stream so far is done."""
        result.ready = stream.event(block=self.blocks_on_events)

    def release_ready_event(self, result: Result) -> None:
        """Let a later batch reuse the event of a result that nobody waits for any more."""
        if self._stream is not None and not self.blocks_on_events:
            self._stream.take_back(result.ready)
            result.ready = None

    @property
    def stream(self) -> Any:
        """The CuPy stream of GPU work; None if the pipeline uses no GPU."""
        return None if self._stream is None else self._stream.stream

    def _run_steps(self, batch: Batch, steps: Sequence[Step | Transfer], ahead: bool = False) -> None:
        """Run steps in order, until all samples are cancelled or have failed; ``ahead``: do not wait for copies to the GPU."""
        slots, watch = batch.slots, batch.watch
        for step in steps:
            if watch is not None and nothing_left(batch.result.failures, watch.cancelled(), batch.size):
                batch.result.stopped = True
                return
            if isinstance(step, Step):
                if watch is None:
                    self._run_operator(step, batch)
                else:
                    began = perf_counter()
                    self._run_operator(step, batch)
                    watch.operator_ran(step, perf_counter() - began)
            else:
                slots[step.target] = self._transfer(step, slots[step.source], batch if ahead else None)
            for slot in step.release:
                slots[slot] = None

    def _batch_size(self) -> int:
        """Return the number of samples in the batch that the sources return next; raise OperatorError if they differ."""
        sizes: dict[int, Step] = {}
        for step in self._sources:
            size = step.operator.pending_batch_size()
            if size is not None:
                # A source may hold more samples than fit into a batch.
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

    def run_step(self, step: Step, slots: list[object], batch_size: int) -> None:
        """Run a single operator on the data in ``slots``."""
        with self.on_device():
            self._run_operator(step, Batch(batch_size, self.iteration, False, None, slots))

    def _workspace(self, step: Step, batch: Batch) -> Workspace:
        """Return the workspace of an operator for a batch."""
        slots = batch.slots
        inputs = list(map(slots.__getitem__, step.inputs))
        arguments = {name: slots[slot] for name, slot in step.arguments.items()} if step.arguments else {}
        first = inputs[0] if inputs and not step.merges else next(iter(arguments.values()), None)
        template = step.workspace
        # In dynamic mode, the worker threads may have changed.
        if template is None or step.workers is not self.workers:
            template, step.workers = self._workspace_template(step), self.workers
            step.workspace = template
        workspace = template.copy_for_batch(inputs, arguments, batch.size if first is None else len(first.shapes))
        workspace.isolate, workspace.iteration, workspace.allowance = batch.isolate, batch.iteration, batch.allowance
        if first is not None:
            workspace.positions = first.positions
        if batch.destinations and workspace.positions is None:
            outputs = enumerate(step.outputs)
            workspace.destinations = {n: batch.destinations[slot] for n, slot in outputs if slot in batch.destinations}
        if batch.result.failures:
            workspace.failures = local_failures(batch.result.failures, workspace)
        return workspace

    def _start_operator(self, step: Step, batch: Batch, action: Callable[[Workspace], _T]) -> _T | None:
        """Call an operator's ``prepare`` or ``begin``; return the result, or None if the batch has no samples for the operator."""
        workspace = batch.begun.get(step.node.name) or self._workspace(step, batch)
        if (step.merges or not workspace.batch_size) and _is_without_samples(workspace):
            return None
        try:
            returned = self._attempt(step, workspace, action)
        except BaseException:
            workspace.end()
            raise
        batch.begun[step.node.name] = workspace
        if workspace.failures:
            self._note_failures(step, workspace, batch)
        return returned

    def _run_operator(self, step: Step, batch: Batch) -> None:
        if step.empty_outputs is not None and self._repeat_without_samples(step, batch):
            return
        workspace = batch.begun.pop(step.node.name, None) or self._workspace(step, batch)
        try:
            if (step.merges or not workspace.batch_size) and _is_without_samples(workspace):
                self._run_without_samples(step, workspace)
            else:
                self._attempt(step, workspace, step.operator.run)
        finally:
            workspace.end()
        if not step.merges:
            for one in workspace.inputs:
                if one.source_infos:
                    propagate_sources(workspace)
                    break
        self._store_outputs(step, batch, workspace.outputs, workspace.positions)
        if workspace.failures:
            self._note_failures(step, workspace, batch)

    def _store_outputs(
        self, step: Step, batch: Batch, outputs: Sequence[TensorList], positions: list[int] | None
    ) -> None:
        for slot, output in zip(step.outputs, outputs):
            if output.positions is None:
                output.positions = positions
            batch.slots[slot] = output
            if self.enable_memory_stats:
                self._note_memory(step, output)

    def _repeat_without_samples(self, step: Step, batch: Batch) -> bool:
        """Store the outputs of an operator that has no samples to work on, without running it; return whether that was possible.

        They depend on the types, ranks and layouts of the inputs, unless the operator has a state.
        """
        operands = [batch.slots[slot] for slot in (*step.inputs, *step.arguments.values())]
        known = step.empty_outputs
        if known is None or any(map(_SHAPES, operands)) or known[0] != list(map(kind_of, operands)):
            return False
        # Positions and sources are set on the outputs of each batch.
        outputs = [output.shallow_copy() for output in known[1]]
        self._store_outputs(step, batch, outputs, operands[len(step.inputs) if step.merges else 0].positions)
        return True

    def _run_without_samples(self, step: Step, workspace: Workspace) -> None:
        """Run an operator only to find the types of its outputs; note them for later batches."""
        operands = [*workspace.inputs, *workspace.arguments.values()]
        self._describe_without_samples(step, workspace)
        if step.device == "cpu" and not _has_state(step.operator):
            step.empty_outputs = list(map(kind_of, operands)), [output.shallow_copy() for output in workspace.outputs]

    def _describe_without_samples(self, step: Step, workspace: Workspace) -> None:
        """Run an operator on a batch without samples.

        The operator may fail: its inputs may have no types, or types that actual samples would not have.
        """
        if not any(each.dtype == NO_TYPE for each in workspace.inputs):
            with contextlib.suppress(Exception):
                self._attempt(step, workspace, step.operator.run)
                return
        workspace.outputs = [_empty(node.device) for node in step.node.outputs]

    def _attempt(self, step: Step, workspace: Workspace, action: Callable[[Workspace], _T]) -> _T:
        """Call a function of an operator; errors name the operator and the sample."""
        try:
            if step.joins:
                check_batch_sizes(workspace)
            if self.trace is None:
                return action(workspace)
            with self.trace.operator(step.node.name, None if step.node.device == "cpu" else self.stream):
                return action(workspace)
        except SampleFailure as error:
            positions = workspace.positions
            cause: BaseException = error.cause
            sample = error.index if positions is None else positions[error.index]
        except Exception as error:
            cause, sample = error, None
        try:
            # Raised outside the except block: otherwise a fused operator's error would get the error that wraps it as its context.
            raise self._error(step, cause, sample)
        finally:
            del cause

    def _workspace_template(self, step: Step) -> Workspace:
        """Return a workspace that is copied for each batch of the operator."""
        parallel: Parallel = functools.partial(self.workers.parallel, pace=step.pace)
        return Workspace(
            device=step.device,
            parallel=parallel if self.trace is None else self.trace.parallel(parallel, step.node.name),
            start=self.workers.start,
            pool=self.pool_of(step),
            max_batch_size=self.max_batch_size,
            num_threads=self.workers.num_threads,
            cores=self.workers.affinity,
            decoding=self.plan.decoding,
        )

    def _note_failures(self, step: Step, workspace: Workspace, batch: Batch) -> None:
        """Remove the samples that failed in an operator from the batch, and record errors that name the operator."""
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
        """Record that a failed sample is skipped or replaced.

        Raise the sample's error if the policy is to raise errors, and TooManyErrorsError if too many samples have failed.
        """
        error = batch.result.failures[position]
        policy = batch.tolerated[position] = policy_for(step.node, error, self._on_error)
        if policy == RAISE or not isinstance(error, OperatorError):
            try:
                raise batch.result.failures.pop(position)
            finally:
                # References in the error's traceback would keep the batch alive.
                del error
        self._skipped.add(
            SkippedSample(source, error.reason, error.operator, batch.iteration, position, policy == REPLACE)
        )

    def _error(self, step: Step, cause: BaseException, sample: int | None) -> OperatorError:
        node = step.node
        if sample is None and self.device_id is not None:
            with self.on_device():
                # Errors on a lost device may not say that it is lost.
                cause = device_lost(cause) or find_device_lost() or cause
        return operator_error(cause, node.display_name, node.device, sample, node.origin)

    @property
    def _copy_threads(self) -> Threads:
        """The threads that share copies between devices."""
        cores = self.workers.affinity
        return Threads(self.workers.num_threads, None if cores is None else tuple(cores))

    def _note_memory(self, step: Step, batch: TensorList) -> None:
        sizes = [int(sample.nbytes) for sample in batch.samples]
        peak = self.peak_bytes.setdefault(f"{step.node.device.upper()}_{step.node.name}", [0, 0])
        peak[0] = max(peak[0], sum(sizes))
        peak[1] = max(peak[1], max(sizes, default=0))

    def _transfer(self, step: Transfer, source: Any, ahead: Batch | None) -> object:
        """Copy a batch to the other device. With ``ahead``, a copy to the GPU may still be under way: later steps wait for it."""
        if step.device != "gpu":
            moved = source.as_cpu()
        elif ahead is None:
            moved = TensorListGPU.upload(source, self._copy_threads)
        else:
            moved, arrival = TensorListGPU.begin_upload(source, self._copy_threads)
            if arrival is not None:
                ahead.arrivals.append(arrival)
        moved.positions = source.positions
        return moved
