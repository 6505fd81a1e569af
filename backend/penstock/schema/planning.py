"""Plans batches: the shapes of outputs, and the plan of each sample, from the operator's ``infer`` or ``infer_batch``.

Samples are planned together if the operator can do that. If that fails, they are planned one by one, so that only the samples that cause
errors fail. A sample is not planned if the plan of an equal one is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np

from penstock.schema.outputs import OutputSpec, Shape
from penstock.schema.plans import OwnPlan, Plan, PlanRow, Plans, State
from penstock.schema.samples import Samples
from penstock.schema.workspace import HasArguments, PlannedSamples, Sample, SampleFailure, Workspace

MAX_CACHED_PLANS = 256
"""The largest number of cached plans for samples of the same types and layouts."""
# After `_MAX_MISSES` batches without a known sample, samples are only looked up in every `_RETRY_INTERVAL`-th batch.
_MAX_MISSES, _RETRY_INTERVAL = 4, 16
# For each :meth:`Sample.key`, the shapes of the outputs, and the object that contains the plan.
_Known = dict[Any, tuple[Sequence[Shape], OwnPlan[Plan] | PlanRow[Plan] | None]]


class Planned(HasArguments, Protocol):
    """The parts of an operator that planning a batch needs; see :class:`Operator`."""

    plans_by_shape: bool
    plan_cache: PlanCache

    @property
    def plans_in_arrays(self) -> bool: ...

    def infer(self, sample: Sample) -> Any: ...

    def infer_batch(self, samples: Samples) -> tuple[np.ndarray | Sequence[np.ndarray | list[Shape]], Any]: ...

    def infer_shapes(self, workspace: Workspace, num_outputs: int) -> list[list[Shape]]: ...

    def working_bytes(self, workspace: Workspace) -> Sequence[int]: ...


class PlanCache:
    """Cached plans of an operator whose plans depend only on types, layouts, shapes and arguments."""

    def __init__(self) -> None:
        self._plans: dict[Any, _Known[Any]] = {}
        self._misses = 0

    def __len__(self) -> int:
        return sum(map(len, self._plans.values()))

    def of(self, workspace: Workspace) -> _Known[Any]:
        """Return the known samples with the types and layouts of a batch, by :meth:`Sample.key`."""
        batches = [*workspace.inputs, *workspace.arguments.values()]
        plans = self._plans.setdefault(tuple((batch.dtype, batch.layout()) for batch in batches), {})
        if len(plans) > MAX_CACHED_PLANS:
            plans.clear()
        return plans

    def is_enabled(self, workspace: Workspace) -> bool:
        """Return whether to look samples up in this batch; rarely true if recent batches had no known samples."""
        return self._misses < _MAX_MISSES or workspace.iteration % _RETRY_INTERVAL == 0

    def record_lookup(self, found: bool) -> None:
        """Count a lookup; ``found``: whether it saved planning samples, or may do so for later batches."""
        self._misses = 0 if found else self._misses + 1


class PlannedBatch(NamedTuple):
    """The plans of an operator for a batch.

    Attributes:
        kinds, shapes: the kinds and shapes of its input.
        outputs: the shapes of its outputs.
        plans: the plans of all its samples.
    """

    kinds: object
    shapes: Sequence[Shape]
    outputs: list[list[Shape]]
    plans: Any


class BatchPlanning(Generic[State, Plan, Plans]):
    """Plans one batch of an operator.

    Args:
        operator: the operator that runs the batch.
        workspace: the batch's workspace, in which samples, failures and, if samples are planned in arrays, ``plans`` are stored.
    """

    __slots__ = ("_inferred", "_operator", "_workspace")

    def __init__(self, operator: Planned, workspace: Workspace[State, Plan, Plans]) -> None:
        self._operator = operator
        self._workspace = workspace
        # The shapes of each sample's outputs; None for failed samples.
        self._inferred: list[Sequence[Shape] | None] = [None] * workspace.batch_size

    def shapes(self, num_outputs: int) -> list[list[Shape]]:
        """Return the shapes of each output for each sample; failed samples get empty shapes with the same number of dimensions."""
        operator, workspace = self._operator, self._workspace
        if operator.plans_by_shape and _is_uniform(workspace):
            return self._shapes_of_equal_samples(num_outputs)
        by_shape = operator.plans_by_shape and operator.plan_cache.is_enabled(workspace)
        if operator.plans_in_arrays and (workspace.device != "cpu" or not by_shape):
            workspace.samples = PlannedSamples(operator, workspace)
        else:
            failures = workspace.failures
            workspace.samples = [
                None if index in failures else Sample(operator, workspace, index)
                for index in range(workspace.batch_size)
            ]
        if by_shape:
            self._plan_by_shape()
        else:
            columns = self._plan(workspace.live_indices)
            if columns is not None:
                return columns
        return [self._column(output) for output in range(num_outputs)]

    def _plan(self, indices: Sequence[int]) -> list[list[Shape]] | None:
        """Plan samples one by one or together, depending on what the operator implements; returns the same as :meth:`_plan_together`."""
        operator, workspace = self._operator, self._workspace
        if operator.plans_in_arrays:
            return self._plan_together(indices)
        for index in indices:
            sample = workspace.samples[index]
            assert sample is not None
            try:
                shapes = operator.infer(sample)
                self._inferred[index] = [shapes] if isinstance(shapes, tuple) else list(shapes)
            except Exception as error:
                workspace.fail(index, error)
        return None

    def _plan_together(self, indices: Sequence[int]) -> list[list[Shape]] | None:
        """Plan samples in arrays; return the shapes of each output if these are all samples of the batch, otherwise None."""
        if not indices:
            return None
        workspace, inferred = self._workspace, self._inferred
        try:
            outputs, plans = self._operator.infer_batch(Samples(self._operator, workspace, indices))
        except SampleFailure:
            raise
        except Exception as error:
            left = [index for index in indices if index not in workspace.failures]
            if len(indices) > 1:
                self._plan_apart(left)
            elif left:
                workspace.fail(left[0], error)
            return None
        columns = [
            rows if isinstance(rows, list) else _shapes_in_rows(rows)
            for rows in ((outputs,) if isinstance(outputs, np.ndarray) else outputs)
        ]
        workspace.plans = plans
        if isinstance(workspace.samples, PlannedSamples):
            workspace.samples.hold(indices, plans)
            if len(indices) == len(inferred):
                inferred[:] = zip(*columns)
                return columns
        else:
            for row, index in enumerate(indices):
                sample = workspace.samples[index]
                assert sample is not None
                sample.held = PlanRow(plans, row)
        for index, shapes in zip(indices, zip(*columns)):
            inferred[index] = shapes
        return None

    def _plan_apart(self, indices: Sequence[int]) -> None:
        """Plan samples one by one, after planning them together has failed."""
        workspace = self._workspace
        parts: dict[int, Plans] = {}
        for index in indices:
            self._plan_together([index])
            if self._inferred[index] is not None:
                parts[index] = workspace.plans
        if parts:
            plans = list(parts.values())
            workspace.plans = plans[0].joined(plans)
            if isinstance(workspace.samples, PlannedSamples):
                workspace.samples.hold(list(parts), workspace.plans)

    def _plan_by_shape(self) -> None:
        """Plan one sample of each group of equal ones, unless the plan of an equal sample is known from an earlier batch."""
        workspace, inferred, cache = self._workspace, self._inferred, self._operator.plan_cache
        known = cache.of(workspace)
        missing: dict[object, list[Sample[State, Plan, Plans]]] = {}
        count = 0
        for sample in workspace.samples:
            if sample is None:
                continue
            count += 1
            key = sample.key()
            cached = known.get(key)
            if cached is None:
                missing.setdefault(key, []).append(sample)
            else:
                inferred[sample.index], sample.held = cached
        cache.record_lookup(len(missing) < count or not workspace.arguments)
        self._plan([alike[0].index for alike in missing.values()])
        for key, (first, *others) in missing.items():
            shapes = inferred[first.index]
            if shapes is None:
                # Equal samples fail in the same way, each with an error of its own.
                self._plan([sample.index for sample in others])
                continue
            known[key] = shapes, first.held
            for sample in others:
                inferred[sample.index], sample.held = shapes, first.held

    def _shapes_of_equal_samples(self, num_outputs: int) -> list[list[Shape]]:
        """Plan one sample for a whole batch of equal samples, unless the plan of an equal one is known from an earlier batch."""
        workspace = self._workspace
        count, known = workspace.batch_size, self._operator.plan_cache.of(workspace)
        samples: PlannedSamples[State, Plan, Plans] = PlannedSamples(self._operator, workspace)
        workspace.samples = samples
        key = tuple(batch.shapes[0] for batch in workspace.inputs)
        cached = known.get(key)
        if cached is None:
            self._plan([0])
            shapes, first = self._inferred[0], samples[0]
            if shapes is None or first is None:
                # Equal samples fail in the same way, each with an error of its own.
                self._plan(range(1, count))
                return [self._column(output) for output in range(num_outputs)]
            cached = known[key] = shapes, first.held
        shapes, held = cached
        samples.share(held)
        return [[tuple(shapes[output])] * count for output in range(num_outputs)]

    def _column(self, output: int) -> list[Shape]:
        """Return the shapes of one output for all samples."""
        ndim = next((len(shapes[output]) for shapes in self._inferred if shapes is not None), 1)
        empty = (0,) * max(ndim, 1)
        return [empty if shapes is None else tuple(shapes[output]) for shapes in self._inferred]


def plan_within_allowance(
    operator: Planned, workspace: Workspace[State, Plan, Plans], specs: Sequence[OutputSpec]
) -> list[list[Shape]]:
    """Plan a batch; samples that would take too much memory fail.

    Args:
        operator: the operator that runs the batch.
        workspace: the batch's workspace.
        specs: the specs of the batch's outputs.

    Returns:
        The shapes of each output for each sample; failed samples get empty shapes.
    """
    shapes = operator.infer_shapes(workspace, len(specs))
    allowance = workspace.allowance
    while allowance is not None:
        refused = allowance.refused(workspace, shapes, specs, operator.working_bytes(workspace))
        if not refused:
            workspace.is_allowed = True
            break
        for index, error in refused.items():
            workspace.fail(index, error)
        # Only samples that have not failed have plans.
        shapes = operator.infer_shapes(workspace, len(specs))
    return shapes


def _is_uniform(workspace: Workspace) -> bool:
    """Return whether the samples of a batch have equal shapes and arguments, as far as can be told without inspecting each sample."""
    return (
        not workspace.arguments
        and not workspace.failures
        and workspace.batch_size > 0
        and all(batch.shapes.count(batch.shapes[0]) == len(batch.shapes) for batch in workspace.inputs)
    )


def _shapes_in_rows(rows: np.ndarray) -> list[Shape]:
    """Return shapes given as rows; equal samples share one object."""
    if rows.tobytes() == rows[:1].tobytes() * len(rows):
        return [tuple(rows[0].tolist())] * len(rows) if len(rows) else []
    return list(map(tuple, rows.tolist()))
