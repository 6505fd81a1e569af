"""Batches of samples of differing shapes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, types
from penstock.tensors import HostPool, TensorCPU, TensorListCPU


def ragged() -> TensorListCPU:
    return TensorListCPU([np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32)], layout="HW")


def test_what_it_tells() -> None:
    batch = ragged()
    assert len(batch) == 2
    assert batch.shape() == [(2, 3), (1, 3)]
    assert batch.dtype == types.FLOAT
    assert batch.layout() == "HW"
    assert batch.ndim() == 2
    assert not batch.is_dense_tensor()
    assert batch[1].shape() == [1, 3]
    assert batch[-1].layout() == "HW"
    assert "num_samples=2" in str(batch)


def test_dense_views_share_memory() -> None:
    data = np.zeros((2, 3), np.int32)
    batch = TensorListCPU(data)
    assert batch.as_array().base is not None
    data[1, 2] = 5
    assert batch.as_array()[1, 2] == 5
    assert np.array(batch.as_tensor()).shape == (2, 3)
    assert np.from_dlpack(batch[1])[2] == 5


def test_ragged_is_no_array() -> None:
    with pytest.raises(RuntimeError, match="same shape"):
        ragged().as_array()
    with pytest.raises(RuntimeError, match="uniform shape"):
        ragged().as_tensor()
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array(ragged())
    with pytest.raises(RuntimeError, match="same volume"):
        ragged().as_reshaped_tensor([3, 2])


def test_mixed_samples_are_refused() -> None:
    with pytest.raises(TypeError, match="same type"):
        TensorListCPU([np.zeros(2, np.int32), np.zeros(2, np.float32)])
    with pytest.raises(RuntimeError, match="dimensions"):
        TensorListCPU([np.zeros(2), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="layout"):
        TensorListCPU([np.zeros(2)], layout="HW")


def test_index_out_of_range() -> None:
    with pytest.raises(IndexError):
        ragged()[2]
    with pytest.raises(RuntimeError, match="out of range"):
        ragged().at(2)


def test_copy_to_memory_of_others() -> None:
    target = np.zeros(9, np.float32)
    ragged().copy_to_external(ctypes.c_void_p(target.ctypes.data))
    assert target.tolist() == [0, 1, 2, 3, 4, 5, 1, 1, 1]


def test_tensor() -> None:
    tensor = TensorCPU(np.zeros((1, 3, 1), np.uint8), "HWC")
    assert tensor.squeeze()
    assert tensor.shape() == [3]
    assert tensor.layout() == "W"
    assert tensor.get_property("layout") == "W"
    with pytest.raises(RuntimeError):
        tensor.get_property("colour")


def test_pool_hands_out_only_what_nobody_holds() -> None:
    pool = HostPool()
    first = pool.take(100_000)
    address = first.ctypes.data
    view = first[10:20]
    del first
    assert pool.take(100_000).ctypes.data != address
    del view
    assert pool.take(100_000).ctypes.data in (address, pool.take(100_000).ctypes.data)
    pool.release()
    assert pool.reserved == 0


def test_enumerations_stay_in_the_pipeline() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        filters = fn.copy([types.INTERP_NN, types.INTERP_CUBIC])
        pipe.set_outputs(filters, filters[1], fn.cast(filters, dtype=types.INT32))
    listed, one, numbers = pipe.run()
    assert listed.dtype == one.dtype == one[0].dtype == one.as_tensor().dtype == types.INTERP_TYPE
    assert numbers.as_array().tolist() == [[0, 2], [0, 2]]
    for read in (listed.as_array, lambda: one.at(0), lambda: np.array(one[0]), lambda: str(one)):
        with pytest.raises(TypeError, match=r"DALI enum types cannot be used.*nvidia\.dali\.fn\.cast"):
            read()


@pytest.mark.parametrize(("value", "dtype"), [(1.0, types.DATA_TYPE), (types.RGB, types.FLOAT)])
def test_enumerations_are_no_real_numbers(value: Any, dtype: types.DALIDataType) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.cast(value, dtype=dtype))
    with pytest.raises(RuntimeError, match="Enums can only participate in casts with integral types"):
        pipe.run()
