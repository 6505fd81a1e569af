"""Operations along one dimension of scores on the GPU: softmax, argmax, top-k, and the names of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Records, cuda_type, records
from penstock.operators.postprocessing._exponential import EXPONENTIAL


class _Scores(NamedTuple):
    """The descriptor of one sample, viewed as (outer, extent, inner).

    Attributes:
        values, indices: addresses of the outputs; 0: the output is not needed.
        lanes: number of threads that share a line.
    """

    source: Pointer
    values: Pointer
    indices: Pointer
    outer: Int64
    inner: Int64
    extent: Int32
    lanes: Int32


class _Named(NamedTuple):
    """The descriptor of one sample whose classes' names are written.

    Attributes:
        classes: address of the classes, int32.
        bytes: the size of the names of all these classes.
    """

    classes: Pointer
    target: Pointer
    bytes: Int64


SOURCE = KernelSource(__file__, _Scores, _Named, **EXPONENTIAL)
# Threads per line of scores. Strided lines get one thread each, so that adjacent threads read adjacent scores.
_LANES_OF_STRIDED, _LANES_OF_SHORT, _LANES_OF_LONG = 1, 32, THREADS
# Lines with at least this many scores are faster with a whole block than with a warp.
_MIN_LONG = 1024
# With at least this many adjacent lines, each gets one thread.
_MIN_STRIDED = 32


def softmax_batch(sources: Sequence[Located], targets: Sequence[Located], axis: int) -> None:
    """Fill float32 targets with the softmax of their sources along a dimension."""
    descriptors, counts = _described(sources, targets, None, axis)
    launch(SOURCE.kernel(f"softmax<{_kind(sources)}>"), descriptors, counts)


def find_highest(
    sources: Sequence[Located],
    values: Sequence[Located] | None,
    indices: Sequence[Located],
    axis: int,
    number: int,
) -> np.ndarray:
    """Find the highest scores along a dimension, in descending order; equal scores stay in order. Waits for the GPU.

    Args:
        sources: the scores, at least one along the dimension.
        values: float32 outputs for the scores; None: scores are not needed.
        indices: int32 outputs for the indices along the dimension.
        number: number of scores to find.

    Returns:
        The position of the first NaN of each sample, -1 if it has none: int64.
    """
    faults = upload([np.full(len(sources), -1, np.int64).view(np.uint64)])[0]
    descriptors, counts = _described(sources, values, indices, axis)
    launch(SOURCE.kernel(f"highest<{_kind(sources)}>"), descriptors, counts, faults, np.int32(number))
    found: np.ndarray = faults.array().get()
    return found.view(np.int64)


def write_names(classes: Sequence[Located], targets: Sequence[Located], names: np.ndarray) -> None:
    """Fill targets with the names of classes.

    Args:
        classes: the classes of each sample, int32.
        targets: uint8, with one more dimension than the classes, for the bytes of a name.
        names: the names of all classes, uint8 of shape (classes, bytes).
    """
    entries = [(own.address, target.address, target.size) for own, target in zip(classes, targets)]
    counts = [blocks_for(target.size) for target in targets]
    launch(
        SOURCE.kernel("write_names"),
        records(_Named, entries),
        counts,
        np.ascontiguousarray(names),
        np.int32(names.shape[1]),
    )


def _kind(sources: Sequence[Located]) -> str:
    return cuda_type(sources[0].dtype)


def _described(
    sources: Sequence[Located], values: Sequence[Located] | None, indices: Sequence[Located] | None, axis: int
) -> tuple[Records, list[int]]:
    """Return the descriptors of samples and the number of blocks for each sample."""
    entries, counts = [], []
    for number, source in enumerate(sources):
        outer, extent = math.prod(source.shape[:axis]), source.shape[axis]
        inner = math.prod(source.shape[axis + 1 :])
        if inner >= _MIN_STRIDED:
            lanes = _LANES_OF_STRIDED
        else:
            lanes = _LANES_OF_LONG if extent >= _MIN_LONG else _LANES_OF_SHORT
        to_values, to_indices = (0 if own is None else own[number].address for own in (values, indices))
        entries.append(_Scores(source.address, to_values, to_indices, outer, inner, extent, lanes))
        counts.append(blocks_for(outer * inner, THREADS // lanes))
    return records(_Scores, entries), counts
