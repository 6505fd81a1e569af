"""Decoding of FLAC streams as common encoders write them; other streams, and damaged ones, are left to libsndfile.

Source: RFC 9639, sections 9 (frames), 9.2 (subframes) and 9.3 (checksums).
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import OPTIONS, inner, kernel, njit
from penstock.kernels.cpu.simd_integers import leading_zeros, load_word

MARGIN = 16
"""The number of bytes to append to the data, because whole words are read from any position in the data."""

# The number of values before a block in which earlier samples are stored: predictors have at most this order.
_HISTORY = 32
_SYNC = 0xFFF8
# Values of the 6 bits that encode the type of a subframe.
_CONSTANT, _VERBATIM, _FIXED, _HIGHEST_FIXED, _LINEAR = 0, 1, 8, 12, 32
# The minimum number of bits in a loaded word from the wanted bit on, which may be any bit of the first byte.
_WORD = 57


def _checksums(polynomial: int, bits: int) -> np.ndarray:
    """Return the checksum of each byte followed by 0 to 7 zero bytes, of shape (8, 256)."""
    top, table = 1 << bits - 1, np.arange(256, dtype=np.int64) << bits - 8
    for _ in range(8):
        table = np.where(table & top, table << 1 ^ polynomial, table << 1) & 2 * top - 1
    rows = [table]
    for _ in range(7):
        rows.append(rows[-1] << 8 & 2 * top - 1 ^ table[rows[-1] >> bits - 8])
    return np.array(rows)


_CRC_8, _CRC_16 = _checksums(0x07, 8)[0].astype(np.uint8), _checksums(0x8005, 16).astype(np.uint16)


@inner
def _crc_8(data: np.ndarray, start: int, end: int) -> int:
    checksum = 0
    for i in range(start, end):
        checksum = int(np.int64(_CRC_8[checksum ^ data[i]]))
    return checksum


@inner
def _crc_16(data: np.ndarray, start: int, end: int) -> int:
    checksum, whole = 0, end - (end - start) % 8
    for i in range(start, whole, 8):
        high, low = checksum >> 8 ^ data[i], checksum & 255 ^ data[i + 1]
        combined = _CRC_16[7, high] ^ _CRC_16[6, low] ^ _CRC_16[5, data[i + 2]] ^ _CRC_16[4, data[i + 3]]
        combined ^= _CRC_16[3, data[i + 4]] ^ _CRC_16[2, data[i + 5]] ^ _CRC_16[1, data[i + 6]]
        checksum = int(np.int64(combined ^ _CRC_16[0, data[i + 7]]))
    for i in range(whole, end):
        checksum = checksum << 8 & 0xFFFF ^ int(np.int64(_CRC_16[0, checksum >> 8 ^ data[i]]))
    return checksum


@inner
def _unsigned(data: np.ndarray, position: int, bits: int) -> int:
    """Return the unsigned number of ``bits`` bits, at most 57, at a bit position."""
    word = load_word(data, position >> 3) << np.uint64(position & 7)
    return int(np.int64(word >> np.uint64(1) >> np.uint64(63 - bits)))


@inner
def _signed(data: np.ndarray, position: int, bits: int) -> int:
    number = _unsigned(data, position, bits)
    return number - ((number >> bits - 1) << bits) if bits else 0


@inner
def _ones_after_zeros(data: np.ndarray, position: int, end: int) -> int:
    """Return the position of the next set bit; -1 if there is none before ``end``."""
    while position < end:
        word = load_word(data, position >> 3) << np.uint64(position & 7)
        zeros = leading_zeros(word)
        if zeros < _WORD:
            position += zeros
            return position if position < end else -1
        position += _WORD
    return -1


@inner
def _read_rice(
    data: np.ndarray, position: int, end: int, parameter: int, samples: np.ndarray, first: int, last: int
) -> int:
    """Read Rice-coded differences; return the position after them; -1: the data are damaged."""
    i = first
    while i < last:
        if position >= end:
            return -1
        word = load_word(data, position >> 3) << np.uint64(position & 7)
        zeros = leading_zeros(word)
        size = zeros + 1 + parameter
        if size > _WORD:
            one = _ones_after_zeros(data, position, end)
            if one < 0:
                return -1
            low = np.uint64(_unsigned(data, one + 1, parameter))
            samples[i] = _difference(one - position, low, parameter)
            position = one + 1 + parameter
            i += 1
            continue
        samples[i] = _difference(zeros, _low_bits(word, zeros, parameter), parameter)
        i += 1
        if i < last:
            # Usually the word contains the next code, too, which is known before another word could be loaded.
            word <<= np.uint64(size)
            zeros = leading_zeros(word)
            both = size + zeros + 1 + parameter
            if both <= _WORD:
                samples[i] = _difference(zeros, _low_bits(word, zeros, parameter), parameter)
                size = both
                i += 1
        position += size
    return position


@njit(inline="always", **OPTIONS)
def _low_bits(word: np.uint64, zeros: int, parameter: int) -> np.uint64:
    """Return the bits after the first set bit of a word, which follows ``zeros`` zeros."""
    return word << np.uint64(zeros) << np.uint64(1) >> np.uint64(1) >> np.uint64(63 - parameter)


@njit(inline="always", **OPTIONS)
def _difference(zeros: int, low: np.uint64, parameter: int) -> np.int64:
    """Return the difference that a Rice code stands for."""
    folded = np.int64(np.uint64(zeros) << np.uint64(parameter) | low)
    return folded >> 1 ^ -(folded & 1)


@inner
def _read_differences(data: np.ndarray, position: int, end: int, samples: np.ndarray, order: int, size: int) -> int:
    """Read the residuals of a prediction into ``samples[_HISTORY + order:]``; return the bit position after them, or -1 if the data are
    damaged.
    """
    wide, partition = _unsigned(data, position, 2), _unsigned(data, position + 2, 4)
    position += 6
    if wide > 1 or size % (1 << partition) or size >> partition < order:
        return -1
    first, bits, escape = _HISTORY + order, 4 + wide, (16 << wide) - 1
    for number in range(1 << partition):
        last = _HISTORY + (number + 1) * (size >> partition)
        if position >= end:
            return -1
        parameter = _unsigned(data, position, bits)
        position += bits
        if parameter < escape:
            position = _read_rice(data, position, end, parameter, samples, first, last)
            if position < 0:
                return -1
        else:
            plain = _unsigned(data, position, 5)
            position += 5
            if position + plain * (last - first) > end:
                return -1
            for i in range(first, last):
                samples[i] = _signed(data, position, plain)
                position += plain
        first = last
    return position


@inner
def _predict_fixed(samples: np.ndarray, order: int, first: int, last: int) -> None:
    if order == 1:
        for i in range(first, last):
            samples[i] += samples[i - 1]
    elif order == 2:
        for i in range(first, last):
            samples[i] += 2 * samples[i - 1] - samples[i - 2]
    elif order == 3:
        for i in range(first, last):
            samples[i] += 3 * (samples[i - 1] - samples[i - 2]) + samples[i - 3]
    elif order == 4:
        for i in range(first, last):
            samples[i] += 4 * (samples[i - 1] + samples[i - 3]) - 6 * samples[i - 2] - samples[i - 4]


@inner
def _predict_by_eight(samples: np.ndarray, factors: np.ndarray, shift: int, first: int, last: int) -> None:
    """Undo a linear prediction of order 8 at most: add its prediction, from the eight samples before, to each sample.

    All eight samples and factors stay in registers.
    """
    a, b, c, d, e, f, g, h = factors[:8]
    p, q, r, s = samples[first - 1], samples[first - 2], samples[first - 3], samples[first - 4]
    t, u, v, w = samples[first - 5], samples[first - 6], samples[first - 7], samples[first - 8]
    for i in range(first, last):
        total = (h * w + g * v + f * u + e * t) + (d * s + c * r) + b * q + a * p
        w, v, u, t, s, r, q = v, u, t, s, r, q, p
        p = samples[i] + (total >> shift)
        samples[i] = p


@inner
def _predict(samples: np.ndarray, factors: np.ndarray, order: int, shift: int, first: int, last: int) -> None:
    """Undo a linear prediction of any order."""
    for i in range(first, last):
        total = 0
        for k in range(order):
            total += factors[k] * samples[i - 1 - k]
        samples[i] += total >> shift


@inner
def _read_subframe(
    data: np.ndarray, position: int, end: int, bits: int, size: int, samples: np.ndarray, factors: np.ndarray
) -> int:
    """Read a channel's block into ``samples[_HISTORY:]``; return the bit position after it, or -1 if the data are damaged."""
    if position + 8 > end or _unsigned(data, position, 1):
        return -1
    kind, wasted = _unsigned(data, position + 1, 6), _unsigned(data, position + 7, 1)
    position += 8
    if wasted:
        one = _ones_after_zeros(data, position, end)
        wasted = one - position + 1
        if one < 0 or wasted >= bits:
            return -1
        bits -= wasted
        position = one + 1
    first, last = _HISTORY, _HISTORY + size
    if kind == _CONSTANT:
        samples[first:last] = _signed(data, position, bits)
        position += bits
    elif kind == _VERBATIM:
        if position + bits * size > end:
            return -1
        for i in range(first, last):
            samples[i] = _signed(data, position, bits)
            position += bits
    else:
        fixed = _FIXED <= kind <= _HIGHEST_FIXED
        order = kind - _FIXED if fixed else kind - _LINEAR + 1
        if (not fixed and kind < _LINEAR) or order > size or position + order * bits > end:
            return -1
        for i in range(first, first + order):
            samples[i] = _signed(data, position, bits)
            position += bits
        shift = 0
        if not fixed:
            precision, shift = _unsigned(data, position, 4) + 1, _signed(data, position + 4, 5)
            position += 9
            if precision == 16 or shift < 0 or position + order * precision > end:
                return -1
            factors[:] = 0
            for k in range(order):
                factors[k] = _signed(data, position, precision)
                position += precision
        position = _read_differences(data, position, end, samples, order, size)
        if position < 0:
            return -1
        if fixed:
            _predict_fixed(samples, order, first + order, last)
        elif order <= 8:
            _predict_by_eight(samples, factors, shift, first + order, last)
        else:
            _predict(samples, factors, order, shift, first + order, last)
    if wasted:
        for i in range(first, last):
            samples[i] <<= wasted
    return position if position <= end else -1


@inner
def _coded_number_size(data: np.ndarray, at: int) -> int:
    """Return the size in bytes of the number of a frame or sample, which is coded as in UTF-8; 0 if the code is invalid."""
    first, size = data[at], 0
    while size < 8 and first & 128 >> size:
        size += 1
    if size == 0:
        return 1
    if size == 1 or size == 8:
        return 0
    for i in range(1, size):
        if data[at + i] & 0xC0 != 0x80:
            return 0
    return size


@inner
def _block_size(data: np.ndarray, code: int, at: int) -> tuple[int, int]:
    """Return the block size in samples, and the number of bytes at ``at`` that encode the size: 0 if ``code`` does."""
    if code == 1:
        return 192, 0
    if 2 <= code <= 5:
        return 576 << code - 2, 0
    if code == 6:
        return int(np.int64(data[at])) + 1, 1
    if code == 7:
        return int(np.int64(data[at]) << 8 | np.int64(data[at + 1])) + 1, 2
    return (256 << code - 8 if code else 0), 0


@inner
def _join_stereo(samples: np.ndarray, assignment: int, size: int) -> None:
    """Restore the left and right channel from their difference and either one of them or their mean."""
    left, right = samples[0], samples[1]
    for i in range(_HISTORY, _HISTORY + size):
        if assignment == 8:
            right[i] = left[i] - right[i]
        elif assignment == 9:
            left[i] += right[i]
        else:
            middle = left[i] << 1 | right[i] & 1
            left[i], right[i] = middle + right[i] >> 1, middle - right[i] >> 1


@kernel
def decode_flac(
    data: np.ndarray,
    start: int,
    bits: int,
    largest: int,
    output: np.ndarray,
    left: int,
    right: int,
    scale: float,
) -> bool:
    """Decode the frames of a stream; return False if it is damaged or unusual, in which case ``output`` is undefined.

    Args:
        data: the file, followed by :data:`MARGIN` bytes: uint8, contiguous.
        start: the offset at which the first frame begins.
        bits: the number of bits of a sample: 16 or 24.
        largest: the largest block size in samples.
        output: filled; (time, channels) of any type.
        left, right: the number of bits by which integer samples are shifted to the left, and then to the right.
        scale: the factor for shifted samples; an integer for integer outputs.
    """
    count, channels = output.shape
    samples = np.zeros((channels, _HISTORY + largest), np.int64)
    factors, at, done = np.zeros(_HISTORY, np.int64), start, 0
    bytes_there, lowest, highest = len(data) - MARGIN, -(1 << bits - 1), (1 << bits - 1) - 1
    while done < count:
        # No frame is shorter than 8 bytes.
        if at + 8 > bytes_there or (np.int64(data[at]) << 8 | np.int64(data[at + 1])) & ~1 != _SYNC:
            return False
        size_code, assignment = data[at + 2] >> 4, np.int64(data[at + 3] >> 4)
        rate_code, bits_code = data[at + 2] & 15, data[at + 3] >> 1 & 7
        number = _coded_number_size(data, at + 4)
        size, told = _block_size(data, np.int64(size_code), at + 4 + number)
        header = at + 4 + number + told + (1 if rate_code == 12 else 2 if rate_code == 13 or rate_code == 14 else 0)
        stereo = 8 <= assignment <= 10
        if number == 0 or size == 0 or size > min(count - done, largest) or rate_code == 15 or data[at + 3] & 1:
            return False
        if (channels != 2 if stereo else channels != assignment + 1) or bits_code not in (0, 4 if bits == 16 else 6):
            return False
        if header >= bytes_there or _crc_8(data, at, header) != data[header]:
            return False
        position = (header + 1) * 8
        for channel in range(channels):
            # The difference of two channels has one bit more than either channel.
            wider = 1 if stereo and channel == (0 if assignment == 9 else 1) else 0
            position = _read_subframe(data, position, bytes_there * 8, bits + wider, size, samples[channel], factors)
            if position < 0:
                return False
        if stereo:
            _join_stereo(samples, assignment, size)
        end = (position + 7) // 8
        if end + 2 > bytes_there or _crc_16(data, at, end) != _unsigned(data, end * 8, 16):
            return False
        for channel in range(channels):
            column, line = output[done : done + size, channel], samples[channel, _HISTORY : _HISTORY + size]
            for i in range(size):
                if not lowest <= line[i] <= highest:
                    return False
                column[i] = (line[i] << left >> right) * scale
        done += size
        at = end + 2
    return True
