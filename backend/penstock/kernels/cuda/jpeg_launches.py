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
from penstock.kernels.cpu.code_generation import carray
from penstock.kernels.cpu.foreign import bytes_from, copy_bytes, set_word, word_at, words_from
from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cpu.jpeg.entropy import NATURAL_ORDER
from penstock.kernels.cpu.jpeg.parts import Parts, fill_steps
from penstock.kernels.cpu.options import brief, inner
from penstock.kernels.cuda import jpeg_codes, jpeg_pixels
from penstock.kernels.cuda.jpeg_codes import SCAN_BYTES, describe_scans
from penstock.kernels.cuda.jpeg_pixels import IMAGE_BYTES, describe_images
from penstock.kernels.cuda.launch import allow_shared
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.kernels.cuda.resample import (
    NO_RESAMPLING,
    OTHERS,
    RESAMPLING_BYTES,
    PlannedResampling,
)
from penstock.kernels.cuda.sources import THREADS

_PAGE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "table_blocks",
            "tables",
            "filters",
            "copied",
            "scan_blocks",
            "scans",
            "natural_order",
            "transform_blocks",
            "convert_blocks",
            "images",
            "resampling_blocks",
            "resampling",
            "mirrored",
        )
    ]
)
"""Where what is uploaded lies, in bytes from the begin of the memory: of each kernel, the numbers of its samples' blocks, and its descriptors,
of which the two kernels that make pixels have the same; for tables, the values of filters, and what is copied."""
_ALIGNMENT = 16
_WORD, _HALF = 8, 4
# The bytes of an image, and, in addition, of one that is resampled.
_OF_IMAGE, _OF_FOLLOWED = 3 * _WORD + SCAN_BYTES + IMAGE_BYTES, _WORD + RESAMPLING_BYTES + _HALF

# The kernels, in the order in which they are launched; without those that resample, where nothing follows.
_FILL_TABLES, _READ_CODES, _TRANSFORM, _CONVERT, _RESAMPLE, _KERNELS = range(6)
_OF_GROUPS = _CONVERT - _READ_CODES
# How many arguments each of them has; they lie one after the other.
_FILL_ARGUMENTS, _READ_ARGUMENTS, _CONVERT_ARGUMENTS, _RESAMPLE_ARGUMENTS = 5, 3, 1, 3 + OTHERS
_ARGUMENTS = _FILL_ARGUMENTS + _READ_ARGUMENTS + _CONVERT_ARGUMENTS + _RESAMPLE_ARGUMENTS


class Kernels(NamedTuple):
    """The kernels that decode, loaded on a device.

    Attributes:
        words: the handles of what reads codes, transforms blocks and converts pixels; the shared memory of the first; whether pixels are
            in BGR order.
        channels: of the pixels.
        smooth: whether chroma is smoothed.
    """

    words: np.ndarray
    channels: int
    smooth: bool

    @classmethod
    def on_device(cls, channels: int, reverse: bool, smooth: bool) -> Kernels:
        """Return the kernels for the current device."""
        read_codes = jpeg_codes.SOURCE.kernel("read_codes")
        allow_shared(read_codes, jpeg_codes.SHARED_BYTES)
        transform, convert = map(jpeg_pixels.SOURCE.kernel, ("transform_blocks", "convert_pixels"))
        handles = [one.kernel.ptr for one in (read_codes, transform, convert)]
        return cls(np.array([*handles, jpeg_codes.SHARED_BYTES, reverse], np.int64), channels, smooth)


class Page:
    """The uploaded data of a batch, except for the images' data.

    Args:
        begin: where it begins in memory, in bytes; a multiple of 16.
        count: how many images are decoded.
        following: what they are resampled by, if that is what follows.

    Attributes:
        begin: the same.
        end: where it ends at the latest.
        resampling: of what follows; of nothing if nothing does.
    """

    def __init__(self, begin: int, count: int, following: PlannedResampling | None) -> None:
        own = self.resampling = NO_RESAMPLING if following is None else following.columns()
        self.begin = begin
        once = own.values.nbytes + own.copied.nbytes + NATURAL_ORDER.nbytes + len(_PAGE.fields or ()) * _ALIGNMENT
        of_image = _OF_IMAGE if following is None else _OF_IMAGE + _OF_FOLLOWED
        self.end = begin + once + count * of_image + len(own.tables) * (_WORD + own.tables.itemsize)


def launch_decoding(
    launches: LaunchList,
    kernels: Kernels,
    scans: JpegScans,
    windows: np.ndarray,
    targets: np.ndarray,
    parts: Parts,
    page: Page,
    memory: tuple[int, int, int, int],
    rows: np.ndarray,
) -> None:
    """List the calls that decode images and resample them; fill the page.

    Args:
        launches: to add to.
        kernels: that decode.
        scans: of the images.
        windows: of each, top, left, height and width of what is made of it.
        targets: the addresses of their pixels; of none, if they are resampled where their coefficients were.
        parts: in which they are decoded.
        page: for the batch.
        memory: the addresses of the pinned memory, of the GPU's to which it is copied, of the data in that, and of what ``parts`` lay
            out. The first two begin with the images' states, int32, and as many turns.
        rows: the numbers by which what follows knows the images.
    """
    is_followed = len(page.resampling.tables) > 0
    count = parts.steps(_OF_GROUPS, is_followed)
    steps, gpu_kernels, arguments = (
        np.empty(count, GPU_STEP),
        np.zeros(_KERNELS, GPU_KERNEL),
        np.zeros(_ARGUMENTS, GPU_ARGUMENT),
    )
    _describe(
        *kernels,
        scans.memory,
        windows,
        targets,
        *parts.arrays,
        *memory,
        page.begin,
        rows,
        *page.resampling,
        np.empty(1, _PAGE),
        steps.view(np.int64).reshape(count, -1),
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
    kernels: np.ndarray,
    channels: int,
    smooth: bool,
    scans: np.ndarray,
    windows: np.ndarray,
    targets: np.ndarray,
    sources: np.ndarray,
    planes: np.ndarray,
    parts: np.ndarray,
    groups: np.ndarray,
    host: int,
    device: int,
    data: int,
    scratch: int,
    page: int,
    rows: np.ndarray,
    resampling: np.ndarray,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    descriptors: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
    places: np.ndarray,
    steps: np.ndarray,
    functions: np.ndarray,
    arguments: np.ndarray,
) -> None:
    """Write descriptors and blocks, and describe steps, kernels and their arguments.

    The arguments are those of :func:`launch_decoding`, in parts, and what is to be filled: one :data:`_PAGE`, and rows of
    :data:`GPU_STEP`, :data:`GPU_KERNEL` and :data:`GPU_ARGUMENT`.
    """
    count, is_followed = len(windows), len(tables) > 0
    # The caller owns the array: a record would not keep an array of this function alive.
    of = places[0]
    _lay_out(of, page, count, tables, values, copied, len(rows))
    at_sources, at_planes = sources + scratch, planes + scratch
    order = carray(bytes_from(host + of.natural_order), (len(NATURAL_ORDER),))
    order[:] = NATURAL_ORDER
    own = carray(words_from(host + of.scans), (SCAN_BYTES // _WORD * count,))
    read = carray(words_from(host + of.scan_blocks), (count,))
    describe_scans(scans, data, at_sources, own.reshape(count, -1), own.view(np.int32).reshape(count, -1), read)
    images = carray(words_from(host + of.images), (count, IMAGE_BYTES // _WORD))
    images[:] = 0
    made = np.empty((2, count), np.int64)
    pixels = at_sources if is_followed else targets
    describe_images(scans, data, at_sources, at_planes, pixels, windows, channels, smooth, images, made)
    copy_bytes(host + of.transform_blocks, made[0].ctypes.data, _WORD * count)
    copy_bytes(host + of.convert_blocks, made[1].ctypes.data, _WORD * count)
    if is_followed:
        _write_resampling(host, of, at_sources, rows, tables, values, copied, descriptors, blocks, mirrored)
        _fill_resampling(functions, arguments, host, device, of, resampling, tables, copied, mirrored)
    _fill_decoding(functions, arguments, host, device, of, kernels, count)
    fill_steps(parts, groups, len(tables), _OF_GROUPS, int(is_followed), steps)


@inner
def _after(place: int, size: int) -> int:
    """Return where what follows ``size`` bytes begins."""
    return place + -(-size // _ALIGNMENT) * _ALIGNMENT


@inner
def _lay_out(
    of: np.record,
    begin: int,
    count: int,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    followed: int,
) -> None:
    """Fill in a :data:`_PAGE`: where what is uploaded begins."""
    of.table_blocks = begin
    of.tables = _after(of.table_blocks, _WORD * len(tables))
    of.filters = _after(of.tables, tables.nbytes)
    of.copied = _after(of.filters, values.nbytes)
    of.scan_blocks = _after(of.copied, copied.nbytes)
    of.scans = _after(of.scan_blocks, _WORD * count)
    of.natural_order = _after(of.scans, SCAN_BYTES * count)
    of.transform_blocks = _after(of.natural_order, NATURAL_ORDER.nbytes)
    of.convert_blocks = _after(of.transform_blocks, _WORD * count)
    of.images = _after(of.convert_blocks, _WORD * count)
    of.resampling_blocks = _after(of.images, IMAGE_BYTES * count)
    of.resampling = _after(of.resampling_blocks, _WORD * followed)
    of.mirrored = _after(of.resampling, RESAMPLING_BYTES * followed)


@inner
def _write_resampling(
    host: int,
    of: np.record,
    sources: np.ndarray,
    rows: np.ndarray,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    descriptors: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Write descriptors of tables and of what resamples images, as :func:`_describe` has them."""
    filled = carray(words_from(host + of.table_blocks), (len(tables),))
    for index in range(len(tables)):
        filled[index] = -(-np.int64(tables[index].outputs) // THREADS)
    copy_bytes(host + of.tables, tables.ctypes.data, tables.nbytes)
    copy_bytes(host + of.filters, values.ctypes.data, values.nbytes)
    copy_bytes(host + of.copied, copied.ctypes.data, copied.nbytes)
    resampled = carray(words_from(host + of.resampling_blocks), (len(rows),))
    own, flags = host + of.resampling, host + of.mirrored
    for index in range(len(rows)):
        row = rows[index]
        resampled[index] = blocks[row]
        copy_bytes(own, descriptors.ctypes.data + RESAMPLING_BYTES * row, RESAMPLING_BYTES)
        set_word(own, word_at(own) + sources[index])
        own += RESAMPLING_BYTES
        if len(mirrored) > 0:
            copy_bytes(flags + _HALF * index, mirrored.ctypes.data + _HALF * row, _HALF)


@inner
def _fill_kernel(
    kernel: np.record, function: int, shared: int, arguments: np.ndarray, blocks: int, descriptors: int, step: int
) -> None:
    """Fill in a :data:`GPU_KERNEL`, but for where blocks lie on the GPU.

    Args:
        function: the driver's handle.
        shared: bytes of shared memory.
        arguments: of the kernel.
        blocks: address of the samples' numbers of blocks before they are uploaded.
        descriptors: address on the GPU.
        step: bytes of a descriptor.
    """
    kernel.function, kernel.shared_bytes = function, shared
    kernel.arguments, kernel.argument_count = arguments.ctypes.data, len(arguments)
    kernel.blocks, kernel.descriptors, kernel.descriptor_bytes = blocks, descriptors, step


@inner
def _fill_resampling(
    functions: np.ndarray,
    arguments: np.ndarray,
    host: int,
    device: int,
    of: np.record,
    resampling: np.ndarray,
    tables: np.ndarray,
    copied: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Fill in the kernels that fill tables and resample, and their arguments."""
    fill, resample, shared, starts, weights = resampling[0], resampling[1], resampling[2], resampling[3], resampling[4]
    own = arguments[:_FILL_ARGUMENTS]
    own[0].value = device + of.filters
    own[1].value = device + of.copied if len(copied) > 0 else 0
    own[2].value, own[3].value, own[4].value = len(copied), starts, weights
    kernel = functions[_FILL_TABLES]
    _fill_kernel(kernel, fill, 0, own, host + of.table_blocks, device + of.tables, tables.itemsize)
    kernel.device_blocks = device + of.table_blocks
    own = arguments[_FILL_ARGUMENTS : _FILL_ARGUMENTS + _RESAMPLE_ARGUMENTS]
    own[0].value, own[1].value = starts, weights
    if len(mirrored) > 0:
        own[2].value, own[2].sample_bytes = device + of.mirrored, _HALF
    for other in range(OTHERS):
        own[3 + other].value = resampling[5 + other]
    kernel = functions[_RESAMPLE]
    _fill_kernel(kernel, resample, shared, own, host + of.resampling_blocks, device + of.resampling, RESAMPLING_BYTES)
    kernel.device_blocks = device + of.resampling_blocks


@inner
def _fill_decoding(
    functions: np.ndarray,
    arguments: np.ndarray,
    host: int,
    device: int,
    of: np.record,
    kernels: np.ndarray,
    count: int,
) -> None:
    """Fill in the kernels that decode, and their arguments."""
    read, transform, convert, shared, reverse = kernels[0], kernels[1], kernels[2], kernels[3], kernels[4]
    first = _FILL_ARGUMENTS + _RESAMPLE_ARGUMENTS
    own = arguments[first : first + _READ_ARGUMENTS]
    own[0].value = device + of.natural_order
    own[1].value, own[1].sample_bytes = device, _HALF
    own[2].value, own[2].sample_bytes = device + _HALF * count, _HALF
    kernel = functions[_READ_CODES]
    _fill_kernel(kernel, read, shared, own, host + of.scan_blocks, device + of.scans, SCAN_BYTES)
    kernel.device_blocks = device + of.scan_blocks
    first += _READ_ARGUMENTS
    kernel = functions[_TRANSFORM]
    _fill_kernel(kernel, transform, 0, arguments[:0], host + of.transform_blocks, device + of.images, IMAGE_BYTES)
    kernel.device_blocks = device + of.transform_blocks
    own = arguments[first : first + _CONVERT_ARGUMENTS]
    own[0].value = reverse
    kernel = functions[_CONVERT]
    _fill_kernel(kernel, convert, 0, own, host + of.convert_blocks, device + of.images, IMAGE_BYTES)
    kernel.device_blocks = device + of.convert_blocks
