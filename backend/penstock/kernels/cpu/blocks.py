"""Copies of blocks of bytes for a whole batch, in one call without the GIL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.core.arrays import address, addresses
from penstock.core.loading import core
from penstock.tensors import TensorList, TensorListCPU
from penstock.tensors.places import places_of_samples

# The minimum number of bytes for which waking a thread pays off.
_MIN_BYTES_PER_THREAD = 1 << 20
# Copies of at least this many bytes bypass the caches; the same as `kMinBytesPastCaches` in `backend/core/copies.h`.
_MIN_BYTES_PAST_CACHES = 2 << 20


class Blocks(NamedTuple):
    """Blocks of rows to copy: each field has an int64 for each block, or one for all.

    Attributes:
        sources, targets: the address of each block's first row.
        source_steps, target_steps: bytes from the start of a row to that of the next one; may be negative.
        rows: the number of rows of a block.
        sizes: the number of bytes in a row.
    """

    sources: np.ndarray
    targets: np.ndarray
    source_steps: np.ndarray | int
    target_steps: np.ndarray | int
    rows: np.ndarray | int
    sizes: np.ndarray | int


class Threads(Protocol):
    """Threads that share work.

    Attributes:
        parallel: calls a function for each of several indices, on these threads.
        num_threads: the number of threads.
    """

    num_threads: int

    @property
    def parallel(self) -> Callable[..., None]: ...


class Batch(Threads, Protocol):
    """The attributes of a workspace that are needed to copy a whole batch.

    Attributes:
        batch_size: number of samples.
        inputs, outputs: the batches to read and to fill.
        failures: the errors of samples that have failed, by the sample's index.
    """

    batch_size: int
    inputs: Sequence[Any]
    outputs: list[Any]
    failures: dict[int, BaseException]


def _copy(table: np.ndarray, first: int, end: int, past_caches: bool) -> None:
    """Copy the blocks in rows ``first`` to ``end`` of a table, whose columns are the fields of :class:`Blocks`."""
    core().penstock_copy_blocks(address(table) + first * table.strides[0], end - first, past_caches)


def copy_blocks(threads: Threads, blocks: Blocks, together: int = 1, read_next: bool = False) -> None:
    """Copy blocks, with several threads if they are large.

    Args:
        threads: the threads to use, such as a workspace.
        blocks: the blocks; sources must not overlap targets.
        together: how many successive blocks the same thread copies, in order; the targets of these may overlap.
        read_next: whether the targets will be read soon, so that they should stay in the caches.
    """
    table = np.empty((len(blocks.sources), len(blocks)), np.int64)
    for column, values in enumerate(blocks):
        table[:, column] = values
    copy_table(threads, table, together, read_next)


def copy_table(threads: Threads, table: np.ndarray, together: int = 1, read_next: bool = False) -> None:
    """Copy the blocks in the rows of a table, whose columns are the fields of :class:`Blocks`, int64.

    Args:
        threads, together, read_next: as for :func:`copy_blocks`.
    """
    count = len(table)
    groups = count // max(together, 1)
    shares = min(threads.num_threads, groups)
    total_bytes = int(table[:, 4] @ table[:, 5])
    past_caches = together == 1 and not read_next and total_bytes >= _MIN_BYTES_PAST_CACHES
    shares = min(shares, total_bytes // _MIN_BYTES_PER_THREAD)
    if shares < 2:
        _copy(table, 0, count, past_caches)
        return
    bounds = [groups * share // shares * together for share in range(shares + 1)]
    threads.parallel(lambda share: _copy(table, bounds[share], bounds[share + 1], past_caches), shares)


def copy_samples(threads: Threads, source: TensorList, target: TensorListCPU, read_next: bool = False) -> bool:
    """Copy a batch's samples to those of a batch of the same shapes; return False, without copying, if a sample is not contiguous.

    Args:
        threads, read_next: as for :func:`copy_blocks`.
    """
    sizes = source.sample_volumes() * target.contiguous_elements().itemsize
    target.know_volumes(source)
    sources, targets = places_of_samples(source), places_of_samples(target)
    if sources is None or targets is None:
        return False
    copy_blocks(threads, Blocks(sources, targets, sizes, sizes, 1, sizes), read_next=read_next)
    return True


def pack_arrays(arrays: Sequence[np.ndarray], sizes: Sequence[int], offsets: Sequence[int], target: int) -> bool:
    """Copy the data of arrays to one block of memory; return False if an array is not contiguous.

    Args:
        arrays: arrays of any types.
        sizes: the arrays' sizes in bytes.
        offsets: each array's offset in the memory.
        target: the memory's address.
    """
    sources = addresses(list(arrays))
    if sources is None:
        return False
    table = np.empty((len(arrays), len(Blocks._fields)), np.int64)
    table[:, 0], table[:, 1], table[:, 5] = sources, offsets, sizes
    table[:, 1] += target
    table[:, 2:4], table[:, 4] = 0, 1
    _copy(table, 0, len(arrays), False)
    return True


def join_samples(batch: Batch, axis: int) -> bool:
    """Concatenate the inputs along an axis into the output; return False, without copying, if a sample is not contiguous."""
    output = batch.outputs[0]
    places = [] if batch.failures or not batch.batch_size else list(map(places_of_samples, [*batch.inputs, output]))
    known = [own for own in places if own is not None]
    if len(known) <= len(batch.inputs):
        return False
    *sources, first = known
    itemsize = output.contiguous_elements().itemsize
    sizes = [volumes(part.shapes, axis) * itemsize for part in batch.inputs]
    rows, step = volumes(batch.inputs[0].shapes, 0, axis), sum(sizes)
    for source, size in zip(sources, sizes):
        copy_blocks(batch, Blocks(source, first, size, step, rows, size))
        first = first + size
    return True


def volumes(shapes: Sequence[tuple[int, ...]], first: int, end: int | None = None) -> np.ndarray | int:
    """Return the product of the extents from dimension ``first`` up to, but not including, ``end``: one for each sample, or a single
    one if all shapes are equal.
    """
    if shapes.count(shapes[0]) == len(shapes):
        return math.prod(shapes[0][first:end])
    return np.fromiter((math.prod(shape[first:end]) for shape in shapes), np.int64, len(shapes))
