"""Batches in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.runtime.shared_arrays import Arrays, SharedMemory, fetched


class BufShmChunk:
    """Shared memory for a batch.

    Args:
        shm_chunk_id: the name of the chunk, for the processes that exchange it.
        memory: the memory to use.
    """

    def __init__(self, shm_chunk_id: object, memory: SharedMemory) -> None:
        self.shm_chunk_id = shm_chunk_id
        self.memory = memory

    @classmethod
    def allocate(cls, shm_chunk_id: object, initial_chunk_size: int) -> BufShmChunk:
        """Allocate new memory with an initial size in bytes."""
        return cls(shm_chunk_id, SharedMemory(initial_chunk_size))

    @property
    def capacity(self) -> int:
        """The size of the memory in bytes."""
        return self.memory.size

    def close(self) -> None:
        """Release the memory."""
        self.memory.close()


class SharedBatchWriter:
    """Writes a batch to shared memory, which grows as needed; the batch is a list of arrays or of lists of arrays."""

    def __init__(self, shm_chunk: BufShmChunk, batch: Sequence[object]) -> None:
        arrays = Arrays()
        self.locations = arrays.place(list(batch))
        arrays.write(shm_chunk.memory)


@dataclass(frozen=True)
class SharedBatchMeta:
    """Where the arrays of a batch lie in shared memory."""

    locations: list[object]

    @classmethod
    def from_writer(cls, writer: SharedBatchWriter) -> SharedBatchMeta:
        """Return the description of a batch that was written."""
        return cls(writer.locations)


def deserialize_batch(buffer: BufShmChunk, shared_batch_meta: SharedBatchMeta) -> list[Any]:
    """Return the batch, as views of the memory."""
    batch: list[Any] = fetched(shared_batch_meta.locations, buffer.memory.bytes)
    return batch
