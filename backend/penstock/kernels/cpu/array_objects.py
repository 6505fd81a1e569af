"""Where the bytes of many arrays lie, read from NumPy's own objects: asked one by one, each takes Python a microsecond or two.

Source: ``PyArrayObject_fields`` in NumPy's ``ndarraytypes.h``, which is part of its binary interface: after the object's head
come the address of the data, the number of dimensions, and the addresses of the extents and of the strides.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.foreign import word_at
from penstock.kernels.cpu.options import kernel

_DATA, _DIMENSIONS, _EXTENTS, _STRIDES = 16, 24, 32, 40
_INT = 0xFFFFFFFF


@kernel
def _fill_places(objects: np.ndarray, places: np.ndarray, sizes: np.ndarray) -> bool:
    for number in range(len(objects)):
        array = objects[number]
        if word_at(array + _DIMENSIONS) & _INT != 1:
            return False
        size = word_at(word_at(array + _EXTENTS))
        if size > 1 and word_at(word_at(array + _STRIDES)) != 1:
            return False
        places[number], sizes[number] = word_at(array + _DATA), size
    return True


@kernel
def _word_of(place: int) -> int:
    return word_at(place)


@functools.cache
def _is_known() -> bool:
    """Whether this interpreter's arrays are laid out as told above; an interpreter without a GIL has a larger head."""
    array = np.zeros((2, 3), np.uint8)
    fields = _word_of(id(array) + _DATA), _word_of(id(array) + _DIMENSIONS) & _INT
    return fields == (array.ctypes.data, 2)


def places_of_bytes(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """The addresses and sizes of arrays of bytes, int64; None if one of them is not contiguous, or of more dimensions.

    Args:
        arrays: of a type of one byte. Something else must keep them.
    """
    if not _is_known():
        return None
    objects = np.fromiter(map(id, arrays), np.int64, len(arrays))
    places, sizes = np.empty(len(arrays), np.int64), np.empty(len(arrays), np.int64)
    return (places, sizes) if _fill_places(objects, places, sizes) else None
