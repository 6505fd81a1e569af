"""Kernel descriptors and launches for a batch of JPEGs and the step after it, written by one compiled call into the
upload buffer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.core.gpu_launches import (
    GPU_ARGUMENT,
    GPU_KERNEL,
    GPU_STEP,
    list_launches,
    room_for_arguments,
)
from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cpu.jpeg.entropy import NATURAL_ORDER
from penstock.kernels.cpu.jpeg.parts import Parts, fill_steps
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cuda import jpeg_codes, jpeg_pixels
from penstock.kernels.cuda.jpeg_codes import SCAN, describe_scans
from penstock.kernels.cuda.jpeg_pixels import IMAGE, describe_images
from penstock.kernels.cuda.launch import allow_shared
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.kernels.cuda.resample import (
    NO_RESAMPLING,
    OTHERS,
    RESAMPLING,
    PlannedResampling,
)
from penstock.kernels.cuda.sources import THREADS
from penstock.kernels.cuda.taps import TAPS


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


def _arguments(*names: str) -> np.dtype:
    return np.dtype([(name, GPU_ARGUMENT) for name in names])


_PAGE = _record(
    *("table_blocks", "tables", "filters", "copied"),
    *("scan_blocks", "scans", "natural_order"),
    *("transform_blocks", "convert_blocks", "images"),
    *("resampling_blocks", "resampling", "mirrored"),
)
"""Where in the uploaded memory each array begins: of each kernel, the numbers of its samples' blocks, and its descriptors,
of which the two kernels that make pixels have the same; for tables, the values of filters, and what is copied."""
_ALIGNMENT = 16
_COUNT_BYTES, _FLAG_BYTES = np.dtype(np.int64).itemsize, np.dtype(np.int32).itemsize
_TABLE_BYTES, _SCAN_BYTES, _IMAGE_BYTES, _RESAMPLING_BYTES = (kind.itemsize for kind in (TAPS, SCAN, IMAGE, RESAMPLING))
# Bytes of descriptors for each image, and the further ones if images are resampled.
_BYTES_PER_IMAGE = 3 * _COUNT_BYTES + _SCAN_BYTES + _IMAGE_BYTES
_RESAMPLING_BYTES_PER_IMAGE = _COUNT_BYTES + _RESAMPLING_BYTES + _FLAG_BYTES

# The kernels in launch order; without those that resample, where no step follows.
_FILL_TABLES, _READ_CODES, _TRANSFORM, _CONVERT, _RESAMPLE, _KERNELS = range(6)
_OF_GROUPS = _CONVERT - _READ_CODES

_ARGUMENTS = np.dtype(
    [
        ("fill", _arguments("filters", "copied", "copied_count", "starts", "weights")),
        ("read", _arguments("natural_order", "states", "turns")),
        ("convert", _arguments("reverse")),
        (
            "resample",
            np.dtype([*_arguments("starts", "weights", "mirrored").descr, ("others", GPU_ARGUMENT, (OTHERS,))]),
        ),
    ]
)
"""The arguments of the kernels after their descriptors; ``transform`` has none."""


def _position(name: str) -> tuple[int, int]:
    """Return the offset of a kernel's arguments in :data:`_ARGUMENTS`, in bytes, and their number."""
    fields = _ARGUMENTS.fields
    assert fields is not None
    kind, offset = fields[name][:2]
    return offset, kind.itemsize // GPU_ARGUMENT.itemsize


(_FILL_OFFSET, _FILL_COUNT), (_READ_OFFSET, _READ_COUNT) = _position("fill"), _position("read")
(_CONVERT_OFFSET, _CONVERT_COUNT), (_RESAMPLE_OFFSET, _RESAMPLE_COUNT) = _position("convert"), _position("resample")
_DECODING_KERNELS = _record("read_codes", "transform", "convert", "shared_bytes", "reverse")
"""The handles of what reads codes, transforms blocks and converts pixels; the shared memory of the first; whether pixels are in BGR order."""


class Kernels(NamedTuple):
    """The kernels that decode, loaded on a device.

    Attributes:
        handles: one :data:`_DECODING_KERNELS`.
        channels: the pixels' channels.
        smooth: whether chroma is smoothed.
    """

    handles: np.ndarray
    channels: int
    smooth: bool

    @classmethod
    def on_device(cls, channels: int, reverse: bool, smooth: bool) -> Kernels:
        """Return the kernels for the current device."""
        read_codes = jpeg_codes.SOURCE.kernel("read_codes")
        allow_shared(read_codes, jpeg_codes.SHARED_BYTES)
        transform, convert = map(jpeg_pixels.SOURCE.kernel, ("transform_blocks", "convert_pixels"))
        handles = [one.kernel.ptr for one in (read_codes, transform, convert)]
        return cls(np.array([(*handles, jpeg_codes.SHARED_BYTES, reverse)], _DECODING_KERNELS), channels, smooth)


class Page:
    """The uploaded data of a batch, except for the images' data.

    Args:
        begin: the offset in memory at which it begins, in bytes; a multiple of 16.
        count: how many images are decoded.
        following: the resampling step, if the batch is resampled.

    Attributes:
        begin: as above.
        end: the last offset at which it may end.
        resampling: the resampling step; empty if there is none.
    """

    def __init__(self, begin: int, count: int, following: PlannedResampling | None) -> None:
        own = self.resampling = NO_RESAMPLING if following is None else following.columns()
        self.begin = begin
        once = own.values.nbytes + own.copied.nbytes + NATURAL_ORDER.nbytes + len(_PAGE.fields or ()) * _ALIGNMENT
        of_image = _BYTES_PER_IMAGE if following is None else _BYTES_PER_IMAGE + _RESAMPLING_BYTES_PER_IMAGE
        self.end = begin + once + count * of_image + len(own.tables) * (_COUNT_BYTES + _TABLE_BYTES)


def launch_decoding(
    launches: LaunchList,
    kernels: Kernels,
    scans: JpegScans,
    windows: np.ndarray,
    targets: np.ndarray,
    parts: Parts,
    page: Page,
    pinned: np.ndarray,
    memory: tuple[int, int, int],
    rows: np.ndarray,
) -> None:
    """List the calls that decode images and resample them; fill the page.

    Args:
        launches: the launches to add to.
        kernels: the kernels that decode.
        scans: the images' scans.
        windows: for each image, the top, left, height and width of the pixels to compute.
        targets: the addresses of their pixels; empty if they are resampled from the memory of their coefficients.
        parts: the parts of the batch, decoded one after the other.
        page: the batch's page.
        pinned: memory on the host, uint8. It begins with the images' states, int32, and as many turns.
        memory: the addresses of the GPU memory to which it is copied, of the data in that, and of the memory laid out by ``parts``.
        rows: the images' numbers in the next step.
    """
    is_followed = len(page.resampling.tables) > 0
    count = parts.steps(_OF_GROUPS, is_followed)
    steps, gpu_kernels, arguments = np.empty(count, GPU_STEP), np.zeros(_KERNELS, GPU_KERNEL), np.zeros(1, _ARGUMENTS)
    _describe(
        *kernels,
        scans.memory,
        windows,
        targets,
        *parts.arrays,
        pinned,
        *memory,
        page.begin,
        rows,
        *page.resampling,
        np.empty(1, _PAGE),
        steps,
        gpu_kernels,
        arguments,
    )
    stream, room = launches.stream_record(), room_for_arguments(count)
    calls = launches.room(count)
    launches.kept.append(room)
    first = _FILL_TABLES if is_followed else _READ_CODES
    launches.added(list_launches(stream, gpu_kernels[first:], steps, calls, room))


@brief
def _describe(
    handles: np.ndarray,
    channels: int,
    smooth: bool,
    scans: np.ndarray,
    windows: np.ndarray,
    targets: np.ndarray,
    sources: np.ndarray,
    planes: np.ndarray,
    parts: np.ndarray,
    groups: np.ndarray,
    pinned: np.ndarray,
    device: int,
    data: int,
    scratch: int,
    page: int,
    rows: np.ndarray,
    resampling: np.ndarray,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    stacks: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
    layout: np.ndarray,
    steps: np.ndarray,
    kernels: np.ndarray,
    arguments: np.ndarray,
) -> None:
    """Write descriptors and blocks, and describe steps, kernels and their arguments.

    The arguments are those of :func:`launch_decoding`, in parts, and what is to be filled: one :data:`_PAGE`, rows of
    :data:`GPU_STEP` and :data:`GPU_KERNEL`, and one :data:`_ARGUMENTS`.
    """
    count, is_followed = len(windows), len(tables) > 0
    # The caller owns the arrays: a record would not keep an array of this function alive.
    at = layout[0]
    _lay_out(at, page, count, tables, values, copied, len(rows))
    at_sources, at_planes = sources + scratch, planes + scratch
    pinned[at.natural_order : at.natural_order + len(NATURAL_ORDER)] = NATURAL_ORDER
    scan_rows = pinned[at.scans : at.scans + _SCAN_BYTES * count].view(SCAN)
    describe_scans(scans, data, at_sources, scan_rows, _counts(pinned, at.scan_blocks, count))
    pinned[at.images : at.images + _IMAGE_BYTES * count] = 0
    images = pinned[at.images : at.images + _IMAGE_BYTES * count].view(IMAGE)
    transformed, converted = _counts(pinned, at.transform_blocks, count), _counts(pinned, at.convert_blocks, count)
    pixels = at_sources if is_followed else targets
    describe_images(
        scans, data, at_sources, at_planes, pixels, windows, channels, smooth, images, transformed, converted
    )
    if is_followed:
        _write_tables(pinned, at, tables, values, copied)
        _write_stacks(pinned, at, at_sources, rows, stacks, blocks, mirrored)
        _fill_resampling(kernels, arguments, pinned, device, at, resampling[0], tables, copied, mirrored)
    _fill_decoding(kernels, arguments, pinned, device, at, handles[0], count)
    fill_steps(parts, groups, len(tables), _OF_GROUPS, int(is_followed), steps)


@inner
def _counts(pinned: np.ndarray, begin: int, count: int) -> np.ndarray:
    """Return the numbers of samples' blocks at a position in memory, int64."""
    return pinned[begin : begin + _COUNT_BYTES * count].view(np.int64)


@inner
def _after(position: int, size: int) -> int:
    """Return the next aligned offset after ``size`` bytes at ``position``."""
    return position + -(-size // _ALIGNMENT) * _ALIGNMENT


@inner
def _lay_out(
    at: np.record,
    begin: int,
    count: int,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    followed: int,
) -> None:
    """Fill in a :data:`_PAGE`: the offsets of the uploaded data."""
    at.table_blocks = begin
    at.tables = _after(at.table_blocks, _COUNT_BYTES * len(tables))
    at.filters = _after(at.tables, tables.nbytes)
    at.copied = _after(at.filters, values.nbytes)
    at.scan_blocks = _after(at.copied, copied.nbytes)
    at.scans = _after(at.scan_blocks, _COUNT_BYTES * count)
    at.natural_order = _after(at.scans, _SCAN_BYTES * count)
    at.transform_blocks = _after(at.natural_order, NATURAL_ORDER.nbytes)
    at.convert_blocks = _after(at.transform_blocks, _COUNT_BYTES * count)
    at.images = _after(at.convert_blocks, _COUNT_BYTES * count)
    at.resampling_blocks = _after(at.images, _IMAGE_BYTES * count)
    at.resampling = _after(at.resampling_blocks, _COUNT_BYTES * followed)
    at.mirrored = _after(at.resampling, _RESAMPLING_BYTES * followed)


@inner
def _write_tables(
    pinned: np.ndarray, at: np.record, tables: np.ndarray, values: np.ndarray, copied: np.ndarray
) -> None:
    """Write the descriptors of tables, the filters' values, and the data that kernels copy."""
    filled, rows = (
        _counts(pinned, at.table_blocks, len(tables)),
        pinned[at.tables : at.tables + tables.nbytes].view(TAPS),
    )
    for index in range(len(tables)):
        filled[index] = -(-np.int64(tables[index].outputs) // THREADS)
        rows[index] = tables[index]
    pinned[at.filters : at.filters + values.nbytes].view(np.float64)[:] = values
    pinned[at.copied : at.copied + copied.nbytes].view(np.float32)[:] = copied


@inner
def _write_stacks(
    pinned: np.ndarray,
    at: np.record,
    sources: np.ndarray,
    rows: np.ndarray,
    stacks: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Write the descriptors of the resampling kernels."""
    count, has_flags = len(rows), len(mirrored) > 0
    resampled = _counts(pinned, at.resampling_blocks, count)
    written = pinned[at.resampling : at.resampling + _RESAMPLING_BYTES * count].view(RESAMPLING)
    flags = pinned[at.mirrored : at.mirrored + _FLAG_BYTES * (count if has_flags else 0)].view(np.int32)
    for index in range(count):
        row = rows[index]
        resampled[index] = blocks[row]
        written[index] = stacks[row]
        written[index].source += np.uint64(sources[index])
        if has_flags:
            flags[index] = mirrored[row]


@inner
def _fill_kernel(
    kernel: np.record, function: int, shared: int, host: int, device: int, blocks: int, descriptors: int, step: int
) -> None:
    """Fill in a :data:`GPU_KERNEL`, but for its arguments.

    Args:
        function: the driver's handle.
        shared: bytes of shared memory.
        host, device: the addresses of the pinned memory, and of the GPU's to which it is copied.
        blocks, descriptors: where the samples' numbers of blocks, and their descriptors, begin in both.
        step: bytes of a descriptor.
    """
    kernel.function, kernel.shared_bytes = function, shared
    kernel.blocks, kernel.device_blocks = host + blocks, device + blocks
    kernel.descriptors, kernel.descriptor_bytes = device + descriptors, step


@inner
def _fill_resampling(
    kernels: np.ndarray,
    arguments: np.ndarray,
    pinned: np.ndarray,
    device: int,
    at: np.record,
    resampling: np.record,
    tables: np.ndarray,
    copied: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Fill in the kernels that fill tables and resample, and their arguments."""
    host, first = pinned.ctypes.data, arguments.ctypes.data
    fill = arguments[0].fill
    fill.filters.value, fill.copied_count.value = device + at.filters, len(copied)
    fill.copied.value = device + at.copied if len(copied) > 0 else 0
    fill.starts.value, fill.weights.value = resampling.starts, resampling.weights
    kernel = kernels[_FILL_TABLES]
    _fill_kernel(kernel, resampling.fill_tables, 0, host, device, at.table_blocks, at.tables, _TABLE_BYTES)
    kernel.arguments, kernel.argument_count = first + _FILL_OFFSET, _FILL_COUNT
    resample = arguments[0].resample
    resample.starts.value, resample.weights.value = resampling.starts, resampling.weights
    if len(mirrored) > 0:
        resample.mirrored.value, resample.mirrored.sample_bytes = device + at.mirrored, _FLAG_BYTES
    for other in range(OTHERS):
        resample.others[other].value = resampling.others[other]
    kernel, shared = kernels[_RESAMPLE], resampling.shared_bytes
    _fill_kernel(
        kernel, resampling.resample, shared, host, device, at.resampling_blocks, at.resampling, _RESAMPLING_BYTES
    )
    kernel.arguments, kernel.argument_count = first + _RESAMPLE_OFFSET, _RESAMPLE_COUNT


@inner
def _fill_decoding(
    kernels: np.ndarray,
    arguments: np.ndarray,
    pinned: np.ndarray,
    device: int,
    at: np.record,
    handles: np.record,
    count: int,
) -> None:
    """Fill in the kernels that decode, and their arguments."""
    host, first = pinned.ctypes.data, arguments.ctypes.data
    read = arguments[0].read
    read.natural_order.value = device + at.natural_order
    read.states.value, read.states.sample_bytes = device, _FLAG_BYTES
    read.turns.value, read.turns.sample_bytes = device + _FLAG_BYTES * count, _FLAG_BYTES
    kernel, shared = kernels[_READ_CODES], handles.shared_bytes
    _fill_kernel(kernel, handles.read_codes, shared, host, device, at.scan_blocks, at.scans, _SCAN_BYTES)
    kernel.arguments, kernel.argument_count = first + _READ_OFFSET, _READ_COUNT
    kernel = kernels[_TRANSFORM]
    _fill_kernel(kernel, handles.transform, 0, host, device, at.transform_blocks, at.images, _IMAGE_BYTES)
    kernel = kernels[_CONVERT]
    _fill_kernel(kernel, handles.convert, 0, host, device, at.convert_blocks, at.images, _IMAGE_BYTES)
    arguments[0].convert.reverse.value = handles.reverse
    kernel.arguments, kernel.argument_count = first + _CONVERT_OFFSET, _CONVERT_COUNT
