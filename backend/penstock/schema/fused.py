"""Operators that do the work of two in one: made by a pass, never by users.

A fused operator names, in its schema, the operators that it stands for. It holds one of each, has them check types and infer
shapes as if they ran one after the other, and then computes both at once; where it cannot, it runs them in turn. So it
changes no result and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from penstock.errors import Frame, operator_error
from penstock.schema.operator import Operator, OutputSpec, Sample, SampleFailure, Shape, Workspace
from penstock.tensors import TensorList, TensorListCPU, TensorListGPU


class FusedNode(Protocol):
    """What a fused operator needs to know of each node that it stands for."""

    device: str
    arguments: dict[str, Any]
    display_name: str

    @property
    def origin(self) -> tuple[Frame, ...]: ...


def fused_argument(position: int, name: str) -> str:
    """How the argument of one of the fused operators is called among those of both."""
    return f"{position}:{name}"


@dataclass
class _Part(Workspace):
    """What one of the fused operators sees: failures of samples name it."""

    node: FusedNode | None = None

    def fail(self, index: int, error: BaseException) -> None:
        assert self.node is not None
        super().fail(index, _blamed_on(self.node, error, index))


def _blamed_on(node: FusedNode, error: BaseException, sample: int | None) -> BaseException:
    return operator_error(error, node.display_name, node.device, sample, node.origin)


class FusedOperator(Operator):
    """The base of fused operators of two steps.

    Concrete ones tell whether a batch can be computed at once (``can_fuse``), and compute it (``compute_fused`` for a sample
    on CPU, ``compute_fused_batch`` on GPU), from the two samples that hold each step's plan.
    """

    def bind(self, payload: Any) -> None:
        """Receives the two nodes and their operators."""
        self.nodes: tuple[FusedNode, FusedNode] = payload[0]
        self.first, self.second = payload[1]

    # -- what concrete operators fill in ---------------------------------------------------------------------------

    def can_fuse(self, first: Workspace, second: Workspace) -> bool:
        """Whether this batch, whose shapes are inferred, can be computed at once."""
        raise NotImplementedError

    def compute_fused(self, first: Sample, second: Sample) -> None:
        """Computes the second step's output of one sample, on CPU."""
        raise NotImplementedError

    def compute_fused_batch(self, first: Workspace, second: Workspace) -> None:
        """Computes the second step's outputs of the batch, on the current CuPy stream."""
        raise NotImplementedError

    # -- what is the same for all ------------------------------------------------------------------------------------

    def run(self, workspace: Workspace) -> None:
        first = self._part(workspace, 0, list(workspace.inputs))
        second = self._part(workspace, 1, [])
        try:
            self._run_at_once(workspace, first, second)
        finally:
            # Samples and workspaces know each other: apart, their buffers are free as soon as nobody wants them.
            first.samples, second.samples = [], []

    def _run_at_once(self, workspace: Workspace, first: _Part, second: _Part) -> None:
        specs = self._described(0, self.first, first)
        shapes = self.first.infer_batch(first, 1)
        second.inputs = [_without_data(specs[0], shapes[0], workspace.device)]
        second.failures = first.failures
        specs = self._described(1, self.second, second)
        shapes = self.second.infer_batch(second, 1)
        if not self.can_fuse(first, second):
            self._run_in_turn(workspace)
            return
        second.outputs = [workspace.allocate(shapes[0], specs[0])]
        if workspace.device == "cpu":
            self._compute_samples(first, second, shapes[0])
        elif second.live:
            self.compute_fused_batch(first, second)
        workspace.outputs = second.outputs
        workspace.failures = second.failures

    def _compute_samples(self, first: Workspace, second: Workspace, shapes: Sequence[Shape]) -> None:
        firsts, seconds = list(first.samples), second.samples

        def task(index: int) -> None:
            if seconds[index] is None:
                return
            try:
                self.compute_fused(firsts[index], seconds[index])
            except Exception as error:
                second.fail(index, error)

        second.parallel(task, second.batch_size, [_volume(shape) for shape in shapes])

    def _run_in_turn(self, workspace: Workspace) -> None:
        first = self._part(workspace, 0, list(workspace.inputs))
        self._run_one(0, self.first, first)
        second = self._part(workspace, 1, list(first.outputs))
        second.failures = first.failures
        self._run_one(1, self.second, second)
        first.samples, second.samples = [], []
        workspace.outputs = second.outputs
        workspace.failures = second.failures

    def _part(self, workspace: Workspace, position: int, inputs: list[TensorList]) -> _Part:
        """The workspace as one of the operators would see it."""
        prefix = fused_argument(position, "")
        arguments = {
            name.removeprefix(prefix): batch for name, batch in workspace.arguments.items() if name.startswith(prefix)
        }
        part = _Part(**{field.name: getattr(workspace, field.name) for field in fields(Workspace)})
        part.inputs, part.arguments, part.node = inputs, arguments, self.nodes[position]
        part.outputs, part.samples, part.state = [], [], None
        return part

    def _described(self, position: int, operator: Operator, workspace: Workspace) -> Sequence[OutputSpec]:
        try:
            return operator.describe(workspace)
        except Exception as error:
            raise self._error(position, error) from error

    def _run_one(self, position: int, operator: Operator, workspace: Workspace) -> None:
        try:
            operator.run(workspace)
        except SampleFailure:
            raise
        except Exception as error:
            raise self._error(position, error) from error

    def _error(self, position: int, error: BaseException) -> BaseException:
        return _blamed_on(self.nodes[position], error, None)


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
