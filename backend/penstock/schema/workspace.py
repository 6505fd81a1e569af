"""Workspaces: the batch and samples that an operator receives, the means to run on them, and its outputs."""

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
# Placeholder for values that are set later.
_NOTHING: Any = None


class Allowance(Protocol):
    """The memory allowance of a batch."""

    def refused(
        self,
        workspace: Workspace,
        shapes: Sequence[Sequence[Shape]],
        specs: Sequence[OutputSpec],
        working: Sequence[int],
    ) -> dict[int, LimitError]:
        """Return the errors of samples whose outputs may not be allocated, by their index in the workspace; record the
        other outputs.

        Args:
            workspace: the operator's workspace.
            shapes: each output's shapes, for each sample.
            specs: each output's specs.
            working: for each sample, the bytes of scratch memory that computing it takes; empty: next to none.
        """

    def claim(self, workspace: Workspace, size: int) -> None:
        """Note an output of ``size`` bytes; raise LimitError if it may not be allocated."""


@dataclass
class Workspace(Generic[State, Plan, Plans]):
    """One run of one operator on one batch.

    Attributes:
        inputs: the positional inputs.
        arguments: tensor arguments by name (always on the CPU).
        batch_size: number of samples.
        outputs: set by the run.
        samples: the samples; None for those that failed.
        failures: errors by sample index; filled only if ``isolate`` is set, otherwise the first error is raised.
        isolate: whether a failing sample is set aside while the others go on.
        parallel: runs a function over sample indices on the pool's threads: ``parallel(task, count, costs)``.
        start: like ``parallel``, but returns at once, with an object to wait on; see :class:`Started`.
        pool: the source of CPU buffers.
        max_batch_size: the pipeline's largest batch size.
        num_threads: the number of threads that share a batch, the calling one included.
        cores: the cores to which these threads are bound, in order; None: they are not bound.
        iteration: index of the batch since the pipeline was built.
        positions: the positions of the samples in the pipeline's batch, if conditionals have split it; else None.
        kind: key shared by batches with the same launches; None: unknown.
        owners: the index of each frame's sequence in its batch, for a batch of frames; else None.
        state: stored by ``describe`` for the later steps.
        plans: returned by ``infer_batch``, with a row for each :attr:`live` sample; with ``plans_by_shape``, only the
            samples have their plans.
        begun: stored by ``Operator.begin`` for the run; None if nothing was begun.
        decoding: limits for decoding encoded data, and where to decode.
        destinations: the buffers for outputs on the CPU, by number.
        sequences: the workspace of the sequences, for a batch of their frames; else None.
        allowance: the memory limit of the batch; None: no limit.
        is_allowed: whether its outputs are recorded in the allowance.
        admitted: its :meth:`kinds`, if they equal those of an earlier batch that needed no changes; else None.
        transient: the outputs are never allocated for all samples at once, but for one on each thread.
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
        """Return a copy for another batch of the same operator, whose remaining attributes the caller sets."""
        other = type(self).__new__(type(self))
        other.__dict__ = vars(self).copy()
        other.inputs, other.arguments, other.batch_size = inputs, arguments, batch_size
        other.outputs, other.samples, other.failures = [], [], {}
        return other

    def kinds(self) -> tuple[object, ...] | None:
        """Return the types, ranks and layouts of the inputs and of the arguments, which determine how the batch can be
        computed; None if one of these is empty, so that it may be of any type and rank.
        """
        batches = [*self.inputs, *self.arguments.values()] if self.arguments else self.inputs
        return tuple(map(kind_of, batches)) if all(map(_SHAPES, batches)) else None

    def allocate(self, shapes: Sequence[Shape], spec: OutputSpec, output: int | None = None) -> Any:
        """Return an uninitialized batch on the operator's device.

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

    def batch_position(self, index: int) -> int:
        """Return the position of a sample, or of its sequence, in the pipeline's batch."""
        if self.sequences is not None and self.owners is not None:
            return self.sequences.batch_position(self.owners[index])
        return index if self.positions is None else self.positions[index]

    def fail(self, index: int, error: BaseException) -> None:
        """Set a failing sample aside.

        Raises:
            SampleFailure: the run doesn't isolate failures. Its index is the sample's or, for a frame, its sequence's.
        """
        if not self.isolate:
            if self.sequences is not None and self.owners is not None:
                self.sequences.fail(self.owners[index], error)
            raise SampleFailure(index, error)
        self.failures[index] = without_frames(error)
        if index < len(self.samples):
            self.samples[index] = None

    def end(self) -> None:
        """Break reference cycles through the workspace, so that buffers are freed at once and not by garbage collection."""
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
    """The part of an operator that samples need; see :class:`Operator`."""

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
        index: position in the batch.
        shapes: shapes of the inputs.
        held: holder of the plan, which equal samples may share.
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
        """Return a tensor argument's array for this sample, unreshaped; None if the argument is constant or absent."""
        batch = self._workspace.arguments.get(name)
        return None if batch is None else batch.samples[self.index]

    def given(self, name: str) -> bool:
        """Return whether the user passed the argument, as a constant or as a tensor."""
        return name in self._workspace.arguments or name in self._operator.explicit

    @property
    def inputs(self) -> list[Any]:
        """The inputs as arrays (NumPy's, or CuPy's on the GPU)."""
        return [batch.samples[self.index] for batch in self._workspace.inputs]

    @property
    def outputs(self) -> list[Any]:
        """The outputs as arrays to fill."""
        return [batch.samples[self.index] for batch in self._workspace.outputs]

    @property
    def workspace(self) -> Workspace[State, Plan, Plans]:
        return self._workspace


class PlannedSamples(Sequence["Sample[State, Plan, Plans] | None"], Generic[State, Plan, Plans]):
    """The samples of a batch that is planned in arrays, each made on demand, as the arrays usually suffice.

    Args:
        operator: the operator that runs.
        workspace: the batch's workspace, whose failed samples are None.
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
        """Assign one plan to all samples, none of which has a plan yet."""
        self._shared = held

    def hold(self, indices: Sequence[int], plans: Plans) -> None:
        """Assign the samples at these positions their plans, which are the rows of ``plans``."""
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
