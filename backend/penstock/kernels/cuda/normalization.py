"""Normalization of arrays by mean and deviation on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.cuda.elementwise import evaluate_batch
from penstock.kernels.cuda.launch import Located, scratch, upload
from penstock.kernels.cuda.reduction import Reduction, reduce_axes


@dataclass(frozen=True)
class Normalization:
    """How arrays are normalized: ``(x - mean) / sqrt(variance + epsilon) * scale + shift``.

    Attributes:
        axes: the dimensions over which mean and variance are taken.
        together: over the whole batch.
        ddof: subtracted from the number of elements in the variance's denominator.
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
    """Normalizes all samples, in one launch for each of mean, deviation and result.

    Args:
        sources, targets: of equal shapes.
        normalization: of all samples.
        means, deviations: float32 for each sample, of shapes that broadcast; None: computed.
    """
    mean = _computed(sources, normalization) if means is None else upload(means)
    deviation = _computed(sources, normalization, mean) if deviations is None else upload(deviations)
    body = (
        f"float factor = c == 0.0f ? 0.0f : float({normalization.scale!r}) / c;"
        f"return converted<Result>((converted<float>(a) - b) * factor + float({normalization.shift!r}));"
    )
    evaluate_batch(body, [(operands, target) for *operands, target in zip(sources, mean, deviation, targets)], False)


def _computed(sources: Sequence[Located], n: Normalization, means: Sequence[Located] | None = None) -> list[Located]:
    """The mean of each sample, or, where means are given, the deviation from them; of extent 1 along the axes."""
    shapes = [tuple(1 if axis in n.axes else extent for axis, extent in enumerate(s.shape)) for s in sources]
    counts = [math.prod(source.shape[axis] for axis in n.axes) for source in sources]
    squares = means is not None
    if means is not None:
        # Where nothing is reduced, all distances are from the first mean.
        means = _spread(means, shapes) if n.axes else [Located(m.address, (1,), m.dtype, m.owner) for m in means]
    each: Sequence[Located | None] = [None] * len(sources) if means is None else means
    if not n.together:
        results = scratch(shapes, np.float32)
        divisors = [count - n.ddof if squares else count for count in counts]
        # Without a single degree of freedom there is no variance.
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
    """The means, those that are shared by some outputs, but not by all, repeated for each."""
    spread = [m if m.size == 1 or m.shape == shape else None for m, shape in zip(means, shapes)]
    missing = [i for i, mean in enumerate(spread) if mean is None]
    fresh = scratch([shapes[i] for i in missing], np.float32)
    evaluate_batch("return a;", [((means[i],), target) for i, target in zip(missing, fresh)])
    found = iter(fresh)
    return [next(found) if mean is None else mean for mean in spread]
