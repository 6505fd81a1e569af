"""Resampling of audio on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import cuda_type, kernel, launch, locate

_OUTPUTS = 256
_RESAMPLING = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("count", "length", "channels")),
        ("step", np.float64),
    ],
    align=True,
)
_LEVELS = np.dtype([("in_scale", np.float32), ("out_scale", np.float32), ("change", np.int32)], align=True)


def resample_signals(jobs: Sequence[tuple[Any, float, Any]], lobes: int, table: np.ndarray) -> None:
    """``(source, scale, target)`` for each sample, in one launch; scales are samples of the target for each one.

    Args:
        jobs: the samples, (time) or (time, channels); integers stand for numbers between -1 and 1.
        lobes: of the filter, to each side.
        table: the filter (see :func:`penstock.kernels.cpu.audio.sinc_table`).
    """
    located = [(locate(source), scale, locate(target)) for source, scale, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        (source.address, target.address, source.shape[0], target.shape[0], math.prod(source.shape[1:]), 1 / scale)
        for source, scale, target in located
    ]
    source, _, target = located[0]
    change = (target.dtype.kind == "u") - (source.dtype.kind == "u")
    levels = np.array([(1 / _most(source.dtype), _most(target.dtype), change)], _LEVELS)
    function = kernel(__file__, f"resample_signals<{cuda_type(source.dtype)}, {cuda_type(target.dtype)}>")
    counts = [-(-job[2].shape[0] // _OUTPUTS) for job in located]
    launch(function, np.array(entries, _RESAMPLING), counts, table, np.int32(lobes), levels)


def _most(dtype: np.dtype) -> int:
    """What stands for 1."""
    return 1 if dtype.kind == "f" else int(np.iinfo(dtype).max)
