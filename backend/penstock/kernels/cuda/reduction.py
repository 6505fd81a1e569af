"""Reductions over dimensions on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import THREADS, Located, cuda_type, kernel, launch, locate, scratch, strides_of

_DIMS = 6
# Elements of an array that one block reduces where the whole of it becomes one number.
_PART = 16 * THREADS
_REDUCTION = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("mean", np.uint64),
        *((name, np.int64, _DIMS) for name in ("kept", "kept_strides", "reduced", "reduced_strides")),
        ("outputs", np.int64),
        ("count", np.int64),
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
    """Reduces all samples in one launch; sources have one type, and targets have one.

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
    entries, counts = [], []
    for reduction, source, target in located:
        axes = set(reduction.axes)
        mean = None if reduction.mean is None else locate(reduction.mean)
        strides = strides_of(source.shape)
        kept = _merged([(e, s) for axis, (e, s) in enumerate(zip(source.shape, strides)) if axis not in axes])
        reduced = _merged([(e, s) for axis, (e, s) in enumerate(zip(source.shape, strides)) if axis in axes])
        if max(len(kept), len(reduced)) > _DIMS:
            raise RuntimeError(f"Data of {len(source.shape)} dimensions is not supported on GPU here")
        count = math.prod(extent for extent, _ in reduced)
        lanes = min(THREADS, 1 << max(count.bit_length() - 1, 0))
        entries.append(
            (
                source.address,
                target.address,
                0 if mean is None else mean.address,
                *(_filled([d[field] for d in dimensions]) for dimensions in (kept, reduced) for field in (0, 1)),
                target.size,
                count,
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
    source, target = located[0][1:]
    types = [cuda_type(np.dtype(kind)) for kind in (source.dtype, value, total, target.dtype)]
    instance = f"reduce<{', '.join([*types, 'Squares' if squares else 'Plain', merge])}>"
    shared = THREADS * np.dtype(total).itemsize
    launch(kernel("reduction", instance), np.array(entries, _REDUCTION), counts, shared=shared)


def reduce_whole(sources: Sequence[Located], merge: str, kind: Any = np.float32) -> list[Located]:
    """Each array's elements merged into one number, of type ``kind``.

    In two launches: arrays are cut into parts, so that long ones keep many blocks busy, then the parts are merged.
    """
    shapes = [(source.size // _PART + 1,) for source in sources]
    partial, results = scratch(shapes, kind), scratch([()] * len(sources), kind)
    jobs = []
    for source, parts in zip(sources, partial):
        whole = parts.size - 1
        cut = whole * _PART
        rest = Located(source.address + cut * source.dtype.itemsize, (1, source.size - cut), source.dtype)
        last = Located(parts.address + whole * parts.dtype.itemsize, (1,), parts.dtype)
        jobs += [Reduction(source.reshape(whole, _PART), parts.reshape(whole), (1,)), Reduction(rest, last, (1,))]
    reduce_axes(jobs, merge, value=kind, total=kind)
    reduce_axes([Reduction(parts, one, (0,)) for parts, one in zip(partial, results)], merge, value=kind, total=kind)
    return results


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
