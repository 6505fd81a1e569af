"""Kernels that find the contents of a batch's records without copying them.

They support records as the usual writers of these formats encode them. All other records, including damaged ones, are left to
decoders in Python, which report errors.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.options import inner, kernel, njit
from penstock.operators.readers._files_cpu import copy

# The kinds of a feature, as in `penstock.kernels.codecs.tfrecord`; -1: absent.
_INT64, _STRING, _FLOAT32, _ABSENT = 0, 1, 2, -1
# The columns that describe a feature: kind, start, size in bytes, number of values.
KIND, START, SIZE, COUNT, _COLUMNS = range(5)
# The tags of length-delimited protobuf fields with the numbers 1 to 3, then those of two fields of Caffe's Datum.
_FIELD_1, _FIELD_2, _FIELD_3 = 0x0A, 0x12, 0x1A
_DATUM_DATA, _DATUM_LABEL = 0x22, 0x28
# The sizes in bytes of a TFRecord's header (the length and its checksum) and footer (the data's checksum).
_RECORD_HEADER, _RECORD_FOOTER = 12, 4
_LONGEST_VARINT = 10
_RECORDIO_MAGIC, _RECORDIO_FRAME, _RECORDIO_HEADER = 0xCED7230A, 8, 24


@inner
def _varint(data: np.ndarray, at: int, end: int) -> tuple[np.uint64, int]:
    """Return the number that is encoded as a varint at ``at``, and the position after it; position 0 if there is no whole number."""
    value = np.uint64(0)
    for i in range(min(_LONGEST_VARINT, end - at)):
        byte = data[at + i]
        value |= np.uint64(byte & 127) << np.uint64(7 * i)
        if byte < 128:
            return value, at + i + 1
    return value, 0


@inner
def _field(data: np.ndarray, at: int, end: int, tag: int) -> tuple[int, int]:
    """Return the start and end of the contents of the field at ``at``; end 0 if the field has another tag or is not whole."""
    if at >= end or data[at] != tag:
        return 0, 0
    size, start = _varint(data, at + 1, end)
    if not start or size > np.uint64(end - start):
        return 0, 0
    return start, start + int(np.int64(size))


@kernel
def _word(data: np.ndarray, at: int) -> int:
    """Return the little-endian 32-bit number at ``at``."""
    word = 0
    for byte in range(4):
        word |= int(np.int64(data[at + byte])) << 8 * byte
    return word


@inner
def _read_feature(data: np.ndarray, at: int, end: int, found: np.ndarray) -> bool:
    """Find the values of the feature whose message lies between ``at`` and ``end``; return whether it is encoded in the usual way.

    Args:
        data: the batch's block, uint8.
        at, end: the start and end of the message.
        found: int64 of shape (4,); output: the columns that describe the feature.
    """
    if at == end:
        found[KIND] = _ABSENT
        return True
    tag = data[at]
    start, stop = _field(data, at, end, tag)
    if stop != end or stop == 0:
        return False
    if tag == _FIELD_1:
        return _read_strings(data, start, stop, found)
    found[START] = found[SIZE] = found[COUNT] = 0
    found[KIND] = _FLOAT32 if tag == _FIELD_2 else _INT64
    if tag != _FIELD_2 and tag != _FIELD_3:
        return False
    if start == stop:
        return True
    first, last = _field(data, start, stop, _FIELD_1)
    if last != stop or last == 0:
        return False
    found[START], found[SIZE] = first, last - first
    if tag == _FIELD_2:
        found[COUNT] = (last - first) // 4
        return (last - first) % 4 == 0
    while first < last:
        _, first = _varint(data, first, last)
        if not first:
            return False
        found[COUNT] += 1
    return True


@inner
def _read_strings(data: np.ndarray, at: int, end: int, found: np.ndarray) -> bool:
    """Find the first of a list of strings, and count the strings; return whether the list is encoded in the usual way."""
    found[KIND], found[COUNT] = _STRING, 0
    while at < end:
        start, stop = _field(data, at, end, _FIELD_1)
        if stop == 0:
            return False
        if found[COUNT] == 0:
            found[START], found[SIZE] = start, stop - start
        found[COUNT] += 1
        at = stop
    return True


@inner
def _feature_named(data: np.ndarray, at: int, end: int, names: np.ndarray, name_ends: np.ndarray) -> int:
    """Return the index of the requested feature whose name lies between ``at`` and ``end`` in ``data``; -1 if no requested feature has
    this name, -2 if the name is not ASCII.
    """
    for i in range(at, end):
        if data[i] >= 128:
            return -2
    start = 0
    for number in range(len(name_ends)):
        same = name_ends[number] - start == end - at
        i = 0
        while same and i < end - at:
            same = names[start + i] == data[at + i]
            i += 1
        if same:
            return number
        start = name_ends[number]
    return -1


@kernel
def find_features(
    data: np.ndarray, places: np.ndarray, sizes: np.ndarray, names: np.ndarray, name_ends: np.ndarray, found: np.ndarray
) -> bool:
    """Find features of ``tf.train.Example`` records; return whether all records are encoded in the usual way.

    Args:
        data: the batch's block, uint8.
        places, sizes: the start and the size of each record in the block, in bytes: int64.
        names: the names of the requested features, one after the other: uint8.
        name_ends: the end of each name in ``names``: int64.
        found: int64 of shape (records, features, 4); output: the columns that describe each feature.
    """
    found[:, :, KIND] = _ABSENT
    spare = np.empty(_COLUMNS, np.int64)
    for record in range(len(places)):
        if sizes[record] < _RECORD_HEADER + _RECORD_FOOTER:
            return False
        place = places[record]
        length = _word(data, place)
        if _word(data, place + 4) or length > sizes[record] - _RECORD_HEADER - _RECORD_FOOTER:
            return False
        message = place + _RECORD_HEADER
        at, end = _field(data, message, message + length, _FIELD_1)
        if end == 0 or end != message + length:
            return False
        while at < end:
            entry, at = _field(data, at, end, _FIELD_1)
            if at == 0:
                return False
            key, key_end = _field(data, entry, at, _FIELD_1)
            value, value_end = _field(data, key_end, at, _FIELD_2)
            if key_end == 0 or value_end == 0 or value_end != at:
                return False
            number = _feature_named(data, key, key_end, names, name_ends)
            target = spare if number < 0 else found[record, number]
            # Leave names that are not ASCII, or occur twice, to protobuf.
            if number < -1 or (number >= 0 and target[KIND] != _ABSENT):
                return False
            if not _read_feature(data, value, value_end, target):
                return False
    return True


@kernel
def decode_integers(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, target: np.ndarray) -> None:
    """Decode lists of packed integers that :func:`find_features` found.

    Args:
        data: the batch's block, uint8.
        starts, sizes: the start and the size of each list in the block, in bytes: int64.
        target: the integers of all lists, one after the other: int64; output.
    """
    done = 0
    for i in range(len(starts)):
        at, end = starts[i], starts[i] + sizes[i]
        while at < end:
            value, at = _varint(data, at, end)
            target[done] = np.int64(value)
            done += 1


@kernel
def find_images(
    data: np.ndarray, places: np.ndarray, sizes: np.ndarray, images: np.ndarray, labels: np.ndarray
) -> bool:
    """Find images and labels in MXNet's records; return whether all records are complete and not split into parts.

    Args:
        data: the batch's block, uint8.
        places, sizes: the start and the size of each record in the block, in bytes: int64.
        images, labels: int64 of shape (2, records); output: the start and the size of each image, and of each record's labels.
    """
    for i in range(len(places)):
        if sizes[i] < _RECORDIO_FRAME + _RECORDIO_HEADER or _word(data, places[i]) != _RECORDIO_MAGIC:
            return False
        # The upper 3 bits are 0 unless the record is split into parts.
        length = _word(data, places[i] + 4)
        if length >> 29 or length < _RECORDIO_HEADER or length > sizes[i] - _RECORDIO_FRAME:
            return False
        header = places[i] + _RECORDIO_FRAME
        rest, count = header + _RECORDIO_HEADER, _word(data, header)
        if 4 * count > length - _RECORDIO_HEADER:
            return False
        # If the list of labels is empty, the header contains a single label.
        labels[0, i] = rest if count else header + 4
        labels[1, i] = 4 * max(count, 1)
        images[0, i] = rest + 4 * count
        images[1, i] = length - _RECORDIO_HEADER - 4 * count
    return True


# Compiled without releasing the GIL: waiting to get it back could take longer than the work.
@njit(error_model="numpy")
def take_datum(value: np.ndarray, block: np.ndarray, place: int) -> tuple[int, int]:
    """Copy the data of a Caffe ``Datum`` to a block.

    Args:
        value: the message, uint8.
        block: uint8; output.
        place: where in the block to copy the data; from there on, there must be room for the whole message.

    Returns:
        The size of the data and the label. The size is -1 if the message has no data or no label, or is not encoded in the usual way.
    """
    at, end = 0, len(value)
    size, label = -1, -1
    labelled = False
    while at < end:
        tag = value[at]
        if tag == _DATUM_DATA and size < 0:
            start, at = _field(value, at, end, tag)
            size = at - start
            copy(value, start, size, block, place)
        elif tag == _DATUM_LABEL and not labelled:
            number, at = _varint(value, at + 1, end)
            # Like protobuf, use the lower 32 bits.
            label, labelled = int(np.int32(np.int64(number))), True
        elif tag >= 128 or tag < 8 or tag >> 3 == 4 or tag >> 3 == 5:
            return -1, -1
        elif tag & 7 == 0:
            _, at = _varint(value, at + 1, end)
        elif tag & 7 == 2:
            _, at = _field(value, at, end, tag)
        else:
            return -1, -1
        if not at:
            return -1, -1
    return (size, label) if labelled else (-1, -1)


@kernel
def same_beginnings(data: np.ndarray, places: np.ndarray, size: int) -> bool:
    """Return whether the parts of the block that start at ``places`` all begin with the same ``size`` bytes."""
    for i in range(1, len(places)):
        for k in range(size):
            if data[places[i] + k] != data[places[0] + k]:
                return False
    return True
