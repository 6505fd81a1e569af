"""The nodes of a captured loop: sources, calls, and their results."""

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
"""What the body of a captured loop gets in a step: as :data:`Results`, or with names."""


class RunningLoop(Protocol):
    """The part of a loop that sources and results refer to.

    Attributes:
        batch_size: the batch size of all that is captured.
        step: the number of the step.
        sources: the sources that the loop iterates over, and those that its body calls.
        root_ended: whether the data that it iterates over is at its end.
    """

    batch_size: int
    step: int
    sources: list[SourceNode]
    root_ended: bool

    def note_read(self, reference: Reference) -> None:
        """Note that the program reads a result."""


class Root(Protocol):
    """The data that a captured loop iterates over, or another source that its body calls."""

    def connect(self, loop: RunningLoop, source: SourceNode) -> list[DataNode]:
        """Return its outputs in the pipeline that is being defined."""

    def take_over(self, pipeline: Pipeline) -> None:
        """Let the pipeline continue from the present state, once it is built."""

    def shaped(self, values: Sequence[Batch]) -> StepValues:
        """Return the outputs of a step in the form that the body gets."""

    def released(self) -> None:
        """Release the reader or source for other uses, as the loop has ended."""


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
        device: the device on which it runs, as the caller passed it.
        inputs: results of other nodes, or constants.
        arguments: the arguments by name, as the caller passed them.
        count: the number of results; None: one, not in a tuple.
        state: the outputs of a generator's schedule that hold the states of a random operator.
        wanted: the results that the program looks at, and not only other calls.
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
    """One of the results of a node."""

    node: SourceNode | CallNode | Schedule
    index: int


class CapturedBatch(Batch):
    """A result of a captured loop. It is computed by the loop's pipeline, or else when it is needed."""

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
        """Return this step's result for ``reference``: its data, or how to compute it."""
        self = cls.__new__(cls)
        self._storage = storage
        self._tensors = self._device = self._invocation_result = None
        self._external = False
        self._capture_ref, self._loop, self._step, self._compute = reference, loop, loop.step, compute
        return self

    def reference_in(self, loop: RunningLoop) -> Reference | None:
        """Return which result of the loop's current step this is, or None."""
        return self._capture_ref if self._loop is loop and self._step == loop.step else None

    def evaluate(self) -> CapturedBatch:
        """Compute the data unless that is done; return the same object."""
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
        """The data, as pipelines have it."""
        storage = self.evaluate()._storage
        assert storage is not None
        return storage

    def tensor_list(self, count: int = 1) -> TensorList:
        """Return the data."""
        return self.storage

    def placeholder(self) -> TensorList:
        """Return a batch of this type, rank and layout."""
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
