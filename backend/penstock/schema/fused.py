"""Operators that do the work of several in one: made by a pass, never by users.

A fused operator names, in its schema, the operators that it stands for. It holds one of each, has them check types and infer
shapes as if they ran one after the other, and then computes all at once; where it cannot, it runs them in turn. So it
changes no result and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from penstock.errors import Frame, operator_error
from penstock.schema.operator import Operator, OutputSpec, Sample, SampleFailure, Shape, Workspace
from penstock.tensors import TensorListCPU, TensorListGPU


class FusedNode(Protocol):
    """What a fused operator needs to know of each node that it stands for."""

    device: str
    arguments: dict[str, Any]
    display_name: str

    @property
    def origin(self) -> tuple[Frame, ...]: ...


def fused_argument(position: int, name: str) -> str:
    """How the argument of one of the fused operators is called among those of all; sorted, they are in the steps' order."""
    return f"{position:04}:{name}"


@dataclass
class _Step(Workspace):
    """What one of the fused operators sees: failures of samples name it."""

    node: FusedNode | None = None

    def fail(self, index: int, error: BaseException) -> None:
        assert self.node is not None
        super().fail(index, _blamed_on(self.node, error, index))


def _blamed_on(node: FusedNode, error: BaseException, sample: int | None) -> BaseException:
    return operator_error(error, node.display_name, node.device, sample, node.origin)


class ArrayOperator(Operator):
    """An operator of one input and output that, on CPU, goes by a sample's arguments and a given array: the base of steps
    which a fused operator runs one after the other on arrays of its own."""

    def compute_array(self, sample: Sample, source: np.ndarray, target: np.ndarray) -> None:
        """Fills ``target`` from ``source``, which stands for the sample's data; they do not overlap."""
        raise NotImplementedError(f"{type(self).__name__} computes from the sample's own data only")

    def compute(self, sample: Sample) -> None:
        self.compute_array(sample, sample.inputs[0], sample.outputs[0])


class FusedOperator(Operator):
    """The base of fused operators.

    Concrete ones tell whether a batch can be computed at once (``can_fuse``), and compute it (``compute_fused`` for a sample
    on CPU, ``compute_fused_batch`` on GPU), from the steps' samples, which hold each step's plan.
    """

    def bind(self, payload: Any) -> None:
        """Receives the nodes of the steps, and their operators."""
        self.nodes: Sequence[FusedNode]
        self.operators: Sequence[Operator]
        self.nodes, self.operators = payload
        self.repeatable = all(operator.repeatable for operator in self.operators)

    # -- what concrete operators fill in ---------------------------------------------------------------------------

    @classmethod
    def takes(cls, operators: Sequence[Operator]) -> bool:
        """Whether operators with these arguments can ever be computed at once."""
        return True

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        """Whether this batch, whose shapes are inferred, can be computed at once."""
        raise NotImplementedError

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        """Computes the last step's output of one sample, on CPU."""
        raise NotImplementedError

    def compute_fused_batch(self, steps: Sequence[Workspace]) -> None:
        """Computes the last step's outputs of the batch, on the current CuPy stream."""
        raise NotImplementedError

    def error_of(self, position: int, error: BaseException, sample: int) -> BaseException:
        """The error to raise where the step at ``position`` fails on a sample; others are blamed on the last step."""
        return _blamed_on(self.nodes[position], error, sample)

    # -- what is the same for all ------------------------------------------------------------------------------------

    def run(self, workspace: Workspace) -> None:
        if self.repeats(workspace):
            return
        steps = [self._step(workspace, position) for position in range(len(self.operators))]
        steps[0].inputs = list(workspace.inputs)
        try:
            self._run_at_once(workspace, steps)
        finally:
            # Samples and workspaces know each other: apart, their buffers are free as soon as nobody wants them.
            for step in steps:
                step.samples = []

    def _run_at_once(self, workspace: Workspace, steps: Sequence[_Step]) -> None:
        for position, (operator, step) in enumerate(zip(self.operators, steps)):
            try:
                specs = operator.describe(step)
            except Exception as error:
                raise _blamed_on(self.nodes[position], error, None) from error
            (shapes,) = operator.infer_batch(step, 1)
            if position + 1 < len(steps):
                steps[position + 1].inputs = [_without_data(specs[0], shapes, workspace.device)]
                steps[position + 1].failures = step.failures
        if not self.can_fuse(steps):
            self._run_in_turn(workspace)
            return
        last = steps[-1]
        workspace.outputs = last.outputs = [workspace.allocate(shapes, specs[0])]
        workspace.failures = last.failures

        def compute_batch(whole: Workspace) -> None:
            steps[0].inputs, last.outputs = whole.inputs, whole.outputs
            self.compute_fused_batch(steps)

        if workspace.device == "cpu":
            self._compute_samples(steps, shapes)
        elif last.live:
            self.launch(workspace, compute_batch)

    def _compute_samples(self, steps: Sequence[_Step], shapes: Sequence[Shape]) -> None:
        last = steps[-1]
        earlier = [list(step.samples) for step in steps[:-1]]

        def task(index: int) -> None:
            sample = last.samples[index]
            if sample is None:
                return
            try:
                self.compute_fused([*(samples[index] for samples in earlier), sample])
            except Exception as error:
                last.fail(index, error)

        last.parallel(task, last.batch_size, [_volume(shape) for shape in shapes])

    def _run_in_turn(self, workspace: Workspace) -> None:
        inputs, failures = list(workspace.inputs), workspace.failures
        for position, operator in enumerate(self.operators):
            step = self._step(workspace, position)
            step.inputs, step.failures = inputs, failures
            try:
                operator.run(step)
            except SampleFailure:
                raise
            except Exception as error:
                raise _blamed_on(self.nodes[position], error, None) from error
            finally:
                step.samples = []
            inputs, failures = list(step.outputs), step.failures
        workspace.outputs, workspace.failures = inputs, failures

    def _step(self, workspace: Workspace, position: int) -> _Step:
        """The workspace as one of the operators sees it, its inputs not yet there."""
        prefix = fused_argument(position, "")
        step = _Step(**{field.name: getattr(workspace, field.name) for field in fields(Workspace)})
        step.node = self.nodes[position]
        step.arguments = {
            name.removeprefix(prefix): batch for name, batch in workspace.arguments.items() if name.startswith(prefix)
        }
        step.inputs, step.outputs, step.samples, step.state = [], [], [], None
        return step


def _volume(shape: Shape) -> int:
    volume = 1
    for extent in shape:
        volume *= extent
    return volume


def _without_data(spec: OutputSpec, shapes: Sequence[Shape], device: str) -> Any:
    """A batch of which only types and shapes are there: what the second operator may look at before the first has run."""
    kind = TensorListCPU if device == "cpu" else TensorListGPU
    batch = kind.of_samples([], spec.layout, spec.dtype, spec.ndim)
    batch.shapes = list(shapes)
    return batch
