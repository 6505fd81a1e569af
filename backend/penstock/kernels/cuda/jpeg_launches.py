"""Kernel descriptors and launches that decode a batch of JPEGs and resample the images; one compiled call writes them into the
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
from penstock.kernels.cuda.resample import NO_RESAMPLING, PlannedResampling
from penstock.kernels.cuda.resample_launches import (
    COUNT_BYTES,
    FLAG_BYTES,
    PAGE_ALIGNMENT,
    RESAMPLING_ARGUMENTS,
    RESAMPLING_BYTES_PER_IMAGE,
    RESAMPLING_PAGE,
    after_bytes,
    counts,
    fill_kernel,
    fill_resampling,
    lay_out_stacks,
    lay_out_tables,
    page_bytes,
    write_stacks,
    write_tables,
)


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


def _arguments(*names: str) -> np.dtype:
    return np.dtype([(name, GPU_ARGUMENT) for name in names])


_OWN_ARRAYS = "scan_blocks", "scans", "natural_order", "transform_blocks", "convert_blocks", "images"
_PAGE = np.dtype([("resampling", RESAMPLING_PAGE), *((name, np.int64) for name in _OWN_ARRAYS)])
"""Where each array begins in the uploaded memory: the arrays of the resampling; then, for each kernel that decodes, the samples' numbers of
blocks, and the descriptors. ``transform_blocks`` and ``convert_pixels`` share the descriptors ``images``.
"""
_SCAN_BYTES, _IMAGE_BYTES = SCAN.itemsize, IMAGE.itemsize
# Bytes of descriptors for each image that is decoded.
_BYTES_PER_IMAGE = 3 * COUNT_BYTES + _SCAN_BYTES + _IMAGE_BYTES

# The kernels in launch order; the first and the last are launched only if images are resampled.
_FILL_TABLES, _READ_CODES, _TRANSFORM, _CONVERT, _RESAMPLE, _KERNELS = range(6)
_OF_GROUPS = _CONVERT - _READ_CODES

_ARGUMENTS = np.dtype(
    [
        ("resampling", RESAMPLING_ARGUMENTS),
        ("read", _arguments("natural_order", "states", "turns")),
        ("convert", _arguments("reverse")),
    ]
)
"""The arguments of the kernels, after the descriptors; ``transform`` has no such arguments."""


def _position(name: str) -> tuple[int, int]:
    """Return the byte offset of a kernel's arguments in :data:`_ARGUMENTS`, and the number of these arguments."""
    fields = _ARGUMENTS.fields
    assert fields is not None
    kind, offset = fields[name][:2]
    return offset, kind.itemsize // GPU_ARGUMENT.itemsize


(_READ_OFFSET, _READ_COUNT), (_CONVERT_OFFSET, _CONVERT_COUNT) = _position("read"), _position("convert")
_DECODING_KERNELS = _record("read_codes", "transform", "convert", "shared_bytes", "reverse")
"""The handles of the kernels that read codes, transform blocks and convert pixels; the bytes of shared memory of the first one; and
whether pixels are in BGR order.
"""


class Kernels(NamedTuple):
    """The decoding kernels, loaded on a device.

    Attributes:
        handles: one :data:`_DECODING_KERNELS`.
        channels: the number of channels of a pixel.
        smooth: whether chroma is interpolated when it is enlarged.
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
    """The part of a batch's upload that holds descriptors and tables, without the images' data.

    Args:
        begin: the byte offset in the upload buffer at which this part begins; a multiple of 16.
        count: the number of images that are decoded.
        following: the resampling step, if the batch is resampled.

    Attributes:
        begin: as above.
        end: an upper bound of the byte offset at which this part ends.
        resampling: the resampling step; empty if there is none.
    """

    def __init__(self, begin: int, count: int, following: PlannedResampling | None) -> None:
        own = self.resampling = NO_RESAMPLING if following is None else following.columns()
        self.begin = begin
        once = page_bytes(own.tables, own.values, own.copied) + NATURAL_ORDER.nbytes + len(_OWN_ARRAYS) * PAGE_ALIGNMENT
        of_image = _BYTES_PER_IMAGE if following is None else _BYTES_PER_IMAGE + RESAMPLING_BYTES_PER_IMAGE
        self.end = begin + once + count * of_image


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
    """Add the calls that decode images and resample them; write the data that the kernels read to ``page``.

    Args:
        launches: the launches to add to.
        kernels: the kernels that decode.
        scans: the images' scans.
        windows: for each image, the top, left, height and width of the pixels to compute.
        targets: the addresses to which the images' pixels are written; empty if images are resampled, and their pixels overwrite the memory
            of their coefficients.
        parts: the parts of the batch, which are decoded one after the other.
        page: the batch's page.
        pinned: pinned host memory, uint8. It begins with the states of all images, int32, followed by as many turns, int32.
        memory: three addresses on the GPU: of the copy of ``pinned``, of the images' data in that copy, and of the memory that ``parts``
            lays out.
        rows: each image's row in the resampling step.
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
    """Write descriptors and numbers of blocks, and describe the steps, the kernels and the kernels' arguments.

    The arguments are those of :func:`launch_decoding`, unpacked, followed by the arrays to fill: one :data:`_PAGE`, rows of
    :data:`GPU_STEP` and :data:`GPU_KERNEL`, and one :data:`_ARGUMENTS`.
    """
    count, is_followed = len(windows), len(tables) > 0
    # The caller owns the arrays: a record does not keep an array that this function creates alive.
    at = layout[0]
    _lay_out(at, page, count, tables, values, copied, len(rows))
    at_sources, at_planes = sources + scratch, planes + scratch
    pinned[at.natural_order : at.natural_order + len(NATURAL_ORDER)] = NATURAL_ORDER
    scan_rows = pinned[at.scans : at.scans + _SCAN_BYTES * count].view(SCAN)
    describe_scans(scans, data, at_sources, scan_rows, counts(pinned, at.scan_blocks, count))
    pinned[at.images : at.images + _IMAGE_BYTES * count] = 0
    images = pinned[at.images : at.images + _IMAGE_BYTES * count].view(IMAGE)
    transformed, converted = counts(pinned, at.transform_blocks, count), counts(pinned, at.convert_blocks, count)
    pixels = at_sources if is_followed else targets
    describe_images(
        scans, data, at_sources, at_planes, pixels, windows, channels, smooth, images, transformed, converted
    )
    if is_followed:
        page_part = at.resampling
        write_tables(pinned, page_part, tables, values, copied)
        write_stacks(pinned, page_part, at_sources, rows, stacks, blocks, mirrored)
        given, first = arguments[0].resampling, arguments.ctypes.data
        fill, resample = kernels[_FILL_TABLES], kernels[_RESAMPLE]
        fill_resampling(
            fill, resample, given, first, pinned, device, page_part, resampling[0], tables, copied, mirrored
        )
    _fill_decoding(kernels, arguments, pinned, device, at, handles[0], count)
    fill_steps(parts, groups, len(tables), _OF_GROUPS, int(is_followed), steps)


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
    """Fill in a :data:`_PAGE` with the offsets of the uploaded data."""
    at.scan_blocks = lay_out_tables(at.resampling, begin, tables, values, copied)
    at.scans = after_bytes(at.scan_blocks, COUNT_BYTES * count)
    at.natural_order = after_bytes(at.scans, _SCAN_BYTES * count)
    at.transform_blocks = after_bytes(at.natural_order, NATURAL_ORDER.nbytes)
    at.convert_blocks = after_bytes(at.transform_blocks, COUNT_BYTES * count)
    at.images = after_bytes(at.convert_blocks, COUNT_BYTES * count)
    lay_out_stacks(at.resampling, after_bytes(at.images, _IMAGE_BYTES * count), followed)


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
    """Fill in the decoding kernels and their arguments."""
    host, first = pinned.ctypes.data, arguments.ctypes.data
    read = arguments[0].read
    read.natural_order.value = device + at.natural_order
    read.states.value, read.states.sample_bytes = device, FLAG_BYTES
    read.turns.value, read.turns.sample_bytes = device + FLAG_BYTES * count, FLAG_BYTES
    kernel, shared = kernels[_READ_CODES], handles.shared_bytes
    fill_kernel(kernel, handles.read_codes, shared, host, device, at.scan_blocks, at.scans, _SCAN_BYTES)
    kernel.arguments, kernel.argument_count = first + _READ_OFFSET, _READ_COUNT
    kernel = kernels[_TRANSFORM]
    fill_kernel(kernel, handles.transform, 0, host, device, at.transform_blocks, at.images, _IMAGE_BYTES)
    kernel = kernels[_CONVERT]
    fill_kernel(kernel, handles.convert, 0, host, device, at.convert_blocks, at.images, _IMAGE_BYTES)
    arguments[0].convert.reverse.value = handles.reverse
    kernel.arguments, kernel.argument_count = first + _CONVERT_OFFSET, _CONVERT_COUNT
