"""Normalization by mean and standard deviation on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.elementwise import evaluate_batch
from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch, upload
from penstock.kernels.cuda.reduction import Reduction, reduce_axes
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, cuda_type, records


class _Normalized(NamedTuple):
    """The kernel's description of one sample, as an array of shape (outer, kept, inner).

    Attributes:
        mean, deviation: one value for each index of the middle dimension, or a single one.
        mean_step, deviation_step: 1, or 0 if there is a single value.
    """

    source: Pointer
    target: Pointer
    mean: Pointer
    deviation: Pointer
    elements: Int64
    kept: Int64
    inner: Int64
    mean_step: Int32
    deviation_step: Int32


# The number of elements per read of a thread, and the number of reads per thread.
_TOGETHER, _ROUNDS = 4, 4
SOURCE = KernelSource(__file__, _Normalized, TOGETHER=_TOGETHER, ROUNDS=_ROUNDS)


@dataclass(frozen=True)
class Normalization:
    """How arrays are normalized: ``(x - mean) / sqrt(variance + epsilon) * scale + shift``.

    Attributes:
        axes: the dimensions over which mean and variance are computed.
        together: compute one mean and one variance for the whole batch.
        ddof: the number that is subtracted from the element count in the variance's denominator.
    """

    axes: tuple[int, ...]
    together: bool
    ddof: int
    epsilon: float
    scale: float
    shift: float


def normalize_batch(
    sources: Sequence[Located],
    targets: Sequence[Located],
    normalization: Normalization,
    means: Sequence[np.ndarray] | None,
    deviations: Sequence[np.ndarray] | None,
) -> None:
    """Normalize all samples, with one launch each for mean, deviation and result.

    Args:
        sources, targets: the samples before and after, in arrays of equal shapes.
        normalization: how to normalize all samples.
        means, deviations: for each sample, a float32 array that broadcasts to the sample's shape; None: compute them.
    """
    mean = _computed(sources, normalization) if means is None else upload(means)
    deviation = _computed(sources, normalization, mean) if deviations is None else upload(deviations)
    jobs = [job for job in zip(sources, mean, deviation, targets) if job[0].size]
    views = [_view(source.shape, [own.shape, by.shape]) for source, own, by, _ in jobs]
    if jobs and None not in views:
        _launch(jobs, views, normalization)  # type: ignore[arg-type]
        return
    body = (
        f"float factor = c == 0.0f ? 0.0f : float({normalization.scale!r}) / c;"
        f"return converted<Result>((converted<float>(a) - b) * factor + float({normalization.shift!r}));"
    )
    evaluate_batch(body, [(operands, target) for *operands, target in jobs], False)


def _view(shape: tuple[int, ...], kept: Sequence[tuple[int, ...]]) -> tuple[int, int] | None:
    """Return ``(kept, inner)`` so that an array reshaped to (outer, kept, inner) has means and deviations that vary along the middle
    dimension only; None if that is impossible.

    Args:
        shape: the array's shape.
        kept: the shapes of the means and of the deviations.
    """
    own = [(1,) * (len(shape) - len(extents)) + tuple(extents) for extents in kept]
    wide = [axis for axis in range(len(shape)) if any(extents[axis] != 1 for extents in own)]
    if not wide:
        return 1, math.prod(shape)
    span = slice(wide[0], wide[-1] + 1)
    if any(extents[span] != shape[span] for extents in own if math.prod(extents) != 1):
        return None
    return math.prod(shape[span]), math.prod(shape[span.stop :])


def _launch(
    jobs: Sequence[tuple[Located, Located, Located, Located]], views: Sequence[tuple[int, int]], n: Normalization
) -> None:
    """Normalize samples in one launch.

    Args:
        jobs: ``(source, mean, deviation, target)`` of each sample.
        views: ``(kept, inner)`` of each sample; see :func:`_view`.
        n: how to normalize.
    """
    entries = [
        _Normalized(
            source.address,
            target.address,
            mean.address,
            deviation.address,
            source.size,
            *view,
            int(mean.size > 1),
            int(deviation.size > 1),
        )
        for (source, mean, deviation, target), view in zip(jobs, views)
    ]
    source, *_, target = jobs[0]
    instance = f"normalize<{cuda_type(source.dtype)}, {cuda_type(target.dtype)}>"
    counts = [blocks_for(source.size, _TOGETHER * _ROUNDS * THREADS) for source, *_ in jobs]
    numbers = np.float32(n.scale), np.float32(n.shift)
    launch(SOURCE.kernel(instance), records(_Normalized, entries), counts, *numbers)


def _computed(sources: Sequence[Located], n: Normalization, means: Sequence[Located] | None = None) -> list[Located]:
    """Return the mean of each sample or, if ``means`` are passed, the deviation from them. Results have extent 1 along the axes."""
    shapes = [tuple(1 if axis in n.axes else extent for axis, extent in enumerate(s.shape)) for s in sources]
    counts = [math.prod(source.shape[axis] for axis in n.axes) for source in sources]
    squares = means is not None
    if means is not None:
        # If there are no axes, all deviations of a sample are measured from the first value of its mean, as in DALI.
        means = _spread(means, shapes) if n.axes else [Located(m.address, (1,), m.dtype, m.owner) for m in means]
    each: Sequence[Located | None] = [None] * len(sources) if means is None else means
    if not n.together:
        results = scratch(shapes, np.float32)
        divisors = [count - n.ddof if squares else count for count in counts]
        # With less than one degree of freedom, the variance is 0.
        jobs = [
            Reduction(s, result, n.axes, mean, divisor if divisor > 0 else math.inf, n.epsilon)
            for s, result, mean, divisor in zip(sources, results, each, divisors)
        ]
        reduce_axes(jobs, squares=squares, root=squares)
        return results
    shape = shapes[0]
    whole = scratch([(len(sources), *shape)], np.float64)[0]
    step = math.prod(shape) * whole.dtype.itemsize
    parts = [Located(whole.address + i * step, shape, whole.dtype, whole.owner) for i in range(len(sources))]
    reduce_axes([Reduction(s, part, n.axes, m) for s, part, m in zip(sources, parts, each)], squares=squares)
    result = scratch([shape], np.float32)[0]
    divisor = sum(counts) - (n.ddof if squares else 0)
    last = Reduction(whole, result, (0,), divisor=divisor if divisor > 0 else math.inf, epsilon=n.epsilon)
    reduce_axes([last], root=squares, value=np.float64)
    return [result] * len(sources)


def _spread(means: Sequence[Located], shapes: Sequence[tuple[int, ...]]) -> list[Located]:
    """Return means of the requested shapes: each mean of several values is broadcast to its shape; a single value stays single."""
    spread = [m if m.size == 1 or m.shape == shape else None for m, shape in zip(means, shapes)]
    missing = [i for i, mean in enumerate(spread) if mean is None]
    fresh = scratch([shapes[i] for i in missing], np.float32)
    evaluate_batch("return a;", [((means[i],), target) for i, target in zip(missing, fresh)])
    found = iter(fresh)
    return [next(found) if mean is None else mean for mean in spread]
