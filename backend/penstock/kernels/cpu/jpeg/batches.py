"""Prepare a batch of baseline JPEGs for decoding on a GPU: read their headers, and gather the scans' data.

The pinned memory holds one part per image, with these arrays, each aligned:

- the code tables as in the file, two for DC coefficients and two for AC (``CODE_TABLES`` of ``CODES`` bytes);
- the quantizers of three components, uint16, in rows of 64;
- the chain, through which the image's thread blocks pass results on: ``LINK`` int32 for each thread block, initially zero;
- for each restart interval, the number of its first subsequence and the position of its first byte, both int32; then the
    same for the end of the last interval. An image that turns out to be damaged has no subsequences;
- the data without stuffing and markers, followed by ``BEYOND`` bytes that a decoder may read.

A subsequence is the unit in which one thread begins to decode (:mod:`penstock.kernels.cuda.jpeg_codes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.core.threads import NO_CALLS, BackgroundThreads, SharedWork
from penstock.kernels.cpu import signatures
from penstock.kernels.cpu.jpeg.entropy import FULL, TABLE
from penstock.kernels.cpu.jpeg.scan import copy_scan, ends_image
from penstock.kernels.cpu.jpeg.segments import (
    ACROSS,
    ADOBE,
    CODES,
    COMPONENTS,
    DOWN,
    HEIGHT,
    INTERVAL,
    JFIF,
    MAX_COMPONENTS,
    NUMBER,
    PROGRESSIVE,
    START,
    WIDTH,
    Segments,
    memory_for_segments,
    read_segments,
)
from penstock.kernels.cpu.memory import copy_bytes
from penstock.kernels.cpu.options import brief, cfunc, inner, kernel
from penstock.kernels.cpu.parts import bytes_at, elements_at, record_at

SUBSEQUENCE = 23 * 32
"""The number of bits in a subsequence: an odd number of 32-bit words, so that the subsequences of different threads begin in different
banks of a GPU's shared memory.
"""
OWN_SUBSEQUENCES = 240
"""The number of subsequences of a thread block, without the last ones of the previous thread block, which it decodes again."""

MAX_BLOCKS = 10
"""The maximum number of blocks in a unit (MCU)."""
CODE_TABLES = 4
LINK = 12
BEYOND = 256
"""The number of bytes that may be read beyond the data: a block may begin with the last bit and have up to 216 bytes, and three words are
read ahead.
"""

QUANTIZERS_PLACE = CODE_TABLES * CODES
CHAIN_PLACE = QUANTIZERS_PLACE + 2 * MAX_COMPONENTS * FULL
_ALIGNMENT = 64
_MAX_FILE_BYTES = 1 << 27
_UNUSED = -1


class ScanColumns(NamedTuple):
    """The descriptions of a batch of JPEGs in the form that kernels use, with a row for each image; see :class:`JpegScans`.

    Attributes:
        taken: whether the GPU can decode the image; if not, all other columns are undefined.
        numbers, components, factors: as in :class:`~penstock.kernels.cpu.jpeg.segments.Segments`.
        blocks: the number of blocks of 64 coefficients.
        intervals: the number of restart intervals.
        interval_blocks: the number of blocks in a whole interval.
        unit_blocks: the number of blocks in a unit.
        parts: the number of the component of each block of a unit, in two bits per block.
        choices: two bits per component: the numbers of its DC table and its AC table.
        codes: the code tables.
        begins: the offset in pinned memory at which each image's part begins, and the end of the last part.
        places: the offsets within an image's part at which the restart intervals and the data begin.
        subsequences: an upper bound of the number of subsequences.
    """

    taken: np.ndarray
    numbers: np.ndarray
    components: np.ndarray
    factors: np.ndarray
    blocks: np.ndarray
    intervals: np.ndarray
    interval_blocks: np.ndarray
    unit_blocks: np.ndarray
    parts: np.ndarray
    choices: np.ndarray
    codes: np.ndarray
    begins: np.ndarray
    places: np.ndarray
    subsequences: np.ndarray


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


READING = _record("memory", "memory_words", "files", "sizes", "file_count", "extents", "extent_count", "shares")
"""Files to read. Fields: the address and the number of words of the memory of :class:`JpegScans`; the address of an array of the files'
addresses, the address of an array of their sizes, and the number of files; the address of an array of the expected extents, and the
number of these, which is 0 or the number of files; the number of shares into which threads divide the work."""
GATHERED = _record(
    *("file", "file_bytes", "scan", "part", "part_bytes"),
    *("intervals", "interval_count", "data", "codes", "quantizers", "state"),
)
"""An image to gather. Fields: the address and the size of its file, and the offset at which the scan's data begin; the address and the
size of its part of the pinned memory; the offset in that part at which restart intervals begin, their number, and the offset at which
the data begin; the addresses of its code tables, its quantizers and its state."""
GATHERING = _record("images", "image_count", "shares", "share_count")
"""Images to gather. Fields: the address of an array of :data:`GATHERED`, and their number; the address of an array with the number of
each share's first image, followed by the number of images; the number of shares."""

# The minimum number of files for which another thread pays off.
_MIN_FILES_PER_THREAD = 16
_NO_EXTENTS = np.empty((0, 2), np.int64)
# The number of 64-bit words that each column has for an image, in the order in memory; columns with smaller elements come last.
_NUMBERS, _COMPONENTS, _PLACES, _SINGLE = 7, MAX_COMPONENTS * 4, 2, 8
_WORDS = _NUMBERS + _COMPONENTS + _PLACES + _SINGLE


@kernel
def columns_of(memory: np.ndarray, count: int) -> ScanColumns:
    """Return the columns of images as views of ``memory``, which has as many words as :func:`_words_for` returns."""
    components, places = count * _NUMBERS, count * (_NUMBERS + _COMPONENTS)
    single = places + count * _PLACES
    bytes_left = memory[single + _SINGLE * count + 1 :].view(np.uint8)
    factors, codes = 2 * MAX_COMPONENTS * FULL * count, CODE_TABLES * CODES * count
    return ScanColumns(
        bytes_left[factors + codes : factors + codes + count].view(np.bool_),
        memory[:components].reshape(count, _NUMBERS),
        memory[components:places].reshape(count, MAX_COMPONENTS, 4),
        bytes_left[:factors].view(np.int16).reshape(count, MAX_COMPONENTS * FULL),
        memory[single : single + count],
        memory[single + count : single + 2 * count],
        memory[single + 2 * count : single + 3 * count],
        memory[single + 3 * count : single + 4 * count],
        memory[single + 4 * count : single + 5 * count],
        memory[single + 5 * count : single + 6 * count],
        bytes_left[factors : factors + codes].reshape(count, CODE_TABLES, CODES),
        memory[single + 7 * count : single + 8 * count + 1],
        memory[places:single].reshape(count, _PLACES),
        memory[single + 6 * count : single + 7 * count],
    )


def _words_for(count: int) -> int:
    rest = 2 * MAX_COMPONENTS * FULL + CODE_TABLES * CODES + 1
    return _WORDS * count + 1 + -(-rest * count // 8)


@dataclass(slots=True)
class JpegScans:
    """The descriptions of a batch of JPEGs that are needed to decode them; :class:`ScansBeingRead` makes them.

    Attributes:
        memory: the memory of the descriptions, of which :func:`columns_of` returns columns.
        count: the number of images.
        taken_count: the number of images that the GPU can decode.
        size: the number of bytes of pinned memory that are needed.
    """

    memory: np.ndarray
    count: int
    taken_count: int
    size: int

    @classmethod
    def blank(cls, count: int) -> JpegScans:
        """Return descriptions filled with zeros, for ``count`` images."""
        return cls(np.zeros(_words_for(count), np.int64), count, 0, 0)

    def __len__(self) -> int:
        return self.count

    @property
    def taken(self) -> np.ndarray:
        """Whether the GPU can decode each image."""
        return self.columns.taken

    @property
    def columns(self) -> ScanColumns:
        """The descriptions as views of the memory; undefined for images that the GPU cannot decode."""
        columns: ScanColumns = columns_of.py_func(
            self.memory, self.count
        )  # called as a Python function: compiled kernels cannot return views
        return columns

    def take(self, rows: np.ndarray) -> JpegScans:
        """Return the descriptions of some of the images; files and pinned memory are not copied."""
        chosen = JpegScans.blank(len(rows))
        chosen.taken_count, chosen.size = _take(self.memory, self.count, rows, chosen.memory), self.size
        return chosen


class ScansBeingRead:
    """Files whose headers are being read by threads, to find out which ones the kernels support.

    Args:
        places: the files' addresses; int64, contiguous.
        sizes: the sizes in bytes; int64, contiguous.
        extents: the expected heights and widths of the images, in rows; int64. Only images that can be decoded to
            pixels are accepted: grey ones, and YCbCr whose chroma is subsampled by whole numbers. None: all images
            whose coefficients can be read are accepted.
        threads: the threads that read; None: this thread reads all files right away.
        keep: an object to keep alive meanwhile, such as the owner of the files.
    """

    def __init__(
        self,
        places: np.ndarray,
        sizes: np.ndarray,
        extents: np.ndarray | None = None,
        threads: BackgroundThreads | None = None,
        keep: object = None,
    ) -> None:
        count = len(places)
        if extents is None:
            extents = _NO_EXTENTS
        # The columns of images that are not accepted are undefined.
        self._scans = JpegScans(np.empty(_words_for(count), np.int64), count, 0, 0)
        memory = self._scans.memory
        extents = np.ascontiguousarray(extents)
        shares = max(count // _MIN_FILES_PER_THREAD, 1)
        reading = np.empty(1, READING)
        place = _describe_reading(memory, places, sizes, extents, shares, reading)
        kept, own_threads = (reading, memory, places, sizes, extents, keep), None if shares == 1 else threads
        self._work = SharedWork(read_share.address, place, shares, kept, own_threads)
        self._work.follow(NO_CALLS)
        self._is_placed = False

    def wait(self) -> JpegScans:
        """Read the files that no thread has begun, wait for all others, and return the descriptions."""
        scans = self._scans
        if not self._is_placed:
            self._work.help()
            self._work.wait()
            scans.taken_count, scans.size = _place(scans.memory, scans.count)
            self._is_placed = True
        return scans


@brief
def _place(memory: np.ndarray, count: int) -> tuple[int, int]:
    """Compute the offset of each image's part of the pinned memory from the parts' sizes; return the number of images that the GPU can
    decode, and the end of the last part.
    """
    scans = columns_of(memory, count)
    taken, scans.begins[0] = 0, 0
    for index in range(count):
        scans.begins[index + 1] += scans.begins[index]
        taken += scans.taken[index]
    return taken, scans.begins[count]


@brief
def _take(memory: np.ndarray, count: int, rows: np.ndarray, target: np.ndarray) -> int:
    """Copy the descriptions in ``rows`` to other memory; return how many of these images the GPU can decode."""
    scans, chosen, taken = columns_of(memory, count), columns_of(target, len(rows)), 0
    for index in range(len(rows)):
        row = rows[index]
        chosen.taken[index] = scans.taken[row]
        _copy(chosen.numbers[index], scans.numbers[row])
        _copy(chosen.components[index], scans.components[row])
        _copy(chosen.factors[index], scans.factors[row])
        _copy(chosen.codes[index], scans.codes[row])
        _copy(chosen.places[index], scans.places[row])
        chosen.blocks[index], chosen.intervals[index] = scans.blocks[row], scans.intervals[row]
        chosen.interval_blocks[index], chosen.unit_blocks[index] = scans.interval_blocks[row], scans.unit_blocks[row]
        chosen.parts[index], chosen.choices[index] = scans.parts[row], scans.choices[row]
        chosen.begins[index], chosen.subsequences[index] = scans.begins[row], scans.subsequences[row]
        taken += scans.taken[row]
    chosen.begins[len(rows)] = scans.begins[count]
    return taken


@kernel
def _read_scans(
    places: np.ndarray,
    sizes: np.ndarray,
    extents: np.ndarray,
    first: int,
    last: int,
    segments: Segments,
    scans: ScanColumns,
) -> None:
    """Read the headers of files ``first`` to ``last``; store the size of an image's part of the pinned memory in the next image's
    ``begins``.
    """
    for index in range(first, last):
        size = 0
        known = 4 < sizes[index] < _MAX_FILE_BYTES
        known = known and read_segments(bytes_at(places[index], sizes[index]), segments)
        if known and not segments.numbers[PROGRESSIVE]:
            size = _describe(segments, sizes[index], scans, index)
        scans.taken[index] = size != 0 and (len(extents) == 0 or _makes_pixels(scans, index, extents[index]))
        scans.begins[index + 1] = size


@brief
def _describe_reading(
    memory: np.ndarray, places: np.ndarray, sizes: np.ndarray, extents: np.ndarray, shares: int, reading: np.ndarray
) -> int:
    """Fill ``reading``, one :data:`READING`, which is the argument of :func:`read_share`; return its address."""
    work = reading[0]
    work.memory, work.memory_words = memory.ctypes.data, len(memory)
    work.files, work.sizes, work.file_count = places.ctypes.data, sizes.ctypes.data, len(places)
    work.extents, work.extent_count, work.shares = extents.ctypes.data, len(extents), shares
    return reading.ctypes.data


@inner
def _makes_pixels(scans: ScanColumns, index: int, extents: np.ndarray) -> bool:
    """Return whether an image can be decoded to pixels and has the expected extents.

    For a grey image, sets the sampling factors to 1, and all fields of the missing components to 0.
    """
    numbers, components = scans.numbers[index], scans.components[index]
    known = True
    if numbers[COMPONENTS] == 1:
        components[0, ACROSS : DOWN + 1] = 1
        components[1:] = 0
    elif numbers[JFIF] or numbers[ADOBE] >= 0:
        known = numbers[JFIF] > 0 or numbers[ADOBE] == 1
    else:
        for c in range(MAX_COMPONENTS):
            known &= components[c, NUMBER] == c + 1
    for axis in (ACROSS, DOWN):
        most = max(components[0, axis], components[1, axis], components[2, axis])
        for c in range(MAX_COMPONENTS):
            known &= most % max(components[c, axis], 1) == 0
    return known and numbers[HEIGHT] == extents[0] and numbers[WIDTH] == extents[1]


@inner
def _describe(segments: Segments, size: int, scans: ScanColumns, index: int) -> int:
    """Describe a file; return the size of its part of the pinned memory, or 0 if it is not supported."""
    numbers, components = segments.numbers, segments.components
    count = numbers[COMPONENTS]
    across, down, unit_blocks, parts = 1, 1, 1, 0
    if count > 1:
        unit_blocks = 0
        for c in range(count):
            across, down = max(across, components[c, ACROSS]), max(down, components[c, DOWN])
            for _ in range(components[c, ACROSS] * components[c, DOWN]):
                parts |= c << 2 * unit_blocks
                unit_blocks += 1
    units = -(-numbers[WIDTH] // (8 * across)) * -(-numbers[HEIGHT] // (8 * down))
    interval = numbers[INTERVAL] or units
    if units == 0 or unit_blocks > MAX_BLOCKS or not _choose_tables(segments, scans, index):
        return 0
    intervals = -(-units // interval)
    data = size - numbers[START]
    if intervals > data:
        return 0
    # Only the first fields of `numbers` are copied: the others are for decoders on the CPU.
    _copy(scans.numbers[index], numbers[:_NUMBERS])
    _copy(scans.components[index], components)
    _copy(scans.factors[index], segments.factors)
    scans.blocks[index], scans.intervals[index] = units * unit_blocks, intervals
    scans.interval_blocks[index], scans.unit_blocks[index] = min(interval, units) * unit_blocks, unit_blocks
    scans.parts[index] = parts
    scans.subsequences[index] = data * 8 // SUBSEQUENCE + intervals
    begin = _aligned(CHAIN_PLACE + 4 * LINK * -(-scans.subsequences[index] // OWN_SUBSEQUENCES))
    scans.places[index, 0] = begin
    begin = _aligned(begin + 8 * (intervals + 1))
    scans.places[index, 1] = begin
    return _aligned(begin + data + BEYOND)


@inner
def _copy(target: np.ndarray, source: np.ndarray) -> None:
    """Copy an array's memory: an assignment would first check whether shapes fit and memory overlaps."""
    copy_bytes(target.ctypes.data, source.ctypes.data, source.size * source.itemsize)


@inner
def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@inner
def _choose_tables(segments: Segments, scans: ScanColumns, index: int) -> bool:
    """Copy the code tables in use; return False if there are too many, or if several components all use the same tables.

    If all components have the same tables, a decoder that begins in the middle of the data cannot find out which block of a unit it
    is in.
    """
    count, choices, codes = segments.numbers[COMPONENTS], 0, scans.codes[index]
    kept, half = np.empty(CODE_TABLES, np.int64), CODE_TABLES // 2
    for place in range(CODE_TABLES):
        kept[place] = _UNUSED
    for c in range(count):
        for kind, start in ((0, segments.dc_tables[c]), (1, segments.ac_tables[c])):
            number = start // TABLE
            choice = 0
            while choice < half and kept[kind * half + choice] != _UNUSED and kept[kind * half + choice] != number:
                choice += 1
            if choice == half:
                return False
            if kept[kind * half + choice] == _UNUSED:
                kept[kind * half + choice] = number
                _copy(codes[kind * half + choice], segments.codes[number])
            choices |= choice << (2 * c + kind)
    scans.choices[index] = choices
    return count == 1 or choices != 0


def gathering(
    scans: JpegScans, places: np.ndarray, sizes: np.ndarray, pinned: int, states: np.ndarray, state: int, shares: int
) -> tuple[int, object]:
    """Return the address to pass to :func:`gather_share`, and the objects to keep alive while it is in use.

    Args:
        scans: the descriptions of these files; the GPU must be able to decode all of them.
        places, sizes: as for :class:`ScansBeingRead`.
        pinned: the address of ``scans.size`` bytes of pinned memory, aligned.
        states: int32 of shape (2, images), filled: an image's first number becomes the number of its restart intervals, or ``state`` if
            the image turns out to be damaged; its second number becomes 0.
        shares: the number of shares, of about equal size in bytes, into which the images are divided.
    """
    images, work = np.empty(len(places), GATHERED), np.empty(1, GATHERING)
    bounds = np.empty(shares + 1, np.int64)
    place = _describe_gathering(scans.memory, places, sizes, pinned, states, state, images, bounds, work)
    return place, (work, bounds, images, scans.memory)


@brief
def _describe_gathering(
    memory: np.ndarray,
    places: np.ndarray,
    sizes: np.ndarray,
    pinned: int,
    states: np.ndarray,
    state: int,
    images: np.ndarray,
    bounds: np.ndarray,
    gathering: np.ndarray,
) -> int:
    """Fill ``images``, the ``bounds`` of shares, and ``gathering``, which refers to both; return the address of ``gathering``."""
    scans, total, shares, count = columns_of(memory, len(images)), sizes.sum(), len(bounds) - 1, len(images)
    work = gathering[0]
    work.images, work.image_count = images.ctypes.data, count
    work.shares, work.share_count = bounds.ctypes.data, shares
    share, end = 1, 0
    bounds[0], bounds[shares] = 0, count
    for index in range(count):
        end += sizes[index]
        while share < shares and end >= total / shares * share:
            bounds[share] = index
            share += 1
    for index in range(count):
        image = images[index]
        image.file, image.file_bytes, image.scan = places[index], sizes[index], scans.numbers[index, START]
        image.part = pinned + scans.begins[index]
        image.part_bytes = scans.begins[index + 1] - scans.begins[index]
        image.intervals, image.interval_count = scans.places[index, 0], scans.intervals[index]
        image.data = scans.places[index, 1]
        image.codes, image.quantizers = scans.codes[index].ctypes.data, scans.factors[index].ctypes.data
        image.state = states[:, index:].ctypes.data
        states[0, index], states[1, index] = state, 0
    return gathering.ctypes.data


@kernel
def _gather_image(image: np.record) -> None:
    count = image.interval_count
    part = bytes_at(image.part, image.part_bytes)
    rows = part[image.intervals : image.intervals + 8 * (count + 1)].view(np.int32)
    ends = np.empty(count, np.int64)
    # The image has no subsequences until all of it is gathered, so that GPUs read nothing of a damaged image.
    rows[2 * count] = 0
    file = bytes_at(image.file, image.file_bytes)
    end = copy_scan(file, image.scan, part[image.data :], ends)
    if end == 0 or not ends_image(file, end):
        return
    copy_bytes(image.part, image.codes, QUANTIZERS_PLACE)
    copy_bytes(image.part + QUANTIZERS_PLACE, image.quantizers, CHAIN_PLACE - QUANTIZERS_PLACE)
    part[CHAIN_PLACE : image.intervals] = 0
    subsequences, begin = 0, 0
    for interval in range(count):
        rows[2 * interval], rows[2 * interval + 1] = subsequences, begin
        subsequences += -(-8 * (ends[interval] - begin) // SUBSEQUENCE)
        begin = ends[interval]
    rows[2 * count], rows[2 * count + 1] = subsequences, begin
    if subsequences > 0:
        elements_at(image.state, 1, np.int32(0))[0] = count


@cfunc(f"{signatures.pointer_to(GATHERING)}, int64", "int32")
def gather_share(gathering: Any, share: int) -> int:
    """Fill the parts of pinned memory of one share of the images, and set the images' states; return 0."""
    work = record_at(gathering)
    images = elements_at(work.images, work.image_count, GATHERED)
    bounds = elements_at(work.shares, work.share_count + 1, np.int64(0))
    for index in range(bounds[share], bounds[share + 1]):
        _gather_image(images[index])
    return 0


@cfunc(f"{signatures.pointer_to(READING)}, int64", "int32")
def read_share(reading: Any, share: int) -> int:
    """Read the headers of one share of the files; return 0."""
    work = record_at(reading)
    count, shares, word = work.file_count, work.shares, np.int64(0)
    memory = elements_at(work.memory, work.memory_words, word)
    places, sizes = elements_at(work.files, count, word), elements_at(work.sizes, count, word)
    extents = elements_at(work.extents, 2 * work.extent_count, word).reshape(work.extent_count, 2)
    first, last = count * share // shares, count * (share + 1) // shares
    _read_scans(places, sizes, extents, first, last, memory_for_segments(), columns_of(memory, count))
    return 0
