"""Conversion of JPEG coefficients to pixels on the GPU, with the same integer arithmetic as
:mod:`penstock.kernels.cpu.jpeg`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cpu.jpeg import colour, segments, transform
from penstock.kernels.cpu.jpeg.batches import QUANTIZERS_PLACE, columns_of
from penstock.kernels.cpu.options import brief
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, Repeated, layout_of

COMPONENTS = 3
"""The largest number of components of an image that is decoded."""
_SIDE = 8
"""The side of a block, in pixels."""
_GROUP = 8
"""The number of pixels that a thread computes."""
_SMOOTHED = 2
"""The subsampling factor of directions in which chroma is interpolated, if it is smoothed."""
_MIN_SMOOTHED_COLUMNS = 3
"""Rows with fewer samples than this are not smoothed."""


class _Part(NamedTuple):
    """A component of an image.

    Attributes:
        plane, stride: the offset of the component's samples in the planes' memory, and the distance between its rows there.
        first, across, down: the number of the component's first block in a unit (MCU), and its columns and rows of blocks in a unit.
        repeat_across, repeat_down: the number of pixels that share one sample, in each direction.
        smooth_across, smooth_down: whether samples are interpolated in each direction.
        left, top, right, bottom: the range of the component's samples that the plane contains.
    """

    plane: Int64
    stride: Int64
    first: Int64
    across: Int64
    down: Int64
    repeat_across: Int64
    repeat_down: Int64
    smooth_across: Int64
    smooth_down: Int64
    left: Int64
    top: Int64
    right: Int64
    bottom: Int64


class _JpegImage(NamedTuple):
    """The descriptor of one image.

    Attributes:
        source: the address of the image's coefficients.
        planes: the address of the components' samples.
        target: the address of the pixels, an array of shape (height, width, channels).
        quantizers: the address of the components' quantizers.
        left, top, height, width: the window to compute.
        components: the number of components.
        unit_blocks, made: the number of blocks of a unit (MCU), and how many of them, from the first on, are needed.
        row_of_units: number of units in a row of the image.
        unit_left, unit_top, units_across, units_down: the rectangle of units that are needed.
    """

    source: Pointer
    planes: Pointer
    target: Pointer
    quantizers: Pointer
    left: Int64
    top: Int64
    height: Int64
    width: Int64
    channels: Int64
    components: Int64
    unit_blocks: Int64
    made: Int64
    row_of_units: Int64
    unit_left: Int64
    unit_top: Int64
    units_across: Int64
    units_down: Int64
    parts: Annotated[tuple[_Part, ...], Repeated(_Part, COMPONENTS)]


SOURCE = KernelSource(__file__, _JpegImage, SIDE=_SIDE, GROUP=_GROUP, **transform.CONSTANTS, **colour.CONSTANTS)


IMAGE = layout_of(_JpegImage).dtype
"""The type of an image's descriptor.

Two kernels read descriptors: ``transform_blocks`` computes samples from coefficients, and then ``convert_pixels`` computes pixels from
samples. The latter has one more argument, int32: whether pixels are in BGR order.
"""


@brief
def describe_images(
    memory: np.ndarray,
    data: int,
    sources: np.ndarray,
    planes: np.ndarray,
    targets: np.ndarray,
    windows: np.ndarray,
    channels: int,
    smooth: bool,
    descriptors: np.ndarray,
    transformed: np.ndarray,
    converted: np.ndarray,
) -> None:
    """Fill in each image's descriptor, and its number of thread blocks in each of the two kernels.

    Args:
        memory: the memory that holds the parsed scans; sizes and components must be known.
        data: the address of the gathered data, laid out as in :mod:`~penstock.kernels.cpu.jpeg.batches`; the data include the quantizers.
        sources: addresses of the images' coefficients, int16: unit by unit as they are coded, in each unit the blocks of the
            components, in each block 64 values row by row.
        planes: addresses, multiples of 8, of memory for the images' samples: a byte for each coefficient.
        targets: addresses of the images' pixels, uint8.
        windows: top, left, height and width of the part of each image to compute.
        channels: the number of channels of the targets; with one channel, only luma is computed.
        smooth: whether chroma that is halved in a direction is smoothed there; otherwise samples are repeated.
        descriptors: an :data:`IMAGE` for each image, all zeros at first.
        transformed, converted: receive each image's number of thread blocks in ``transform_blocks`` and in ``convert_pixels``.
    """
    # Smoothed samples depend on neighbouring pixels.
    margin, scans = _SMOOTHED if smooth else 0, columns_of(memory, len(sources))
    for index in range(len(sources)):
        image, given, (top, left, rows, columns) = descriptors[index], scans.components[index], windows[index]
        height, width = scans.numbers[index, segments.HEIGHT], scans.numbers[index, segments.WIDTH]
        across, down, known, unit_blocks = 1, 1, 0, 0
        for c in range(COMPONENTS):
            across, down = max(across, given[c, segments.ACROSS]), max(down, given[c, segments.DOWN])
            known += given[c, segments.ACROSS] > 0
            unit_blocks += given[c, segments.ACROSS] * given[c, segments.DOWN]
        unit_left, unit_top = max(left - margin, 0) // (across * _SIDE), max(top - margin, 0) // (down * _SIDE)
        units_across = -(-min(left + columns + margin, width) // (across * _SIDE)) - unit_left
        units_down = -(-min(top + rows + margin, height) // (down * _SIDE)) - unit_top
        wanted = known if channels > 1 else 1
        made = 0
        for c in range(wanted):
            part = image.parts[c]
            own_across, own_down = given[c, segments.ACROSS], given[c, segments.DOWN]
            repeat_across, repeat_down = across // own_across, down // own_down
            samples_across, samples_down = -(-width * own_across // across), -(-height * own_down // down)
            # As in libjpeg-turbo: if both directions are subsampled by 2, both are smoothed or neither; narrow images are not smoothed
            # across.
            smooth_across = smooth and repeat_across == _SMOOTHED and repeat_down <= _SMOOTHED
            smooth_across &= samples_across >= _MIN_SMOOTHED_COLUMNS
            smooth_down = smooth and repeat_down == _SMOOTHED and (repeat_across == 1 or smooth_across)
            step_across, step_down = own_across * _SIDE, own_down * _SIDE
            part.plane = made * units_across * units_down * _SIDE * _SIDE
            part.stride = units_across * step_across
            part.first = made
            part.across, part.down = own_across, own_down
            part.repeat_across, part.repeat_down = repeat_across, repeat_down
            part.smooth_across, part.smooth_down = smooth_across, smooth_down
            part.left, part.top = unit_left * step_across, unit_top * step_down
            part.right = min((unit_left + units_across) * step_across, samples_across)
            part.bottom = min((unit_top + units_down) * step_down, samples_down)
            made += own_across * own_down
        for c in range(wanted, COMPONENTS):
            # Blocks of components that are not decoded get numbers after those of all components that are.
            image.parts[c].first = made
        image.source, image.planes = sources[index], planes[index]
        image.target, image.quantizers = targets[index], data + scans.begins[index] + QUANTIZERS_PLACE
        image.left, image.top, image.height, image.width = left, top, rows, columns
        image.channels, image.components = channels, known
        image.unit_blocks, image.made = unit_blocks, made
        image.row_of_units = -(-width // (across * _SIDE))
        image.unit_left, image.unit_top = unit_left, unit_top
        image.units_across, image.units_down = units_across, units_down
        transformed[index] = -(-units_across * units_down * made * _SIDE // THREADS)
        groups = -(-(left + columns) // _GROUP) - left // _GROUP
        converted[index] = -(-groups * rows // THREADS)
