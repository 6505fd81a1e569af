"""Reductions over dimensions on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import THREADS, Located, cuda_type, kernel, launch, locate, scratch, strides_of

_DIMS = 6
# Where outputs alone would keep fewer blocks busy, the elements of each are reduced in parts of so many at least.
_BUSY_BLOCKS, _LEAST_PART = 1024, 16 * THREADS
_REDUCTION = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("mean", np.uint64),
        *((name, np.int64, _DIMS) for name in ("kept", "kept_strides", "reduced", "reduced_strides")),
        ("outputs", np.int64),
        ("count", np.int64),
        ("parts", np.int64),
        ("divisor", np.float64),
        ("epsilon", np.float64),
        *((name, np.int32) for name in ("kept_rank", "reduced_rank", "lanes", "mean_step", "divides", "root")),
    ],
    align=True,
)


@dataclass
class Reduction:
    """What happens to one sample.

    Attributes:
        source, target: arrays on the GPU; the target has the extents that are kept.
        axes: the dimensions that are reduced.
        mean: float32 on the GPU, one or one for each output: what is subtracted before squaring.
        divisor: what merged elements are divided by, or None; where they are integers, fractions are cut off.
        epsilon: added before a root is taken.
    """

    source: Any
    target: Any
    axes: Sequence[int]
    mean: Any = None
    divisor: float | None = None
    epsilon: float = 0.0


def reduce_axes(
    reductions: Sequence[Reduction],
    merge: str = "Add",
    squares: bool = False,
    root: bool = False,
    value: Any = np.float32,
    total: Any = np.float64,
) -> None:
    """Reduces all samples; sources have one type, and targets have one.

    In one launch, or in two where outputs are few and elements many: first in parts, which then are merged.

    Args:
        reductions: the samples.
        merge: ``Add``, ``Least``, ``Greatest``, or ``GreatestPositive``, which is 0 where there is none.
        squares: elements less their mean are squared first.
        root: the square root of the results is taken.
        value: the type in which elements are read, and squared.
        total: the type in which they are merged: that of the targets, or float64.
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
    return math.prod(source.shape[axis] for axis in reduction.axes)


def _parts(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """In how many parts the elements of an output are reduced, from the outputs and the elements of each."""
    blocks = sum(-(-outputs // (THREADS // _lanes(count))) for outputs, count in sizes)
    most = max(_BUSY_BLOCKS // blocks, 1)
    return [min(most, max(count // _LEAST_PART, 1)) for _, count in sizes]


def _lanes(count: int) -> int:
    """How many threads reduce so many elements: a power of two."""
    return min(THREADS, 1 << max(count.bit_length() - 1, 0))


def _launch(
    reductions: Sequence[Reduction],
    parts: Sequence[int],
    merge: str,
    squares: bool,
    root: bool,
    value: Any,
    total: Any,
) -> None:
    """Makes ``parts`` results of each output, one behind the other in the targets."""
    entries, counts = [], []
    for reduction, own in zip(reductions, parts):
        source, target = reduction.source, reduction.target
        axes = set(reduction.axes)
        mean = None if reduction.mean is None else locate(reduction.mean)
        strides = strides_of(source.shape)
        kept = _merged([(e, s) for axis, (e, s) in enumerate(zip(source.shape, strides)) if axis not in axes])
        reduced = _merged([(e, s) for axis, (e, s) in enumerate(zip(source.shape, strides)) if axis in axes])
        if max(len(kept), len(reduced)) > _DIMS:
            raise RuntimeError(f"Data of {len(source.shape)} dimensions is not supported on GPU here")
        count = math.prod(extent for extent, _ in reduced)
        lanes = _lanes(-(-count // own))
        entries.append(
            (
                source.address,
                target.address,
                0 if mean is None else mean.address,
                *(_filled([d[field] for d in dimensions]) for dimensions in (kept, reduced) for field in (0, 1)),
                target.size // own,
                count,
                own,
                reduction.divisor or 0.0,
                reduction.epsilon,
                len(kept),
                len(reduced),
                lanes,
                0 if mean is None or mean.size == 1 else 1,
                reduction.divisor is not None,
                root,
            )
        )
        counts.append(-(-target.size // (THREADS // lanes)))
    source, target = reductions[0].source, reductions[0].target
    types = [cuda_type(np.dtype(kind)) for kind in (source.dtype, value, total, target.dtype)]
    instance = f"reduce<{', '.join([*types, 'Squares' if squares else 'Plain', merge])}>"
    shared = THREADS * np.dtype(total).itemsize
    launch(kernel("reduction", instance), np.array(entries, _REDUCTION), counts, shared=shared)


def _merged(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extents and strides of as few dimensions as it takes."""
    merged: list[tuple[int, int]] = []
    for extent, stride in dimensions:
        if merged and merged[-1][1] == stride * extent:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return merged or [(1, 0)]


def _filled(values: list[int]) -> list[int]:
    return [*values, *[0] * (_DIMS - len(values))]
