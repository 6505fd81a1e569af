"""Decode the JPEG files of a batch; each thread takes the next file when it has finished one.

Files that these kernels do not support, and damaged files, are left to libraries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.jpeg.coefficients import (
    BLOCKS_ACROSS,
    BLOCKS_DOWN,
    FIRST_COLUMN,
    FIRST_ROW,
    KEPT_COLUMNS,
    KEPT_ROWS,
    PAIRS,
    PER_ROW,
    PLANE_COLUMNS,
    memory_for_coefficients,
)
from penstock.kernels.cpu.jpeg.colour import LANES
from penstock.kernels.cpu.jpeg.markers import count_markers
from penstock.kernels.cpu.jpeg.progressive import read_coefficients
from penstock.kernels.cpu.jpeg.scan import (
    Consumer,
    Memory,
    Scan,
    copy_scan,
    decode_scan,
    ends_image,
    units_of_region,
)
from penstock.kernels.cpu.jpeg.segments import (
    COMPONENTS,
    HEIGHT,
    INTERVAL,
    PROGRESSIVE,
    START,
    WIDTH,
    Segments,
    build_tables,
    find_sampling,
    read_segments,
)
from penstock.kernels.cpu.jpeg.transform import FULL_SIZE
from penstock.kernels.cpu.memory import counted
from penstock.kernels.cpu.options import brief, inner, kernel
from penstock.kernels.cpu.parts import bytes_at

_START_OF_SCAN = np.uint8(0xDA)
TOP, LEFT, ROWS, COLUMNS = range(4)
"""The columns of an array of regions: the first row and column, and the number of rows and columns."""


class Scratch(NamedTuple):
    """The scratch memory in which a thread decodes one file after the other.

    Attributes:
        segments: memory for a file's segments.
        data: memory for a scan's data: at least the size of the largest file plus ``MARGIN`` bytes.
        memory: memory for decoding the widest image.
    """

    segments: Segments
    data: np.ndarray
    memory: Memory


class Files(NamedTuple):
    """The files of a batch, in columns of int64.

    Attributes:
        places, sizes: addresses and sizes in bytes of the files.
        targets: addresses of the pixels.
        headers: each image's height and width, in rows.
        scales: the factor by which each image is reduced: 1, 2, 4 or 8.
        regions: the region of each reduced image to decode, in rows; see ``TOP``.
        order: the indices of the files to decode, in the order in which threads take them.
    """

    places: np.ndarray
    sizes: np.ndarray
    targets: np.ndarray
    headers: np.ndarray
    scales: np.ndarray
    regions: np.ndarray
    order: np.ndarray


@inner
def read_scan(
    place: int,
    size: int,
    height: int,
    width: int,
    scale: int,
    region: tuple[int, int, int, int],
    segments: Segments,
    data: np.ndarray,
) -> tuple[int, Scan]:
    """Read a file; return the offset at which its image ends, or 0 if the file is not supported, and its scan.

    Args:
        place, size: the file's address and size in bytes.
        height, width: the expected height and width.
        scale: the factor by which to reduce the image.
        region: the region of the reduced image to decode: its first row and column, and its number of rows and columns.
        segments, data: the segments and data of a :class:`Scratch`; the scan refers to them.
    """
    encoded, numbers = bytes_at(place, size), segments.numbers
    supported = read_segments(encoded, segments)
    across, down = find_sampling(segments) if supported else (0, 0)
    supported = across > 0 and numbers[HEIGHT] == height and numbers[WIDTH] == width
    units = -(-width // (8 * max(across, 1))) * -(-height // (8 * max(down, 1)))
    interval = numbers[INTERVAL] if numbers[INTERVAL] else units
    # A damaged header may announce any number of intervals, but there cannot be more than bytes in the file.
    ends = np.zeros(min(-(-units // interval), size) if supported else 0, np.int64)
    components, end = numbers[COMPONENTS], 0
    planes = np.zeros((components if supported and numbers[PROGRESSIVE] else 0, PLANE_COLUMNS), np.int64)
    # Nor can there be more blocks than bits in the file.
    block, chroma_block = _sizes_of_blocks(max(across, 1), down, scale)
    if len(planes) and _fill_planes(planes, segments, across, down, scale, region) > 8 * size:
        supported = False
    coefficients = memory_for_coefficients(planes if supported else planes[:0])
    if supported and numbers[PROGRESSIVE]:
        end = read_coefficients(encoded, segments, data, coefficients)
    elif supported:
        marker = copy_scan(encoded, numbers[START], data, ends)
        if marker and ends_image(encoded, marker):
            end = marker + 2
            build_tables(segments)
    return end, Scan(
        data,
        ends,
        interval,
        segments.tables,
        segments.dc_tables[:components],
        segments.ac_tables[:components],
        segments.factors,
        across,
        down,
        -(-height // scale),
        -(-width // scale),
        block,
        chroma_block,
        coefficients,
    )


@inner
def _sizes_of_blocks(across: int, down: int, scale: int) -> tuple[int, int]:
    """Return the extent, in samples, of a reduced block of luma and of chroma. Subsampled chroma is reduced less, so that it need not be
    upsampled as much, or at all.
    """
    size = FULL_SIZE // scale
    chroma = size
    while chroma < FULL_SIZE and across * size % (2 * chroma) == 0 and down * size % (2 * chroma) == 0:
        chroma *= 2
    return size, chroma


@inner
def _fill_planes(
    planes: np.ndarray, segments: Segments, across: int, down: int, scale: int, region: tuple[int, int, int, int]
) -> int:
    """Fill in the descriptions of a progressive image's planes, so that only the coefficients that a region needs are stored.

    Returns:
        The number of blocks of the image that hold pixels.
    """
    height, width = segments.numbers[HEIGHT], segments.numbers[WIDTH]
    size, chroma = _sizes_of_blocks(across, down, scale)
    unit_height, unit_width, rows, columns = size * down, size * across, -(-height // scale), -(-width // scale)
    first_row, last_row = units_of_region(region[TOP], region[ROWS], rows, unit_height, unit_height // chroma)
    first_column, last_column = units_of_region(
        region[LEFT], region[COLUMNS], columns, unit_width, unit_width // chroma
    )
    blocks = 0
    for c in range(len(planes)):
        plane = planes[c]
        h, v = (across, down) if c == 0 else (1, 1)
        samples_across, samples_down = -(-width * h // across), -(-height * v // down)
        plane[PER_ROW] = -(-width // (8 * across)) * h
        plane[BLOCKS_ACROSS], plane[BLOCKS_DOWN] = (samples_across + 7) // 8, (samples_down + 7) // 8
        plane[FIRST_ROW], plane[FIRST_COLUMN] = first_row * v, first_column * h
        plane[KEPT_ROWS], plane[KEPT_COLUMNS] = (last_row - first_row + 1) * v, (last_column - first_column + 1) * h
        plane[PAIRS] = (plane[KEPT_COLUMNS] + 1) // 2
        blocks += plane[BLOCKS_ACROSS] * plane[BLOCKS_DOWN]
    return blocks


@kernel
def decode_files(
    files: Files,
    channels: int,
    reverse: bool,
    smooth: bool,
    most_scans: int,
    consumer: Consumer,
    rows: np.ndarray,
    taken: np.ndarray,
    decoded: np.ndarray,
    scratch: Scratch,
) -> None:
    """Decode files that no other thread has taken, until none are left.

    It is the only compiled function with the decoder, whose compilation takes long: what is computed from images is a consumer's task.

    Args:
        files: all files of the batch.
        channels: the output's number of channels.
        reverse: whether the output's channels are in BGR order.
        smooth: as for :func:`decode_scan`.
        most_scans: the maximum number of scan markers; files with more are left to libraries.
        consumer: the function that takes the images in place of ``files.targets``, or ``NO_CONSUMER``.
        rows: memory for the rows that the consumer takes at a time: the ``pixels`` of :func:`decode_scan`.
        taken: the number of files that threads have taken; int64 of shape (1,).
        decoded: set to True for each file that was decoded, and that the consumer did not refuse.
        scratch: this thread's scratch memory.
    """
    turn = counted(taken)
    while turn < files.order.size:
        number = files.order[turn]
        place, size = files.places[number], files.sizes[number]
        height, width = files.headers[number, 0], files.headers[number, 1]
        wanted = files.regions[number]
        region = wanted[TOP], wanted[LEFT], wanted[ROWS], wanted[COLUMNS]
        end, scan = read_scan(place, size, height, width, files.scales[number], region, scratch.segments, scratch.data)
        supported = end > 0 and wanted[COLUMNS] >= LANES
        if supported:
            # The data in between need not be searched: they were read up to the end of the image.
            encoded, start = bytes_at(place, size), scratch.segments.numbers[START]
            scans = count_markers(encoded[:start], _START_OF_SCAN) + count_markers(encoded[end:], _START_OF_SCAN)
            supported = scans <= most_scans
        if supported:
            pixels = rows
            if not consumer.function:
                pixels = bytes_at(files.targets[number], wanted[ROWS] * wanted[COLUMNS] * channels)
            supported = decode_scan(scan, scratch.memory, region, channels, pixels, reverse, smooth, consumer, number)
        decoded[number] = supported
        turn = counted(taken)


@brief
def has_restarts(place: int, size: int, segments: Segments) -> bool:
    """Return whether a file is a baseline JPEG with restart intervals."""
    known = read_segments(bytes_at(place, size), segments)
    return known and segments.numbers[INTERVAL] > 0 and not segments.numbers[PROGRESSIVE]
