"""Decode a region of a baseline JPEG from its only scan, or of a progressive JPEG from its coefficients.

Source: ITU-T T.81, annexes A.2 (the order of the data) and F.2 (decoding).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.jpeg.coefficients import Coefficients, transform_row
from penstock.kernels.cpu.jpeg.colour import (
    LANES,
    blend_rows,
    convert_doubled_row,
    convert_repeated_row,
    convert_row,
    repeat_samples,
    spread_row,
    weigh_row,
    weigh_rows,
)
from penstock.kernels.cpu.jpeg.entropy import ENDED, FULL, MARGIN, decode_block, order_of, refilled
from penstock.kernels.cpu.jpeg.transform import OTHER, PAIR, PLACES, transform_pair
from penstock.kernels.cpu.memory import call
from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd import at, pointer
from penstock.kernels.cpu.simd_integers import any_lane, copy_chunk, put, zeros_short

_PREFIX, _STUFFING, _END_OF_IMAGE = np.uint8(0xFF), np.uint8(0), np.uint8(0xD9)
_RESTART = 0xD0
_CHUNK = 32


@kernel
def copy_scan(data: np.ndarray, start: int, scan: np.ndarray, ends: np.ndarray) -> int:
    """Copy a scan's data without stuffing and markers, up to the end of the image.

    Args:
        data: the file; uint8.
        start: the offset at which the scan's data begin.
        scan: filled with the data, followed by ``MARGIN`` zeros, or as many as fit; at least ``data.size - start``
            elements.
        ends: filled with the positions in ``scan`` at which restart intervals end; the last one is the end of the scan.

    Returns:
        The offset of the marker that ends the scan; 0 unless the scan has as many restart intervals as ``ends`` has elements.
    """
    here, there, interval = start, 0, 0
    while here + 1 < data.size:
        if here + _CHUNK < data.size:
            clear = copy_chunk(data, here, scan, there, _CHUNK, _PREFIX)
            # This case needs no position of a prefix, so that the next chunk need not wait for that to be computed.
            if clear == _CHUNK:
                here += _CHUNK
                there += _CHUNK
                continue
            here += clear
            there += clear
        elif data[here] != _PREFIX:
            scan[there] = data[here]
            here += 1
            there += 1
            continue
        marker = data[here + 1]
        if marker == _STUFFING:
            scan[there] = _PREFIX
            there += 1
        elif marker == _PREFIX:
            here += 1
            continue
        else:
            ends[interval] = there
            interval += 1
            if interval == ends.size:
                scan[there : there + MARGIN] = 0
                return here
            if marker != _RESTART + (interval - 1) % 8:
                return 0
        here += 2
    return 0


@inner
def ends_image(data: np.ndarray, place: int) -> bool:
    """Return whether the marker at an offset ends the image."""
    return data[place + 1] == _END_OF_IMAGE


class Scan(NamedTuple):
    """A scan ready to be decoded.

    Attributes:
        data, ends: as from :func:`copy_scan`.
        interval: the number of units between restarts.
        tables: the code tables, contiguous; uint64.
        dc_tables, ac_tables: the offset of each component's tables in ``tables``; int64 of shape (components,).
        quantizers: each component's quantizers, in rows of 64; int16.
        across, down: the horizontal and vertical subsampling of chroma: 1 or 2 each, or 4 and 1; 1 and 1 for a single component.
        height, width: the height and width of the reduced image.
        size, chroma_size: the number of rows, and of columns, of samples in each block of the first component, and of chroma: 8, or a
            smaller power of two to reduce the image.
        coefficients: a progressive image's coefficients, which replace ``data``; otherwise empty.
    """

    data: np.ndarray
    ends: np.ndarray
    interval: int
    tables: np.ndarray
    dc_tables: np.ndarray
    ac_tables: np.ndarray
    quantizers: np.ndarray
    across: int
    down: int
    height: int
    width: int
    size: int
    chroma_size: int
    coefficients: Coefficients


class Memory(NamedTuple):
    """Scratch memory for decoding; see :func:`memory_for`.

    Attributes:
        reader: the state of the bit reader, and its position in the restart intervals.
        predicted: the DC coefficient of each component's previous block.
        layout: the layout of the blocks of one unit; see :func:`_lay_out`.
        coefficients, reached: the results of :func:`decode_block` for the blocks of one unit; coefficients are in pairs of blocks.
        quantizers: the quantizers of the blocks of one unit, in the order of the coefficients.
        planes: the samples of a strip, followed by scratch memory for a block.
        blue, red: sums of rows of chroma, for one row of pixels.
    """

    reader: np.ndarray
    predicted: np.ndarray
    layout: np.ndarray
    coefficients: np.ndarray
    reached: np.ndarray
    quantizers: np.ndarray
    planes: np.ndarray
    blue: np.ndarray
    red: np.ndarray


PLACE, BITS, COUNT, _LEFT, _RESTARTS = range(5)
"""Elements of the reader."""
_COMPONENT, _DC, _AC, _START, _BEGIN, _STEP, _STRIDE, _SIZE = range(8)
_COLUMNS = 8
"""The number of columns of a layout, a power of two."""
_COMPONENTS = 3
# Blocks are transformed in pairs; a single block is paired with a block of zeros.
_MAX_BLOCKS, _MAX_PAIRS = 6, 3
_NOWHERE = PAIR
_PAIR = PAIR + 2 * OTHER
"""The distance from pair to pair. Coefficients that are ignored are written after those of both blocks."""
_KEPT, _DROPPED = order_of(PLACES, _NOWHERE), order_of(np.full_like(PLACES, _NOWHERE), _NOWHERE)
# A strip has up to 16 rows of luma and 8 of each chroma plane, each after the last row of the strip above; two more rows are scratch memory
# for upsampled chroma.
_WIDEST_UNIT, _ROWS_OF_STRIP = 32, 17 + 9 + 9 + 2
MAX_UNIT_ROWS = 16
"""The maximum number of rows of pixels in a unit."""
_SPARE = 64


def memory_for(width: int) -> Memory:
    """Return memory for decoding images of up to ``width`` columns."""
    stride = -(-width // _WIDEST_UNIT) * _WIDEST_UNIT + 2 * LANES
    return Memory(
        np.zeros(5, np.uint64),
        np.zeros(_COMPONENTS, np.int64),
        np.zeros((_MAX_BLOCKS + 1, _COLUMNS), np.int64),
        np.zeros(_MAX_PAIRS * _PAIR, np.int16),
        np.zeros(_MAX_BLOCKS + 1, np.uint64),
        np.zeros(_MAX_PAIRS * PAIR, np.int16),
        np.zeros(_ROWS_OF_STRIP * stride + _SPARE, np.uint8),
        np.zeros(stride, np.int16),
        np.zeros(stride, np.int16),
    )


class _Strip(NamedTuple):
    """The samples of a row of units, preceded by the last row of samples of the row of units above.

    Attributes:
        first, last: the first and last column of units.
        stride, chroma_stride: the distance from one row of samples to the next, of luma and of chroma, in samples.
        blue, red: the offsets of the chroma planes in :attr:`Memory.planes`.
        spare: the offset of scratch memory for two rows of chroma.
        grey: whether there is no chroma.
        unit_height, unit_width: the height and width of a unit in pixels.
        chroma_size: the number of rows, and of columns, of chroma samples in a unit.
        across, down: the subsampling of chroma that is left after blocks are transformed.
        is_repeated: whether chroma samples are repeated instead of smoothed.
        chroma_columns, chroma_rows: the number of chroma columns in the strip, and of chroma rows in the image, without padding.
    """

    first: int
    last: int
    stride: int
    chroma_stride: int
    blue: int
    red: int
    spare: int
    grey: bool
    unit_height: int
    unit_width: int
    chroma_size: int
    across: int
    down: int
    is_repeated: bool
    chroma_columns: int
    chroma_rows: int


class _Places(NamedTuple):
    """Pointers to arrays. With arrays instead, counting references to them in each row would take a twelfth of the time.

    Attributes:
        planes, blue, red: as in :class:`Memory`.
        pixels: the output's pixels.
    """

    planes: types.CPointer
    blue: types.CPointer
    red: types.CPointer
    pixels: types.CPointer


class _Strips(NamedTuple):
    """The state of decoding a region strip by strip.

    Attributes:
        strip: the layout of a strip, the same for all strips.
        blocks, used: the number of blocks in a unit, and how many of them the region needs.
        begin: the row of units at which decoding begins: the last one up to ``first`` that begins with a restart.
        first, last: the first and last row of units that the region needs.
        top, left, rows, columns, channels: the position and shape of the region.
    """

    strip: _Strip
    blocks: int
    used: int
    begin: int
    first: int
    last: int
    top: int
    left: int
    rows: int
    columns: int
    channels: int


class Consumer(NamedTuple):
    """A C function that takes the rows of decoded images, while they are in the cache, in place of writing them to `Files.targets`.

    Attributes:
        function: the function's address; 0: there is none. Its arguments are ``context``, the number of the file, the first row that it
            has not taken and the row after the last one that is decoded, all int64; its result is int32: 0, or another number if the
            image's sample cannot be computed.
        context: the function's first argument.
        rows: the minimum number of rows that it takes, except for the last ones of an image.
        last_rows: the minimum number of rows that are left for the last call, unless there is one call only.
    """

    function: int
    context: int
    rows: int
    last_rows: int


NO_CONSUMER = Consumer(0, 0, 0, 0)


@kernel
def decode_scan(
    scan: Scan,
    memory: Memory,
    region: tuple[int, int, int, int],
    channels: int,
    pixels: np.ndarray,
    reverse: bool,
    smooth: bool,
    consumer: Consumer,
    number: int,
) -> bool:
    """Decode a region of an image from its scan; return False for damaged data, or if ``consumer`` does.

    Args:
        scan: a :class:`Scan`.
        memory: from :func:`memory_for`, for images at least as wide.
        region: the region's first row and column, and its number of rows and columns, of which it has at least ``LANES``.
        channels: the number of channels of the pixels. If it is 1, and the image has three components, only luma is decoded.
        pixels: filled with the region; uint8 of shape (H * W * C,), contiguous. If there is a consumer, each of its calls finds
            the first row that it takes at the beginning, and ``pixels`` has space for ``consumer.rows + consumer.last_rows`` rows and those
            of two units, or for all rows.
        reverse: whether the pixels are in BGR order.
        smooth: whether chroma is smoothed where it is halved; otherwise samples are repeated.
        consumer: the function that takes the rows, or ``NO_CONSUMER``.
        number: the file's number, for the consumer.
    """
    strips = _begin_strips(scan, memory, region, channels, smooth)
    rows, taken, done = strips.rows, 0, 0
    for row in range(strips.begin, strips.last + 1):
        if not _decode_strip(scan, memory, strips, row):
            return False
        done = _convert_strip(scan, memory, strips, row, done, pixels, taken, reverse)
        if consumer.function and (done == rows or taken + consumer.rows <= done <= rows - consumer.last_rows):
            if call(consumer.function, (consumer.context, number, taken, done)):
                return False
            taken = done
    return _is_complete(scan, memory, strips)


@njit(inline="always", **OPTIONS)
def units_of_region(start: int, count: int, size: int, unit: int, sampling: int) -> tuple[int, int]:
    """Return the first and the last unit that a region needs in one dimension; to smooth chroma, a sample on each side is needed, too.

    Args:
        start, count: the region's first pixel, and its number of pixels.
        size: the image's size in pixels.
        unit: the size of a unit in pixels.
        sampling: the subsampling of chroma.
    """
    return max(start - sampling + 1, 0) // unit, min(start + count + sampling - 2, size - 1) // unit


@njit(inline="always", **OPTIONS)
def is_progressive(scan: Scan) -> bool:
    return scan.coefficients.planes.shape[0] > 0


@inner
def _begin_strips(
    scan: Scan, memory: Memory, region: tuple[int, int, int, int], channels: int, smooth: bool
) -> _Strips:
    """Prepare to decode a region strip by strip; see :func:`_decode_strip`."""
    top, left, rows, columns = region
    unit_height, unit_width, chroma_size = scan.size * scan.down, scan.size * scan.across, scan.chroma_size
    across, down = unit_width // chroma_size, unit_height // chroma_size
    first_column, last_column = units_of_region(left, columns, scan.width, unit_width, across)
    first, last = units_of_region(top, rows, scan.height, unit_height, down)
    chroma_stride = (last_column - first_column + 1) * chroma_size
    stride = chroma_stride * across
    blue = (1 + unit_height) * stride
    strip = _Strip(
        first_column,
        last_column,
        stride,
        chroma_stride,
        blue,
        blue + (1 + chroma_size) * chroma_stride,
        blue + 2 * (1 + chroma_size) * chroma_stride,
        scan.dc_tables.size == 1,
        unit_height,
        unit_width,
        chroma_size,
        across,
        down,
        # Chroma is not smoothed if it has a quarter of the columns, or if its blocks are reduced to one sample.
        not smooth or across == 4 or chroma_size == 1,
        min((scan.width + 1) // 2 - first_column * chroma_size, chroma_stride),
        (scan.height + 1) // 2,
    )
    if is_progressive(scan):
        for c in range(scan.coefficients.planes.shape[0]):
            _order_quantizer(scan, memory, c, c, 0)
            _order_quantizer(scan, memory, c, c, OTHER)
        return _Strips(strip, 0, 0, first, first, last, top, left, rows, columns, channels)
    begin, per_row = first, -(-scan.width // unit_width)
    while begin * per_row % scan.interval:
        begin -= 1
    begin_reading(scan, memory, begin * per_row // scan.interval)
    memory.coefficients[:] = 0
    blocks, used = _lay_out(scan, memory, strip, channels)
    return _Strips(strip, blocks, used, begin, first, last, top, left, rows, columns, channels)


@inner
def _decode_strip(scan: Scan, memory: Memory, strips: _Strips, row: int) -> bool:
    """Decode a row of units; return False for damaged data. Rows must be decoded in order, from ``begin`` to ``last``."""
    if is_progressive(scan):
        return _transform_units(scan, memory, strips, row)
    return _decode_units(scan, memory, strips.strip, strips.blocks, strips.used if row >= strips.first else 0)


@inner
def _convert_strip(
    scan: Scan, memory: Memory, strips: _Strips, row: int, done: int, pixels: np.ndarray, begin: int, reverse: bool
) -> int:
    """Convert the rows of the region that a row of units completes; return the number of rows that are then done.

    Args:
        done: the number of the region's rows that were converted before.
        pixels: filled with the rows; uint8, contiguous, beginning with the region's row ``begin``.
        reverse: whether the pixels are in BGR order.
    """
    if row < strips.first:
        return done
    strip, height, bottom = strips.strip, strips.strip.unit_height, strips.top + strips.rows
    planes = pointer(memory.planes)
    places = _Places(planes, pointer(memory.blue), pointer(memory.red), pointer(pixels))
    # If chroma is subsampled vertically, the last row of a strip needs chroma of the next strip.
    ready = bottom if row == strips.last else min((row + 1) * height - (strip.down - 1), bottom)
    for y in range(strips.top + done, ready):
        target = (y - strips.top - begin) * strips.columns
        _convert_row(strip, places, row, y, strips.left, strips.columns, strips.channels, target, reverse)
    _keep_last_row(planes, 0, height, strip.stride)
    _keep_last_row(planes, strip.blue, strip.chroma_size, strip.chroma_stride)
    _keep_last_row(planes, strip.red, strip.chroma_size, strip.chroma_stride)
    return max(done, ready - strips.top)


@inner
def _is_complete(scan: Scan, memory: Memory, strips: _Strips) -> bool:
    """Return whether the data end where they should. True if the last row that was read ends neither a restart interval nor the image."""
    is_last = strips.last == (scan.height - 1) // strips.strip.unit_height
    if is_progressive(scan) or not (is_last or memory.reader[_LEFT] == 0):
        return True
    return _consumed(memory.reader) == scan.ends[np.int64(memory.reader[_RESTARTS])]


@njit(inline="always", **OPTIONS)
def begin_reading(scan: Scan, memory: Memory, restarts: int) -> None:
    """Move the reader to the start of the restart interval after ``restarts`` restarts."""
    memory.reader[:] = 0
    begin = scan.ends[restarts - 1] if restarts > 0 else 0
    _read_from(pointer(scan.data), np.uint64(begin), pointer(memory.reader))
    memory.reader[_RESTARTS] = restarts
    memory.reader[_LEFT] = scan.interval
    memory.predicted[:] = 0


@njit(inline="always", **OPTIONS)
def begin_unit(
    data: types.CPointer, ends: types.CPointer, interval: int, reader: types.CPointer, predicted: types.CPointer
) -> bool:
    """Prepare to read a unit: if it is the first of a restart interval, restart; return False if the previous interval's data do not
    end there.
    """
    if at(reader, _LEFT) == 0 and not _restart(data, ends, interval, reader, predicted):
        return False
    put(reader, _LEFT, at(reader, _LEFT) - np.uint64(1))
    return True


@njit(inline="always", **OPTIONS)
def is_beyond(ends: types.CPointer, reader: types.CPointer) -> bool:
    """Return whether more data were read than the restart interval has."""
    return _consumed(reader) > at(ends, at(reader, _RESTARTS))


@njit(inline="always", **OPTIONS)
def at_end(scan: Scan, memory: Memory) -> bool:
    """Return whether all of the scan was read."""
    return _consumed(memory.reader) == scan.ends[scan.ends.size - 1]


@njit(inline="always", **OPTIONS)
def _consumed(reader: np.ndarray | types.CPointer) -> np.int64:
    """Return the number of bytes consumed, including one that is partly consumed."""
    return np.int64(at(reader, PLACE) - (at(reader, COUNT) >> np.uint64(3)))


@njit(inline="always", **OPTIONS)
def put_reader(reader: types.CPointer, place: np.uint64, bits: np.uint64, count: np.uint64) -> None:
    put(reader, PLACE, place)
    put(reader, BITS, bits)
    put(reader, COUNT, count)


@njit(inline="always", **OPTIONS)
def _read_from(data: types.CPointer, place: np.uint64, reader: types.CPointer) -> None:
    """Move the reader to the byte at ``place``, and fill its bit buffer."""
    after, bits, count = refilled(data, place, np.uint64(0), np.uint64(0))
    put_reader(reader, after, bits, count)


@njit(inline="always", **OPTIONS)
def _restart(
    data: types.CPointer, ends: types.CPointer, interval: int, reader: types.CPointer, predicted: types.CPointer
) -> bool:
    """Continue with the next restart interval; return False if the data of the current one do not end here."""
    restarts = np.int64(at(reader, _RESTARTS))
    if _consumed(reader) != at(ends, restarts):
        return False
    _read_from(data, np.uint64(at(ends, restarts)), reader)
    put(reader, _LEFT, interval)
    put(reader, _RESTARTS, restarts + 1)
    for c in range(_COMPONENTS):
        put(predicted, c, 0)
    return True


@njit(inline="always", **OPTIONS)
def _known(reached: np.uint64) -> np.int64:
    """Return the number of coefficients of a block, in zig-zag order, that may be nonzero; ``reached`` is from :func:`decode_block`."""
    return np.int64(reached) - ENDED + 1 if reached >= ENDED else np.int64(FULL)


@inner
def _lay_out(scan: Scan, memory: Memory, strip: _Strip, channels: int) -> tuple[int, int]:
    """Describe each block of a unit in a row of ``memory.layout``: its component and code tables, the offset of its coefficients, the
    offset in the strip of its samples in the first unit, the distances from unit to unit and from row to row, and the
    number of rows. Also order the quantizers of the blocks.

    The two blocks of a pair have the same size.

    Returns:
        The number of blocks in a unit, and how many of them are needed. Samples of blocks that are not needed are written to scratch
        memory.
    """
    lumas, components, layout, size = scan.across * scan.down, scan.dc_tables.size, memory.layout, scan.size
    blocks = lumas + components - 1
    used = lumas if channels == 1 else blocks
    for i in range(blocks + 1):
        c = min(max(i - lumas + 1, 0), components - 1)
        pair, second = i // 2, i % 2
        layout[i, _COMPONENT], layout[i, _START] = c, pair * _PAIR + second * OTHER
        if pair < _MAX_PAIRS:
            _order_quantizer(scan, memory, c, pair, second * OTHER)
        layout[i, _DC], layout[i, _AC] = scan.dc_tables[c], scan.ac_tables[c]
        layout[i, _SIZE] = size if c == 0 else scan.chroma_size
        if i >= used:
            layout[i, _BEGIN], layout[i, _STEP], layout[i, _STRIDE] = memory.planes.size - _SPARE, 0, 8
        elif i < lumas:
            layout[i, _BEGIN] = (1 + size * (i // scan.across)) * strip.stride + size * (i % scan.across)
            layout[i, _STEP], layout[i, _STRIDE] = strip.unit_width, strip.stride
        else:
            layout[i, _BEGIN] = (strip.blue if c == 1 else strip.red) + strip.chroma_stride
            layout[i, _STEP], layout[i, _STRIDE] = strip.chroma_size, strip.chroma_stride
    return blocks, used


@njit(inline="always", **OPTIONS)
def _order_quantizer(scan: Scan, memory: Memory, c: int, pair: int, other: int) -> None:
    """Store a component's quantizers in the order of the coefficients of a block in a pair."""
    for k in range(FULL):
        memory.quantizers[pair * PAIR + other + PLACES[k]] = scan.quantizers[c * FULL + k]


@inner
def _transform_units(scan: Scan, memory: Memory, strips: _Strips, row: int) -> bool:
    """Compute the samples of a row of units from coefficients; return False for damaged data."""
    strip, sizes = strips.strip, zeros_short(16)
    planes, quantizers = pointer(memory.planes), pointer(memory.quantizers)
    nowhere = memory.planes.size - _SPARE
    for c in range(scan.coefficients.planes.shape[0] if strips.channels > 1 else 1):
        down, size, stride, begin = scan.down, scan.size, strip.stride, strip.stride
        if c > 0:
            down, size, stride = 1, scan.chroma_size, strip.chroma_stride
            begin = (strip.blue if c == 1 else strip.red) + stride
        for y in range(down):
            sizes = sizes | transform_row(
                scan.coefficients,
                c,
                row * down + y,
                quantizers,
                c * PAIR,
                planes,
                begin + size * y * stride,
                stride,
                nowhere,
                size,
            )
    return any_lane(sizes) >= 0


@inner
def _decode_units(scan: Scan, memory: Memory, strip: _Strip, blocks: int, used: int) -> bool:
    """Decode a row of units, and compute the samples of those in the strip; return False for damaged data.

    Args:
        blocks: the number of blocks in a unit.
        used: the number of blocks in a unit that the strip needs.
    """
    reader, predicted, reached = pointer(memory.reader), pointer(memory.predicted), pointer(memory.reached)
    data, ends, tables = pointer(scan.data), pointer(scan.ends), pointer(scan.tables)
    coefficients, quantizers, planes = pointer(memory.coefficients), pointer(memory.quantizers), pointer(memory.planes)
    layout, interval, kept, dropped = pointer(memory.layout), scan.interval, pointer(_KEPT), pointer(_DROPPED)
    first, last = strip.first, strip.last
    sizes = zeros_short(16)
    for column in range(-(-scan.width // strip.unit_width)):
        if not begin_unit(data, ends, interval, reader, predicted):
            return False
        wanted = used if first <= column <= last else 0
        place, bits, count = at(reader, PLACE), at(reader, BITS), at(reader, COUNT)
        invalid = np.uint64(0)
        for i in range(blocks):
            own = i * _COLUMNS
            c, dc, ac = at(layout, own + _COMPONENT), at(layout, own + _DC), at(layout, own + _AC)
            place, bits, count, value, end = decode_block(
                data,
                place,
                bits,
                count,
                tables,
                np.uint64(dc),
                np.uint64(ac),
                at(predicted, c),
                coefficients,
                np.uint64(at(layout, own + _START)),
                kept if i < wanted else dropped,
            )
            put(predicted, c, value)
            put(reached, i, end)
            invalid |= end & np.uint64(FULL)
        put_reader(reader, place, bits, count)
        if invalid or is_beyond(ends, reader):
            return False
        put(reached, blocks, ENDED)
        for i in range(0, wanted, 2):
            own, next_one = i * _COLUMNS, (i + 1) * _COLUMNS
            sizes = sizes | transform_pair(
                coefficients,
                at(layout, own + _START),
                quantizers,
                i // 2 * PAIR,
                max(_known(at(reached, i)), _known(at(reached, i + 1))),
                planes,
                at(layout, own + _BEGIN) + (column - first) * at(layout, own + _STEP),
                at(layout, own + _STRIDE),
                at(layout, next_one + _BEGIN) + (column - first) * at(layout, next_one + _STEP),
                at(layout, next_one + _STRIDE),
                at(layout, own + _SIZE),
            )
    return any_lane(sizes) >= 0


@inner
def _convert_row(
    strip: _Strip,
    places: _Places,
    row: int,
    y: int,
    left: int,
    columns: int,
    channels: int,
    target: int,
    reverse: bool,
) -> None:
    """Convert the pixels of row ``y`` of the image, which is in the current strip, from column ``left`` on.

    Args:
        target: the index in the output of the row's first pixel.
    """
    planes, pixels, down = places.planes, places.pixels, strip.down
    start = left - strip.first * strip.unit_width
    luma = (y - row * strip.unit_height + 1) * strip.stride + start
    if channels == 1:
        for x in range(columns):
            put(pixels, target + x, at(planes, luma + x))
        return
    if strip.grey:
        spread_row(planes, luma, columns, pixels, target * 3)
        return
    near = y // down
    above = (near - row * strip.chroma_size + 1) * strip.chroma_stride
    blue, red = strip.blue + above, strip.red + above
    far = min(max(near + (1 if y % 2 else -1), 0), strip.chroma_rows - 1)
    step = (far - near) * strip.chroma_stride
    across, is_repeated, known = strip.across, strip.is_repeated, strip.chroma_columns
    if across == 2 and is_repeated:
        weigh_row(planes, blue, known, places.blue)
        weigh_row(planes, red, known, places.red)
        convert_repeated_row(planes, luma, places.blue, places.red, start, columns, pixels, target * 3, reverse)
        return
    if (is_repeated and across > 1) or (across == 1 and down == 2):
        first, second = strip.spare, strip.spare + strip.stride
        if across > 1:
            sample, rest = start // across, start % across
            count = -(-(rest + columns) // across)
            repeat_samples(planes, blue + sample, count, across, first)
            repeat_samples(planes, red + sample, count, across, second)
            first += rest
            second += rest
        elif is_repeated:
            first, second = blue + start, red + start
        else:
            blend_rows(planes, blue + start, blue + start + step, 1 + y % 2, columns, first)
            blend_rows(planes, red + start, red + start + step, 1 + y % 2, columns, second)
        convert_row(planes, luma, first, second, columns, pixels, target * 3, reverse)
        return
    if across == 1:
        convert_row(planes, luma, blue + start, red + start, columns, pixels, target * 3, reverse)
        return
    if down == 1:
        even, odd = 4, 8
        weigh_row(planes, blue, known, places.blue)
        weigh_row(planes, red, known, places.red)
    else:
        even, odd = 8, 7
        weigh_rows(planes, blue, blue + step, known, places.blue)
        weigh_rows(planes, red, red + step, known, places.red)
    convert_doubled_row(planes, luma, places.blue, places.red, start, even, odd, columns, pixels, target * 3, reverse)


@njit(inline="always", **OPTIONS)
def _keep_last_row(planes: types.CPointer, begin: int, height: int, stride: int) -> None:
    """Copy the last row of a plane in front of its first row, as the row above the next strip."""
    for x in range(stride):
        put(planes, begin + x, at(planes, begin + height * stride + x))
