"""Batches of samples with different shapes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, dynamic, fn, types
from penstock.tensors import HostPool, TensorCPU, TensorListCPU, format_batch, format_tensor


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


def test_a_shallow_copy_shares_samples_but_not_positions() -> None:
    batch = ragged()
    batch.positions = [0, 1]
    copy = batch.shallow_copy()
    copy.positions = [3, 5]
    copy.source_infos = ["a", "b"]
    assert batch.positions == [0, 1]
    assert not batch.source_infos
    assert np.shares_memory(copy.samples[1], batch.samples[1])


def test_dense_views_share_memory() -> None:
    data = np.zeros((2, 3), np.int32)
    batch = TensorListCPU(data)
    data[1, 2] = 5
    assert np.asarray(batch.as_tensor()).ctypes.data == batch.data_ptr() == data.ctypes.data
    assert batch.as_array()[1, 2] == 5
    assert np.array(batch.as_tensor()).shape == (2, 3)
    assert np.from_dlpack(batch[1])[2] == 5


def test_arrays_are_copies() -> None:
    data = np.zeros((2, 3), np.int32)
    batch = TensorListCPU(data)
    batch.as_array()[...] = 1
    batch.at(0)[...] = 1
    assert not data.any()


def test_a_list_is_copied_unless_told_otherwise() -> None:
    samples = [np.zeros(2), np.zeros(2)]
    copied, shared = TensorListCPU(samples), TensorListCPU(samples, contiguous=False)
    samples[1][0] = 1
    assert [np.asarray(batch[1])[0] for batch in (copied, shared)] == [0, 1]
    assert copied.is_dense_tensor()
    assert not shared.is_dense_tensor()
    with pytest.raises(RuntimeError, match="contiguous"):
        shared.data_ptr()


def test_ragged_is_no_array() -> None:
    for view in (ragged().as_array, ragged().as_tensor):
        with pytest.raises(RuntimeError, match="same shape"):
            view()
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array(ragged())
    with pytest.raises(RuntimeError, match="same volume"):
        ragged().as_reshaped_tensor([3, 2])


@pytest.mark.parametrize(
    ("layout", "shape", "expected"),
    [("", [6], "N"), ("", [2, 3], ""), ("A", [6], ""), ("A", [3, 2], "NA"), ("A", [1, 2, 3], "")],
)
def test_layout_of_a_reshaped_batch(layout: str, shape: list[int], expected: str) -> None:
    reshaped = TensorListCPU(np.arange(6).reshape(2, 3), layout).as_reshaped_tensor(shape)
    assert reshaped.layout() == expected
    np.testing.assert_array_equal(reshaped, np.arange(6).reshape(shape))


def test_mixed_samples_are_refused() -> None:
    with pytest.raises(TypeError, match="position 1 has type 'float' expected to have type 'int32'"):
        TensorListCPU([np.zeros(2, np.int32), np.zeros(2, np.float32)])
    with pytest.raises(TypeError, match="position 1 cannot be converted"):
        TensorListCPU([np.zeros(2), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="layout"):
        TensorListCPU([np.zeros(2)], layout="HW")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([1, 2], TypeError),
        ("text", TypeError),
        (np.zeros((4, 4))[:, ::2], RuntimeError),
        (np.array([None]), RuntimeError),
    ],
)
def test_what_is_no_buffer_is_no_tensor(data: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        TensorCPU(data)


def test_buffers_and_capsules() -> None:
    assert np.asarray(TensorCPU(b"abc")).tolist() == [97, 98, 99]
    array = np.arange(4, dtype=np.int16)
    tensor = TensorCPU(array.__dlpack__(), "A")
    assert tensor.data_ptr() == array.ctypes.data
    assert TensorListCPU(tensor.__dlpack__()).shape() == [()] * 4
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="position 1 does not support the DLPack protocol"):
        TensorListCPU.from_dlpack_list([array, 5])


def test_text() -> None:
    tensor = TensorCPU(np.arange(3, dtype=np.int16), "A")
    properties = 'dtype=DALIDataType.INT16,\n    layout="A",\n    device="cpu",\n    shape=(3,))'
    assert str(tensor) == "TensorCPU(\n    [0 1 2],\n    " + properties
    assert repr(tensor) == "TensorCPU(\n    " + properties
    batch = TensorListCPU(np.zeros((20, 2000), np.uint8))
    assert str(batch).count("...") == 6
    assert "num_samples=20,\n    shape=[(2000,), (2000,), ..., (2000,), (2000,)])" in repr(batch)


def test_index_out_of_range() -> None:
    with pytest.raises(IndexError, match="out of range"):
        ragged()[2]
    with pytest.raises(RuntimeError, match="out-of-range"):
        ragged().at(-1)


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
    assert tensor.get_property("colour") is None
    with pytest.raises(RuntimeError, match="out of bound"):
        tensor.squeeze(1)
    with pytest.raises(RuntimeError, match="element size"):
        tensor.reinterpret(types.INT16)
    tensor.reinterpret(types.INT8)
    assert tensor.dtype == types.INT8


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


def test_broadcast() -> None:
    batch = TensorListCPU.broadcast(TensorCPU(np.arange(3), layout="W"), 2)
    assert [np.asarray(sample).tolist() for sample in batch] == [[0, 1, 2]] * 2
    assert batch.layout() == "W"
    assert len(TensorListCPU.broadcast(np.arange(3), 0)) == 0
    with pytest.raises(ValueError, match=r"number of samples can't be negative. Got: -1"):
        TensorListCPU.broadcast(np.arange(3), -1)


def test_an_empty_batch() -> None:
    untyped = TensorListCPU([], "HW")
    assert untyped.ndim() == 2
    assert untyped.as_array().dtype == np.float32
    assert untyped.as_array().shape == (0,)
    for use in (untyped.as_tensor, lambda: untyped.as_reshaped_tensor([0]), lambda: untyped.reinterpret(types.UINT8)):
        with pytest.raises(RuntimeError):
            use()
    typed = TensorListCPU(np.zeros((0, 0, 2), np.int32), "AB")
    assert typed.as_array().shape == (0,)
    assert typed.as_tensor().shape() == [0, 0]
    assert typed.as_tensor().layout() == ""
    assert TensorListCPU(typed).layout() == "AB"
    with pytest.raises(RuntimeError, match="without dimensions"):
        TensorListCPU(np.zeros(0, np.float32)).as_tensor()


def test_text_on_demand() -> None:
    batch = TensorListCPU(np.arange(6, dtype=np.uint8).reshape(2, 3), "H")
    assert format_batch(batch) == str(batch)
    assert format_batch(batch, show_data=False) == repr(batch)
    assert format_batch(batch, indent="  ").splitlines()[1:] == ["  " + line for line in str(batch).splitlines()[1:]]
    assert format_tensor(batch[0]) == str(batch[0])
    values = dynamic.tensor(np.float32([1, 2]))
    assert format_tensor(values) == str(values)
    assert "1." not in format_tensor(values, show_data=False)


def test_a_batch_is_no_sample() -> None:
    with pytest.raises(BufferError, match="not a single buffer"):
        TensorCPU(TensorListCPU(np.zeros((2, 3))))
