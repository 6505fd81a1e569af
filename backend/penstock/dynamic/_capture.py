"""Loops whose first step is traced into a pipeline, which computes the later ones ahead.

What a call computes follows from its operator, its inputs and its arguments; so that is how a call is found again: one with
the same operator and arguments, on results of the same calls, has the pipeline's result. All others run on their own. So a
loop's results are the same whether it is captured or not, whatever its body does.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import Face, frozen, perform, settled, watched
from penstock.dynamic._devices import Device
from penstock.dynamic._devices import device as as_device
from penstock.dynamic._eval_contexts import EvalContext
from penstock.dynamic._eval_modes import EvalMode
from penstock.dynamic._faculties import Outcome
from penstock.dynamic._invariants import all_unmarked, is_invariant, unmarked
from penstock.dynamic._rngs import RNG, STATE_WORDS, chosen_rng
from penstock.dynamic._tensor import Tensor
from penstock.external_source import external_source
from penstock.graph import DataNode, call_operator
from penstock.graph.calls import constant_node
from penstock.pipeline import Pipeline
from penstock.tensors import TensorCPU, TensorList, TensorListCPU

# Larger tensors are not compared from step to step: calls with them run on their own.
_MOST_COMPARED = 1 << 16


class Root(Protocol):
    """What a captured loop goes over, or another source that its body asks."""

    def connect(self, loop: Loop, source: SourceNode) -> list[DataNode]:
        """Its outputs in the pipeline that is being defined."""

    def take_over(self, pipeline: Pipeline) -> None:
        """Leaves it to the pipeline to go on from here, once that is built."""

    def shaped(self, values: Sequence[Batch]) -> Outcome:
        """The outputs of a step as the body gets them."""

    def released(self) -> None:
        """The loop is over for good: it may be used anew."""


@dataclass(eq=False)
class SourceNode:
    """A source of a loop, with its number of outputs."""

    root: Root
    count: int


@dataclass(eq=False)
class CallNode:
    """A call of the traced step.

    Attributes:
        face: of the operator.
        device: where it runs, as given.
        inputs: results of other nodes, or constants.
        arguments: by name, likewise.
        count: the number of results; None: one, not in a tuple.
        state: the outputs of a generator's schedule that hold the states of a random operator.
        wanted: the results that somebody looks at, rather than only other calls.
    """

    face: Face
    device: Device | None
    inputs: list[object]
    arguments: dict[str, object]
    count: int | None = None
    state: Reference | None = None
    wanted: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Reference:
    """One of the results of a node."""

    node: SourceNode | CallNode | Schedule
    index: int


class CapturedBatch(Batch):
    """A result of a captured loop. It is computed by the loop's pipeline, or else when it is needed."""

    __slots__ = ("_capture_ref", "_compute", "_loop", "_step")

    _capture_ref: Reference
    _compute: Callable[[], Outcome] | None
    _loop: Loop
    _step: int

    @classmethod
    def of_reference(
        cls, reference: Reference, loop: Loop, storage: TensorList | None, compute: Callable[[], Outcome] | None = None
    ) -> CapturedBatch:
        """The result of this step that ``reference`` tells: its data, or how to compute it."""
        self = cls.__new__(cls)
        self._storage = storage
        self._tensors = self._device = self._invocation_result = None
        self._external = False
        self._capture_ref, self._loop, self._step, self._compute = reference, loop, loop.step, compute
        return self

    def reference_in(self, loop: Loop) -> Reference | None:
        """Which result of the loop's current step this is, if it is one."""
        return self._capture_ref if self._loop is loop and self._step == loop.step else None

    def evaluate(self) -> CapturedBatch:
        """Computes the data if it is not there yet; returns the same object."""
        self._loop.looked_at(self._capture_ref)
        if self._storage is None:
            assert self._compute is not None
            found = self._compute()
            chosen: Batch = found[self._capture_ref.index] if isinstance(found, tuple) else found
            self._storage, self._compute = chosen.storage, None
        return self

    @property
    def storage(self) -> TensorList:
        """The data, as pipelines have it."""
        return self.evaluate()._storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """The data."""
        return self.storage

    def sketch(self) -> TensorList:
        """A batch of this type, rank and layout."""
        return self.storage

    def device_type(self) -> str:
        """``cpu`` or ``gpu``."""
        node = self._capture_ref.node
        if self._storage is None and isinstance(node, CallNode) and node.device is not None:
            return node.device.device_type
        return self.storage.device_type if self._storage is None else self._storage.device_type

    @property
    def batch_size(self) -> int:
        """The number of samples."""
        return self._loop.batch_size if self._storage is None else len(self._storage)


class _Active(threading.local):
    """The loop whose body a thread is running."""

    loop: Loop | None = None


_active = _Active()


def current_loop() -> Loop | None:
    """The captured loop whose body is running on this thread."""
    return _active.loop


def _note_draw(rng: RNG) -> None:
    loop = _active.loop
    if loop is not None and loop.is_traced:
        loop.schedule_of(rng)


RNG.on_draw = staticmethod(_note_draw)


def _used_unexpectedly() -> NoReturn:
    raise RuntimeError(
        "The generator of a captured random operator was used unexpectedly: each step of a captured loop must draw as many numbers "
        "as its first one, and nothing else may draw from the generator, or set it, between steps"
    )


class Schedule:
    """The states that random operators will get from a generator: in each step, as many draws as in the first, in that order.

    Args:
        rng: the generator.
    """

    def __init__(self, rng: RNG) -> None:
        self.rng = rng
        # Where in a step its calls draw.
        self.offsets: list[int] = []
        self.period = 0
        self._start = rng.draws
        self._version = rng.version
        self._ahead = rng.clone()
        self._waiting = 0

    @property
    def offset(self) -> int:
        """Where in the step the generator is."""
        return self.rng.draws - self._start

    def begin(self) -> None:
        """The first step is over."""
        self.period = self.offset
        self._version = self.rng.version
        self._start = self.rng.draws
        self.begin_anew()

    def begin_anew(self) -> None:
        """What was computed ahead is dropped."""
        self._ahead, self._waiting = self.rng.clone(), 0

    def next_states(self) -> list[np.ndarray]:
        """The states for one more step."""
        states, done = [], 0
        for offset in self.offsets:
            self._ahead.advance(offset - done)
            states.append(np.array(self._ahead.draw(STATE_WORDS), np.uint32))
            done = offset + STATE_WORDS
        self._ahead.advance(self.period - done)
        self._waiting += 1
        return states

    def begin_step(self) -> None:
        """A step begins; raises RuntimeError if the generator is not where it was left."""
        if self.offset or self.rng.version != self._version or not self._waiting:
            _used_unexpectedly()
        self._waiting -= 1

    def end_step(self) -> None:
        """A step is over; raises RuntimeError if it drew more or less than the first."""
        if self.offset != self.period or self.rng.version != self._version:
            _used_unexpectedly()
        self._start = self.rng.draws


class Loop:
    """A loop that is captured.

    Args:
        batch_size: of all that is captured.
        context: in which it runs.
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
        self._results: dict[CallNode, Outcome] = {}
        self._outputs: dict[tuple[SourceNode | CallNode, int], int] = {}
        self._produced: Sequence[TensorList] = ()
        self._inside = 0
        self._read: set[SourceNode] = set()
        self.root_ended = False

    # -- the body --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While the body runs: its calls are seen here."""
        if self.is_over:
            yield
            return
        before = _active.loop, watched.interceptor
        if before[0] is not None:
            raise RuntimeError("Only one captured loop can run on a thread at a time: another one is not over")
        _active.loop = watched.interceptor = self
        try:
            yield
        finally:
            _active.loop, watched.interceptor = before

    def looked_at(self, reference: Reference) -> None:
        """Somebody looks at a result."""
        if self.is_traced and not self._inside and isinstance(reference.node, CallNode):
            reference.node.wanted.add(reference.index)

    def check_batch_size(self, batch_size: object) -> None:
        """Raises RuntimeError for another batch size than the loop's."""
        if batch_size is not None and batch_size != self.batch_size:
            raise RuntimeError(
                f"A captured loop of batches of {self.batch_size} cannot change batch size to {batch_size}"
            )

    def call(
        self,
        face: Face,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
    ) -> Outcome:
        """The results of a call in the body."""
        self.check_batch_size(batch_size)
        schedule = self.schedule_of(chosen_rng(arguments.get("rng"))) if face.schema.random else None
        key = self._key_of(face, inputs, arguments, batch_size, device, schedule)
        node = None if key is None else self._calls.get(key)
        if node is not None:
            return self._again(node, inputs, arguments, schedule)
        if key is None or not self.is_traced:
            return self._apart(face, inputs, arguments, batch_size, device)
        return self._first(key, face, inputs, arguments, batch_size, device, schedule)

    def _key_of(
        self,
        face: Face,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
        schedule: Schedule | None,
    ) -> Hashable | None:
        """What the call computes; None if that is not captured."""
        captured = schedule is not None and batch_size is not None
        parts: list[Hashable] = [face.schema.name]
        try:
            for item in inputs:
                part = self._part(item)
                captured = captured or type(part) is Reference
                parts.append(part)
            for name, value in arguments.items():
                if value is not None and name != "rng":
                    part = self._part(value)
                    captured = captured or type(part) is Reference
                    parts.append((name, part))
        except TypeError:
            return None
        if not captured:
            return None
        place = as_device(all_unmarked(device))
        parts.append(None if place is None else str(place))
        if schedule is not None:
            parts.append((id(schedule), schedule.offset))
        return tuple(parts)

    def _part(self, value: object) -> Hashable:
        """A key of an input or an argument; raises TypeError if it cannot be the same in the next step."""
        kind = type(value)
        if kind is CapturedBatch:
            assert isinstance(value, CapturedBatch)
            reference = value.reference_in(self)
            if reference is None:
                raise TypeError("a result of another step")
            return reference
        if is_invariant(value):
            return _Marked()
        if isinstance(value, (Batch, TensorList)):
            raise TypeError("data of this step")
        if isinstance(value, Tensor):
            return _contents(value)
        if kind is np.ndarray and np.asarray(value).nbytes > _MOST_COMPARED:
            raise TypeError("too large to compare")
        return frozen(value)

    def _again(
        self, node: CallNode, inputs: Sequence[object], arguments: Mapping[str, object], schedule: Schedule | None
    ) -> Outcome:
        """The results of a call that was traced."""
        state: list[int] | None = None
        if schedule is not None:
            state = None if self._is_output(node) else schedule.rng.clone().draw(STATE_WORDS)
            schedule.rng.advance(STATE_WORDS)
        elif node in self._results:
            return self._results[node]

        def compute() -> Outcome:
            return self._computed(node, inputs, arguments, state)

        results = tuple(
            CapturedBatch.of_reference(Reference(node, index), self, self._produced_by(node, index), compute)
            for index in range(node.count or 1)
        )
        self._results[node] = results[0] if node.count is None else results
        return self._results[node]

    def _is_output(self, node: CallNode) -> bool:
        return all((node, index) in self._outputs for index in range(node.count or 1))

    def _produced_by(self, node: CallNode, index: int) -> TensorList | None:
        place = self._outputs.get((node, index))
        return None if place is None else self._produced[place]

    def _computed(
        self, node: CallNode, inputs: Sequence[object], arguments: Mapping[str, object], state: Sequence[int] | None
    ) -> Outcome:
        """The results of a call, computed now."""
        self._inside += 1
        try:
            with self.context.entered(), EvalMode.sync_cpu:
                return perform(node.face, inputs, arguments, self.batch_size, node.device, state)
        finally:
            self._inside -= 1

    def _apart(
        self,
        face: Face,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
    ) -> Outcome:
        """The results of a call that is not captured."""
        for node in self._calls.values():
            if node.face is face and not self.is_traced:
                node_marks = {name for name, value in node.arguments.items() if is_invariant(value)}
                unmarked_now = {
                    name for name in node_marks if arguments.get(name) is not None and not is_invariant(arguments[name])
                }
                if unmarked_now:
                    self.end()
                    raise RuntimeError(
                        f"Arguments of `{face.display}` that were marked with ndd.capture.invariant (`capture.invariant`) in the "
                        f"first step must remain marked: {', '.join(sorted(unmarked_now))}"
                    )
        return perform(face, inputs, arguments, batch_size, device)

    def _first(
        self,
        key: Hashable,
        face: Face,
        inputs: Sequence[object],
        arguments: Mapping[str, object],
        batch_size: int | None,
        device: object,
        schedule: Schedule | None,
    ) -> Outcome:
        """The results of a call that is traced now."""
        node = CallNode(face, as_device(all_unmarked(device)), [], {})
        state: list[int] | None = None
        if schedule is not None:
            node.state = Reference(schedule, len(schedule.offsets))
            schedule.offsets.append(schedule.offset)
            state = schedule.rng.draw(STATE_WORDS)
        results = self._computed(node, inputs, arguments, state)
        all_results = results if isinstance(results, tuple) else (results,)
        if not all(isinstance(result, Batch) and result.batch_size == self.batch_size for result in all_results):
            if schedule is not None:
                schedule.offsets.pop()
            return results
        node.inputs = [self._kept(item) for item in inputs if item is not None]
        node.arguments = {
            name: self._kept(value) for name, value in arguments.items() if value is not None and name != "rng"
        }
        node.count = len(results) if isinstance(results, tuple) else None
        self._calls[key] = node
        found = tuple(
            CapturedBatch.of_reference(Reference(node, index), self, result.storage)
            for index, result in enumerate(all_results)
        )
        if schedule is None:
            self._results[node] = found[0] if node.count is None else found
        return found[0] if node.count is None else found

    def _kept(self, value: object) -> object:
        """An input or an argument, to be wired up later."""
        if type(value) is CapturedBatch:
            assert isinstance(value, CapturedBatch)
            return value.reference_in(self)
        return value

    def schedule_of(self, rng: RNG) -> Schedule:
        """The schedule of a generator; it begins where the generator is when the first step first draws from it."""
        found = self._schedules.get(id(rng))
        if found is None:
            found = Schedule(rng)
            if self.is_traced:
                self._schedules[id(rng)] = found
        return found

    # -- sources ---------------------------------------------------------------------------------------------------

    def add_source(self, root: Root, count: int) -> SourceNode:
        """A source with so many outputs."""
        source = SourceNode(root, count)
        self.sources.append(source)
        return source

    def values_of(self, source: SourceNode, data: Sequence[TensorList]) -> Outcome:
        """The outputs of a source in this step, as the body gets them."""
        values = [CapturedBatch.of_reference(Reference(source, index), self, batch) for index, batch in enumerate(data)]
        return source.root.shaped(values)

    def produced_by_source(self, source: SourceNode) -> Outcome:
        """The outputs that the pipeline gave in this step."""
        return self.values_of(source, [self._produced[self._outputs[source, index]] for index in range(source.count)])

    def read(self, source: SourceNode) -> None:
        """The body asks a source; raises RuntimeError for the second time in a step."""
        if source in self._read:
            self.end()
            raise RuntimeError("An ExternalSource may be asked once per capture-mode step")
        self._read.add(source)

    # -- steps -----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """The loop is over for good."""
        if self.is_over:
            return
        self.is_over = True
        for source in self.sources:
            source.root.released()
        if self.pipeline is not None:
            self.pipeline.close()

    def end_step(self) -> None:
        """The body has run through."""
        if self.is_over:
            raise RuntimeError("The captured loop was ended by an error, and cannot go on")
        try:
            for source in self.sources[1:]:
                if source not in self._read:
                    raise RuntimeError(
                        "An ExternalSource was not consumed in this step: those that the first step of a captured loop asks must be "
                        "asked in each"
                    )
            if not self.is_traced:
                for schedule in self._schedules.values():
                    schedule.end_step()
        except RuntimeError:
            self.end()
            raise

    def finish_tracing(self) -> None:
        """Makes the pipeline of what the first step did."""
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
            outputs = self._wire_calls(nodes, list(self._calls.values()))
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

    def _wire_calls(self, nodes: dict[Reference, DataNode], calls: Sequence[CallNode]) -> list[DataNode]:
        """Adds the calls to the pipeline that is being defined; returns its outputs."""
        used = self.define(nodes)
        owners: list[tuple[SourceNode | CallNode, int]] = [
            (source, index) for source in self.sources for index in range(source.count)
        ]
        for node in calls:
            own = [
                index for index in range(node.count or 1) if index in node.wanted or Reference(node, index) not in used
            ]
            owners += [(node, index) for index in own]
        self._outputs = {owner: place for place, owner in enumerate(owners)}
        return [nodes[Reference(node, index)] for node, index in owners]

    def define(self, nodes: dict[Reference, DataNode], names: Mapping[Reference, str] | None = None) -> set[Reference]:
        """Adds the traced calls to the pipeline that is being defined; returns the results that other calls use.

        Args:
            nodes: those of the sources; those of the calls are added.
            names: of the nodes that are to have one.
        """
        used: set[Reference] = set()
        for node in self._calls.values():
            name = None if names is None or node.count is not None else names.get(Reference(node, 0))
            for index, made in enumerate(_wired(node, nodes, used, name)):
                nodes[Reference(node, index)] = made
        return used

    def next_step(self) -> bool:
        """Takes the next step's results from the pipeline; False at the end of the root's data."""
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
                "A source that a captured loop asks in each step was exhausted before the loop"
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
        """The root's data is at its end; what was computed ahead of it is dropped."""
        assert self.pipeline is not None
        self.pipeline.reset()
        self.root_ended = False
        for schedule in self._schedules.values():
            schedule.begin_anew()

    @property
    def depends_on_more(self) -> bool:
        """Whether something beside the root goes on from step to step, which would be out of step after a break."""
        return len(self.sources) > 1 or bool(self._schedules)


class _Marked:
    """The key of all values that are marked as invariant."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Marked)

    def __hash__(self) -> int:
        return hash(_Marked)


def _contents(value: Tensor) -> Hashable:
    """A key of a tensor's contents."""
    storage = value.storage
    if not isinstance(storage, TensorCPU) or storage.array.nbytes > _MOST_COMPARED:
        raise TypeError("too large to compare")
    return "tensor", storage.dtype, storage.layout(), storage.array.shape, storage.array.tobytes()


def _wired(
    node: CallNode, nodes: Mapping[Reference, DataNode], used: set[Reference], name: str | None
) -> list[DataNode]:
    """Adds a call to the pipeline that is being defined; notes which results it uses."""
    face = node.face
    backend = face.backend(node.device, [nodes[item] for item in node.inputs if isinstance(item, Reference)])
    inputs = [_wired_input(face, index, backend, item, nodes, used) for index, item in enumerate(node.inputs)]
    arguments = {name: _wired_argument(face, name, value, nodes, used) for name, value in node.arguments.items()}
    if node.state is not None and node.state in nodes:
        arguments["_random_state"] = nodes[node.state]
    made = call_operator(face.schema, inputs, arguments, backend, name, face.display)
    return made if isinstance(made, list) else [made]


def _wired_input(
    face: Face, index: int, backend: str, item: object, nodes: Mapping[Reference, DataNode], used: set[Reference]
) -> DataNode:
    if isinstance(item, Reference):
        used.add(item)
        made = nodes[item]
    else:
        made = _constant(Tensor(unmarked(item)))
    place = face.input_device(index, backend)
    return made if place is None else made.on_device(place)


def _wired_argument(
    face: Face, name: str, value: object, nodes: Mapping[Reference, DataNode], used: set[Reference]
) -> object:
    if isinstance(value, Reference):
        used.add(value)
        node, wanted = nodes[value].cpu(), face.dtypes.get(name)
        return node if wanted is None else call_operator("Cast", (node,), {"dtype": wanted})
    constant = settled(face, name, value)
    return _constant(constant) if isinstance(constant, Tensor) else constant


def _constant(value: Tensor) -> DataNode:
    host = value.cpu().storage
    return constant_node(host.array, host.dtype, layout=host.layout() or None)


# -- going through a loop ----------------------------------------------------------------------------------------------


class LoopRoot(Root, Protocol):
    """What a captured loop goes over."""

    def begin_epoch(self) -> None:
        """An epoch begins."""

    def has_more(self) -> bool:
        """Whether the epoch may have one more step; some only know when they are asked."""

    def count_step(self) -> None:
        """A step begins."""

    def first(self, loop: Loop) -> list[TensorList]:
        """The outputs of a step without a pipeline; raises StopIteration at the end."""

    def left(self, loop: Loop) -> None:
        """The body was left before the end of the epoch."""


def epoch_of(loop: Loop, root: LoopRoot) -> Iterator[Outcome]:
    """Goes through one epoch: the loop's first step is traced, the later ones are the pipeline's."""
    root.begin_epoch()
    if loop.is_traced:
        try:
            data = root.first(loop)
        except StopIteration:
            loop.end()
            return
        source = loop.add_source(root, len(data))
        yield from _step(loop, root, loop.values_of(source, data))
        loop.finish_tracing()
    if loop.pipeline is None:
        yield from _without_pipeline(loop, root)
        return
    while root.has_more():
        if not loop.next_step():
            loop.start_over()
            return
        yield from _step(loop, root, loop.produced_by_source(loop.sources[0]))


def _step(loop: Loop, root: LoopRoot, value: Outcome) -> Iterator[Outcome]:
    root.count_step()
    try:
        with loop.active():
            yield value
    except GeneratorExit:
        root.left(loop)
        raise
    loop.end_step()


def _without_pipeline(loop: Loop, root: LoopRoot) -> Iterator[Outcome]:
    with contextlib.suppress(StopIteration):
        while root.has_more():
            data = root.first(loop)
            root.count_step()
            yield root.shaped([Batch.of(batch) for batch in data])
