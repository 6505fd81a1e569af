"""The addresses and sizes of many arrays, read from NumPy's own objects: one by one, each takes Python a microsecond or two.

Source: ``PyArrayObject_fields`` in NumPy's ``ndarraytypes.h``, which is part of its binary interface: after the object's head
come the address of the data, the number of dimensions, the addresses of the extents and of the strides, those of two objects, of
which the second is the type of the elements, and the flags. An object's head ends with the address of its own type.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.foreign import copy_bytes, word_at
from penstock.kernels.cpu.options import brief, kernel
from penstock.tensors import TensorList, TensorListCPU
from penstock.tensors.batch import equally_apart

_TYPE, _DATA, _DIMENSIONS, _EXTENTS, _STRIDES, _ELEMENTS, _FLAGS = 8, 16, 24, 32, 40, 56, 64
_INT = 0xFFFFFFFF
_CONTIGUOUS = 1


@brief
def _fill_places(places: np.ndarray, sizes: np.ndarray) -> bool:
    for number in range(len(places)):
        array = places[number]
        if word_at(array + _DIMENSIONS) & _INT != 1:
            return False
        size = word_at(word_at(array + _EXTENTS))
        if size > 1 and word_at(word_at(array + _STRIDES)) != 1:
            return False
        places[number], sizes[number] = word_at(array + _DATA), size
    return True


@brief
def _fill_flat(objects: np.ndarray, kind: int, places: np.ndarray, sizes: np.ndarray) -> bool:
    elements = 0
    for number in range(len(objects)):
        array = objects[number]
        # What is no array may be smaller.
        if word_at(array + _TYPE) != kind or word_at(array + _DIMENSIONS) & _INT != 1:
            return False
        own = word_at(array + _ELEMENTS)
        if (number > 0 and own != elements) or not word_at(array + _FLAGS) & _CONTIGUOUS:
            return False
        elements = own
        places[number], sizes[number] = word_at(array + _DATA), word_at(word_at(array + _EXTENTS))
    return True


@brief
def _fill_contiguous(objects: np.ndarray, places: np.ndarray) -> bool:
    for number in range(len(objects)):
        array = objects[number]
        if not word_at(array + _FLAGS) & _CONTIGUOUS:
            return False
        places[number] = word_at(array + _DATA)
    return True


@kernel
def _copy(objects: np.ndarray, sizes: np.ndarray, offsets: np.ndarray, target: int) -> bool:
    for number in range(len(objects)):
        if not word_at(objects[number] + _FLAGS) & _CONTIGUOUS:
            return False
    for number in range(len(objects)):
        copy_bytes(target + offsets[number], word_at(objects[number] + _DATA), sizes[number])
    return True


@kernel
def _word_of(place: int) -> int:
    return word_at(place)


@functools.cache
def _is_known() -> bool:
    """Whether this interpreter's arrays are laid out as told above; an interpreter without a GIL has a larger head."""
    array = np.zeros((2, 3), np.uint8)
    turned = array.T
    fields = [_word_of(id(array) + place) for place in (_DATA, _TYPE, _ELEMENTS)]
    dimensions = _word_of(id(array) + _DIMENSIONS) & _INT
    flags = [_word_of(id(view) + _FLAGS) & _CONTIGUOUS for view in (array, turned)]
    return fields == [array.ctypes.data, id(np.ndarray), id(array.dtype)] and dimensions == 2 and flags == [1, 0]


def flat_arrays(objects: Sequence[object]) -> tuple[np.ndarray, np.ndarray] | None:
    """The addresses and lengths, int64, of contiguous NumPy arrays of one dimension and one type; None if one is not.

    Args:
        objects: at least one, of any types. Something else must keep them.
    """
    if not _is_known():
        return None
    count = len(objects)
    places, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
    filled = _fill_flat(np.fromiter(map(id, objects), np.int64, count), id(np.ndarray), places, sizes)
    return (places, sizes) if filled else None


def places_of_bytes(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """The addresses and sizes of arrays of bytes, int64; None if one of them is not contiguous, or of more dimensions.

    Args:
        arrays: of a type of one byte. Something else must keep them.
    """
    if not _is_known():
        return None
    # Those of the objects at first.
    places, sizes = np.fromiter(map(id, arrays), np.int64, len(arrays)), np.empty(len(arrays), np.int64)
    return (places, sizes) if _fill_places(places, sizes) else None


def places_of_files(batch: TensorListCPU) -> tuple[np.ndarray, np.ndarray] | None:
    """The addresses and sizes of a batch of files, as :func:`places_of_bytes` tells them. The batch must keep them."""
    if batch.places is not None:
        return batch.places, batch.sample_volumes()
    parts = batch.parts
    if parts is None and batch.elements is None:
        return places_of_bytes(batch.samples)
    sizes = batch.sample_volumes()
    if parts is not None:
        block, starts = parts
        return block.ctypes.data + starts, sizes
    places = places_of_samples(batch)
    return None if places is None else (places, sizes)


def places_of_samples(batch: TensorList) -> np.ndarray | None:
    """The addresses of a batch's samples on the CPU, int64; None if one of them is not contiguous. Something else must keep them."""
    if batch.elements is not None:
        elements, shapes = batch.elements, batch.shapes
        first: int = elements.ctypes.data
        if shapes and shapes.count(shapes[0]) == len(shapes):
            return equally_apart(first, math.prod(shapes[0]) * elements.itemsize, len(shapes))
        volumes = batch.sample_volumes()
        places: np.ndarray = first + (volumes.cumsum() - volumes) * elements.itemsize
        return places
    return places_of_arrays(batch.samples)


def places_of_arrays(arrays: Sequence[np.ndarray]) -> np.ndarray | None:
    """The addresses of arrays, int64; None if one of them is not contiguous. Something else must keep them."""
    if not _is_known():
        return None
    places = np.empty(len(arrays), np.int64)
    return places if _fill_contiguous(np.fromiter(map(id, arrays), np.int64, len(arrays)), places) else None


def pack_arrays(arrays: Sequence[np.ndarray], sizes: Sequence[int], offsets: Sequence[int], target: int) -> bool:
    """Copies the data of arrays to memory; returns whether it did, which it does not if one of them is not contiguous.

    Args:
        arrays: of any types.
        sizes: in bytes.
        offsets: where in the memory each of them goes.
        target: the memory's address.
    """
    if not _is_known():
        return False
    objects = np.fromiter(map(id, arrays), np.int64, len(arrays))
    return bool(_copy(objects, np.array(sizes, np.int64), np.array(offsets, np.int64), target))
