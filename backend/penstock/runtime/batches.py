"""A batch that runs through a plan, and its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

from penstock.errors import CancelledError, PenstockError
from penstock.runtime.memory import BatchMemory
from penstock.runtime.plan import Step, Transfer
from penstock.schema.early_start import EarlyStart
from penstock.schema.workspace import Destination, Workspace
from penstock.tensors import TensorList
from penstock.tensors.transfers import Arrival

_SHAPES = attrgetter("shapes")


@dataclass(slots=True)
class Result:
    """The result of one run.

    Attributes:
        outputs: one batch for each output of the pipeline; failed samples are empty.
        failures: the error of each failed sample, ``OperatorError`` or ``CancelledError``, by position; only if the run isolates failures.
        ready: the CUDA event after which GPU outputs are valid.
        states: the states of the operators after this run, if checkpoints are enabled.
        kept: for each sample of the outputs, its position in the batch; set if failed samples were skipped or replaced.
        taken: the ticket of the batch that each input operator returned.
        stopped: whether all samples were cancelled; if so, there are no outputs, and some sources may not have run.
    """

    outputs: list[TensorList] = field(default_factory=list)
    failures: dict[int, PenstockError] = field(default_factory=dict)
    ready: Any = None
    states: dict[str, Any] | None = None
    kept: list[int] | None = None
    taken: dict[str, object] = field(default_factory=dict)
    stopped: bool = False


@dataclass(slots=True)
class Batch:
    """A batch in flight.

    Attributes:
        size: number of samples.
        iteration: the index of the batch.
        isolate, watch: see :meth:`penstock.runtime.Executor.run_once`.
        tolerant: whether samples that fail in readers and decoders are skipped or replaced, by the operator's policy.
        slots: the data computed so far, by slot; None: not computed, or released.
        destinations: the buffers for the pipeline's outputs, by slot.
        allowance: see :meth:`penstock.runtime.Executor.run_once`.
        tolerated: the policy, skip or replace, of each failed sample, by position.
        begun: the workspaces of operators that were started early, by node name.
        early: the results of the operators that were started early; None if none was started.
        result: the result so far.
        arrivals: copies to the GPU that threads are still making; work on the copied data must wait for them.
        waiting: the steps that still have to run, after the copies and the operators that were started early.
    """

    size: int
    iteration: int
    isolate: bool
    watch: Watch | None
    slots: list[Any]
    tolerant: bool = False
    destinations: Mapping[int, Destination] = field(default_factory=dict)
    allowance: BatchMemory | None = None
    begun: dict[str, Workspace] = field(default_factory=dict)
    early: EarlyStart | None = None
    tolerated: dict[int, str] = field(default_factory=dict)
    result: Result = field(default_factory=Result)
    arrivals: list[Arrival] = field(default_factory=list)
    waiting: Sequence[Step | Transfer] = ()

    def arrive(self) -> None:
        """Make work that is queued from here on wait for the copies to the GPU."""
        while self.arrivals:
            self.arrivals.pop().wait()

    def end(self) -> None:
        """End the operators that were started early and will not be completed."""
        while self.begun:
            self.begun.popitem()[1].end()


class Watch(Protocol):
    """Observes a run."""

    def operator_ran(self, step: Step, seconds: float) -> None:
        """Called after each operator with the host time that it took (GPU work may still be in flight)."""

    def cancelled(self) -> Collection[int]:
        """Return the cancelled samples; polled before each operator."""


def check_batch_sizes(workspace: Workspace) -> None:
    """Raise RuntimeError if an operator's inputs and arguments differ in their number of samples."""
    sizes = set(map(len, map(_SHAPES, [*workspace.inputs, *workspace.arguments.values()])))
    if len(sizes) > 1:
        parts = any(batch.positions is not None for batch in [*workspace.inputs, *workspace.arguments.values()])
        advice = ". What belongs to a sample is given to its parts by `fn.spread`" if parts else ""
        raise RuntimeError(f"Batch size clash: the inputs have {', '.join(map(str, sorted(sizes)))} samples{advice}")


def kept_of(batch: TensorList, positions: Sequence[int]) -> TensorList:
    """Return the output's samples at these positions of the batch; if samples were split, all parts of each."""
    ranges = [range(*batch.made_of(position, position + 1)) for position in positions]
    part = batch.subset([index for sample_range in ranges for index in sample_range])
    if batch.positions is not None:
        part.positions = [output_index for output_index, sample_range in enumerate(ranges) for _ in sample_range]
    return part


def nothing_left(failures: dict[int, PenstockError], cancelled: Collection[int], batch_size: int) -> bool:
    """Record cancelled samples as failures; return whether no other samples remain."""
    for index in cancelled:
        failures.setdefault(index, CancelledError())
    return bool(cancelled) and len(failures) == batch_size


def local_failures(failures: dict[int, PenstockError], workspace: Workspace) -> dict[int, BaseException]:
    """Return the batch's failures by index in the workspace, whose samples may be a part of the batch."""
    if workspace.positions is None:
        return dict(failures)
    return {local: failures[p] for local, p in enumerate(workspace.positions) if p in failures}


def propagate_sources(workspace: Workspace) -> None:
    """Copy source information from the inputs to outputs that have none, for samples on which all inputs agree."""
    named = [batch.source_infos for batch in workspace.inputs if batch.source_infos]
    if not named:
        return
    infos = named[0] if len(named) == 1 else [_agreed(sources) for sources in zip(*named)]
    for output in workspace.outputs:
        if not output.source_infos and len(output) == len(infos):
            output.source_infos = infos


def _agreed(sources: Sequence[str]) -> str:
    """Return the source that all non-empty strings name; an empty string if they differ or all are empty."""
    known = {source for source in sources if source}
    return known.pop() if len(known) == 1 else ""
