"""From the coefficients of JPEGs to pixels on the GPU: those of :mod:`penstock.kernels.cpu.jpeg`, in the same integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.jpeg import colour, transform
from penstock.kernels.cpu.jpeg.coefficients import BLOCKS
from penstock.kernels.cuda.launch import Located, blocks_for, launch, packed, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Pointer, records


class _JpegImage(NamedTuple):
    """The descriptor of one image.

    Attributes:
        source: its coefficients.
        planes: luma, then both chroma, of whole units.
        target: (H, W, 3).
        quantizers: offset of those of the three components.
    """

    source: Pointer
    planes: Pointer
    target: Pointer
    height: Int32
    width: Int32
    units_across: Int32
    units_down: Int32
    quantizers: Int32


SOURCE = KernelSource(__file__, _JpegImage, BLOCKS=BLOCKS, **transform.CONSTANTS, **colour.CONSTANTS)


@dataclass(slots=True)
class Coefficients:
    """What is left to do of one image, whose chroma is halved in both directions.

    Attributes:
        source: int16, as :func:`~penstock.kernels.cpu.jpeg.coefficients.read_coefficients` gives it.
        target: uint8 of shape (H, W, 3).
        quantizers: of each component, in rows of 64.
    """

    source: Located
    target: Located
    quantizers: np.ndarray


def make_pixels(jobs: Sequence[Coefficients]) -> None:
    """Fills all targets, in two launches."""
    if not jobs:
        return
    units = [(-(-job.target.shape[1] // 16), -(-job.target.shape[0] // 16)) for job in jobs]
    sizes = [across * down for across, down in units]
    planes = scratch([(size * BLOCKS * 64,) for size in sizes], np.uint8)
    quantizers, places = packed([job.quantizers for job in jobs], np.uint16)
    entries = []
    for job, plane, (across, down), place in zip(jobs, planes, units, places):
        height, width, _ = job.target.shape
        addresses = job.source.address, plane.address, job.target.address
        entries.append(_JpegImage(*addresses, height, width, across, down, place))
    rows = records(_JpegImage, entries)
    launch(SOURCE.kernel("transform_blocks"), rows, [blocks_for(size * BLOCKS) for size in sizes], quantizers)
    launch(SOURCE.kernel("convert_pixels"), rows, [blocks_for(entry.height * entry.width) for entry in entries])
