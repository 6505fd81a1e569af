"""Fused operators, which do the work of several operators at once; passes insert them, users never do.

A fused operator contains the operators that it replaces, its steps. Steps check types and infer shapes as if they ran one after the other;
then everything is computed at once. If that is not possible, or a step fails, the steps run one after the other, so that results and errors
never change.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.errors import Frame, operator_error
from penstock.schema.image_chain import NotFusable
from penstock.schema.operator import Operator
from penstock.schema.outputs import OutputSpec, Shape
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.workspace import Sample, SampleFailure, Workspace
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU

ComputeSample = Callable[[Sequence[Sample]], None]
"""A function that computes the output of the last step for one sample, from the sample's state in each step."""
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

AT_ONCE = "fused"
"""The key under which samples that were computed at once are counted."""


class FusedNode(Protocol):
    """The description of a node that a fused operator replaces."""

    name: str
    device: str
    arguments: dict[str, Any]
    display_name: str

    @property
    def origin(self) -> tuple[Frame, ...]: ...


def fused_argument(position: int, name: str) -> str:
    """Return the name of a step's argument among the arguments of the fused operator; sorted by name, these are in the order of the
    steps.
    """
    return f"{position:04}:{name}"


def split_argument(full: str) -> tuple[int, str]:
    """Return the position and the name that :func:`fused_argument` has combined."""
    position, _, name = full.partition(":")
    return int(position), name


def further_input(number: int) -> str:
    """Return the name of a further positional input among an operator's arguments; sorted by name, inputs come first."""
    return f"#{number}"


@dataclass
class _Step(Workspace):
    """The workspace of one step of a fused operator; errors of its samples name that step's operator."""

    node: FusedNode | None = None
    further: list[object] = field(default_factory=list)

    def fail(self, index: int, error: BaseException) -> None:
        assert self.node is not None
        super().fail(index, _blamed_on(self.node, error, self.batch_position(index)))


def _blamed_on(node: FusedNode, error: BaseException, sample: int | None) -> BaseException:
    return operator_error(error, node.display_name, node.device, sample, node.origin)


class _Route(NamedTuple):
    """Which arguments of the fused operator become a step's arguments and further inputs.

    Attributes:
        arguments: pairs of names: of the step's argument, and of the fused operator's argument that supplies it.
        further: the names of the fused operator's arguments that supply the further inputs, in order.
    """

    arguments: list[tuple[str, str]]
    further: list[str]


class FirstStepFailed(Exception):
    """Carries the error that the first step raised for a sample."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ArrayOperator(Operator[State, Plan, Plans]):
    """An operator with one input and one output that, on the CPU, computes from the arguments of a sample and an array: a fused
    operator can run it on intermediate arrays.
    """

    def compute_array(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        """Fill ``target`` from ``source``, which is used in place of the sample's data; the two arrays do not overlap."""
        raise NotImplementedError(f"{type(self).__name__} does not implement `compute_array`")

    def compute(self, sample: Sample) -> None:
        self.compute_array(sample, sample.inputs[0], sample.outputs[0])


class FusedOperator(Operator):
    """Base class of fused operators.

    Concrete classes decide whether a batch can be computed at once (``check_batch``), and compute it (``compute_fused`` for a sample on the
    CPU, ``compute_fused_batch`` on the GPU). They work on the samples of all steps, which contain the plan of each step.

    Attributes:
        counts: the number of samples that were computed at once (``AT_ONCE``), and step by step, by reason.
        nests: whether operators that are already fused stay fused when they become steps of this one.
    """

    nests = False

    def bind(self, payload: Any) -> None:
        """Set the nodes of the steps, and the operators of the steps."""
        self.nodes: Sequence[FusedNode]
        self.operators: Sequence[Operator]
        self.nodes, self.operators = payload
        self.repeatable = all(operator.repeatable for operator in self.operators)
        self.counts: Counter[str] = Counter()

    def take_counts(self) -> Counter[str]:
        """Return the counts since the previous call of this method."""
        changes = self.counts.copy()
        self.counts.clear()
        return changes

    # -- implemented by concrete operators -------------------------------------------------------------------------

    @classmethod
    def takes(cls, operators: Sequence[Operator]) -> bool:
        """Return whether operators with such arguments can ever be fused."""
        return True

    @classmethod
    def joins(cls, operator: Operator, is_first: bool) -> bool:
        """Return whether an operator can join a chain if schemas do not list the operators; ``is_first``: whether it would be the first
        step.
        """
        return False

    @classmethod
    def exceptions(cls, operators: Sequence[Operator]) -> tuple[str, ...]:
        """Describe, for users, the data for which these operators still run step by step."""
        return ()

    def check_input(self, batch: TensorList) -> None:
        """Raise NotFusable for data that cannot be computed at once, or for which that gains nothing."""

    def check_batch(self, steps: Sequence[Workspace]) -> None:
        """Raise NotFusable if a batch cannot be computed at once; its shapes have been inferred."""

    def compute_together(self, steps: Sequence[Workspace]) -> tuple[Sequence[int], ComputeSample]:
        """Compute, on the CPU, those samples of a batch that compiled code supports.

        No sample fails here: samples that would fail are left to be computed one by one.

        Returns:
            The positions of the samples that are left, and a function that computes one of them, like :meth:`compute_fused`.
        """
        return range(steps[-1].batch_size), self.compute_fused

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        """Compute the output of the last step for one sample, on the CPU.

        Raises:
            FirstStepFailed: the first step failed; carries its error. After any other error, the steps run one after the other.
            NotFusable: this sample must be computed step by step.
        """
        raise NotImplementedError

    def compute_fused_batch(self, steps: Sequence[Workspace]) -> None:
        """Compute the outputs of the last step for a batch, on the current CuPy stream."""
        raise NotImplementedError

    def run_planned(self, workspace: Workspace) -> bool:
        """Compute a batch on the GPU as a whole, if its steps allow that; return whether they do.

        No sample has failed so far, and none may fail here: values out of range are left to the steps.
        """
        return False

    # -- shared by all -----------------------------------------------------------------------------------------------

    @functools.cached_property
    def _routes(self) -> list[_Route]:
        """For each step, the fused operator's arguments that become its arguments and further inputs."""
        routes = [_Route([], []) for _ in self.operators]
        for full in sorted(self.tensor_arguments):
            position, name = split_argument(full)
            if name.startswith(further_input(0)[0]):
                routes[position].further.append(full)
            else:
                routes[position].arguments.append((name, full))
        return routes

    def parts(self) -> Iterable[tuple[str, Operator]]:
        pairs = zip(self.nodes, self.operators)
        return [part for node, operator in pairs for part in list(operator.parts()) or [(node.name, operator)]]

    def reset(self) -> None:
        for operator in self.operators:
            operator.reset()

    def run(self, workspace: Workspace) -> None:
        if workspace.device != "cpu" and self._runs_on_gpu(workspace):
            self.counts[AT_ONCE] += workspace.batch_size
            return
        steps = [self.step(workspace, position) for position in range(len(self.operators))]
        steps[0].inputs = list(workspace.inputs)
        try:
            self._run_combined(workspace, steps)
            return
        except NotFusable as reason:
            self.counts[str(reason)] += workspace.batch_size
        finally:
            for step in steps:
                step.end()
        self._run_in_turn(workspace)

    def _runs_on_gpu(self, workspace: Workspace) -> bool:
        """Try to compute a batch by repeating recorded launches, or as a whole; return whether that succeeded."""
        return self.gpu_launches.repeat(self, workspace) or (not workspace.failures and self.run_planned(workspace))

    def _run_combined(self, workspace: Workspace, steps: Sequence[_Step]) -> None:
        self.check_input(workspace.inputs[0])
        shapes, spec = self._infer_steps(steps)
        self.check_batch(steps)
        last = steps[-1]
        workspace.is_allowed = last.is_allowed
        outputs = last.outputs = [workspace.allocate(shapes, spec, 0)]

        def compute_batch(whole: Workspace) -> None:
            steps[0].inputs, last.outputs = whole.inputs, whole.outputs
            self.compute_fused_batch(steps)

        if workspace.device == "cpu":
            self._compute_samples(steps, shapes)
        workspace.outputs, workspace.failures = outputs, last.failures
        live = 0 if workspace.device == "cpu" else len(last.live_indices)
        if live:
            self.gpu_launches.record(self, workspace, compute_batch)
            self.counts[AT_ONCE] += live
        for operator, step in zip(self.operators, steps):
            operator.finish(step)

    def _infer_steps(self, steps: Sequence[_Step]) -> tuple[list[Shape], OutputSpec]:
        """Infer the shapes and the type of the output; store plans in the samples of each step.

        Raises:
            NotFusable: a step rejects its input; the same error occurs again when the steps run one after the other.
        """
        shapes: list[Shape] = []
        for position, (operator, step) in enumerate(zip(self.operators, steps)):
            known = len(step.failures)
            step.transient = position + 1 < len(steps)
            try:
                if not operator.admit(step):
                    raise NotFusable("frames")
                spec, *_ = operator.described(step)
                (shapes,) = operator.infer_samples(step, [spec])
            except NotFusable:
                raise
            except Exception as error:
                raise NotFusable("failures") from error
            if position and len(step.failures) > known:
                raise NotFusable("failures")
            if position + 1 < len(steps):
                following = steps[position + 1]
                step.outputs = [without_data(spec, shapes, step.device)]
                following.inputs = [*step.outputs, *following.further]
                following.failures = step.failures
        return shapes, spec

    def _compute_samples(self, steps: Sequence[_Step], shapes: Sequence[Shape]) -> None:
        last = steps[-1]
        others, compute = self.compute_together(steps)
        self.counts[AT_ONCE] += last.batch_size - len(others)
        if not others:
            return
        columns = [list(step.samples) for step in steps]
        reasons: list[str | None] = [None] * last.batch_size
        # Positions of failed samples; if there are any, the whole batch is computed step by step. The errors themselves are not
        # stored, as their frames would refer to this list.
        in_turn: list[int] = []

        def task(index: int) -> None:
            samples = [sample for column in columns if (sample := column[index]) is not None]
            if len(samples) < len(columns) or in_turn:
                return
            try:
                reasons[index] = self._compute_sample(samples, compute)
            except FirstStepFailed as failure:
                if last.isolate and any(operator.depends_on_batch for operator in self.operators):
                    in_turn.append(index)
                else:
                    steps[0].fail(index, failure.cause)
                    last.samples[index] = None
            except Exception:
                in_turn.append(index)

        try:
            last.parallel(lambda at: task(others[at]), len(others), [_volume(shapes[index]) for index in others])
        except SampleFailure:
            if not in_turn:
                raise
        if in_turn:
            raise NotFusable("failures")
        self.counts.update(reason for reason in reasons if reason is not None)

    def _compute_sample(self, samples: Sequence[Sample], compute: ComputeSample) -> str:
        """Compute a sample, at once or step by step; return which of these it was, as a key for the counts."""
        try:
            compute(samples)
        except NotFusable as reason:
            self._compute_in_turn(samples)
            return str(reason)
        return AT_ONCE

    def _compute_in_turn(self, samples: Sequence[Sample]) -> None:
        """Compute one sample step by step."""
        for position, (operator, sample) in enumerate(zip(self.operators, samples)):
            if position + 1 < len(samples):
                following, index = samples[position + 1], sample.index
                dtype = following.workspace.inputs[0].dtype
                held = np.empty(following.shapes[0], numpy_dtype(dtype))
                sample.workspace.outputs[0].samples[index] = held
            try:
                operator.compute(sample)
            except Exception as error:
                if position == 0:
                    raise FirstStepFailed(error) from error
                raise
        for sample in samples[:-1]:
            sample.workspace.outputs[0].samples[sample.index] = None

    def _run_in_turn(self, workspace: Workspace) -> None:
        inputs, failures = list(workspace.inputs), dict(workspace.failures)
        for position, operator in enumerate(self.operators):
            step = self.step(workspace, position)
            step.inputs = [*inputs, *step.further]
            step.failures = failures
            try:
                self.call_step(position, operator.run, step)
            finally:
                step.end()
            inputs, failures = list(step.outputs), step.failures
        workspace.outputs, workspace.failures = inputs, failures

    def call_step(
        self, position: int, function: Callable[_Given, _Result], *args: _Given.args, **named: _Given.kwargs
    ) -> _Result:
        """Call a function for the step at a position; errors that concern no single sample then name the step."""
        try:
            return function(*args, **named)
        except SampleFailure:
            raise
        except Exception as error:
            raise _blamed_on(self.nodes[position], error, None) from error

    def step(self, workspace: Workspace, position: int) -> _Step:
        """Return the workspace for the step at a position, derived from the fused operator's; its inputs are not set yet."""
        step = _Step.__new__(_Step)
        step.__dict__ = vars(workspace).copy()
        step.node = self.nodes[position]
        if position + 1 < len(self.operators):
            step.destinations = {}
        step.arguments, step.further = {}, []
        if workspace.arguments:
            names, further = self._routes[position]
            step.arguments = {name: workspace.arguments[full] for name, full in names}
            step.further = [workspace.arguments[full] for full in further]
        step.inputs, step.outputs, step.samples, step.state, step.plans = [], [], [], None, None
        step.failures, step.is_allowed, step.admitted = dict(workspace.failures), False, None
        return step


def _volume(shape: Shape) -> int:
    volume = 1
    for extent in shape:
        volume *= extent
    return volume


def without_data(spec: OutputSpec, shapes: Sequence[Shape], device: str) -> Any:
    """Make a batch that has types and shapes but no data, for inference before the previous operator has run."""
    kind = TensorListCPU if device == "cpu" else TensorListGPU
    return kind.without_data(shapes, spec.layout, spec.dtype, spec.ndim)
