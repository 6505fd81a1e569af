"""The nodes of a captured loop: sources, calls, and references to their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from penstock.dynamic._batch import Batch
from penstock.dynamic._calls import CallInterface
from penstock.dynamic._capture_schedules import Schedule
from penstock.dynamic._devices import Device
from penstock.dynamic._value import Results, Value
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.tensors import TensorList

StepValues: TypeAlias = "Results | dict[str, Value]"
"""The values that the body of a captured loop gets in a step: :data:`Results`, or a dictionary of named values."""


class RunningLoop(Protocol):
    """The part of a loop that sources and results refer to.

    Attributes:
        batch_size: the batch size of everything that is captured.
        step: the number of the current step.
        sources: the source that the loop iterates over, followed by sources that its body calls.
        root_ended: whether the data that the loop iterates over have ended.
    """

    batch_size: int
    step: int
    sources: list[SourceNode]
    root_ended: bool

    def note_read(self, reference: Reference) -> None:
        """Record that the program reads a result."""


class Root(Protocol):
    """A source of data: the one that a captured loop iterates over, or one that its body calls."""

    def connect(self, loop: RunningLoop, source: SourceNode) -> list[DataNode]:
        """Add the source to the pipeline that is being defined; return its outputs there."""

    def take_over(self, pipeline: Pipeline) -> None:
        """Make a pipeline that has just been built continue from the source's current state."""

    def shaped(self, values: Sequence[Batch]) -> StepValues:
        """Return the outputs of a step in the form that the body gets."""

    def released(self) -> None:
        """Called when the loop has ended, so that the source may be used in other ways."""


@dataclass(eq=False)
class SourceNode:
    """A source of a loop, with its number of outputs."""

    root: Root
    count: int


@dataclass(eq=False)
class CallNode:
    """A call of the traced step.

    Attributes:
        interface: the operator's function in ``dynamic``.
        device: the device of the call, as the caller passed it.
        inputs: results of other nodes, or constants.
        arguments: the arguments by name, as the caller passed them.
        count: the number of results, if the call returns a tuple; None: it returns a single result.
        state: the output of a generator's schedule with the state of a random operator; None for other operators.
        wanted: the indices of results that the program itself reads, rather than only passes to other calls.
    """

    interface: CallInterface
    device: Device | None
    inputs: list[object]
    arguments: dict[str, object]
    count: int | None = None
    state: Reference | None = None
    wanted: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Reference:
    """A reference to one of the results of a node."""

    node: SourceNode | CallNode | Schedule
    index: int


class CapturedBatch(Batch):
    """A result of a captured loop. The loop's pipeline computes it, or else it is computed when it is needed."""

    __slots__ = ("_capture_ref", "_compute", "_loop", "_step")

    _capture_ref: Reference
    _compute: Callable[[], Results] | None
    _loop: RunningLoop
    _step: int

    @classmethod
    def of_reference(
        cls,
        reference: Reference,
        loop: RunningLoop,
        storage: TensorList | None,
        compute: Callable[[], Results] | None = None,
    ) -> CapturedBatch:
        """Make the result of this step for ``reference``, from its data or from a function that computes it."""
        self = cls.__new__(cls)
        self._storage = storage
        self._tensors = self._device = self._invocation_result = None
        self._external = False
        self._capture_ref, self._loop, self._step, self._compute = reference, loop, loop.step, compute
        return self

    def reference_in(self, loop: RunningLoop) -> Reference | None:
        """Return the reference to this batch if it is a result of the loop's current step, otherwise None."""
        return self._capture_ref if self._loop is loop and self._step == loop.step else None

    def evaluate(self) -> CapturedBatch:
        """Compute the data unless they have been computed; return this object."""
        self._loop.note_read(self._capture_ref)
        if self._storage is None:
            assert self._compute is not None
            found = self._compute()
            chosen = found[self._capture_ref.index] if isinstance(found, tuple) else found
            assert isinstance(chosen, Batch)
            self._storage, self._compute = chosen.storage, None
        return self

    @property
    def storage(self) -> TensorList:
        """The data, in the form that pipelines use."""
        storage = self.evaluate()._storage
        assert storage is not None
        return storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """Return the data."""
        return self.storage

    def placeholder(self) -> TensorList:
        """Return a batch with this type, number of dimensions and layout."""
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
