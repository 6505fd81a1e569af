"""Launches an operator's kernels on a GPU: they are recorded for a kind of batch, and repeated for later batches of that kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from penstock.schema.workspace import Workspace

if TYPE_CHECKING:
    import numpy as np

    from penstock.kernels.cuda.program import Programs


class Launched(Protocol):
    """The parts of an operator that launching its kernels needs; see :class:`Operator`."""

    repeatable: bool
    varying_arguments: frozenset[str]

    def run_values(self, workspace: Workspace) -> dict[str, np.generic | np.ndarray]: ...


class GpuLaunches:
    """The launches of one operator, by kind of batch.

    Attributes:
        programs: the launches that were recorded; None before the first batch on a GPU.
    """

    def __init__(self) -> None:
        self.programs: Programs | None = None

    def repeat(self, operator: Launched, workspace: Workspace) -> bool:
        """Repeat the launches that were recorded for an earlier batch of this kind; return False if there are none."""
        if workspace.device == "cpu" or not operator.repeatable or workspace.failures:
            return False
        if self.programs is None:
            from penstock.kernels.cuda.program import Programs

            self.programs = Programs()
        return self.programs.run(workspace, lambda: operator.run_values(workspace), operator.varying_arguments)

    def record(self, operator: Launched, workspace: Workspace, compute_batch: Callable[[Workspace], None]) -> None:
        """Run ``compute_batch`` on the GPU and, if possible, record its launches for batches of the same kind."""
        recorded = (
            self.programs is not None
            and not workspace.failures
            and self.programs.record(workspace, compute_batch, lambda: operator.run_values(workspace))
        )
        if not recorded:
            compute_batch(workspace)
