"""Reductions along dimensions on the GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from penstock.kernels.cuda.launch import Located, OnGpu, launch, locate, scratch, strides_of
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Double, Int32, Int64, Pointer, Repeated, cuda_type, records

_DIMS = 6
# If there are too few outputs to keep this many blocks busy, each is computed in parts, of at least this many elements.
_BUSY_BLOCKS, _MIN_PART = 1024, 16 * THREADS
# The smallest number of elements for which an additional thread is worthwhile.
_MIN_SHARE = 8

_Dimensions = Annotated[Sequence[int], Repeated(np.int64, _DIMS)]


class _Reduction(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        mean: the address of a mean for all outputs, or of one for each output; 0: none.
        outputs, elements: the number of outputs, and of elements reduced to each.
        parts: the number of partial results of each output, each from an equal share of its elements.
        lanes: the number of threads per output.
        mean_step: the distance from one output's mean to the next, in elements.
        divides, root: whether to divide by the divisor, and to take the square root.
    """

    source: Pointer
    target: Pointer
    mean: Pointer
    kept: _Dimensions
    kept_strides: _Dimensions
    reduced: _Dimensions
    reduced_strides: _Dimensions
    outputs: Int64
    elements: Int64
    parts: Int64
    divisor: Double
    epsilon: Double
    kept_rank: Int32
    reduced_rank: Int32
    lanes: Int32
    mean_step: Int32
    divides: Int32
    root: Int32


SOURCE = KernelSource(__file__, _Reduction)


@dataclass
class Reduction:
    """The work for one sample.

    Attributes:
        source, target: arrays on the GPU; the target's extents are those of the dimensions that are not reduced.
        axes: the dimensions to reduce.
        mean: float32 on the GPU, a single mean or one for each output; subtracted from the elements before squaring.
        divisor: the number to divide results by, or None; integer division truncates.
        epsilon: added to results before taking the root.
    """

    source: OnGpu
    target: OnGpu
    axes: Sequence[int]
    mean: OnGpu | None = None
    divisor: float | None = None
    epsilon: float = 0.0


def reduce_axes(
    reductions: Sequence[Reduction],
    merge: str = "Add",
    squares: bool = False,
    root: bool = False,
    value: DTypeLike = np.float32,
    total: DTypeLike = np.float64,
) -> None:
    """Reduce all samples; sources share a data type, and so do targets.

    This takes one launch; or two if there are few outputs with many elements each: the second one merges the partial results of the first.

    Args:
        reductions: the samples.
        merge: ``Add``, ``Least``, ``Greatest``, or ``GreatestPositive``, which is at least 0.
        squares: whether to square the elements first, after subtracting the mean.
        root: whether to take the square root of the results.
        value: the type to which elements are converted, and in which they are squared.
        total: the type in which the values are merged: the targets' type, or float64.
    """
    located = [(r, locate(r.source), locate(r.target)) for r in reductions]
    located = [item for item in located if item[2].size]
    if not located:
        return
    parts = _parts([(target.size, _reduced_count(r, source)) for r, source, target in located])
    if max(parts) == 1:
        _launch(
            [Reduction(s, t, r.axes, r.mean, r.divisor, r.epsilon) for r, s, t in located],
            parts,
            merge,
            squares,
            root,
            value,
            total,
        )
        return
    partial = scratch([(target.size, count) for (_, _, target), count in zip(located, parts)], total)
    first = [Reduction(source, part, r.axes, r.mean) for (r, source, _), part in zip(located, partial)]
    _launch(first, parts, merge, squares, False, value, total)
    last = [Reduction(part, t, (1,), None, r.divisor, r.epsilon) for (r, _, t), part in zip(located, partial)]
    _launch(last, [1] * len(last), merge, False, root, total, total)


def _reduced_count(reduction: Reduction, source: Located) -> int:
    return _walk(source.shape, tuple(reduction.axes)).elements


def _parts(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of parts in which to compute each output; ``sizes``: (outputs, elements of each output) for each sample."""
    blocks = sum(-(-outputs // (THREADS // _lanes(count))) for outputs, count in sizes)
    most = max(_BUSY_BLOCKS // blocks, 1)
    return [min(most, max(count // _MIN_PART, 1)) for _, count in sizes]


def _lanes(count: int) -> int:
    """Return the number of threads that reduce ``count`` elements: a power of two, at most the number of threads of a block."""
    return min(THREADS, 1 << max((count // _MIN_SHARE).bit_length() - 1, 0))


def _launch(
    reductions: Sequence[Reduction],
    parts: Sequence[int],
    merge: str,
    squares: bool,
    root: bool,
    value: DTypeLike,
    total: DTypeLike,
) -> None:
    """Compute ``parts`` partial results of each output, which are adjacent in the targets."""
    entries, counts = [], []
    for reduction, own in zip(reductions, parts):
        source, target = locate(reduction.source), locate(reduction.target)
        mean = None if reduction.mean is None else locate(reduction.mean)
        walk = _walk(source.shape, tuple(reduction.axes))
        lanes = _lanes(-(-walk.elements // own))
        entries.append(
            _Reduction(
                source.address,
                target.address,
                0 if mean is None else mean.address,
                *walk.dimensions,
                target.size // own,
                walk.elements,
                own,
                reduction.divisor or 0.0,
                reduction.epsilon,
                *walk.ranks,
                lanes,
                0 if mean is None or mean.size == 1 else 1,
                reduction.divisor is not None,
                root,
            )
        )
        counts.append(-(-target.size // (THREADS // lanes)))
    types = [
        cuda_type(np.dtype(kind)) for kind in (reductions[0].source.dtype, value, total, reductions[0].target.dtype)
    ]
    instance = f"reduce<{', '.join([*types, 'Squares' if squares else 'Plain', merge])}>"
    shared = THREADS * np.dtype(total).itemsize
    launch(SOURCE.kernel(instance), records(_Reduction, entries), counts, shared=shared)


class _Walk(NamedTuple):
    """How the kernel iterates over arrays of one shape.

    Attributes:
        dimensions: the extent and stride of each dimension: first of the dimensions that are not reduced, then of the reduced ones.
        ranks: the number of dimensions that are not reduced, and of reduced ones.
        elements: number of elements reduced to one output.
    """

    dimensions: tuple[list[int], list[int], list[int], list[int]]
    ranks: tuple[int, int]
    elements: int


@functools.lru_cache(maxsize=1024)
def _walk(shape: tuple[int, ...], axes: tuple[int, ...]) -> _Walk:
    """Return how to iterate over arrays of a shape.

    Raises:
        RuntimeError: there are more dimensions than the kernel supports.
    """
    steps = list(enumerate(zip(shape, strides_of(shape))))
    kept = _merged([step for axis, step in steps if axis not in axes])
    reduced = _merged([step for axis, step in steps if axis in axes])
    if max(len(kept), len(reduced)) > _DIMS:
        raise RuntimeError(f"Data of {len(shape)} dimensions is not supported on GPU here")
    (kept_extents, kept_strides), (extents, strides) = zip(*kept), zip(*reduced)
    dimensions = (_filled(kept_extents), _filled(kept_strides), _filled(extents), _filled(strides))
    return _Walk(dimensions, (len(kept), len(reduced)), math.prod(extents))


def _merged(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge contiguous dimensions; return the extents and strides that remain."""
    merged: list[tuple[int, int]] = []
    for extent, stride in dimensions:
        if merged and merged[-1][1] == stride * extent:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return merged or [(1, 0)]


def _filled(values: Sequence[int]) -> list[int]:
    return [*values, *[0] * (_DIMS - len(values))]
