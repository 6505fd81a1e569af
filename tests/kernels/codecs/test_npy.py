"""Arrays in numpy's file format."""

import io

import numpy as np
import pytest

from penstock.kernels.codecs.npy import view_npy


def _npy(array: np.ndarray, version: tuple[int, int] | None = None) -> np.ndarray:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version)
    return np.frombuffer(buffer.getvalue(), np.uint8)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "f2", "f4", ">f8", ">i2"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_round_trip(version: tuple[int, int], dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    result = view_npy(_npy(array, version))
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_fortran_order_and_no_copy() -> None:
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    encoded = _npy(array)
    result = view_npy(encoded)
    np.testing.assert_array_equal(result, array)
    assert np.shares_memory(result, encoded)


def test_zeros_after_the_array_are_ignored() -> None:
    array = np.arange(5)
    np.testing.assert_array_equal(view_npy(np.concatenate([_npy(array), np.zeros(9, np.uint8)])), array)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (np.zeros(0, np.uint8), "no data"),
        (np.zeros(3, np.uint8), "not a numpy file"),
        (_npy(np.arange(9))[:-1], "Truncated NPY file"),
        (_npy(np.arange(9))[:8], "Truncated NPY file"),
        (_npy(np.arange(3).astype(np.complex64)), "complex64"),
        (np.frombuffer(_npy(np.arange(3)).tobytes().replace(b"(3,), ", b"(-3,),"), np.uint8), "Damaged NPY file"),
        (np.frombuffer(_npy(np.arange(3)).tobytes().replace(b"(3,)", b"(-3,"), np.uint8), "cannot be read"),
    ],
)
def test_errors(encoded: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view_npy(encoded)
