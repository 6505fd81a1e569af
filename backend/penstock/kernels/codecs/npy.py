"""Arrays in numpy's file format (NPY, versions 1 to 3), read in place."""

from __future__ import annotations

import functools
import io
import math
import struct

import numpy as np

_MAGIC = b"\x93NUMPY"
# In bytes: the magic, the version, and the length of the header.
_SHORTEST = 12
# In bytes: tensors do not support extended precision.
_LARGEST_NUMBER = 8
# The limits of numpy, and tensors: arrays without values could declare anything.
_MAX_DIMENSIONS, _LARGEST_EXTENT = 32, 2**31 - 1


def view_npy(encoded: np.ndarray, whole: bool = False) -> np.ndarray:
    """The array in an NPY file, as a view of its bytes.

    Args:
        encoded: the file's bytes, uint8 of shape (n,), contiguous; what follows the array is ignored.
        whole: raise if anything follows the array.

    Returns:
        An array of any shape, in the file's byte order; Fortran-ordered if the file is.

    Raises:
        ValueError: the bytes are not an NPY file, are truncated, or do not hold booleans or real numbers.

    >>> view_npy(np.fromfile("a.npy", np.uint8)).shape  # doctest: +SKIP
    """
    if encoded.size == 0:
        raise ValueError("Expected an NPY file, got no data (0 bytes)")
    shape, fortran_order, dtype, start = _read_header(encoded)
    if dtype.kind not in "biuf" or dtype.itemsize > _LARGEST_NUMBER:
        raise ValueError(
            f"Unknown Numpy type string: {dtype.str[1:]}. Arrays of {dtype} cannot be read: use booleans or real numbers"
        )
    if len(shape) > _MAX_DIMENSIONS or any(type(n) is not int or not 0 <= n <= _LARGEST_EXTENT for n in shape):
        raise ValueError(f"Damaged NPY file: its shape is {shape}")
    size = math.prod(shape) * dtype.itemsize
    if encoded.size < start + size:
        raise ValueError(
            f"Truncated NPY file. Expected data numpy size {start + size} bytes does not match the actual size "
            f"{encoded.size} bytes."
        )
    if whole and encoded.size > start + size:
        raise ValueError(
            f"Expected data numpy size {start + size} bytes does not match the actual size {encoded.size} bytes."
        )
    values = encoded[start : start + size].view(dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")


def _read_header(encoded: np.ndarray) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """The shape, whether columns come first, the dtype, and the position of the values."""
    start = encoded[:12].tobytes()
    if not start.startswith(_MAGIC):
        raise ValueError(
            f"File is not a numpy file. Got bad magic string for numpy header: it begins with {start[:6]!r} instead of {_MAGIC!r}"
        )
    if encoded.size < _SHORTEST:
        raise ValueError(f"Truncated NPY file: its header cannot be read ({encoded.size} bytes)")
    if start[6] == 1:
        length = 10 + struct.unpack_from("<H", start, 8)[0]
    else:
        length = 12 + struct.unpack_from("<I", start, 8)[0]
    try:
        return _parsed(encoded[:length].tobytes())
    except Exception as error:
        # Damaged headers make numpy, and Python's parser in it, raise errors of almost any type.
        what = "Truncated" if length > encoded.size else "Damaged"
        raise ValueError(f"{what} NPY file: its header cannot be read ({encoded.size} bytes)") from error


# A data set has few different headers, and reading one takes most of the time of a small file. numpy refuses those of more than
# 10,000 bytes, so that little is kept.
@functools.lru_cache(maxsize=64)
def _parsed(begin: bytes) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    header = io.BytesIO(begin)
    version = np.lib.format.read_magic(header)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(header)
    return shape, fortran_order, dtype, header.tell()
