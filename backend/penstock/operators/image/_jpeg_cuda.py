"""JPEG compression artefacts on the GPU, without entropy coding."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Repeated, records

# The side of a block of values; the number of blocks that a thread block transforms, with eight threads each; the number of
# pixels that a thread converts to RGB.
_SIDE, _TOGETHER, _ROW = 8, 32, 4


class _Image(NamedTuple):
    """The descriptor of one image.

    Attributes:
        planes: address of the planes Y, Cb and Cr, padded to whole blocks.
        rows: number of groups of up to ``_ROW`` pixels of a row; each is converted by one thread.
        blocks_y, blocks_x: number of 8x8 blocks of Y, vertically and horizontally.
        chroma_y, chroma_x: number of 8x8 blocks of Cb, vertically and horizontally; Cr has as many.
        steps: quantization steps of luma and of chroma.
    """

    source: Pointer
    target: Pointer
    planes: Pointer
    rows: Int64
    height: Int32
    width: Int32
    blocks_y: Int32
    blocks_x: Int32
    chroma_y: Int32
    chroma_x: Int32
    steps: Annotated[np.ndarray, Repeated(np.uint8, 2 * _SIDE * _SIDE)]


SOURCE = KernelSource(__file__, _Image, SIDE=_SIDE, TOGETHER=_TOGETHER, ROW=_ROW)


# Quantization tables for quality 50, from annex K of ITU-T T.81.
_LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *[(99,) * _SIDE] * 4,
)


@functools.cache
def quantization_steps(quality: int) -> np.ndarray:
    """Return the quantization steps of luma and chroma, uint8 (2, 64), for a quality from 1 to 100."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = (np.array([_LUMA, _CHROMA]).reshape(2, -1) * percent + 50) // 100
    return np.clip(steps, 1, 255).astype(np.uint8)


def distort_images(jobs: Sequence[tuple[OnGpu, int, OnGpu]]) -> None:
    """Distort all ``(source, quality, target)``, RGB images of uint8, in two launches: the first quantizes blocks, the second
    converts pixels to RGB."""
    located = [(locate(source), quality, locate(target)) for source, quality, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    extents = [_blocks(*target.shape[:2]) for _, _, target in located]
    numbers = [y * x + 2 * chroma_y * chroma_x for y, x, chroma_y, chroma_x in extents]
    planes = scratch([(number * _SIDE * _SIDE,) for number in numbers], np.uint8)
    rows_of = [target.shape[0] * blocks_for(target.shape[1], _ROW) for _, _, target in located]
    entries = [
        _Image(
            source.address,
            target.address,
            plane.address,
            rows,
            target.shape[0],
            target.shape[1],
            *blocks,
            quantization_steps(quality).reshape(-1),
        )
        for (source, quality, target), plane, blocks, rows in zip(located, planes, extents, rows_of)
    ]
    descriptors = records(_Image, entries)
    launch(SOURCE.kernel("quantize"), descriptors, [blocks_for(number, _TOGETHER) for number in numbers])
    launch(SOURCE.kernel("to_rgb"), descriptors, [blocks_for(rows) for rows in rows_of])


def _blocks(height: int, width: int) -> tuple[int, int, int, int]:
    """Return four numbers of 8x8 blocks: of Y, vertically and horizontally, and of Cb (or Cr), vertically and horizontally."""
    halves = ((height + 1) // 2, (width + 1) // 2)
    y, x, chroma_y, chroma_x = (blocks_for(extent, _SIDE) for extent in (height, width, *halves))
    return y, x, chroma_y, chroma_x
