"""Demosaicing of Bayer images, on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, cuda_type, records


class _Mosaic(NamedTuple):
    """The descriptor of one image.

    Attributes:
        blue_y, blue_x: 1 if blue pixels are in odd rows or odd columns, respectively, else 0.
    """

    source: Pointer
    target: Pointer
    pixels: Int64
    height: Int32
    width: Int32
    blue_y: Int32
    blue_x: Int32


SOURCE = KernelSource(__file__, _Mosaic)


def debayer_images(jobs: Sequence[tuple[OnGpu, tuple[int, int], OnGpu]]) -> None:
    """Demosaic all ``(source, blue, target)`` in one launch; ``blue`` is the (row, column) of a blue pixel."""
    located = [(locate(source), blue, locate(target)) for source, blue, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        _Mosaic(source.address, target.address, source.size, target.shape[0], target.shape[1], blue[0] % 2, blue[1] % 2)
        for source, blue, target in located
    ]
    function = SOURCE.kernel(f"debayer<{cuda_type(located[0][0].dtype)}>")
    launch(function, records(_Mosaic, entries), [blocks_for(source.size) for source, _, _ in located])
