"""Addresses and sizes of arrays, which the core reads through the buffer protocol."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from penstock.core.arrays import address, addresses, described
from penstock.tensors import TensorListCPU
from penstock.tensors.places import flat_arrays, places_of_flat, places_of_samples

BYTES = np.arange(100, dtype=np.uint8)


def read_only() -> np.ndarray:
    return np.frombuffer(b"some bytes", np.uint8)


def test_places_are_those_that_numpy_tells() -> None:
    arrays = [BYTES, BYTES[7:], BYTES[3:4], BYTES[::7][:1], BYTES[5:5], read_only(), np.zeros(1 << 20, np.uint8)]
    for given in (arrays, arrays[:1], []):
        found = places_of_flat(given)
        assert found is not None
        places, sizes = found
        assert places.tolist() == [array.ctypes.data for array in given]
        assert sizes.tolist() == [array.size for array in given]


@pytest.mark.parametrize("other", [BYTES[::2], BYTES[::-1], BYTES.reshape(10, 10), np.array(3, np.uint8)])
def test_others_are_left_to_python(other: np.ndarray) -> None:
    assert places_of_flat([BYTES, other]) is None


def test_samples_lie_where_numpy_tells() -> None:
    shapes = [(2, 3), (0, 3), (4, 1)]
    scattered = TensorListCPU.of_samples([np.zeros(shape, np.int16) for shape in shapes])
    together = TensorListCPU.allocate(shapes, scattered.dtype)
    alike = TensorListCPU.allocate([(2, 3)] * 4, scattered.dtype)
    for batch in (scattered, together, alike):
        places = places_of_samples(batch)
        assert places is not None
        filled = [index for index, sample in enumerate(batch.samples) if sample.size]
        assert places[filled].tolist() == [batch.samples[index].ctypes.data for index in filled]


@pytest.mark.parametrize("other", [BYTES[::2], BYTES[::-1], BYTES.reshape(10, 10).T, BYTES.reshape(10, 10)[:, :3]])
def test_arrays_with_gaps_have_no_places(other: np.ndarray) -> None:
    assert addresses([BYTES, other]) is None
    assert addresses([BYTES, np.ascontiguousarray(other), np.array(3)]) is not None


def test_flat_arrays_are_of_one_type() -> None:
    arrays = [BYTES, BYTES[7:], BYTES[5:5], read_only()]
    found = flat_arrays(arrays)
    assert found is not None
    places, sizes = found
    assert places.tolist() == [array.ctypes.data for array in arrays]
    assert sizes.tolist() == [array.size for array in arrays]
    for other in (BYTES[::2], BYTES.reshape(10, 10), BYTES.view(np.int8), BYTES.view(np.recarray), 7, None, "bytes"):
        assert flat_arrays([BYTES, other]) is None
        assert flat_arrays([other, BYTES]) is None


def test_arrays_are_described() -> None:
    arrays = [BYTES.reshape(10, 10), BYTES.reshape(10, 10).T, np.zeros((2, 0, 3)), np.array(7, np.int16), BYTES[::-1]]
    table = described(arrays)
    assert table["data"].tolist() == [array.ctypes.data for array in arrays]
    assert table["elements"].tolist() == [array.size for array in arrays]
    assert table["rank"].tolist() == [array.ndim for array in arrays]
    assert table["is_contiguous"].tolist() == [array.flags.c_contiguous for array in arrays]
    assert [tuple(row[:2]) for row in table["extents"].tolist()] == [(10, 10), (10, 10), (2, 0), (0, 0), (100, 0)]
    assert [address(array) for array in arrays] == table["data"].tolist()
    assert len(described([])) == 0


@pytest.mark.parametrize("dtype", ["M8[s]", ">i4", "f2", "?", [("a", "i4"), ("b", "f8")]])
def test_arrays_of_any_type_are_described(dtype: object) -> None:
    array = np.zeros(3, dtype)  # type: ignore[call-overload]
    assert addresses([array, array[:1]]) is not None
    assert addresses([array[::2]]) is None


@pytest.mark.parametrize("other", [None, 7, "text", [1, 2]])
def test_what_is_no_array_is_refused(other: object) -> None:
    for read in (described, addresses):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            read([BYTES, other])  # type: ignore[list-item]
    # An exception pending in Python would make this call fail.
    assert addresses([BYTES]) is not None


def test_looking_at_an_array_keeps_nothing() -> None:
    array = np.zeros(5, np.uint8)
    before = sys.getrefcount(array)
    described([array] * 3)
    addresses([array] * 3)
    assert sys.getrefcount(array) == before
