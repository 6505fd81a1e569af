"""Addresses and sizes of arrays, as compiled code reads them from NumPy's objects."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu.array_objects import flat_arrays, places_of_arrays, places_of_bytes, places_of_samples
from penstock.tensors import TensorListCPU

BYTES = np.arange(100, dtype=np.uint8)


def read_only() -> np.ndarray:
    return np.frombuffer(b"some bytes", np.uint8)


def test_places_are_those_that_numpy_tells() -> None:
    arrays = [BYTES, BYTES[7:], BYTES[3:4], BYTES[::7][:1], BYTES[5:5], read_only(), np.zeros(1 << 20, np.uint8)]
    for given in (arrays, arrays[:1], []):
        found = places_of_bytes(given)
        assert found is not None
        places, sizes = found
        assert places.tolist() == [array.ctypes.data for array in given]
        assert sizes.tolist() == [array.size for array in given]


@pytest.mark.parametrize("other", [BYTES[::2], BYTES[::-1], BYTES.reshape(10, 10), np.array(3, np.uint8)])
def test_others_are_left_to_python(other: np.ndarray) -> None:
    assert places_of_bytes([BYTES, other]) is None


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
    assert places_of_arrays([BYTES, other]) is None
    assert places_of_arrays([BYTES, np.ascontiguousarray(other), np.array(3)]) is not None


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
