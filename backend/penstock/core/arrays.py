"""Get the addresses and shapes of many arrays in one call: in Python, that takes a microsecond or two for each array."""

from __future__ import annotations

import ctypes
import functools
import struct

import numpy as np

from penstock.core.loading import brief_core

MAX_RANK = 5
"""The maximum number of dimensions of a sample, and of an array that is passed to the core."""
ARRAY = np.dtype(
    [
        ("data", np.int64),
        ("elements", np.int64),
        ("rank", np.int64),
        ("is_contiguous", np.int64),
        ("extents", np.int64, MAX_RANK),
    ]
)
"""``PenstockArray``: the address of the first element, the number of elements, the number of dimensions, whether the
elements are contiguous, and the first extents.
"""


@functools.cache
def _python() -> bytes:
    """Return ``PenstockPython``: the addresses of the interpreter's functions with which arrays are read."""
    names = "PyObject_GetBuffer", "PyBuffer_Release", "PyList_GetItem"
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in names]
    return struct.pack("3q", *functions)


def described(arrays: list[np.ndarray]) -> np.ndarray:
    """Return an ``ARRAY`` that describes each array.

    Args:
        arrays: NumPy arrays, or other objects with memory on the CPU, of any type and rank. The caller must keep them alive.

    Raises:
        TypeError: an array has no memory that can be accessed.
    """
    table = np.empty(len(arrays), ARRAY)
    brief_core().penstock_describe(_python(), arrays, len(arrays), table)
    return table


def address(array: np.ndarray) -> int:
    """Return the address of an array's first element; raise TypeError if the array has no memory that can be accessed. The caller must
    keep the array alive.
    """
    pointer: int = brief_core().penstock_address(_python(), array)
    return pointer


def addresses(arrays: list[np.ndarray]) -> np.ndarray | None:
    """Return the addresses of arrays, int64; None if an array is not contiguous. The caller must keep the arrays alive.

    Raises:
        TypeError: an array has no memory that can be accessed.
    """
    pointers = np.empty(len(arrays), np.int64)
    contiguous: int = brief_core().penstock_addresses(_python(), arrays, len(arrays), pointers)
    return pointers if contiguous == len(arrays) else None


def copy_alike(arrays: list[np.ndarray], target: np.ndarray) -> bool:
    """Copy the elements of arrays one after the other, holding the GIL. Return False if not all were copied, because an array is not
    contiguous, or differs from the first one in its extents or in the size of its elements.

    Args:
        arrays: at least one array; the caller must have checked that their types are equal.
        target: contiguous, with room for all elements.

    Raises:
        TypeError: an array has no memory that can be accessed.
    """
    copied: int = brief_core().penstock_copy_alike(_python(), arrays, len(arrays), target)
    return copied == len(arrays)
