"""Fed data is copied, so that the caller may overwrite it, whatever kind of array or list contains it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.runtime.feeding import to_batch
from penstock.runtime.workers import WorkerPool
from penstock.tensors import HostPool, TensorListCPU
from penstock.tensors.batch import kind_of

THREADS = WorkerPool(4)


@pipeline_def(num_threads=4, device_id=None, prefetch_queue_depth=1)
def fed() -> Any:
    return fn.external_source(name="data")


def check_fed(batch: Any, arrays: list[np.ndarray]) -> None:
    """Feed a batch that refers to arrays, overwrite the arrays, and check that the output has the original values."""
    expected = [array.copy() for array in arrays]
    pipe = fed(batch_size=len(arrays))
    pipe.build()
    pipe.feed_input("data", batch)
    for array in arrays:
        array.flags.writeable = True
        array[...] = 0
    (output,) = pipe.run()
    for position, array in enumerate(expected):
        np.testing.assert_array_equal(output.at(position), array)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.bool_])
def test_samples_of_any_size(count: int, dtype: type) -> None:
    rng = np.random.default_rng(count)
    arrays: list[np.ndarray] = [rng.integers(0, 2, (k % 7, 5), np.int64).astype(dtype) for k in range(count)]
    check_fed(arrays, arrays)


def test_large_batches() -> None:
    rng = np.random.default_rng(1)
    check_fed(arrays := [rng.integers(0, 255, 1_000_000 + 7 * k, np.uint8) for k in range(9)], arrays)
    check_fed(arrays := [rng.integers(0, 255, 5_000_001, np.uint8)], arrays)


def test_samples_that_cannot_be_written_to() -> None:
    arrays = [np.full(3, k, np.uint8) for k in range(20)]
    for array in arrays:
        array.flags.writeable = False
    check_fed(arrays, arrays)


def test_samples_without_dimensions() -> None:
    arrays = [np.array(k + 1, np.int32) for k in range(20)]
    check_fed(arrays, arrays)


def test_arrays_of_a_batch() -> None:
    array = np.arange(20 * 6, dtype=np.int16).reshape(20, 2, 3)
    check_fed(array, list(array))


def test_batches_of_tensors() -> None:
    arrays = [np.full((2, k), k, np.float64) for k in range(20)]
    check_fed(TensorListCPU.of_samples(arrays), arrays)


@pytest.mark.parametrize("count", [2, 20])
def test_batches_of_what_is_not_contiguous(count: int) -> None:
    arrays = [np.arange(6, dtype=np.uint8).reshape(2, 3) + k for k in range(count)]
    batch = TensorListCPU.of_samples([array.T for array in arrays])
    copied = to_batch(batch, None, count, HostPool(), THREADS)
    for array, copy in zip(arrays, copied.samples, strict=True):
        np.testing.assert_array_equal(copy, array.T)
        assert not np.shares_memory(copy, array)


def test_sources_are_kept() -> None:
    batch = TensorListCPU.of_samples([np.zeros(2, np.uint8)] * 10, source_infos=[f"file {k}" for k in range(10)])
    copied = to_batch(batch, None, 10, HostPool(), THREADS)
    assert [copied.source_info(k) for k in range(10)] == [f"file {k}" for k in range(10)]


@pytest.mark.parametrize("strided", [[0], [1], [0, 1, 2]])
def test_arrays_of_one_shape_that_are_strided_are_refused(strided: list[int]) -> None:
    square = np.zeros((4, 4), np.uint8)
    batch = [square.T if number in strided else square for number in range(3)]
    with pytest.raises(RuntimeError, match="Strided data is not supported"):
        to_batch(batch, None, 3, HostPool(), THREADS, copy=False)


def test_arrays_of_two_ranks_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        to_batch([np.zeros((2, 2)), np.zeros(4)], None, 2, HostPool(), THREADS)


FLAT: list[np.ndarray] = [np.arange(k, dtype=np.int16) for k in range(20)]


@pytest.mark.parametrize("layout", [None, "X"])
def test_many_flat_arrays(layout: str | None) -> None:
    batch = to_batch(FLAT, layout, 20, HostPool(), THREADS, copy=False)
    assert kind_of(batch) == (types.INT16, 1, layout or "")
    assert batch.shape() == [(k,) for k in range(20)]
    assert batch.sample_volumes().tolist() == batch.shape_array()[:, 0].tolist() == [*range(20)]
    assert all(ours is given for ours, given in zip(batch.samples, FLAT, strict=True))


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (np.zeros((2, 2), np.int16), "number of dimensions"),
        (np.zeros(3, np.uint16), "same type"),
        (np.zeros(6, np.int16)[::2], "Strided data"),
        ("three", "extract the shape"),
    ],
)
def test_what_is_fed_beside_many_flat_arrays_is_looked_at(other: object, error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        to_batch([*FLAT, other], None, 21, HostPool(), THREADS, copy=False)


def test_many_flat_arrays_of_other_classes() -> None:
    class Own(np.ndarray):
        pass

    fed_arrays = [*FLAT, FLAT[3].view(Own), FLAT[4].astype(np.dtype("<i2", metadata={"own": 1}))]
    batch = to_batch(fed_arrays, None, 22, HostPool(), THREADS, copy=False)
    assert batch.shape() == [(k,) for k in [*range(20), 3, 4]]


def test_addresses_of_flat_arrays_end_with_them() -> None:
    batch = to_batch([array.copy() for array in FLAT], None, 20, HostPool(), THREADS, copy=False)
    assert isinstance(batch, TensorListCPU)
    assert batch.places is not None
    batch.contiguous_elements()
    assert batch.places is None


@pytest.mark.parametrize("shape", [(), (0,), (5,), (4, 6, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.bool_])
def test_small_arrays_of_one_shape_are_copied_together(shape: tuple[int, ...], dtype: type) -> None:
    arrays = [np.full(shape, number % 2, dtype) for number in range(20)]
    batch = to_batch(tuple(arrays), "HWC" if len(shape) == 3 else None, 20, HostPool(), THREADS)
    assert batch.elements.size == 20 * np.prod(shape, dtype=int)
    assert kind_of(batch)[1:] == (len(shape), "HWC" if len(shape) == 3 else "")
    for array, sample in zip(arrays, batch.samples, strict=True):
        np.testing.assert_array_equal(sample, array)
        assert not np.shares_memory(sample, array)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (np.zeros((4, 6), np.float32), "same type"),
        (np.zeros((4, 6, 1), np.uint8), "dimensions"),
        (np.zeros((4, 12), np.uint8)[:, ::2], "strided|contiguous"),
        (np.zeros((4, 6), "datetime64[s]"), "type"),
        ("file", "Don't know how"),
    ],
)
def test_what_is_fed_beside_small_arrays_of_one_shape_is_looked_at(other: object, error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        to_batch([np.zeros((4, 6), np.uint8)] * 19 + [other], None, 20, HostPool(), THREADS)


def test_a_layout_that_does_not_fit_small_arrays_is_refused() -> None:
    with pytest.raises(RuntimeError, match="The layout 'HWC' cannot describe 2-dimensional data"):
        to_batch([np.zeros((4, 6), np.uint8)] * 20, "HWC", 20, HostPool(), THREADS)


def test_small_arrays_of_two_shapes_are_copied() -> None:
    arrays = [np.full((4, 6 + number % 2), number, np.uint8) for number in range(20)]
    for array, sample in zip(arrays, to_batch(arrays, None, 20, HostPool(), THREADS).samples, strict=True):
        np.testing.assert_array_equal(sample, array)
