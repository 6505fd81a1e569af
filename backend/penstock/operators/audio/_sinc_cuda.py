"""Resampling of audio on the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Double, Float, Int32, Int64, Pointer, cuda_type, records

# Output samples per thread block.
_OUTPUTS = 256


class _Resampling(NamedTuple):
    """The kernel's description of one signal.

    Attributes:
        size, length: the number of samples of the input and of the output, per channel.
        step: the distance between output samples, in input samples.
    """

    source: Pointer
    target: Pointer
    size: Int64
    length: Int64
    channels: Int64
    step: Double


class _Levels(NamedTuple):
    """How the input and output types represent numbers from -1 to 1 (unsigned types: from 0 to 1).

    Attributes:
        in_scale: the factor from stored values to that range.
        out_scale: the factor from that range to stored values.
        change: 1: convert from signed to unsigned; -1: from unsigned to signed; 0: neither.
    """

    in_scale: Float
    out_scale: Float
    change: Int32


SOURCE = KernelSource(__file__, _Resampling, _Levels, OUTPUTS=_OUTPUTS)


def resample_signals(jobs: Sequence[tuple[OnGpu, float, OnGpu]], lobes: int, table: np.ndarray) -> None:
    """Resample signals in one launch.

    Args:
        jobs: ``(source, scale, target)`` of each sample: signals of shape (time,) or (time, channels), and the number of target
            samples per source sample. Integers represent numbers from -1 to 1.
        lobes: the number of the filter's lobes on each side.
        table: the filter (see :func:`penstock.kernels.cpu.audio.sinc_table`).
    """
    located = [(locate(source), scale, locate(target)) for source, scale, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        _Resampling(
            source.address, target.address, source.shape[0], target.shape[0], math.prod(source.shape[1:]), 1 / scale
        )
        for source, scale, target in located
    ]
    source, _, target = located[0]
    change = (target.dtype.kind == "u") - (source.dtype.kind == "u")
    levels = records(_Levels, [_Levels(1 / _full_scale(source.dtype), _full_scale(target.dtype), change)])
    function = SOURCE.kernel(f"resample_signals<{cuda_type(source.dtype)}, {cuda_type(target.dtype)}>")
    counts = [-(-job[2].shape[0] // _OUTPUTS) for job in located]
    launch(function, records(_Resampling, entries), counts, table, np.int32(lobes), levels)


def _full_scale(dtype: np.dtype) -> int:
    """Return the value that represents 1 in an array of this type."""
    return 1 if dtype.kind == "f" else int(np.iinfo(dtype).max)
