"""Equalization of histograms on GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, kernel, launch, scratch

# As in histogram.cu.
_VALUES = 256
_CHUNK, _SPAN = 32 * _VALUES, 16 * _VALUES
_MAX_CHANNELS = 4
_PLANE = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "target", "counts", "tables")),
        ("pixels", np.int64),
        *((name, np.int32) for name in ("height", "width", "step", "tiles_y", "tiles_x", "tile_height", "tile_width")),
        *((name, np.int32) for name in ("chunks", "limit", "channels")),
    ],
    align=True,
)


@dataclass(frozen=True)
class Plane:
    """One channel of an image of bytes, or some that are next to each other, each of which is equalized on its own.

    Attributes:
        source, target: addresses of the first pixel; they may be the same.
        height, width: in pixels.
        step: bytes from pixel to pixel.
        channels: how many.
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
        extents: height and width of each; together they may reach beyond the plane, which is mirrored there.
        limit: how often a value is counted at most; 0: as often as it occurs; -1: the least value is to become 0.
    """

    tiles: tuple[int, int]
    extents: tuple[int, int]
    limit: int


def planes_of(source: Located, target: Located, axis: int) -> list[Plane]:
    """All planes of an array of bytes, ``axis`` being the dimension of height, which that of width follows."""
    outer, height, width, step = image_view(source.shape, axis)
    parts = [(first, min(_MAX_CHANNELS, step - first)) for first in range(0, step, _MAX_CHANNELS)]
    return [
        Plane(source.address + offset + first, target.address + offset + first, height, width, step, channels)
        for offset in range(0, outer * height * width * step, max(height * width * step, 1))
        for first, channels in parts
    ]


def whole(plane: Plane) -> Tiling:
    """A single tile, of which the least value becomes 0."""
    return Tiling((1, 1), (plane.height, plane.width), -1)


def equalize_planes(jobs: Iterable[tuple[Plane, Tiling]]) -> None:
    """Equalizes all planes, in one launch for each of counting, making tables, and looking up."""
    jobs = [(plane, tiling) for plane, tiling in jobs if plane.height * plane.width]
    if not jobs:
        return
    numbers = [tiling.tiles[0] * tiling.tiles[1] for _, tiling in jobs]
    chunks = [blocks_for(tiling.extents[0] * tiling.extents[1], _CHUNK) for _, tiling in jobs]
    made = [number * plane.channels for number, (plane, _) in zip(numbers, jobs)]
    counts = scratch([(number, parts, _VALUES) for number, parts in zip(made, chunks)], np.uint32)
    tables = scratch([(number, _VALUES) for number in made], np.uint8)
    descriptors = np.array(
        [
            _entry(plane, tiling, own.address, table.address, parts)
            for (plane, tiling), own, table, parts in zip(jobs, counts, tables, chunks)
        ],
        _PLANE,
    )
    for name, blocks in (
        ("count_values", [number * parts for number, parts in zip(numbers, chunks)]),
        ("make_tables", made),
        ("look_up", [blocks_for(plane.height * plane.width, _SPAN) for plane, _ in jobs]),
    ):
        launch(kernel("histogram", name), descriptors, blocks)


def _entry(plane: Plane, tiling: Tiling, counts: int, tables: int, chunks: int) -> tuple[Any, ...]:
    return (
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
