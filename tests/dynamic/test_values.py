"""Tensors and batches: construction, properties, arithmetic and indexing, in each mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from penstock import dynamic, types
from penstock.dynamic import Batch, EvalMode, Tensor

pytestmark = pytest.mark.every_case
ENUMERATIONS = [
    (types.INTERP_CUBIC, dynamic.InterpType),
    (types.YCbCr, dynamic.ImageType),
    (types.INT32, dynamic.DataType),
]


@pytest.fixture(params=list(EvalMode), ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> Iterator[EvalMode]:
    with request.param as entered:
        yield entered


def lists(batch: Batch) -> list[Any]:
    return [np.asarray(sample).tolist() for sample in batch]


def test_copies_do_not_follow_the_program_s_arrays(mode: EvalMode) -> None:
    own = np.array([[1, 2], [3, 4]], np.int32)
    copied, shared = dynamic.tensor(own, layout="AB"), dynamic.as_tensor(own)
    batch = dynamic.batch([own, own])
    own[0, 0] = 9
    assert (copied[0, 0].item(), shared[0, 0].item(), batch.tensors[1][0, 0].item()) == (1, 9, 1)
    assert copied.layout == "AB"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([1, 2], dynamic.int32),
        (2**31, dynamic.uint32),
        (2.5, dynamic.float32),
        (True, dynamic.bool),
        (np.float64(1), dynamic.float64),
        (np.zeros(2, np.int64), dynamic.int64),
    ],
)
def test_types_of_numbers(data: object, expected: dynamic.DType) -> None:
    assert dynamic.tensor(data).dtype == expected


@pytest.mark.parametrize("kind", [TypeError, RuntimeError])
@pytest.mark.parametrize("data", [np.array([1j]), "abc"])
def test_elements_that_no_tensor_holds(data: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="cannot be a tensor"):
        dynamic.tensor(data)
    with pytest.raises(kind, match="cannot be a tensor"):
        dynamic.batch([data])


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_samples_of_different_ranks(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="equally many dimensions"):
        dynamic.batch([np.zeros((2, 2)), np.zeros(2)])


@pytest.mark.parametrize("kind", [IndexError, RuntimeError])
def test_indices_beyond_the_extent(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="index 2 is out of bounds"):
        dynamic.tensor([[1, 2], [3, 4]])[2].evaluate()


def test_numbers_that_fit_no_type() -> None:
    with pytest.raises(OverflowError, match="1099511627776"):
        dynamic.tensor([1, 2**40])
    with pytest.raises(TypeError, match=r"equal lengths|one type"):
        dynamic.tensor([object()])


@pytest.mark.parametrize(("value", "dtype"), ENUMERATIONS, ids=lambda item: str(item))
def test_enumerations(mode: EvalMode, value: Any, dtype: dynamic.DType) -> None:
    for made in (Tensor(value), Tensor(int(value), dtype=dtype), Batch([value, value]).tensors[1]):
        assert made.dtype == dtype
        assert dynamic.tensor(made, dtype=dynamic.int32).item() == int(value)


def test_conversion_is_the_operator_cast(mode: EvalMode) -> None:
    data = [np.float64([1]), np.float64([1.25, 2.5, 300.7])]
    assert lists(Batch(data, dtype=dynamic.uint8)) == [[1], [1, 3, 255]]
    assert Batch(data).dtype == dynamic.float64


def test_a_batch_of_tensors_shares_them(mode: EvalMode) -> None:
    samples = [dynamic.tensor([number, number + 1], layout="X") for number in range(3)]
    batch = dynamic.as_batch(samples)
    assert (batch.batch_size, batch.ndim, batch.shape, batch.layout) == (3, 1, [(2,)] * 3, "X")
    assert np.shares_memory(np.asarray(batch.tensors[1]), np.asarray(samples[1]))


def test_an_array_is_a_batch_of_its_rows(mode: EvalMode) -> None:
    batch = dynamic.as_batch(np.arange(12).reshape(2, 3, 2), layout="HW")
    assert (batch.batch_size, batch.shape, batch.layout) == (2, [(3, 2)] * 2, "HW")
    assert np.asarray(batch).shape == (2, 3, 2)


def test_batches_without_samples() -> None:
    with pytest.raises(ValueError, match="Element type"):
        dynamic.batch([])
    empty = dynamic.batch([], dtype=dynamic.int32)
    assert (empty.shape, empty.ndim, empty.dtype) == ([], 0, dynamic.int32)


def test_batches_of_unlike_samples() -> None:
    with pytest.raises(ValueError, match="at index 1 has 2"):
        dynamic.batch([[1], [[2]]])
    with pytest.raises(TypeError, match="index 1"):
        dynamic.batch([[1], None])


def test_layouts_are_replaced_without_changing_others(mode: EvalMode) -> None:
    batch = dynamic.batch([np.zeros((4, 6, 3))] * 2, layout="HWC")
    other = dynamic.as_batch(batch, layout="XYZ")
    assert (batch.layout, other.layout) == ("HWC", "XYZ")
    with pytest.raises(ValueError, match="dimensions"):
        dynamic.tensor(np.zeros((4, 6, 3)), layout="DHWC")


def test_selection() -> None:
    batch = dynamic.batch([[1], [2], [3]])
    assert lists(batch.select(slice(1, None))) == [[2], [3]]
    assert lists(batch.select([2, 0])) == [[3], [1]]
    assert batch.select(-1).item() == 3
    assert batch.select(...) is batch
    assert lists(batch.tensors[1:].as_batch()) == [[2], [3]]
    with pytest.raises(IndexError):
        batch.select(3)


def test_indices_of_tensors_are_numpy_s(mode: EvalMode) -> None:
    array = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    tensor = dynamic.tensor(array, layout="HWC")
    for index in (1, (slice(1, 3), ..., 4), (..., -1), slice(None, None, -2), (0, 1, 2)):
        np.testing.assert_array_equal(np.asarray(tensor[index]), array[index])
    assert (tensor[0, ..., 0].layout, tensor[1:3].layout) == ("W", "HWC")
    assert tensor[dynamic.tensor(2), 0, 0].item() == array[2, 0, 0]
    assert tensor[:] is tensor
    with pytest.raises(ValueError, match="greater"):
        tensor[0, 0, 0, 0]


def test_indices_of_batches_are_those_of_each_sample(mode: EvalMode) -> None:
    batch = dynamic.as_batch([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]], layout="XY")
    assert lists(batch.slice[1, 1]) == [5, 11]
    assert lists(batch.slice[..., 1:-1]) == [[[2], [5]], [[8], [11]]]
    assert batch.slice[..., 1].layout == "X"
    assert lists(batch.slice[dynamic.as_batch([1, 0]), dynamic.as_batch([1, 2])]) == [5, 9]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "pow", "floordiv", "and_", "or_", "xor", "eq", "ne", "lt", "ge"])
def test_arithmetic_is_numpy_s_on_integers(mode: EvalMode, name: str) -> None:
    import operator

    function = getattr(operator, name)
    left, right = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2], [3]])
    expected = function(left, right)
    np.testing.assert_array_equal(np.asarray(function(dynamic.tensor(left), dynamic.tensor(right))), expected)
    whole = function(Batch.broadcast(left, 4), right.tolist())
    np.testing.assert_array_equal(np.asarray(whole), [expected] * 4)
    np.testing.assert_array_equal(np.asarray(function(left.tolist(), dynamic.tensor(right))), expected)


def test_functions() -> None:
    values = dynamic.as_batch(np.float32([[1, 4], [9, 16]]))
    np.testing.assert_array_equal(np.asarray(dynamic.math.sqrt(values)), [[1, 2], [3, 4]])
    assert lists(dynamic.math.clamp(values, 2, 9)) == [[2, 4], [9, 9]]
    assert dynamic.math.max(2, dynamic.tensor(5)).item() == 5


def test_truth_and_length() -> None:
    assert bool(dynamic.tensor([1]) == 1) is True
    with pytest.raises(ValueError, match="2 elements"):
        bool(dynamic.tensor([1, 2]) == 1)
    assert len(dynamic.tensor([1, 2])) == 2
    assert [int(item) for item in dynamic.tensor([1, 2])] == [1, 2]
    with pytest.raises(TypeError, match="no length"):
        len(dynamic.tensor(1))


def test_numpy_shares_memory() -> None:
    tensor = dynamic.tensor([1, 2, 3])
    np.asarray(tensor)[0] = 42
    np.array(tensor)[1] = 0
    assert np.from_dlpack(tensor).tolist() == [42, 2, 3]
    assert not hasattr(tensor, "__cuda_array_interface__")


def test_dense_and_padded_batches(mode: EvalMode) -> None:
    ragged = dynamic.batch([[1, 2], [3]])
    assert np.asarray(dynamic.as_tensor(ragged, pad=True)).tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match="pad=True"):
        dynamic.as_tensor(ragged).evaluate()
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.asarray(ragged)
    with pytest.raises((ValueError, RuntimeError), match=r"dense|PyTorch"):
        ragged.torch()


def test_text() -> None:
    assert repr(dynamic.tensor([[1, 2], [3, 4]], layout="HW")) == (
        'Tensor(\n    [[1 2]\n     [3 4]],\n    dtype=i32,\n    layout="HW",\n    device="cpu",\n    shape=(2, 2))'
    )
    assert repr(dynamic.batch([[1, 2], [3]])) == (
        'Batch(\n    [[1 2],\n    [3]],\n    dtype=i32,\n    device="cpu",\n    num_samples=2,\n    shape=[(2,), (1,)])'
    )
    assert "<img" in dynamic.batch([np.zeros((4, 6, 3), np.uint8)], layout="HWC")._repr_html_()


@pytest.mark.parametrize("name", ["u8", "f32", "bool", "bfloat16", "InterpType"])
def test_types_by_name(name: str) -> None:
    assert dynamic.dtype(name).name == name
    assert dynamic.dtype(dynamic.dtype(name)) is dynamic.dtype(name)


def test_types() -> None:
    assert dynamic.dtype(np.float16) is dynamic.dtype(types.FLOAT16) is dynamic.float16
    assert dynamic.type_id(dynamic.uint8) == types.UINT8
    half, brain = dynamic.float16, dynamic.bfloat16
    assert (half.bits, half.bytes, half.exponent_bits, half.significand_bits) == (16, 2, 5, 10)
    assert (brain.exponent_bits, brain.significand_bits, brain.type_id) == (8, 7, types.BFLOAT16)
    assert dynamic.int8.exponent_bits is None
    assert dynamic.InterpType != dynamic.ImageType
    for wrong in ("f32e8m0", "float32"):
        with pytest.raises(ValueError, match=wrong):
            dynamic.dtype(wrong)


def test_devices() -> None:
    assert str(dynamic.Device("cpu")) == "cpu"
    assert dynamic.device(None) is None
    assert dynamic.tensor(1).cpu().device == dynamic.Device("cpu")
    one = dynamic.tensor(1)
    copied = one.to_device("cpu", force_copy=True)
    assert one.to_device("cpu") is one
    assert copied is not one
    assert (copied.device, np.asarray(copied).tolist()) == (one.device, 1)
    for name, number in (("cpu:99", None), ("cpu:x", None), ("cpu:0", 0), ("tpu", None)):
        with pytest.raises(ValueError, match="Invalid device"):
            dynamic.Device(name, number)
    with dynamic.Device("cpu") as entered:
        assert dynamic.Device.current() is entered
