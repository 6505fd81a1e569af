"""Histogram equalization on the GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, records

_VALUES = 256
# The number of pixels per block in counting, and in looking up.
_CHUNK, _SPAN = 32 * _VALUES, 16 * _VALUES
_MAX_CHANNELS = 4


class _Plane(NamedTuple):
    """The descriptor of a :class:`Plane` and its tiles.

    Attributes:
        source, target: the addresses of the first pixels.
        counts, tables: scratch memory: 256 counts for each tile, chunk and channel; 256 table entries for each tile and
            channel.
        step: the distance from one pixel to the next, in elements.
        chunks: the number of blocks that share the counting of a tile.
        limit: the clip limit of a histogram bin; 0: not clipped; -1: equalize the whole plane (see :class:`Tiling`).
        channels: the number of adjacent channels, each with a separate histogram.
    """

    source: Pointer
    target: Pointer
    counts: Pointer
    tables: Pointer
    pixels: Int64
    height: Int32
    width: Int32
    step: Int32
    tiles_y: Int32
    tiles_x: Int32
    tile_height: Int32
    tile_width: Int32
    chunks: Int32
    limit: Int32
    channels: Int32


SOURCE = KernelSource(__file__, _Plane, VALUES=_VALUES, CHUNK=_CHUNK, SPAN=_SPAN, MAX_CHANNELS=_MAX_CHANNELS)


@dataclass(frozen=True)
class Plane:
    """One channel of an image of bytes, or several adjacent ones that are equalized independently.

    Attributes:
        source, target: the addresses of the first pixels; equal to work in place.
        height, width: the height and width in pixels.
        step: bytes from one pixel to the next.
        channels: number of adjacent channels.
    """

    source: int
    target: int
    height: int
    width: int
    step: int
    channels: int = 1


@dataclass(frozen=True)
class Tiling:
    """How a plane is cut into tiles, and how their histograms are equalized.

    Attributes:
        tiles: rows and columns of tiles.
        extents: height and width of a tile. Together, tiles may extend beyond the plane, whose pixels are mirrored there.
        limit: the clip limit of a histogram bin; 0: not clipped; -1: not clipped, and the lowest value that occurs is mapped to 0.
    """

    tiles: tuple[int, int]
    extents: tuple[int, int]
    limit: int


def planes_of(source: Located, target: Located, axis: int) -> list[Plane]:
    """Return all planes of an array of bytes; ``axis`` is the dimension of the height, and the next one that of the width."""
    outer, height, width, step = image_view(source.shape, axis)
    parts = [(first, min(_MAX_CHANNELS, step - first)) for first in range(0, step, _MAX_CHANNELS)]
    return [
        Plane(source.address + offset + first, target.address + offset + first, height, width, step, channels)
        for offset in range(0, outer * height * width * step, max(height * width * step, 1))
        for first, channels in parts
    ]


def whole(plane: Plane) -> Tiling:
    """Return a tiling with a single tile; its lowest value is mapped to 0."""
    return Tiling((1, 1), (plane.height, plane.width), -1)


def equalize_planes(jobs: Iterable[tuple[Plane, Tiling]]) -> None:
    """Equalize all planes in three launches: counting, building the tables, looking up."""
    jobs = [(plane, tiling) for plane, tiling in jobs if plane.height * plane.width]
    if not jobs:
        return
    numbers = [tiling.tiles[0] * tiling.tiles[1] for _, tiling in jobs]
    chunks = [blocks_for(tiling.extents[0] * tiling.extents[1], _CHUNK) for _, tiling in jobs]
    made = [number * plane.channels for number, (plane, _) in zip(numbers, jobs)]
    counts = scratch([(number, parts, _VALUES) for number, parts in zip(made, chunks)], np.uint32)
    tables = scratch([(number, _VALUES) for number in made], np.uint8)
    rows = [
        _row(plane, tiling, own.address, table.address, parts)
        for (plane, tiling), own, table, parts in zip(jobs, counts, tables, chunks)
    ]
    descriptors = records(_Plane, rows)
    for name, blocks in (
        ("count_values", [number * parts for number, parts in zip(numbers, chunks)]),
        ("make_tables", made),
        ("look_up", [blocks_for(plane.height * plane.width, _SPAN) for plane, _ in jobs]),
    ):
        launch(SOURCE.kernel(name), descriptors, blocks)


def _row(plane: Plane, tiling: Tiling, counts: int, tables: int, chunks: int) -> _Plane:
    return _Plane(
        plane.source,
        plane.target,
        counts,
        tables,
        plane.height * plane.width,
        plane.height,
        plane.width,
        plane.step,
        *tiling.tiles,
        *tiling.extents,
        chunks,
        tiling.limit,
        plane.channels,
    )
