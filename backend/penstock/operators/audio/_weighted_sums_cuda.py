"""Weighted sums along one axis on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, kernel, launch, locate, packed

_WEIGHTED_SUMS = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("outer", "size", "rows", "inner", "starts", "weights", "width")),
    ],
    align=True,
)


def sum_along(axis: int, jobs: Sequence[tuple[Any, np.ndarray, np.ndarray, Any]]) -> None:
    """``(source, starts, weights, target)`` for each sample, float32, in one launch.

    Along ``axis``, ``target[m] = sum over k of weights[m, k] * source[starts[m] + k]``; weights of zero are passed over.
    """
    located = [(locate(source), starts, weights, locate(target)) for source, starts, weights, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    starts, first_starts = packed([job[1] for job in located], np.int32)
    weights, first_weights = packed([job[2] for job in located], np.float32)
    entries = [
        (
            source.address,
            target.address,
            math.prod(source.shape[:axis]),
            source.shape[axis],
            target.shape[axis],
            math.prod(source.shape[axis + 1 :]),
            *places,
            own.shape[1],
        )
        for (source, _, own, target), *places in zip(located, first_starts, first_weights)
    ]
    counts = [blocks_for(job[3].size) for job in located]
    launch(kernel(__file__, "weighted_sums"), np.array(entries, _WEIGHTED_SUMS), counts, starts, weights)
