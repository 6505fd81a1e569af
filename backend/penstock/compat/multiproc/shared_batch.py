"""Batches in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.runtime.shared_arrays import Arrays, SharedMemory, fetched


class BufShmChunk:
    """Shared memory for a batch.

    Args:
        shm_chunk_id: its name, for those who exchange it.
        memory: the memory to use.
    """

    def __init__(self, shm_chunk_id: object, memory: SharedMemory) -> None:
        self.shm_chunk_id = shm_chunk_id
        self.memory = memory

    @classmethod
    def allocate(cls, shm_chunk_id: object, initial_chunk_size: int) -> BufShmChunk:
        """Allocate new memory, of this many bytes at first."""
        return cls(shm_chunk_id, SharedMemory(initial_chunk_size))

    @property
    def capacity(self) -> int:
        """Its size in bytes."""
        return self.memory.size

    def close(self) -> None:
        """Release the memory."""
        self.memory.close()


class SharedBatchWriter:
    """Writes a batch, a list of arrays or of lists of them, to shared memory, which grows as needed."""

    def __init__(self, shm_chunk: BufShmChunk, batch: Sequence[object]) -> None:
        arrays = Arrays()
        self.locations = arrays.place(list(batch))
        arrays.write(shm_chunk.memory)


@dataclass(frozen=True)
class SharedBatchMeta:
    """The location of a batch's arrays in shared memory."""

    locations: list[object]

    @classmethod
    def from_writer(cls, writer: SharedBatchWriter) -> SharedBatchMeta:
        """Return the description of a batch that was written."""
        return cls(writer.locations)


def deserialize_batch(buffer: BufShmChunk, shared_batch_meta: SharedBatchMeta) -> list[Any]:
    """Return the batch, as views of the memory."""
    batch: list[Any] = fetched(shared_batch_meta.locations, buffer.memory.bytes)
    return batch
