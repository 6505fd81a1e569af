"""The compiled loop over a batch: from encoded bytes to decoded images without the GIL.

Images that the first decoder rejects go to the second, so which one decodes an image does not depend on the rest of the
batch. Baseline JPEGs may be spared that: the JPEG engine takes them, unless it fails, and then the second would give them other
pixels than they mostly have.
"""

from __future__ import annotations

import numpy as np
from numba import types

from penstock.kernels.codecs.nvimgcodec.library import FUNCTIONS, CodeStreamView, ImageInfo, PlaneInfo, Region
from penstock.kernels.cpu.foreign import call, set_int, set_word, word_at
from penstock.kernels.cpu.jpeg import headers
from penstock.kernels.cpu.options import brief, cfunc, inner, kernel

# The words of a batch: numbers, and addresses held by :class:`penstock.kernels.codecs.nvimgcodec.decoder.Decoded`.
COUNT, TABLE, INSTANCE, FIRST, SECOND, SPARED, INFO, SEEN, VIEW, PARAMS, WORK, FUNCTION_TABLE, BATCH_WORDS = range(13)
# The words of an image's row in the table. A region of zeros means the whole image; STATE is the result.
DATA, LENGTH, OUTPUT, HEIGHT, WIDTH, CHANNELS, TOP, LEFT, BOTTOM, RIGHT, STATE, IMAGE_WORDS = range(12)
# The words per image in the loop's work space, and the words needed in addition.
_STREAM, _WHOLE, _IMAGE, _WHICH, _TRIED_STREAM, _TRIED_IMAGE, _STATUS, _WORK_COLUMNS = range(8)
_FUTURE, _SIZE, _WORK_EXTRA = range(3)

_WORD, _INT = 8, 4
_PLANE = ImageInfo.plane_info.offset
_INFO_SIZE = _PLANE + PlaneInfo.width.offset
_INFO_STRIDE = _PLANE + PlaneInfo.row_stride.offset
_INFO_KIND = _PLANE + PlaneInfo.num_channels.offset
_INFO_BUFFER = ImageInfo.buffer.offset
_VIEW_STARTS = CodeStreamView.region.offset + Region.start.offset
_VIEW_ENDS = CodeStreamView.region.offset + Region.end.offset
UINT8_SAMPLES = 0x0802
ALIGNMENT = 256
"""Of decoded images, in bytes."""
_SUCCESS = 1
_BY_SECOND = 2

(
    _CREATE_STREAM,
    _GET_INFO,
    _GET_PART,
    _DESTROY_STREAM,
    _CREATE_IMAGE,
    _DESTROY_IMAGE,
    _DECODE,
    _WAIT,
    _GET_STATUS,
    _DESTROY_FUTURE,
) = range(len(FUNCTIONS))


def block_words(count: int) -> int:
    """Words of a block for ``count`` images: those of the batch, the table, and the loop's work space."""
    return BATCH_WORDS + count * (IMAGE_WORDS + _WORK_COLUMNS) + _WORK_EXTRA


@kernel
def prepare_jpegs(
    places: np.ndarray,
    sizes: np.ndarray,
    channels: int,
    most: int,
    block: np.ndarray,
    found: np.ndarray,
    shapes: np.ndarray,
) -> tuple[int, int]:
    """Fills the table in a block of zeros for files that are all ordinary JPEGs, whole, and stored upright.

    Args:
        places, sizes: addresses and bytes of the files.
        channels: of the decoded images.
        most: pixels that an image may have; 0: any number.
        block: of the batch, whose images get offsets in place of addresses to decode to.
        found: their headers, as :func:`penstock.kernels.cpu.jpeg.headers.read_headers` gives them; zeros before.
        shapes: receives those of the decoded images, in rows.

    Returns:
        The bytes that the decoded images take, and the sum of their pixels; zeros if one of the files is of another kind.
    """
    room = pixels = 0
    for index in range(len(places)):
        header = found[index]
        if not headers.read_header(places[index], sizes[index], header):
            return 0, 0
        own = header[headers.HEIGHT] * header[headers.WIDTH]
        if headers.is_turned(header[headers.ORIENTATION]) or (most != 0 and own > most):
            return 0, 0
        if not headers.is_whole(places[index], sizes[index]):
            return 0, 0
        image = BATCH_WORDS + IMAGE_WORDS * index
        block[image + DATA], block[image + LENGTH], block[image + OUTPUT] = places[index], sizes[index], room
        block[image + HEIGHT], block[image + WIDTH] = header[headers.HEIGHT], header[headers.WIDTH]
        block[image + CHANNELS] = channels
        shapes[index, 0], shapes[index, 1] = header[headers.HEIGHT], header[headers.WIDTH]
        shapes[index, 2] = channels
        room += -(-own * channels // ALIGNMENT) * ALIGNMENT
        pixels += own
    return room, pixels


@brief
def complete_block(block: np.ndarray, count: int, constants: np.ndarray, base: int) -> int:
    """Fills in the words of a batch whose table is filled in; returns the block's address.

    Args:
        block: of the batch.
        count: of its images.
        constants: the words that all batches of this kind share.
        base: added to what the table says of where to decode to.
    """
    address = block.ctypes.data
    block[:BATCH_WORDS] = constants
    block[COUNT] = count
    block[TABLE] = address + _WORD * BATCH_WORDS
    block[WORK] = block[TABLE] + _WORD * IMAGE_WORDS * count
    for index in range(count):
        block[BATCH_WORDS + IMAGE_WORDS * index + OUTPUT] += base
    return address


@kernel
def _function(batch: int, number: int) -> int:
    return word_at(word_at(batch + _WORD * FUNCTION_TABLE) + _WORD * number)


@inner
def _column(batch: int, column: int) -> int:
    """The address of a column of the work space."""
    return word_at(batch + _WORD * WORK) + _WORD * column * word_at(batch + _WORD * COUNT)


@inner
def _open_part(batch: int, image: int, whole: int, place: int) -> bool:
    """Stores the handle of a stream of the requested region at an address; returns whether that succeeded."""
    view = word_at(batch + _WORD * VIEW)
    set_int(view + _VIEW_STARTS, word_at(image + _WORD * TOP))
    set_int(view + _VIEW_STARTS + _INT, word_at(image + _WORD * LEFT))
    set_int(view + _VIEW_ENDS, word_at(image + _WORD * BOTTOM))
    set_int(view + _VIEW_ENDS + _INT, word_at(image + _WORD * RIGHT))
    return call(_function(batch, _GET_PART), (whole, place, view)) == 0


@inner
def _is_as_announced(batch: int, image: int, stream: int) -> bool:
    """Whether the library sees the same image size as we do: it writes as much as it believes there to be."""
    seen = word_at(batch + _WORD * SEEN)
    if call(_function(batch, _GET_INFO), (stream, seen)) != 0:
        return False
    size = word_at(image + _WORD * WIDTH) | word_at(image + _WORD * HEIGHT) << 32
    return word_at(seen + _INFO_SIZE) == size and word_at(seen + _INFO_KIND) >> 32 == UINT8_SAMPLES


@inner
def _create_image(batch: int, image: int, place: int) -> bool:
    """Stores the handle of an image, in the memory to decode into, at an address; returns whether that succeeded."""
    info = word_at(batch + _WORD * INFO)
    height, width = word_at(image + _WORD * HEIGHT), word_at(image + _WORD * WIDTH)
    if word_at(image + _WORD * BOTTOM) != 0:
        height = word_at(image + _WORD * BOTTOM) - word_at(image + _WORD * TOP)
        width = word_at(image + _WORD * RIGHT) - word_at(image + _WORD * LEFT)
    channels = word_at(image + _WORD * CHANNELS)
    set_word(info + _INFO_SIZE, width | height << 32)
    set_word(info + _INFO_STRIDE, width * channels)
    set_word(info + _INFO_KIND, channels | UINT8_SAMPLES << 32)
    set_word(info + _INFO_BUFFER, word_at(image + _WORD * OUTPUT))
    return call(_function(batch, _CREATE_IMAGE), (word_at(batch + _WORD * INSTANCE), place, info)) == 0


@kernel
def _open(batch: int, index: int) -> bool:
    """Creates the handles for decoding an image; returns False if it can't be decoded here."""
    image = word_at(batch + _WORD * TABLE) + _WORD * IMAGE_WORDS * index
    whole, stream = _column(batch, _WHOLE) + _WORD * index, _column(batch, _STREAM) + _WORD * index
    data, length = word_at(image + _WORD * DATA), word_at(image + _WORD * LENGTH)
    if call(_function(batch, _CREATE_STREAM), (word_at(batch + _WORD * INSTANCE), whole, data, length, 0)) != 0:
        set_word(whole, 0)
        return False
    if not _is_as_announced(batch, image, word_at(whole)):
        return False
    if word_at(image + _WORD * BOTTOM) == 0:
        set_word(stream, word_at(whole))
    elif not _open_part(batch, image, word_at(whole), stream):
        set_word(stream, 0)
        return False
    if not _create_image(batch, image, _column(batch, _IMAGE) + _WORD * index):
        set_word(_column(batch, _IMAGE) + _WORD * index, 0)
        return False
    return True


@inner
def _clear(batch: int) -> None:
    """Clears the handles of an earlier run."""
    for place in range(_WORK_COLUMNS * word_at(batch + _WORD * COUNT)):
        set_word(word_at(batch + _WORD * WORK) + _WORD * place, 0)


@inner
def _close(batch: int, index: int) -> None:
    image = word_at(_column(batch, _IMAGE) + _WORD * index)
    stream, whole = word_at(_column(batch, _STREAM) + _WORD * index), word_at(_column(batch, _WHOLE) + _WORD * index)
    if image != 0:
        call(_function(batch, _DESTROY_IMAGE), (image,))
    if stream != 0 and stream != whole:
        call(_function(batch, _DESTROY_STREAM), (stream,))
    if whole != 0:
        call(_function(batch, _DESTROY_STREAM), (whole,))


@inner
def _try(batch: int, decoder: int, state: int, count: int) -> int:
    """Decodes the listed images; marks those that succeed, and lists the others again, returning their number."""
    which = _column(batch, _WHICH)
    streams, images, statuses = _column(batch, _TRIED_STREAM), _column(batch, _TRIED_IMAGE), _column(batch, _STATUS)
    extra = _column(batch, _WORK_COLUMNS)
    for place in range(count):
        index = word_at(which + _WORD * place)
        set_word(streams + _WORD * place, word_at(_column(batch, _STREAM) + _WORD * index))
        set_word(images + _WORD * place, word_at(_column(batch, _IMAGE) + _WORD * index))
        set_word(statuses + _WORD * place, 0)
    future, params = extra + _WORD * _FUTURE, word_at(batch + _WORD * PARAMS)
    if call(_function(batch, _DECODE), (decoder, streams, images, count, params, future)) != 0:
        return count
    call(_function(batch, _WAIT), (word_at(future),))
    set_word(extra + _WORD * _SIZE, count)
    call(_function(batch, _GET_STATUS), (word_at(future), statuses, extra + _WORD * _SIZE))
    call(_function(batch, _DESTROY_FUTURE), (word_at(future),))
    left = 0
    for place in range(count):
        index = word_at(which + _WORD * place)
        status = word_at(statuses + _WORD * (place // 2)) >> 32 * (place % 2) & 0xFFFFFFFF
        if status == _SUCCESS:
            set_word(word_at(batch + _WORD * TABLE) + _WORD * (IMAGE_WORDS * index + STATE), state)
        else:
            set_word(which + _WORD * left, index)
            left += 1
    return left


@inner
def _is_left(batch: int, index: int, second: bool) -> bool:
    """Whether an image is not decoded yet, and for this decoder, if it is the ``second``."""
    image = word_at(batch + _WORD * TABLE) + _WORD * IMAGE_WORDS * index
    if word_at(image + _WORD * STATE) != 0:
        return False
    spared = second and word_at(batch + _WORD * SPARED) != 0
    return not (spared and headers.is_baseline(word_at(image + _WORD * DATA), word_at(image + _WORD * LENGTH)))


@kernel
def is_any_left(batch: int) -> bool:
    """Whether a second decoder would be given images of a batch, by the address of its block."""
    left = 0
    for index in range(word_at(batch + _WORD * COUNT)):
        left += _is_left(batch, index, True)
    return left != 0


@kernel
def _decode_with(batch: int, decoder: int, state: int) -> int:
    """Decodes the images that no decoder has taken yet, with new handles."""
    left = 0
    _clear(batch)
    for index in range(word_at(batch + _WORD * COUNT)):
        if _is_left(batch, index, state == _BY_SECOND) and _open(batch, index):
            set_word(_column(batch, _WHICH) + _WORD * left, index)
            left += 1
    if left != 0:
        left = _try(batch, decoder, state, left)
    for index in range(word_at(batch + _WORD * COUNT)):
        _close(batch, index)
    return left


@cfunc(types.int32(types.int64), cache=True)
def decode_batch(batch: int) -> int:
    """Decodes a batch; each image's state becomes 1 or 2, by the decoder that took it, or stays 0."""
    first, second = word_at(batch + _WORD * FIRST), word_at(batch + _WORD * SECOND)
    if _decode_with(batch, first, 1) != 0 and second != 0:
        _decode_with(batch, second, _BY_SECOND)
    return 0
