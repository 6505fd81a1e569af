"""Separable resampling of uint8 in fixed point on the GPU, with the same results as :mod:`penstock.kernels.cpu.fixed_point`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, OnGpu, blocks_for, launch, locate, packed, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, records
from penstock.kernels.reference_filters import ReferenceTaps


class _ByteAxis(NamedTuple):
    """The descriptor of one axis of an array viewed as (outer, size, inner).

    Attributes:
        elements: the number of elements of the target.
        starts, weights: the offsets of the axis's starts and weights in the tables.
        taps: the number of taps of each output position.
        bits: the number of fractional bits of the weights.
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
    bits: Int32


class _Opacity(NamedTuple):
    """The descriptor of one image whose last channel is the opacity of the others."""

    source: Pointer
    target: Pointer
    pixels: Int64
    channels: Int32


SOURCE = KernelSource(__file__, _ByteAxis, _Opacity)


@dataclass(slots=True)
class BytesResampling:
    """The work for one stack of images.

    Attributes:
        source: uint8 of shape (n, H, W, C), on the GPU.
        target: uint8 of shape (n, h, w, C), on the GPU, contiguous.
        vertical, horizontal: filters with integer weights, which include the region to resample and mirroring.
        columns_first: whether to do the horizontal pass first.
        translucent: whether the last channel is the opacity of the others.
    """

    source: OnGpu
    target: OnGpu
    vertical: ReferenceTaps
    horizontal: ReferenceTaps
    columns_first: bool = True
    translucent: bool = False


class _Axis(NamedTuple):
    """An axis of a stack (n, H, W, C), and the filter of that axis."""

    number: int
    taps: ReferenceTaps


class _Pass(NamedTuple):
    """The resampling of one axis of one stack."""

    source: Located
    target: Located
    axis: _Axis


def resample_bytes(jobs: Sequence[BytesResampling]) -> None:
    """Fill all targets; each of the two passes is one launch."""
    located = [(job, locate(job.source), locate(job.target)) for job in jobs]
    located = [entry for entry in located if entry[2].size]
    if not located:
        return
    opaque = _premultiplied([source for job, source, _ in located if job.translucent])
    sources = [opaque.pop(0) if job.translucent else source for job, source, _ in located]
    firsts, seconds = [], []
    for (job, _, target), source, between in zip(located, sources, _betweens(located)):
        down, across = _Axis(1, job.vertical), _Axis(2, job.horizontal)
        begin, end = (across, down) if job.columns_first else (down, across)
        firsts.append(_Pass(source, between, begin))
        seconds.append(_Pass(between, target, end))
    _run(firsts)
    _run(seconds)
    _launch_opacity("unmultiply", [(target, target) for job, _, target in located if job.translucent])


def _betweens(located: Sequence[tuple[BytesResampling, Located, Located]]) -> list[Located]:
    """Allocate the images between the two passes."""
    shapes = []
    for job, source, target in located:
        rows, columns = (source.shape[1], target.shape[2]) if job.columns_first else (target.shape[1], source.shape[2])
        shapes.append((source.shape[0], rows, columns, source.shape[3]))
    return scratch(shapes, np.uint8)


def _run(passes: Sequence[_Pass]) -> None:
    starts, start_places = packed([each.axis.taps.starts for each in passes], np.int32)
    weights, weight_places = packed([each.axis.taps.weights for each in passes], np.int32)
    entries = [
        _ByteAxis(
            each.source.address,
            each.target.address,
            each.target.size,
            each.source.shape[each.axis.number],
            each.target.shape[each.axis.number],
            math.prod(each.source.shape[each.axis.number + 1 :]),
            start,
            weight,
            each.axis.taps.weights.shape[1],
            each.axis.taps.bits,
        )
        for each, start, weight in zip(passes, start_places, weight_places)
    ]
    counts = [blocks_for(each.target.size) for each in passes]
    launch(SOURCE.kernel("resample_bytes"), records(_ByteAxis, entries), counts, starts, weights)


def _premultiplied(sources: Sequence[Located]) -> list[Located]:
    results = scratch([source.shape for source in sources], np.uint8) if sources else []
    _launch_opacity("premultiply", list(zip(sources, results)))
    return results


def _launch_opacity(name: str, pairs: Sequence[tuple[Located, Located]]) -> None:
    if not pairs:
        return
    entries = [
        _Opacity(source.address, target.address, target.size // target.shape[-1], target.shape[-1])
        for source, target in pairs
    ]
    counts = [blocks_for(entry.pixels) for entry in entries]
    launch(SOURCE.kernel(name), records(_Opacity, entries), counts)
