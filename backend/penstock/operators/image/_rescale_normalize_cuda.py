"""Normalizing pixels on the GPU, with values looked up in a table per channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, records


class _Lookup(NamedTuple):
    """The descriptor of one image, or of several frames.

    Attributes:
        pixels: number of pixels in a frame.
        planar: whether the target has its channels first.
        several: whether each channel has its own table.
    """

    source: Pointer
    target: Pointer
    frames: Int64
    pixels: Int64
    channels: Int32
    planar: Int32
    several: Int32


SOURCE = KernelSource(__file__, _Lookup)


def look_up(jobs: Sequence[tuple[OnGpu, OnGpu]], table: np.ndarray, planar: bool) -> None:
    """Fill all targets with the table's values for the pixels of their sources.

    Args:
        jobs: pairs of a source, uint8 of shape (..., H, W, C), and a target, float32 of the same shape or, if ``planar``, of
            shape (..., C, H, W).
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        planar: whether targets have their channels first.
    """
    located = [(locate(source), locate(target)) for source, target in jobs]
    located = [(source, target) for source, target in located if source.size]
    if not located:
        return
    entries = [
        _Lookup(
            source.address,
            target.address,
            math.prod(source.shape[:-3]),
            source.shape[-3] * source.shape[-2],
            source.shape[-1],
            planar,
            len(table) > 1,
        )
        for source, target in located
    ]
    counts = [blocks_for(source.size) for source, _ in located]
    launch(SOURCE.kernel("look_up"), records(_Lookup, entries), counts, np.ascontiguousarray(table))
