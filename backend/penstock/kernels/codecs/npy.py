"""Views of arrays in numpy's file format (NPY, versions 1 to 3), without copies."""

from __future__ import annotations

import functools
import io
import math
import struct
from typing import NamedTuple

import numpy as np

_MAGIC = b"\x93NUMPY"
# In bytes: the magic string, the version, and the length of the header.
_MIN_HEADER_BYTES = 12
# In bytes: tensors do not support extended precision.
_LARGEST_NUMBER = 8
# The limits of numpy and of tensors: without them, the header of an array without values could declare any shape.
_MAX_DIMENSIONS, _LARGEST_EXTENT = 32, 2**31 - 1


def view_npy(encoded: np.ndarray, whole: bool = False) -> np.ndarray:
    """Return the array in an NPY file, as a view of its bytes.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous; bytes after the array are ignored.
        whole: whether bytes after the array are an error.

    Returns:
        An array of any shape, in the file's byte order; Fortran-ordered if the file is.

    Raises:
        ValueError: the bytes are not an NPY file, are truncated, or do not hold booleans or real numbers.

    >>> view_npy(np.fromfile("a.npy", np.uint8)).shape  # doctest: +SKIP
    """
    header = read_npy_header(encoded, encoded.size)
    end = header.start + header.size
    if whole and encoded.size > end:
        raise ValueError(f"Expected data numpy size {end} bytes does not match the actual size {encoded.size} bytes.")
    values = encoded[header.start : end].view(header.dtype)
    return values.reshape(header.shape, order="F" if header.fortran_order else "C")


class NpyHeader(NamedTuple):
    """The header of an NPY file.

    Attributes:
        shape: the array's shape.
        fortran_order: whether the first index varies fastest in memory.
        dtype: the values' dtype.
        start: the position of the values in the file.
    """

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    start: int

    @property
    def size(self) -> int:
        """The size of the values, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(encoded: np.ndarray, available: int) -> NpyHeader:
    """Read the header of a file of ``available`` bytes, of which ``encoded`` has the beginning; raise ValueError like :func:`view_npy`."""
    if encoded.size == 0:
        raise ValueError("Expected an NPY file, got no data (0 bytes)")
    header = _parsed(_header_bytes(encoded, available), available)
    if available < header.start + header.size:
        raise ValueError(
            f"Truncated NPY file. Expected data numpy size {header.start + header.size} bytes does not match the actual size "
            f"{available} bytes."
        )
    return header


def _header_bytes(encoded: np.ndarray, available: int) -> bytes:
    """Return the bytes of the magic string, the version and the header."""
    start = encoded[:_MIN_HEADER_BYTES].tobytes()
    if not start.startswith(_MAGIC):
        raise ValueError(
            f"File is not a numpy file. Got bad magic string for numpy header: it begins with {start[:6]!r} instead of {_MAGIC!r}"
        )
    if encoded.size < _MIN_HEADER_BYTES:
        raise ValueError(f"Truncated NPY file: its header cannot be read ({available} bytes)")
    length = 10 + struct.unpack_from("<H", start, 8)[0] if start[6] == 1 else 12 + struct.unpack_from("<I", start, 8)[0]
    return encoded[:length].tobytes()


@functools.lru_cache(maxsize=256)
def _parsed(content: bytes, available: int) -> NpyHeader:
    """Parse a header; results are cached, because the arrays of a data set tend to have the same header."""
    try:
        header = io.BytesIO(content)
        version = np.lib.format.read_magic(header)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(header)
    except Exception as error:
        # Damaged headers make numpy, and the Python parser that it calls, raise errors of almost any type.
        what = "Truncated" if len(content) == available else "Damaged"
        raise ValueError(f"{what} NPY file: its header cannot be read ({available} bytes)") from error
    if dtype.kind not in "biuf" or dtype.itemsize > _LARGEST_NUMBER:
        raise ValueError(
            f"Unknown Numpy type string: {dtype.str[1:]}. Arrays of {dtype} cannot be read: use booleans, integers, or floats of at most "
            f"{_LARGEST_NUMBER} bytes"
        )
    if len(shape) > _MAX_DIMENSIONS or any(type(n) is not int or not 0 <= n <= _LARGEST_EXTENT for n in shape):
        raise ValueError(f"Damaged NPY file: its shape is {shape}")
    return NpyHeader(shape, fortran_order, dtype, header.tell())
