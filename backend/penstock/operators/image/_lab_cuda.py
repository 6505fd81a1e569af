"""Conversion between 8-bit RGB and 8-bit CIE L*a*b* on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, records
from penstock.operators.image._lab import tables_from_lab, tables_to_lab


class _Pixels(NamedTuple):
    """The descriptor of one image."""

    source: Pointer
    target: Pointer
    pixels: Int64


SOURCE = KernelSource(__file__, _Pixels)


def to_lab(jobs: Sequence[tuple[OnGpu, OnGpu]]) -> None:
    """Convert the source of each ``(source, target)`` from RGB to L*a*b*, in one launch."""
    _convert("to_lab", jobs, tables_to_lab())


def from_lab(jobs: Sequence[tuple[OnGpu, OnGpu]]) -> None:
    """Convert the source of each ``(source, target)`` from L*a*b* to RGB, in one launch."""
    _convert("from_lab", jobs, tables_from_lab())


def _convert(name: str, jobs: Sequence[tuple[OnGpu, OnGpu]], tables: Sequence[np.ndarray]) -> None:
    located = [(locate(source), locate(target)) for source, target in jobs]
    entries = [_Pixels(source.address, target.address, source.size // 3) for source, target in located if source.size]
    if entries:
        counts = [blocks_for(entry.pixels, 4 * THREADS) for entry in entries]
        launch(SOURCE.kernel(name), records(_Pixels, entries), counts, *tables)
