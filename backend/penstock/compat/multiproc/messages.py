"""Messages between processes: the location of a batch, and the calls to make."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.data_types import SampleInfo


class ShmMessageDesc:
    """A message: which worker wrote which data at which position.

    Args:
        worker_id: -2**31 to 2**31 - 1, as `shm_chunk_id`.
        shm_chunk_id: the number of the shared-memory chunk.
        shm_capacity: the memory's size; not negative, as the others.
        offset: the offset in the memory, in bytes.
        num_bytes: how many.
    """

    FORMAT = struct.Struct("<iiQQQ")

    def __init__(self, worker_id: int, shm_chunk_id: int, shm_capacity: int, offset: int, num_bytes: int) -> None:
        self.worker_id = worker_id
        self.shm_chunk_id = shm_chunk_id
        self.shm_capacity = shm_capacity
        self.offset = offset
        self.num_bytes = num_bytes

    def get_values(self) -> tuple[int, ...]:
        """Return all fields, in their order."""
        return self.worker_id, self.shm_chunk_id, self.shm_capacity, self.offset, self.num_bytes

    def packed(self) -> bytes:
        """Return its bytes in a queue; raise RuntimeError for numbers that do not fit."""
        try:
            return self.FORMAT.pack(*self.get_values())
        except struct.error as error:
            fields = dict(zip(("worker_id", "shm_chunk_id", "shm_capacity", "offset", "num_bytes"), self.get_values()))
            raise RuntimeError(
                f"Failed to serialize object as C-like structure. Tried to populate following fields: {fields}: {error}"
            ) from error


class SampleRange(NamedTuple):
    """Consecutive samples of one batch: the first and the one after the last, the batch's number, and the epoch's."""

    sample_start: int
    sample_end: int
    iteration: int
    epoch_idx: int


@dataclass(frozen=True)
class TaskArgs:
    """The arguments of a callback: one set for each sample, or one for the whole batch."""

    calls: Sequence[tuple[object, ...]]
    is_batch: bool

    @classmethod
    def make_sample(cls, sample_range: SampleRange) -> TaskArgs:
        """Call for the samples of a range."""
        first, end, iteration, epoch = sample_range
        return cls([(SampleInfo(index, index - first, iteration, epoch),) for index in range(first, end)], False)

    @classmethod
    def make_batch(cls, batch_args: tuple[object, ...]) -> TaskArgs:
        """Return one call, for a batch."""
        return cls([batch_args], True)
