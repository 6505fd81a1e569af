"""Workspaces: the batch and samples that an operator receives, the means to run on them, and the operator's outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, overload

import numpy as np

from penstock.data_types import element_size
from penstock.errors import LimitError, without_frames
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.schema.declaration import Schema
from penstock.schema.outputs import Destination, OutputSpec, Shape, allocate_batch
from penstock.schema.plans import OwnPlan, Plan, PlanRow, Plans, State
from penstock.schema.sharing import Postponed, Started, run_in_order
from penstock.tensors import HostPool, TensorListCPU
from penstock.tensors.batch import kind_of

if TYPE_CHECKING:
    from typing import Self

_SHAPES = attrgetter("shapes")
# The placeholder for values that are set later.
_NOTHING: Any = None


class Allowance(Protocol):
    """The memory that a batch may use."""

    def refused(
        self,
        workspace: Workspace,
        shapes: Sequence[Sequence[Shape]],
        specs: Sequence[OutputSpec],
        working: Sequence[int],
    ) -> dict[int, LimitError]:
        """Return the errors of samples whose outputs may not be allocated, by their index in the workspace; record the outputs of other
        samples.

        Args:
            workspace: the operator's workspace.
            shapes: for each output, the shapes of all samples.
            specs: the spec of each output.
            working: the bytes of scratch memory that computing each sample takes; empty: next to none.
        """

    def claim(self, workspace: Workspace, size: int) -> None:
        """Record an output of ``size`` bytes; raise LimitError if it may not be allocated."""


@dataclass
class Workspace(Generic[State, Plan, Plans]):
    """One run of one operator on one batch.

    Attributes:
        inputs: the positional inputs.
        arguments: the tensor arguments by name, always on the CPU.
        batch_size: the number of samples.
        outputs: the outputs, which the run sets.
        samples: the samples; None for samples that failed.
        failures: errors by sample index; filled only if ``isolate`` is set, otherwise the first error is raised.
        isolate: whether other samples are still computed if a sample fails.
        parallel: function that runs a function for each sample index on the pool's threads: ``parallel(task, count, costs)``.
        start: like ``parallel``, but returns at once, with an object to wait on; see :class:`Started`.
        pool: the pool of CPU memory.
        max_batch_size: the pipeline's largest batch size.
        num_threads: the number of threads that share a batch, including the calling one.
        cores: the cores to which these threads are bound, in order; None: they are not bound.
        iteration: the index of the batch since the pipeline was built.
        positions: the positions of the samples in the pipeline's batch, if conditionals have split it; otherwise None.
        kind: a key that all batches with the same launches share; None: unknown.
        owners: for a batch of frames, the index of each frame's sequence; otherwise None.
        state: the state that ``describe`` stores for later steps.
        plans: the plans that ``infer_batch`` returned, with a row for each :attr:`live` sample; with ``plans_by_shape``, plans are stored
            only in the samples.
        begun: the value that ``Operator.begin`` stored for the run; None if nothing was begun.
        decoding: the limits for decoding encoded data, and in which process to decode.
        destinations: the memory for outputs on the CPU, by the number of the output.
        sequences: for a batch of frames, the workspace of the sequences; otherwise None.
        allowance: the memory limit of the batch; None: no limit.
        is_allowed: whether the outputs have been recorded in the allowance.
        admitted: the batch's :meth:`kinds`, if they equal those of an earlier batch that needed no changes; otherwise None.
        transient: whether outputs are never allocated for all samples at once, but only for one sample on each thread.
    """

    inputs: Sequence[Any] = ()
    arguments: dict[str, TensorListCPU] = field(default_factory=dict)
    batch_size: int = 0
    device: str = "cpu"
    outputs: list[Any] = field(default_factory=list)
    samples: list[Sample[State, Plan, Plans] | None] | PlannedSamples[State, Plan, Plans] = field(default_factory=list)
    failures: dict[int, BaseException] = field(default_factory=dict)
    isolate: bool = False
    parallel: Callable[..., None] = run_in_order
    start: Callable[..., Started] = Postponed
    pool: HostPool | None = None
    max_batch_size: int = 0
    iteration: int = 0
    num_threads: int = 1
    cores: Sequence[int] | None = None
    positions: list[int] | None = None
    owners: list[int] | None = None
    state: State = _NOTHING
    kind: Any = None
    plans: Plans = _NOTHING
    begun: Any = None
    decoding: Decoding = FREELY
    destinations: Mapping[int, Destination] = field(default_factory=dict)
    sequences: Workspace | None = None
    allowance: Allowance | None = None
    is_allowed: bool = False
    transient: bool = False
    admitted: tuple[object, ...] | None = None

    def copy_for_batch(self, inputs: Sequence[object], arguments: dict[str, TensorListCPU], batch_size: int) -> Self:
        """Return a copy for another batch of the same operator; the caller sets the attributes that are not arguments here."""
        other = type(self).__new__(type(self))
        other.__dict__ = vars(self).copy()
        other.inputs, other.arguments, other.batch_size = inputs, arguments, batch_size
        other.outputs, other.samples, other.failures = [], [], {}
        return other

    def kinds(self) -> tuple[object, ...] | None:
        """Return the types, numbers of dimensions and layouts of the inputs and arguments, which determine how the batch can be computed.
        None if one of them is empty, as it may then have any type and number of dimensions.
        """
        batches = [*self.inputs, *self.arguments.values()] if self.arguments else self.inputs
        return tuple(map(kind_of, batches)) if all(map(_SHAPES, batches)) else None

    def allocate(self, shapes: Sequence[Shape], spec: OutputSpec, output: int | None = None) -> Any:
        """Allocate an uninitialized batch on the operator's device.

        Args:
            output: the number of the operator's output that this batch becomes; None: it is an intermediate result.
        """
        if shapes and self.allowance is not None and not self.is_allowed:
            self.allowance.claim(self, sum(map(math.prod, shapes)) * element_size(spec.dtype))
        destination = None if output is None else self.destinations.get(output)
        return allocate_batch(shapes, spec, self.device, self.pool, destination)

    @property
    def live(self) -> list[Sample[State, Plan, Plans]]:
        """The samples that have not failed."""
        return [sample for sample in self.samples if sample is not None]

    @property
    def live_indices(self) -> Sequence[int]:
        """The positions of the samples that have not failed."""
        if not self.failures:
            return range(self.batch_size)
        if isinstance(self.samples, PlannedSamples):
            return self.samples.live_indices
        return [sample.index for sample in self.live]

    def of_live(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of the samples that have not failed, of an array with a row for each sample."""
        return rows[self.live_indices] if self.failures else rows

    def batch_position(self, index: int) -> int:
        """Return the position of a sample, or of a frame's sequence, in the pipeline's batch."""
        if self.sequences is not None and self.owners is not None:
            return self.sequences.batch_position(self.owners[index])
        return index if self.positions is None else self.positions[index]

    def fail(self, index: int, error: BaseException) -> None:
        """Record that a sample failed, so that the other samples are still computed.

        Raises:
            SampleFailure: failures are not isolated in this run. The error's index is that of the sample or, for a frame, of its sequence.
        """
        if not self.isolate:
            if self.sequences is not None and self.owners is not None:
                self.sequences.fail(self.owners[index], error)
            raise SampleFailure(index, error)
        self.failures[index] = without_frames(error)
        if index < len(self.samples):
            self.samples[index] = None

    def end(self) -> None:
        """Break reference cycles through the workspace, so that buffers are freed at once rather than by garbage collection."""
        self.samples = []
        self.begun = None
        self.state, self.plans = _NOTHING, _NOTHING


class SampleFailure(Exception):
    """Carries the index of a failing sample, and its error, to the caller that knows the operator."""

    def __init__(self, index: int, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.index = index
        self.cause = cause


class HasArguments(Protocol):
    """The parts of an operator that samples need; see :class:`Operator`."""

    args: dict[str, Any]
    explicit: frozenset[str]
    known: dict[Hashable, Any]

    @property
    def schema(self) -> Schema: ...

    def constant_values(self, name: str) -> np.ndarray: ...


class Sample(Generic[State, Plan, Plans]):
    """One sample in one run of an operator.

    ``sample["angle"]`` is the value of an argument for this sample, whether it is constant or computed in the graph.

    Attributes:
        index: the sample's position in the batch.
        shapes: the shapes of the inputs.
        held: the object that contains the plan, which equal samples may share.
    """

    __slots__ = ("_operator", "_shapes", "_workspace", "held", "index")

    def __init__(self, operator: HasArguments, workspace: Workspace[State, Plan, Plans], index: int) -> None:
        self._operator = operator
        self._workspace = workspace
        self.index = index
        self._shapes: list[Shape] | None = None
        self.held: OwnPlan[Plan] | PlanRow[Plan] | None = None

    @property
    def shapes(self) -> list[Shape]:
        if self._shapes is None:
            self._shapes = [batch.shapes[self.index] for batch in self._workspace.inputs]
        return self._shapes

    @property
    def plan(self) -> Plan:
        """The plan that ``infer`` or ``infer_batch`` stored for ``compute``."""
        return _NOTHING if self.held is None else self.held.plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self.held = OwnPlan(plan)

    def key(self) -> Any:
        """Return a key that is equal for samples with equal shapes and argument values."""
        arguments = self._workspace.arguments
        if not arguments:
            return tuple(self.shapes)
        values = [batch.samples[self.index] for batch in arguments.values()]
        return (*self.shapes, *((value.shape, value.tobytes()) for value in values))

    def __getitem__(self, name: str) -> Any:
        batch = self._workspace.arguments.get(name)
        if batch is None:
            return self._operator.args[name]
        return self._operator.schema.all_arguments[name].from_tensor(batch.samples[self.index], batch.dtype)

    def tensor_argument(self, name: str) -> np.ndarray | None:
        """Return the array of a tensor argument for this sample, not reshaped; None if the argument is constant or absent."""
        batch = self._workspace.arguments.get(name)
        return None if batch is None else batch.samples[self.index]

    def given(self, name: str) -> bool:
        """Return whether the user passed the argument, as a constant or as a tensor."""
        return name in self._workspace.arguments or name in self._operator.explicit

    @property
    def inputs(self) -> list[Any]:
        """The inputs as arrays: of NumPy, or on the GPU of CuPy."""
        return [batch.samples[self.index] for batch in self._workspace.inputs]

    @property
    def outputs(self) -> list[Any]:
        """The outputs, as arrays to fill."""
        return [batch.samples[self.index] for batch in self._workspace.outputs]

    @property
    def workspace(self) -> Workspace[State, Plan, Plans]:
        return self._workspace


class PlannedSamples(Sequence["Sample[State, Plan, Plans] | None"], Generic[State, Plan, Plans]):
    """The samples of a batch that is planned in arrays. A sample is created on demand, as the arrays usually suffice; failed samples are
    None.

    Args:
        operator: the operator that runs.
        workspace: the batch's workspace.
        plans: the plans of all samples, if they are known; see :meth:`hold`.
    """

    def __init__(
        self, operator: HasArguments, workspace: Workspace[State, Plan, Plans], plans: Plans | None = None
    ) -> None:
        self._operator, self._workspace = operator, workspace
        self._samples_by_index: dict[int, Sample[State, Plan, Plans] | None] = dict.fromkeys(workspace.failures)
        self._count = workspace.batch_size
        self._plans = plans
        self._rows: Sequence[int] = () if plans is None else range(self._count)
        self._shared: OwnPlan[Plan] | PlanRow[Plan] | None = None

    def share(self, held: OwnPlan[Plan] | PlanRow[Plan] | None) -> None:
        """Assign one plan to all samples; none of them has a plan yet."""
        self._shared = held

    def hold(self, indices: Sequence[int], plans: Plans) -> None:
        """Assign plans to the samples at these positions: the rows of ``plans``."""
        self._plans = plans
        if len(indices) == self._count:
            self._rows = range(self._count)
        else:
            rows = list(self._rows) or [-1] * self._count
            for row, index in enumerate(indices):
                rows[index] = row
            self._rows = rows
        for row, index in enumerate(indices) if self._samples_by_index else ():
            sample = self._samples_by_index.get(index)
            if sample is not None:
                sample.held = PlanRow(plans, row)

    @property
    def live_indices(self) -> list[int]:
        """The positions of the samples that have not failed."""
        made = self._samples_by_index
        return [index for index in range(self._count) if made.get(index, self) is not None]

    def _get(self, index: int) -> Sample[State, Plan, Plans] | None:
        if index not in self._samples_by_index:
            sample = self._samples_by_index[index] = Sample(self._operator, self._workspace, index)
            if self._rows and self._rows[index] >= 0 and self._plans is not None:
                sample.held = PlanRow(self._plans, self._rows[index])
            else:
                sample.held = self._shared
        return self._samples_by_index[index]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Sample[State, Plan, Plans] | None]:
        return map(self._get, range(self._count))

    @overload
    def __getitem__(self, index: int) -> Sample[State, Plan, Plans] | None: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample[State, Plan, Plans] | None]: ...

    def __getitem__(
        self, index: int | slice
    ) -> Sample[State, Plan, Plans] | list[Sample[State, Plan, Plans] | None] | None:
        positions = range(self._count)[index]
        return self._get(positions) if isinstance(positions, int) else list(map(self._get, positions))

    def __setitem__(self, index: int, sample: Sample[State, Plan, Plans] | None) -> None:
        self._samples_by_index[range(self._count)[index]] = sample
