"""Weighted sums along one axis on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate, packed
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, records


class _WeightedSums(NamedTuple):
    """One sample.

    Attributes:
        size, rows: the size of the axis in the source, and in the target.
        starts, weights: offsets of this sample's bands in the tables.
        width: number of weights of each band.
    """

    source: Pointer
    target: Pointer
    outer: Int64
    size: Int64
    rows: Int64
    inner: Int64
    starts: Int64
    weights: Int64
    width: Int64


SOURCE = KernelSource(__file__, _WeightedSums)


def sum_along(axis: int, jobs: Sequence[tuple[OnGpu, np.ndarray, np.ndarray, OnGpu]]) -> None:
    """Compute the weighted sums of each ``(source, starts, weights, target)``, float32, in one launch.

    Along ``axis``, ``target[m] = sum over k of weights[m, k] * source[starts[m] + k]``; zero weights are skipped.
    """
    located = [(locate(source), starts, weights, locate(target)) for source, starts, weights, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    starts, first_starts = packed([job[1] for job in located], np.int32)
    weights, first_weights = packed([job[2] for job in located], np.float32)
    entries = [
        _WeightedSums(
            source.address,
            target.address,
            math.prod(source.shape[:axis]),
            source.shape[axis],
            target.shape[axis],
            math.prod(source.shape[axis + 1 :]),
            first_start,
            first_weight,
            own.shape[1],
        )
        for (source, _, own, target), first_start, first_weight in zip(located, first_starts, first_weights)
    ]
    counts = [blocks_for(job[3].size) for job in located]
    launch(SOURCE.kernel("weighted_sums"), records(_WeightedSums, entries), counts, starts, weights)
