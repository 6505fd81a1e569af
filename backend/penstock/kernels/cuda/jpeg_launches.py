"""What kernels read and do for a batch of JPEGs, and for what follows, written by one compiled call where it is uploaded from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray

from penstock.kernels.cpu.foreign import bytes_from, copy_bytes, set_word, word_at, words_from
from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cpu.jpeg.entropy import NATURAL_ORDER
from penstock.kernels.cpu.jpeg.parts import Parts, fill_steps
from penstock.kernels.cpu.launches import ARGUMENT_WORDS, FUNCTION_WORDS, list_launches, room_for_arguments
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

# What is uploaded. Of each kernel, where the samples' blocks begin, and descriptors, of which those two have the same that make pixels;
# for tables, the values of filters, and what is copied; the natural order; and whether images are mirrored.
_FILLED, _TABLES, _VALUES, _COPIED, _READ, _SCANS, _ORDER, _TRANSFORMED, _CONVERTED, _IMAGES = range(10)
_RESAMPLED, _DESCRIPTORS, _MIRRORED = range(10, 13)
_PARTS = 13
_ALIGNMENT = 16
_WORD, _HALF = 8, 4
# The bytes of an image, and, in addition, of one that is resampled.
_OF_IMAGE, _OF_FOLLOWED = 3 * _WORD + SCAN_BYTES + IMAGE_BYTES, _WORD + RESAMPLING_BYTES + _HALF

# The kernels, in the order in which they are launched; without those that resample, where nothing follows.
_FILL, _READ_CODES, _TRANSFORM, _CONVERT, _RESAMPLE, _KERNELS = range(6)
_OF_GROUPS = _CONVERT - _READ_CODES
# Their arguments, one after the other.
_OF_FILL, _OF_READ_CODES, _OF_CONVERT, _OF_RESAMPLE = 5, 3, 1, 3 + OTHERS
_ARGUMENTS = _OF_FILL + _OF_READ_CODES + _OF_CONVERT + _OF_RESAMPLE
_TO_UPLOAD = 1
"""An argument's number of what is uploaded, beside that: see :data:`ARGUMENT_WORDS`."""


class Kernels(NamedTuple):
    """What decodes, on a device.

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
        """Those for the current device."""
        read_codes = jpeg_codes.SOURCE.kernel("read_codes")
        allow_shared(read_codes, jpeg_codes.SHARED_BYTES)
        transform, convert = map(jpeg_pixels.SOURCE.kernel, ("transform_blocks", "convert_pixels"))
        handles = [one.kernel.ptr for one in (read_codes, transform, convert)]
        return cls(np.array([*handles, jpeg_codes.SHARED_BYTES, reverse], np.int64), channels, smooth)


class Page:
    """What is uploaded for a batch, but for the images' data.

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
        once = own.values.nbytes + own.copied.nbytes + NATURAL_ORDER.nbytes + _PARTS * _ALIGNMENT
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
    """Lists what decodes images, and resamples them; fills the page.

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
    steps, launching = parts.steps(_OF_GROUPS, len(page.resampling.tables) > 0), launches.launching()
    room, calls = room_for_arguments(steps), launches.room(steps)
    launches.kept.append(room)
    made = _describe(
        *kernels,
        scans.memory,
        windows,
        targets,
        *parts.arrays,
        *memory,
        page.begin,
        rows,
        *page.resampling,
        launching,
        steps,
        calls,
        room,
    )
    launches.added(made)


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
    launching: tuple[int, int, int],
    most: int,
    calls: np.ndarray,
    room: np.ndarray,
) -> int:
    """Writes descriptors, blocks and calls; returns how many calls there are.

    The arguments are those of :func:`launch_decoding`, in parts; ``most``: steps, of which each is one call at most.
    """
    count, is_followed = len(windows), len(tables) > 0
    places = _places(page, count, tables, values, copied, len(rows))
    at_sources, at_planes = sources + scratch, planes + scratch
    order = carray(bytes_from(host + places[_ORDER]), (len(NATURAL_ORDER),))
    order[:] = NATURAL_ORDER
    own = carray(words_from(host + places[_SCANS]), (SCAN_BYTES // _WORD * count,))
    read = carray(words_from(host + places[_READ]), (count,))
    describe_scans(scans, data, at_sources, own.reshape(count, -1), own.view(np.int32).reshape(count, -1), read)
    images = carray(words_from(host + places[_IMAGES]), (count, IMAGE_BYTES // _WORD))
    images[:] = 0
    made = np.empty((2, count), np.int64)
    pixels = at_sources if is_followed else targets
    describe_images(scans, data, at_sources, at_planes, pixels, windows, channels, smooth, images, made)
    copy_bytes(host + places[_TRANSFORMED], made[0].ctypes.data, _WORD * count)
    copy_bytes(host + places[_CONVERTED], made[1].ctypes.data, _WORD * count)
    functions, arguments = (
        np.zeros((_KERNELS, FUNCTION_WORDS), np.int64),
        np.zeros((_ARGUMENTS, ARGUMENT_WORDS), np.int64),
    )
    if is_followed:
        _write_resampling(host, places, at_sources, rows, tables, values, copied, descriptors, blocks, mirrored)
        _fill_resampling(functions, arguments, resampling, tables, copied, mirrored)
    _fill_decoding(functions, arguments, kernels, device, count)
    first = _FILL if is_followed else _READ_CODES
    steps = np.empty((most, 3), np.int64)
    fill_steps(parts, groups, len(tables), _OF_GROUPS, int(is_followed), steps)
    own_functions, own_arguments = functions[first:].reshape(-1), arguments.reshape(-1)
    return list_launches(
        steps,
        own_functions,
        own_arguments,
        places,
        host,
        device,
        (launching[0], launching[1], launching[2]),
        calls,
        room,
    )


@inner
def _places(
    page: int, count: int, tables: np.ndarray, values: np.ndarray, copied: np.ndarray, followed: int
) -> np.ndarray:
    """Where the parts of the page begin."""
    sizes = np.empty(_PARTS, np.int64)
    sizes[_FILLED], sizes[_TABLES] = _WORD * len(tables), tables.nbytes
    sizes[_VALUES], sizes[_COPIED] = values.nbytes, copied.nbytes
    sizes[_READ], sizes[_SCANS], sizes[_ORDER] = _WORD * count, SCAN_BYTES * count, NATURAL_ORDER.nbytes
    sizes[_TRANSFORMED] = sizes[_CONVERTED] = _WORD * count
    sizes[_IMAGES] = IMAGE_BYTES * count
    sizes[_RESAMPLED], sizes[_DESCRIPTORS] = _WORD * followed, RESAMPLING_BYTES * followed
    sizes[_MIRRORED] = _HALF * followed
    for part in range(_PARTS):
        size = sizes[part]
        sizes[part] = page
        page += -(-size // _ALIGNMENT) * _ALIGNMENT
    return sizes


@inner
def _write_resampling(
    host: int,
    places: np.ndarray,
    sources: np.ndarray,
    rows: np.ndarray,
    tables: np.ndarray,
    values: np.ndarray,
    copied: np.ndarray,
    descriptors: np.ndarray,
    blocks: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Writes descriptors of tables and of what resamples images, as :func:`_describe` has them."""
    filled = carray(words_from(host + places[_FILLED]), (len(tables),))
    for index in range(len(tables)):
        filled[index] = -(-np.int64(tables[index].outputs) // THREADS)
    copy_bytes(host + places[_TABLES], tables.ctypes.data, tables.nbytes)
    copy_bytes(host + places[_VALUES], values.ctypes.data, values.nbytes)
    copy_bytes(host + places[_COPIED], copied.ctypes.data, copied.nbytes)
    resampled = carray(words_from(host + places[_RESAMPLED]), (len(rows),))
    own, flags = host + places[_DESCRIPTORS], host + places[_MIRRORED]
    for index in range(len(rows)):
        row = rows[index]
        resampled[index] = blocks[row]
        copy_bytes(own, descriptors.ctypes.data + RESAMPLING_BYTES * row, RESAMPLING_BYTES)
        set_word(own, word_at(own) + sources[index])
        own += RESAMPLING_BYTES
        if len(mirrored) > 0:
            copy_bytes(flags + _HALF * index, mirrored.ctypes.data + _HALF * row, _HALF)


@inner
def _fill_function(
    function: np.ndarray, handle: int, shared: int, first: int, count: int, starts: int, own: int, step: int
) -> None:
    """Fills in FUNCTION_WORDS; ``own``: which of what is uploaded are its descriptors."""
    function[0], function[1], function[2], function[3] = handle, shared, first, count
    function[4], function[5], function[6] = starts, own, step


@inner
def _fill_argument(argument: np.ndarray, value: int, step: int, upload: int) -> None:
    """Fills in ARGUMENT_WORDS."""
    argument[0], argument[1], argument[2] = value, step, upload


@inner
def _fill_resampling(
    functions: np.ndarray,
    arguments: np.ndarray,
    resampling: np.ndarray,
    tables: np.ndarray,
    copied: np.ndarray,
    mirrored: np.ndarray,
) -> None:
    """Fills in the kernels that fill tables and resample, and their arguments."""
    fill, resample, shared, starts, weights = resampling[0], resampling[1], resampling[2], resampling[3], resampling[4]
    first = 0
    _fill_function(functions[_FILL], fill, 0, first, _OF_FILL, _FILLED, _TABLES, tables.itemsize)
    _fill_argument(arguments[first], 0, 0, _VALUES + _TO_UPLOAD)
    _fill_argument(arguments[first + 1], 0, 0, _COPIED + _TO_UPLOAD if len(copied) > 0 else 0)
    _fill_argument(arguments[first + 2], len(copied), 0, 0)
    _fill_argument(arguments[first + 3], starts, 0, 0)
    _fill_argument(arguments[first + 4], weights, 0, 0)
    first += _OF_FILL
    _fill_function(
        functions[_RESAMPLE], resample, shared, first, _OF_RESAMPLE, _RESAMPLED, _DESCRIPTORS, RESAMPLING_BYTES
    )
    _fill_argument(arguments[first], starts, 0, 0)
    _fill_argument(arguments[first + 1], weights, 0, 0)
    flags = len(mirrored) > 0
    _fill_argument(arguments[first + 2], 0, _HALF if flags else 0, _MIRRORED + _TO_UPLOAD if flags else 0)
    for other in range(OTHERS):
        _fill_argument(arguments[first + 3 + other], resampling[5 + other], 0, 0)


@inner
def _fill_decoding(functions: np.ndarray, arguments: np.ndarray, kernels: np.ndarray, device: int, count: int) -> None:
    """Fills in the kernels that decode, and their arguments."""
    read, transform, convert, shared, reverse = kernels[0], kernels[1], kernels[2], kernels[3], kernels[4]
    first = _OF_FILL + _OF_RESAMPLE
    _fill_function(functions[_READ_CODES], read, shared, first, _OF_READ_CODES, _READ, _SCANS, SCAN_BYTES)
    _fill_argument(arguments[first], 0, 0, _ORDER + _TO_UPLOAD)
    _fill_argument(arguments[first + 1], device, _HALF, 0)
    _fill_argument(arguments[first + 2], device + _HALF * count, _HALF, 0)
    first += _OF_READ_CODES
    _fill_function(functions[_TRANSFORM], transform, 0, first, 0, _TRANSFORMED, _IMAGES, IMAGE_BYTES)
    _fill_function(functions[_CONVERT], convert, 0, first, _OF_CONVERT, _CONVERTED, _IMAGES, IMAGE_BYTES)
    _fill_argument(arguments[first], reverse, 0, 0)
