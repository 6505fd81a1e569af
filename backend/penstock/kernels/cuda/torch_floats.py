"""Separable resampling of float32 on the GPU, with antialiasing; the same results as :mod:`penstock.kernels.cpu.torch_floats`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch, packed, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, records


class _FloatAxis(NamedTuple):
    """The descriptor of one axis of an array viewed as (outer, size, inner).

    Attributes:
        elements: the number of elements of the target.
        starts, weights: the offsets of the axis's starts and weights in the tables.
        taps: the number of weights that the table holds for each output position; the first of them are used, as many as the position has
            taps.
    """

    source: Pointer
    target: Pointer
    elements: Int64
    size: Int64
    out_size: Int32
    inner: Int32
    starts: Int32
    weights: Int32
    taps: Int32


SOURCE = KernelSource(__file__, _FloatAxis)


class WidenedTaps(NamedTuple):
    """The filter of one axis: the first tap, the number of taps, and the weights of each position."""

    starts: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


@dataclass(slots=True)
class FloatResampling:
    """The work for one stack of images.

    Attributes:
        source: float32 of shape (n, H, W, C).
        target: float32 of shape (n, h, w, C).
        vertical, horizontal: filters, which include the region to resample and mirroring.
    """

    source: Located
    target: Located
    vertical: WidenedTaps
    horizontal: WidenedTaps


class _Pass(NamedTuple):
    """The resampling of one axis of one stack."""

    source: Located
    target: Located
    axis: int
    taps: WidenedTaps


def resample_floats(jobs: Sequence[FloatResampling]) -> None:
    """Fill all targets, in one launch for each axis: first the horizontal one."""
    jobs = [job for job in jobs if job.target.size]
    if not jobs:
        return
    shapes = [(*job.source.shape[:2], *job.target.shape[2:]) for job in jobs]
    betweens = scratch(shapes, np.float32)
    _run([_Pass(job.source, between, 2, job.horizontal) for job, between in zip(jobs, betweens)])
    _run([_Pass(between, job.target, 1, job.vertical) for job, between in zip(jobs, betweens)])


def _run(passes: Sequence[_Pass]) -> None:
    starts, places = packed([each.taps.starts for each in passes], np.int32)
    # Starts, counts and weights of a filter are packed in the same order, so that one offset serves for starts and counts.
    counts, _ = packed([each.taps.counts for each in passes], np.int32)
    weights, weight_places = packed([each.taps.weights for each in passes], np.float32)
    entries = [
        _FloatAxis(
            each.source.address,
            each.target.address,
            each.target.size,
            each.source.shape[each.axis],
            each.target.shape[each.axis],
            math.prod(each.source.shape[each.axis + 1 :]),
            place,
            weight,
            each.taps.weights.shape[1],
        )
        for each, place, weight in zip(passes, places, weight_places)
    ]
    blocks = [blocks_for(each.target.size) for each in passes]
    launch(SOURCE.kernel("resample_widened"), records(_FloatAxis, entries), blocks, starts, counts, weights)
