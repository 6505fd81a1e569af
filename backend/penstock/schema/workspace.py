"""What an operator is given when it runs: the batch, and what its outputs are to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.data_types import DALIDataType
from penstock.errors import OperatorError
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.tensors import HostPool, TensorListCPU, TensorListGPU

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OutputSpec:
    """What one output holds: its dtype, its layout, and (for batches without samples) its rank."""

    dtype: DALIDataType
    layout: str = ""
    ndim: int | None = None


def run_in_order(task: Callable[[int], None], count: int, _costs: Sequence[int] | None = None) -> None:
    """Runs ``task`` for each index on the calling thread: the pool of those who have none."""
    for index in range(count):
        task(index)


@dataclass
class Workspace:
    """One run of one operator on one batch.

    Attributes:
        inputs: the positional inputs.
        arguments: batches given for arguments, by the argument's name (always on CPU).
        batch_size: number of samples.
        outputs: to be set by the run.
        samples: one for each sample; those that failed are None.
        failures: errors by sample index; filled only when ``isolate`` is set, else the first error is raised.
        isolate: a failing sample is put aside, and the others go on.
        parallel: runs a function over sample indices on the pool's threads: ``parallel(task, count, costs)``.
        pool: where CPU buffers come from.
        max_batch_size: of the pipeline.
        iteration: index of the batch since the pipeline was built.
        positions: of the samples in the pipeline's batch, where conditionals have split it; else None.
        kind: what the batch has in common with those for which the same is launched; None: nothing is known of that.
        owners: for a batch of frames, the index of each frame's sequence in its batch; else None.
        plans: what ``infer_batch`` worked out for all samples at once, who then have no plans of their own; or None.
        state: what ``describe`` leaves for the later steps.
        decoding: within which limits encoded data are decoded, and where.
    """

    inputs: Sequence[Any] = ()
    arguments: dict[str, TensorListCPU] = field(default_factory=dict)
    batch_size: int = 0
    device: str = "cpu"
    outputs: list[Any] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)
    failures: dict[int, BaseException] = field(default_factory=dict)
    isolate: bool = False
    parallel: Callable[..., None] = run_in_order
    pool: HostPool | None = None
    max_batch_size: int = 0
    iteration: int = 0
    num_threads: int = 1
    positions: list[int] | None = None
    owners: list[int] | None = None
    state: Any = None
    kind: Any = None
    plans: Any = None
    decoding: Decoding = FREELY

    def allocate(self, shapes: Sequence[Shape], spec: OutputSpec) -> Any:
        """A batch of undefined contents on the device where the operator runs."""
        if not shapes:
            kind = TensorListCPU if self.device == "cpu" else TensorListGPU
            return kind.of_samples([], spec.layout, spec.dtype, spec.ndim)
        if self.device == "cpu":
            return TensorListCPU.allocate(shapes, spec.dtype, spec.layout, self.pool)
        return TensorListGPU.allocate(shapes, spec.dtype, spec.layout)

    @property
    def live(self) -> list[Any]:
        """The samples that have not failed."""
        return [sample for sample in self.samples if sample is not None]

    def fail(self, index: int, error: BaseException) -> None:
        """Puts a failing sample aside, or raises with its index where the run does not isolate failures."""
        if isinstance(error, OperatorError) and error.sample is not None:
            index = error.sample
        if not self.isolate:
            raise SampleFailure(index, error)
        self.failures[index] = error
        if index < len(self.samples):
            self.samples[index] = None


class SampleFailure(Exception):
    """Carries a sample's index with the error that its processing raised, to where the operator is known."""

    def __init__(self, index: int, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.index = index
        self.cause = cause
