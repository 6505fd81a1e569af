"""Equalization of histograms on GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import Located, blocks_for, kernel, launch, scratch
from penstock.tensors.cuda import require_cupy

_VALUES = 256
_CHUNK = 16 * _VALUES
_PLANE = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "target", "counts", "tables")),
        ("pixels", np.int64),
        *((name, np.int32) for name in ("height", "width", "step", "tiles_y", "tiles_x", "tile_height", "tile_width")),
        *((name, np.int32) for name in ("chunks", "limit", "padding")),
    ],
    align=True,
)


@dataclass(frozen=True)
class Plane:
    """One channel of an image of bytes.

    Attributes:
        source, target: addresses of the first pixel; they may be the same.
        height, width: in pixels.
        step: bytes from pixel to pixel.
    """

    source: int
    target: int
    height: int
    width: int
    step: int


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
    offsets = (plane * height * width * step + inner for plane in range(outer) for inner in range(step))
    return [Plane(source.address + offset, target.address + offset, height, width, step) for offset in offsets]


def whole(plane: Plane) -> Tiling:
    """A single tile, of which the least value becomes 0."""
    return Tiling((1, 1), (plane.height, plane.width), -1)


def equalize_planes(jobs: Iterable[tuple[Plane, Tiling]]) -> None:
    """Equalizes all planes, in one launch for each of counting, making tables, and looking up."""
    jobs = [(plane, tiling) for plane, tiling in jobs if plane.height * plane.width]
    if not jobs:
        return
    numbers = [tiling.tiles[0] * tiling.tiles[1] for _, tiling in jobs]
    counts = require_cupy().zeros(sum(numbers) * _VALUES, np.uint32)
    tables = scratch([(sum(numbers), _VALUES)], np.uint8)[0]
    chunks = [blocks_for(tiling.extents[0] * tiling.extents[1], _CHUNK) for _, tiling in jobs]
    firsts = [0, *np.cumsum(numbers).tolist()]
    descriptors = np.array(
        [
            _entry(plane, tiling, counts.data.ptr + 4 * _VALUES * first, tables.address + _VALUES * first, parts)
            for (plane, tiling), first, parts in zip(jobs, firsts, chunks)
        ],
        _PLANE,
    )
    for name, blocks in (
        ("count_values", [number * parts for number, parts in zip(numbers, chunks)]),
        ("make_tables", numbers),
        ("look_up", [blocks_for(plane.height * plane.width) for plane, _ in jobs]),
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
        0,
    )
