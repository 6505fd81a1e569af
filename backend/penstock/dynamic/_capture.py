"""Loops whose first step is traced into a pipeline, which computes later steps ahead of time.

A call is recognized by what determines its result: its operator, its inputs and its arguments. In later steps, a call with the same
operator and arguments, on the results of the same calls, gets the pipeline's result; all other calls run separately. Therefore, the results
of a loop do not depend on whether it is captured, whatever its body does.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import CallInterface, perform, watched
from penstock.dynamic._capture_keys import key_of
from penstock.dynamic._capture_nodes import CallNode, CapturedBatch, Reference, Root, SourceNode, StepValues
from penstock.dynamic._capture_schedules import Schedule
from penstock.dynamic._capture_wiring import wire
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import EvalMode
from penstock.dynamic._invariants import all_unmarked, is_invariant
from penstock.dynamic._rngs import RNG, STATE_WORDS, chosen_rng
from penstock.dynamic._value import Results
from penstock.external_source import external_source
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.tensors import TensorList, TensorListCPU


class _Active(threading.local):
    """The captured loop whose body a thread is running."""

    loop: Loop | None = None


_active = _Active()


def current_loop() -> Loop | None:
    """Return the captured loop whose body is running on this thread."""
    return _active.loop


def _note_draw(rng: RNG) -> None:
    loop = _active.loop
    if loop is not None and loop.is_traced:
        loop.schedule_of(rng)


RNG.on_draw = staticmethod(_note_draw)


class Loop:
    """A loop that is captured.

    Args:
        batch_size: the batch size of everything that is captured.
        context: the evaluation context in which the loop runs.
    """

    def __init__(self, batch_size: int, context: EvalContext) -> None:
        self.batch_size = batch_size
        self.context = context
        self.step = 0
        self.is_traced = True
        self.is_over = False
        self.sources: list[SourceNode] = []
        self.pipeline: Pipeline | None = None
        self._calls: dict[Hashable, CallNode] = {}
        self._schedules: dict[int, Schedule] = {}
        self._results: dict[CallNode, Results] = {}
        self._outputs: dict[tuple[SourceNode | CallNode, int], int] = {}
        self._produced: Sequence[TensorList] = ()
        self._inside = 0
        self._read: set[SourceNode] = set()
        self.root_ended = False

    # -- the body --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Intercept the calls of operators inside the context, in which the body runs."""
        if self.is_over:
            yield
            return
        before = _active.loop, watched.interceptor
        if before[0] is not None:
            raise RuntimeError("Only one captured loop can run on a thread at a time: another one has not ended")
        _active.loop = watched.interceptor = self
        try:
            yield
        finally:
            _active.loop, watched.interceptor = before

    def note_read(self, reference: Reference) -> None:
        """Record that the program reads a result."""
        if self.is_traced and not self._inside and isinstance(reference.node, CallNode):
            reference.node.wanted.add(reference.index)

    def check_batch_size(self, batch_size: object) -> None:
        """Raise RuntimeError if a batch size is not None and differs from the loop's."""
        if batch_size is not None and batch_size != self.batch_size:
            raise RuntimeError(
                f"A captured loop with batch size {self.batch_size} cannot change batch size to {batch_size}"
            )

    def call(
        self,
        interface: CallInterface,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
    ) -> Results:
        """Return the results of a call in the body."""
        self.check_batch_size(batch_size)
        schedule = self.schedule_of(chosen_rng(arguments.get("rng"))) if interface.schema.random else None
        key = key_of(self, interface, inputs, arguments, batch_size, device, schedule)
        node = None if key is None else self._calls.get(key)
        if node is not None:
            return self._resume(node, inputs, arguments, schedule)
        if key is None or not self.is_traced:
            return self._separately(interface, inputs, arguments, batch_size, device)
        return self._first(key, interface, inputs, arguments, batch_size, device, schedule)

    @property
    def calls(self) -> Iterable[CallNode]:
        """The calls that were traced, in the order in which they were made."""
        return self._calls.values()

    def _resume(
        self, node: CallNode, inputs: Sequence[object], arguments: Mapping[str, object], schedule: Schedule | None
    ) -> Results:
        """Return the results of a call that was traced in the first step."""
        state: list[int] | None = None
        if schedule is not None:
            state = None if self._is_output(node) else schedule.rng.clone().draw(STATE_WORDS)
            schedule.rng.advance(STATE_WORDS)
        elif node in self._results:
            return self._results[node]

        def compute() -> Results:
            return self._compute_here(node, inputs, arguments, state)

        results = tuple(
            CapturedBatch.of_reference(Reference(node, index), self, self._produced_by(node, index), compute)
            for index in range(node.count or 1)
        )
        self._results[node] = results[0] if node.count is None else results
        return self._results[node]

    def _is_output(self, node: CallNode) -> bool:
        return all((node, index) in self._outputs for index in range(node.count or 1))

    def _produced_by(self, node: CallNode, index: int) -> TensorList | None:
        position = self._outputs.get((node, index))
        return None if position is None else self._produced[position]

    def _compute_here(
        self, node: CallNode, inputs: Sequence[object], arguments: Mapping[str, object], state: Sequence[int] | None
    ) -> Results:
        """Compute the results of a traced call now, without the pipeline."""
        self._inside += 1
        try:
            with self.context.entered(), EvalMode.sync_cpu:
                return perform(node.interface, inputs, arguments, self.batch_size, node.device, state)
        finally:
            self._inside -= 1

    def _separately(
        self,
        interface: CallInterface,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
    ) -> Results:
        """Compute the results of a call that is not captured."""
        for node in self.calls:
            if node.interface is interface and not self.is_traced:
                node_marks = {name for name, value in node.arguments.items() if is_invariant(value)}
                unmarked_now = {
                    name for name in node_marks if arguments.get(name) is not None and not is_invariant(arguments[name])
                }
                if unmarked_now:
                    self.end()
                    raise RuntimeError(
                        f"Arguments of `{interface.display}` that were marked with ndd.capture.invariant (`capture.invariant`) in the "
                        f"first step must remain marked: {', '.join(sorted(unmarked_now))}"
                    )
        return perform(interface, inputs, arguments, batch_size, device)

    def _first(
        self,
        key: Hashable,
        interface: CallInterface,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
        schedule: Schedule | None,
    ) -> Results:
        """Compute the results of a call in the first step, and trace the call."""
        node = CallNode(interface, as_device(all_unmarked(device)), [], {})
        state: list[int] | None = None
        if schedule is not None:
            node.state = Reference(schedule, len(schedule.offsets))
            schedule.offsets.append(schedule.offset)
            state = schedule.rng.draw(STATE_WORDS)
        results = self._compute_here(node, inputs, arguments, state)
        all_results = results if isinstance(results, tuple) else (results,)
        batches = [result for result in all_results if isinstance(result, Batch)]
        if len(batches) < len(all_results) or any(batch.batch_size != self.batch_size for batch in batches):
            if schedule is not None:
                schedule.offsets.pop()
            return results
        node.inputs = [self._copy_of(item) for item in inputs if item is not None]
        node.arguments = {
            name: self._copy_of(value) for name, value in arguments.items() if value is not None and name != "rng"
        }
        node.count = len(results) if isinstance(results, tuple) else None
        self._calls[key] = node
        found = tuple(
            CapturedBatch.of_reference(Reference(node, index), self, result.storage)
            for index, result in enumerate(batches)
        )
        if schedule is None:
            self._results[node] = found[0] if node.count is None else found
        return found[0] if node.count is None else found

    def _copy_of(self, value: object) -> object:
        """Return an input or an argument in the form in which a traced call stores it: a result of the loop as a reference."""
        if type(value) is CapturedBatch:
            assert isinstance(value, CapturedBatch)
            return value.reference_in(self)
        return value

    def schedule_of(self, rng: RNG) -> Schedule:
        """Return the schedule of a generator. It begins at the state that the generator has when it is first used in the first
        step.
        """
        found = self._schedules.get(id(rng))
        if found is None:
            found = Schedule(rng)
            if self.is_traced:
                self._schedules[id(rng)] = found
        return found

    # -- sources ---------------------------------------------------------------------------------------------------

    def add_source(self, root: Root, count: int) -> SourceNode:
        """Add a source with this many outputs, and return it."""
        source = SourceNode(root, count)
        self.sources.append(source)
        return source

    def values_of(self, source: SourceNode, data: Sequence[TensorList]) -> StepValues:
        """Return the outputs of a source in this step, in the form that the body gets."""
        values = [CapturedBatch.of_reference(Reference(source, index), self, batch) for index, batch in enumerate(data)]
        return source.root.shaped(values)

    def produced_by_source(self, source: SourceNode) -> StepValues:
        """Return the outputs of a source that the pipeline produced in this step."""
        return self.values_of(source, [self._produced[self._outputs[source, index]] for index in range(source.count)])

    def read(self, source: SourceNode) -> None:
        """Record that the body calls a source; raise RuntimeError if it does so twice in a step."""
        if source in self._read:
            self.end()
            raise RuntimeError("An ExternalSource may be read once per capture-mode step")
        self._read.add(source)

    # -- steps -----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Record that the loop has ended and will not be continued."""
        if self.is_over:
            return
        self.is_over = True
        for source in self.sources:
            source.root.released()
        if self.pipeline is not None:
            self.pipeline.close()

    def end_step(self) -> None:
        """Record that the body has ended; raise RuntimeError if the step differs from the first one."""
        if self.is_over:
            raise RuntimeError("The captured loop ended with an error, and cannot be continued")
        try:
            for source in self.sources[1:]:
                if source not in self._read:
                    raise RuntimeError(
                        "An ExternalSource was not consumed in this step: sources that the first step of a captured loop reads "
                        "must be read in each"
                    )
            if not self.is_traced:
                for schedule in self._schedules.values():
                    schedule.end_step()
        except RuntimeError:
            self.end()
            raise

    def finish_tracing(self) -> None:
        """Make the pipeline from the calls that were traced in the first step."""
        self._schedules = {key: schedule for key, schedule in self._schedules.items() if schedule.offsets}
        self.is_traced = False
        if not self._calls:
            warnings.warn(
                "A loop was to be captured, but no operators were captured in its first step; it goes on without a pipeline",
                UserWarning,
                stacklevel=4,
            )
            self.end()
            return
        pipeline = Pipeline(self.batch_size, self.context.num_threads, self.context.device_id)
        with pipeline:
            nodes = self._wire_sources()
            outputs = self._wire_calls(nodes)
        pipeline.set_outputs(*outputs)
        for schedule in self._schedules.values():
            schedule.begin()
        pipeline.build()
        for source in self.sources:
            source.root.take_over(pipeline)
        self.pipeline = pipeline
        self._results.clear()

    def _wire_sources(self) -> dict[Reference, DataNode]:
        nodes = {
            Reference(source, index): node
            for source in self.sources
            for index, node in enumerate(source.root.connect(self, source))
        }
        for schedule in self._schedules.values():
            states = external_source(
                self._states_of(schedule), len(schedule.offsets), layout=None, no_copy=True, device="cpu"
            )
            nodes |= {Reference(schedule, index): node for index, node in enumerate(states)}
        return nodes

    def _states_of(self, schedule: Schedule) -> Callable[[], list[TensorList]]:
        def states() -> list[TensorList]:
            return [TensorListCPU.of_samples([state] * self.batch_size) for state in schedule.next_states()]

        return states

    def _wire_calls(self, nodes: dict[Reference, DataNode]) -> list[DataNode]:
        """Add the calls to the pipeline that is being defined; return the outputs of the pipeline."""
        used = wire(self.calls, nodes)
        owners: list[tuple[SourceNode | CallNode, int]] = [
            (source, index) for source in self.sources for index in range(source.count)
        ]
        for node in self.calls:
            outputs = [
                index for index in range(node.count or 1) if index in node.wanted or Reference(node, index) not in used
            ]
            owners += [(node, index) for index in outputs]
        self._outputs = {owner: position for position, owner in enumerate(owners)}
        return [nodes[Reference(node, index)] for node, index in owners]

    def next_step(self) -> bool:
        """Get the next step's results from the pipeline; return False at the end of the root's data."""
        assert self.pipeline is not None
        self.step += 1
        self._results.clear()
        self._read.clear()
        try:
            self._produced = self.pipeline.run()
        except StopIteration:
            if self.root_ended:
                return False
            self.end()
            raise RuntimeError(
                "A source that a captured loop reads in each step was exhausted before the loop ended"
            ) from None
        except Exception:
            self.end()
            raise
        try:
            for schedule in self._schedules.values():
                schedule.begin_step()
        except RuntimeError:
            self.end()
            raise
        return True

    def start_over(self) -> None:
        """Discard results that were computed ahead, at the end of the root's data."""
        assert self.pipeline is not None
        self.pipeline.reset()
        self.root_ended = False
        for schedule in self._schedules.values():
            schedule.discard_ahead()

    @property
    def depends_on_more(self) -> bool:
        """Whether other sources than the root advance from step to step; after a break, they would be out of step."""
        return len(self.sources) > 1 or bool(self._schedules)
