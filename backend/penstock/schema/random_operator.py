"""The base class of operators that draw random numbers: each sample of each batch has a random stream of its own."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.kernels.random_keys import Key
from penstock.kernels.random_streams import SAMPLE_STRIDE, Stream, sample_stream, stream_from_state
from penstock.schema.declaration import Schema
from penstock.schema.operator import Operator
from penstock.schema.plans import Plan, Plans, State
from penstock.schema.workspace import Sample, Workspace
from penstock.storage import ANYWHERE, Files


class Streams(NamedTuple):
    """Like :class:`Stream`, for many samples, which differ only in ``streams``."""

    key: Key
    streams: np.ndarray
    start: np.uint64


class RandomOperator(Operator[State, Plan, Plans]):
    """Base class of operators that draw random numbers.

    Each sample draws from a stream that depends only on the operator's seed, on the number of samples in earlier batches, and on the
    sample's index in the batch, and thus not on the order in which threads run. The frames of a sequence share the stream of the sequence.
    ``reset()`` does not rewind streams.
    """

    # Operators whose kernels get the batch's stream as a run value override this.
    repeatable = False
    varying_arguments = frozenset({"_random_state"})

    def __init__(
        self,
        arguments: dict[str, object] | None = None,
        device: str = "cpu",
        tensor_arguments: Iterable[str] = (),
        seed: int = -1,
        schema: Schema | None = None,
        files: Files = ANYWHERE,
    ) -> None:
        self._produced = 0
        super().__init__(arguments, device, tensor_arguments, seed, schema, files)

    def run(self, workspace: Workspace) -> None:
        super().run(workspace)
        self.finish(workspace)

    def finish(self, workspace: Workspace) -> None:
        self._produced += workspace.batch_size

    def stream(self, sample: Sample) -> Stream:
        """Return the random stream of a sample of the current batch."""
        return self.stream_of(sample.workspace, sample.index)

    def stream_of(self, workspace: Workspace, index: int) -> Stream:
        """Return the random stream of sample ``index`` of the current batch."""
        return self._stream_at(workspace, self.stream_index(workspace, index))

    def stream_index(self, workspace: Workspace, index: int) -> int:
        """Return the index of a sample's stream among the streams of the batch."""
        return index if workspace.owners is None else workspace.owners[index]

    def first_stream(self, workspace: Workspace) -> Stream:
        """Return the first stream of a batch; the streams of other samples follow by index."""
        return self._stream_at(workspace, 0)

    def run_values(self, workspace: Workspace) -> dict[str, np.generic | np.ndarray]:
        return dict(self.first_stream(workspace).launch_values())

    def _stream_at(self, workspace: Workspace, index: int) -> Stream:
        states = workspace.arguments.get("_random_state")
        if states is not None:
            # The state of the first sample is that of the operator; the streams of all samples follow from it.
            return stream_from_state(states.samples[0], index)
        return sample_stream(self.seed, self._produced, index)

    def streams(self, workspace: Workspace, indices: Sequence[int]) -> Streams:
        """Return the streams of some samples of the current batch."""
        first, owners = self._stream_at(workspace, 0), workspace.owners
        if owners is None and indices == range(len(indices)):
            steps = _steps(len(indices))
        else:
            positions = np.array(indices if owners is None else [owners[index] for index in indices], np.uint64)
            steps = np.uint64(SAMPLE_STRIDE) * positions
        return Streams(first.key, first.stream + steps, first.start)

    def state(self) -> Any:
        return {"produced": self._produced}

    def restore(self, state: Any) -> None:
        self._produced = state["produced"]


@functools.lru_cache(maxsize=64)
def _steps(count: int) -> np.ndarray:
    """Return the offsets of a batch's stream numbers from the first one, modulo 2**64 like the numbers themselves."""
    return np.uint64(SAMPLE_STRIDE) * np.arange(count, dtype=np.uint64)
