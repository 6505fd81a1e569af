"""`cast` to BFLOAT16 rounds as ml_dtypes does, on both devices; such data can be moved, but not computed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_batch import outputs

from penstock import Pipeline, fn, pipeline_def, types

RNG = np.random.default_rng(4)
BITS = RNG.integers(0, 2**32, 5000, dtype=np.uint64).astype(np.uint32)
"""The bits of float32 values of all kinds, among them denormals, infinities and NaNs."""
HALVES = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0xFF800000, 0x00008000], np.uint32)
SINGLES = np.concatenate([HALVES, BITS]).view(np.float32)


def rounded(values: np.ndarray) -> np.ndarray:
    """Return the bits of the bfloat16 nearest to each value, with ties rounded to even, computed from the definition."""
    with np.errstate(over="ignore"):
        singles = values.astype(np.float32)
    bits = singles.view(np.uint32).astype(np.uint64)
    low, high = bits & 0xFFFF, bits >> 16
    nearest = high + ((low > 0x8000) | ((low == 0x8000) & (high % 2 == 1)))
    return np.where(np.isnan(singles), high | 0x40, nearest).astype(np.uint16)


def cast_on(device: str, values: list[np.ndarray]) -> list[np.ndarray]:
    def define() -> Any:
        given = fn.external_source(name="values")
        return fn.cast(given.gpu() if device == "gpu" else given, dtype=types.BFLOAT16)

    return outputs(define, device_id=0 if device == "gpu" else None, values=values)[0]


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32, np.int64, np.uint8, np.bool_])
def test_rounding(device: str, dtype: Any) -> None:
    if dtype == np.float32:
        values = [SINGLES, SINGLES[:3], SINGLES[:0]]
    elif np.dtype(dtype).kind == "f":
        values = [RNG.normal(0, 100, count).astype(dtype) for count in (9, 1000, 1)]
    else:
        values = [RNG.integers(0, 2, count).astype(dtype) * dtype(77) for count in (9, 1000, 1)]
        if np.dtype(dtype).itemsize >= 4:
            values[1] = RNG.integers(-(2**31), 2**31 - 1, 1000).astype(dtype)
    received = cast_on(device, values)
    for own, given in zip(received, values, strict=True):
        assert own.dtype == np.uint16
        np.testing.assert_array_equal(own, rounded(given))


def test_the_bits_are_those_of_ml_dtypes() -> None:
    numbers = SINGLES[~np.isnan(SINGLES)]
    (received,) = cast_on("cpu", [numbers])
    np.testing.assert_array_equal(received.view(ml_dtypes.bfloat16), numbers.astype(ml_dtypes.bfloat16))


def built(define: Callable[[Any], Any]) -> Pipeline:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        return define(fn.external_source(name="values", dtype=types.FLOAT, ndim=2))

    made = pipeline()
    made.build()
    return made


def test_moving(tmp_path: Any) -> None:
    def moved(values: Any) -> Any:
        brief = fn.cast(values * 2, dtype=types.BFLOAT16)
        turned = fn.transpose(brief, perm=[1, 0])
        return brief, turned, fn.stack(turned, fn.copy(turned)), fn.reshape(brief, shape=[-1]), fn.cat(brief, brief)

    pipeline = built(moved)
    values = [RNG.normal(0, 1, (3, 4)).astype(np.float32) for _ in range(2)]
    batches = pipeline.run(values=values)
    saved = Pipeline.deserialize(pipeline.serialize())
    saved.build()
    again = saved.run(values=values)
    pipeline.close()
    saved.close()
    for found in (batches, again):
        assert all(batch.dtype is types.BFLOAT16 for batch in found)
        for number, value in enumerate(values):
            bits = rounded(value * 2)
            expected = bits, bits.T, np.stack([bits.T] * 2), bits.reshape(-1), np.concatenate([bits] * 2)
            for batch, array in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.array(batch[number]), array)
    assert "BFLOAT16" in repr(batches[0][0])


def test_bits_as_numbers_and_back() -> None:
    pipeline = built(
        lambda values: fn.reinterpret(
            fn.reinterpret(fn.cast(values, dtype=types.BFLOAT16), dtype=types.UINT16) | types.Constant(0).uint16(),
            dtype=types.BFLOAT16,
        )
    )
    values = np.ones((1, 2), np.float32)
    (batch,) = pipeline.run(values=[values, values])
    pipeline.close()
    assert batch.dtype is types.BFLOAT16
    assert np.array(batch[0]).tolist() == [[0x3F80, 0x3F80]]


@pytest.mark.parametrize(
    "define",
    [
        lambda values: fn.cast(values, dtype=types.BFLOAT16) * 2,
        lambda values: fn.resize(fn.cast(values, dtype=types.BFLOAT16), size=4),
        lambda values: fn.cast(fn.transpose(fn.cast(values, dtype=types.BFLOAT16), perm=[1, 0]), dtype=types.FLOAT),
        lambda values: fn.cast_like(values, fn.cast(values, dtype=types.BFLOAT16)),
        lambda values: fn.reductions.sum(fn.cast(values, dtype=types.BFLOAT16)),
    ],
)
def test_nothing_computes_with_it(define: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"is given bfloat16\. Operators do not compute with bfloat16"):
        built(define)


@pytest.mark.parametrize(
    "define",
    [
        lambda values: fn.random.uniform(range=[0, 1], dtype=types.BFLOAT16),
        lambda values: fn.external_source(name="others", dtype=types.BFLOAT16),
        lambda values: fn.crop_mirror_normalize(values, dtype=types.BFLOAT16),
        lambda values: fn.zeros(shape=[2], dtype=types.BFLOAT16),
    ],
)
def test_nothing_else_makes_it(define: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"'dtype' cannot be BFLOAT16: convert with `fn.cast"):
        built(define)
