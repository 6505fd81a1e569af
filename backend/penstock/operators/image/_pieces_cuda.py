"""Cutting uint8 images into a model's patches or tiles on the GPU, with normalized values looked up in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, records

# Number of tile values per thread, as in the kernel.
_TOGETHER = 4


class _Patching(NamedTuple):
    """The descriptor of one image or video, or of a region.

    Attributes:
        source: address of the region's first element.
        elements: number of elements of the target to compute.
        frame: number of pixels in a frame.
        patches: number of the image's patches; the rest of the target is filled with 0.
        rows, columns: the number of rows and columns of patches.
        width: number of pixels in a row of the image.
        first, total: if patches are side by side, the number of patches before these, and the number of all patches.
        several: whether each channel has its own table.
    """

    source: Pointer
    target: Pointer
    elements: Int64
    frame: Int64
    patches: Int32
    frames: Int32
    rows: Int32
    columns: Int32
    width: Int32
    channels: Int32
    first: Int32
    total: Int32
    several: Int32


class _Tiling(NamedTuple):
    """The descriptor of one image and its tiles.

    Attributes:
        elements: number of elements of the target.
        height, width: the height and width of the image.
        top, left: position of the image on the canvas.
        columns: number of tiles in a row of the canvas.
        high, wide: the height and width of a tile.
        several: whether each channel has its own table.
    """

    source: Pointer
    target: Pointer
    elements: Int64
    height: Int32
    width: Int32
    channels: Int32
    top: Int32
    left: Int32
    columns: Int32
    high: Int32
    wide: Int32
    several: Int32


SOURCE = KernelSource(__file__, _Patching, _Tiling)


@dataclass(slots=True)
class Patches:
    """An image, a video, or a region of one, to cut into patches.

    Attributes:
        source: an array of shape (T, H, W, C).
        target: float32 of shape (patches, values), or (C, patch, columns) if patches are side by side.
        region: top, left, height and width of the region of each frame.
        count: the number of patches, without padding.
        first, total: if patches are side by side, the number of patches before these, and the number of all patches.
    """

    source: Located
    target: Located
    region: tuple[int, int, int, int]
    count: int
    first: int = 0
    total: int = 0


@dataclass(slots=True)
class Tiles:
    """An image on a canvas to cut into tiles.

    Attributes:
        source: an array of shape (H, W, C).
        target: float32 of shape (tiles, C, h, w).
        top, left: position of the image on the canvas.
        columns: number of tiles in a row of the canvas.
    """

    source: Located
    target: Located
    top: int = 0
    left: int = 0
    columns: int = 1


def fill_patches(
    jobs: Sequence[Patches], table: np.ndarray, patch: int, merge: int, temporal: int, channels_last: bool, beside: bool
) -> None:
    """Cut all images into patches in one launch; for ``table`` to ``channels_last``, see ``fill_patches`` of ``_pieces_cpu.py``.

    Args:
        jobs: the images, and where their patches are written.
        beside: whether patches are side by side, as ``fill_rows`` writes them, instead of one after the other.
    """
    entries = []
    for job in jobs:
        frames, high, wide, channels = job.source.shape
        top, left, height, width = job.region
        entries.append(
            _Patching(
                job.source.address + (top * wide + left) * channels,
                job.target.address,
                job.count * channels * patch * patch if beside else job.target.size,
                high * wide,
                job.count,
                frames,
                height // patch,
                width // patch,
                wide,
                channels,
                job.first,
                job.total,
                len(table) > 1,
            )
        )
    flags = (str(flag).lower() for flag in (channels_last, beside))
    kernel = SOURCE.kernel(f"fill_patches<{patch}, {merge}, {temporal}, {', '.join(flags)}>")
    if entries:
        launch(kernel, records(_Patching, entries), [blocks_for(entry.elements) for entry in entries], table)


def fill_tiles(jobs: Sequence[Tiles], table: np.ndarray, blank: np.ndarray) -> None:
    """Cut all canvases into tiles in one launch.

    Args:
        table: float32 of shape (C, 256), or (1, 256) for all channels.
        blank: float32 of shape (C,): each channel's value outside an image.
    """
    entries = []
    for job in jobs:
        height, width, channels = job.source.shape
        high, wide = job.target.shape[2:]
        place = job.top, job.left, job.columns
        image = job.source.address, job.target.address, job.target.size, height, width, channels
        entries.append(_Tiling(*image, *place, high, wide, len(table) > 1))
    counts = [blocks_for(-(-entry.elements // _TOGETHER)) for entry in entries]
    launch(SOURCE.kernel("fill_tiles"), records(_Tiling, entries), counts, table, blank)
