"""Messages between processes: where a batch lies in shared memory, and which calls to make."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.data_types import SampleInfo


class ShmMessageDesc:
    """A message that says where in shared memory a worker has written data.

    Args:
        worker_id: the number of the worker, from -2**31 to 2**31 - 1.
        shm_chunk_id: the number of the shared-memory chunk, in the same range.
        shm_capacity: the size of the chunk, in bytes; like the following numbers, it must not be negative.
        offset: the position of the data in the chunk, in bytes.
        num_bytes: the size of the data, in bytes.
    """

    FORMAT = struct.Struct("<iiQQQ")

    def __init__(self, worker_id: int, shm_chunk_id: int, shm_capacity: int, offset: int, num_bytes: int) -> None:
        self.worker_id = worker_id
        self.shm_chunk_id = shm_chunk_id
        self.shm_capacity = shm_capacity
        self.offset = offset
        self.num_bytes = num_bytes

    def get_values(self) -> tuple[int, ...]:
        """Return the values of all fields, in order."""
        return self.worker_id, self.shm_chunk_id, self.shm_capacity, self.offset, self.num_bytes

    def packed(self) -> bytes:
        """Return the message as bytes for a queue; raise RuntimeError if a number is out of range."""
        try:
            return self.FORMAT.pack(*self.get_values())
        except struct.error as error:
            fields = dict(zip(("worker_id", "shm_chunk_id", "shm_capacity", "offset", "num_bytes"), self.get_values()))
            raise RuntimeError(
                f"Failed to serialize object as C-like structure. Tried to populate following fields: {fields}: {error}"
            ) from error


class SampleRange(NamedTuple):
    """A range of samples of one batch, end exclusive, with the number of the batch and of the epoch."""

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
        """Return one call for each sample of a range."""
        first, end, iteration, epoch = sample_range
        return cls([(SampleInfo(index, index - first, iteration, epoch),) for index in range(first, end)], False)

    @classmethod
    def make_batch(cls, batch_args: tuple[object, ...]) -> TaskArgs:
        """Return one call, for a batch."""
        return cls([batch_args], True)
