"""Image tiles for `tiles.cuh`, sized so that the data of a block fit into shared memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Pointer, Struct

# Each thread computes this many neighbouring results along a line, so that it reads shared elements only once.
STRETCH = 8


class Tiles(NamedTuple):
    """How one sample is cut into tiles: the first field of the sample's descriptor.

    Attributes:
        height, width, inner: the source's height, width and number of elements per pixel.
        out_height, out_width: the target's height and width.
        rows, columns: size of a target tile in pixels, multiples of ``STRETCH``.
        reach_y, reach_x: how many pixels larger a source tile is, both sides together.
        above, left: how many of these pixels precede the target tile.
        down, across: the number of tiles in a plane.
        pitch, out_pitch: the row pitch of a source tile and of a target tile in shared memory, in elements; multiples of 4.
    """

    source: Pointer
    target: Pointer
    planes: Int32
    height: Int32
    width: Int32
    inner: Int32
    out_height: Int32
    out_width: Int32
    rows: Int32
    columns: Int32
    reach_y: Int32
    reach_x: Int32
    above: Int32
    left: Int32
    border: Int32
    down: Int32
    across: Int32
    pitch: Int32
    out_pitch: Int32


def tile_source(module: str, *structs: Struct, **constants: int) -> KernelSource:
    """Return the source of kernels that work in tiles: the `.cu` file beside ``module`` includes `tiles.cuh`."""
    return KernelSource(module, *structs, STRETCH=STRETCH, **constants)


# Bytes of shared memory that a block may use on every supported GPU.
_SHARED_MEMORY_BYTES = 64 * 1024
# Kernels index the elements of a row, and of a tile, with 32 bits.
_MAX_INDEX = 1 << 30


@dataclass(frozen=True)
class Tiling:
    """How a target is cut into tiles.

    Attributes:
        view: the target as (planes, height, width, inner).
        rows, columns: the extents of a tile, in pixels.
        reach: how many pixels larger than a target tile a source tile is, (down, across).
        pitch, out_pitch: the row pitch of a source tile and of a target tile in shared memory, in elements.
        shared: bytes of shared memory of a block.
    """

    view: tuple[int, int, int, int]
    rows: int
    columns: int
    reach: tuple[int, int]
    pitch: int
    out_pitch: int
    shared: int

    @property
    def grid(self) -> tuple[int, int]:
        """The number of tiles in a plane, (down, across)."""
        return -(-self.view[1] // self.rows), -(-self.view[2] // self.columns)

    @property
    def blocks(self) -> int:
        """The number of tiles in all planes."""
        return self.view[0] * self.grid[0] * self.grid[1]


def tiles_of(
    source: Located,
    target: Located,
    source_view: Sequence[int],
    target_view: Sequence[int],
    before: Sequence[int],
    border: str,
    tiling: Tiling | None,
) -> Tiles:
    """Return the tile descriptor of one sample.

    Args:
        source_view, target_view: the arrays viewed as (planes, height, width, inner).
        before: how far the window extends up and to the left, in pixels.
        border: one of ``BORDERS``.
        tiling: how the target is cut into tiles; None for kernels that do not use tiles.
    """
    planes, height, width, inner = source_view
    rows, columns, reach = (tiling.rows, tiling.columns, tiling.reach) if tiling else (0, 0, (0, 0))
    grid, pitches = (tiling.grid, (tiling.pitch, tiling.out_pitch)) if tiling else ((0, 0), (0, 0))
    return Tiles(
        *(source.address, target.address, planes, height, width, inner, *target_view[1:3], rows, columns),
        *(*reach, *before, BORDERS.index(border), *grid, *pitches),
    )


@functools.lru_cache(maxsize=1024)
def tiling_for(
    view: tuple[int, int, int, int], window: tuple[int, int], results: int, extra: int, between: int
) -> Tiling | None:
    """Return the best tiling for a window; None if the window or the channels are too large for any.

    Args:
        view: the target as (planes, height, width, inner).
        window: (height, width).
        results: the number of intermediate tiles.
        extra: the number of other floats in shared memory.
        between: the axis on which intermediate tiles are as large as the source tile: 0: height; 1: width; -1: neither. On others, they are
            as large as the target tile.
    """
    _, height, width, inner = view
    reach = (window[0] - 1, window[1] - 1)
    if max(height, width * inner, (width + reach[1]) * inner, height + reach[0]) > _MAX_INDEX:
        return None
    best, least = None, float("inf")
    columns = _multiple(min(width, max(STRETCH, THREADS // inner)), STRETCH)
    while columns >= STRETCH:
        rows = _multiple(min(height, STRETCH * max(1, THREADS * 4 // (columns * inner))), STRETCH)
        while rows >= STRETCH:
            pitch = _multiple((columns + reach[1]) * inner + 3, 4)
            out_pitch = pitch if between == 1 else _multiple(columns * inner, 4)
            between_rows = rows + reach[0] if between == 0 else rows
            floats = (rows + reach[0]) * (pitch + 1) + results * between_rows * out_pitch + extra
            if 4 * floats <= _SHARED_MEMORY_BYTES:
                read, made = (rows + reach[0]) * pitch, between_rows * out_pitch
                # Estimated cost per element of a tile; blocks with idle threads take longer.
                idle = max(1.0, THREADS * 4 * STRETCH / (rows * columns * inner)) ** 0.5
                cost = (read + results * made) * idle / (rows * columns)
                if cost < least:
                    best, least = Tiling(view, rows, columns, reach, pitch, out_pitch, 4 * floats), cost
            rows = _multiple(rows // 2, STRETCH) if rows > STRETCH else 0
        columns = _multiple(columns // 2, STRETCH) if columns > STRETCH else 0
    return best if best is None or best.blocks < _MAX_INDEX else None


def _multiple(value: int, step: int) -> int:
    """Return ``value`` rounded up to a multiple of ``step``."""
    return -(-value // step) * step
