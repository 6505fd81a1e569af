"""Arithmetic with constants and casts give the same bits in the core, in NumPy, and in the kernels for single samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.core.chains import StageRecords, array_part, compute_part
from penstock.data_types import FLOAT, INT32, from_numpy_dtype, numpy_dtype
from penstock.kernels.cpu.casting import cast
from penstock.kernels.elementwise import evaluate
from penstock.kernels.expression import result_type
from penstock.operators.generic._cast_cpu import casting_stage
from penstock.operators.math._arithmetic_cpu import arithmetic_stage

_SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 254.5, 1e30, -1e30, 2.0**31, 2.0**63, 1e-40]
TYPES = ["uint8", "int16", "int32", "float32"]


def values(dtype: str) -> np.ndarray:
    """Return ordinary and extreme values of a type."""
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        return np.array([*rng.normal(0, 300, 200), *_SPECIAL], dtype)
    limits = np.iinfo(dtype)
    return np.array([*rng.integers(limits.min, limits.max, 200, endpoint=True), limits.min, limits.max], dtype)


def computed(stage: StageRecords | None, source: np.ndarray, target: np.dtype) -> np.ndarray:
    """Return the core's result of ``stage`` for ``source``, an array of one dimension."""
    assert stage is not None
    result = np.empty(source.shape, target)
    compute_part(stage, array_part(source, (0,)), array_part(result, (0,)))
    return result


@pytest.mark.parametrize("source", [*TYPES, "uint16", "int8"])
def test_casts(source: str) -> None:
    data = values(source)
    for target in map(np.dtype, [*TYPES, "uint16", "int8", "float64"]):
        expected = np.empty(data.shape, target)
        if target == data.dtype:
            expected[...] = data
        else:
            cast(data, expected)
        got = computed(casting_stage(np.array([data.shape]), data.dtype, target), data, target)
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("function", ["add", "sub", "mul", "fdiv"])
@pytest.mark.parametrize("source", TYPES)
def test_constants(function: str, source: str) -> None:
    data = values(source)
    for number, data_first in itertools.product([3, -7, 255, 0, 0.1, -0.0, np.inf, np.nan], [True, False]):
        kind = INT32 if isinstance(number, int) else FLOAT
        constant = np.array(number, numpy_dtype(kind))
        target = numpy_dtype(result_type(function, (from_numpy_dtype(data.dtype), kind)))
        expected = np.empty(data.shape, target)
        evaluate(function, [data, constant] if data_first else [constant, data], expected)
        shapes = np.array([data.shape])
        stage = arithmetic_stage(function, constant, data_first, shapes, data.dtype, target)
        got = computed(stage, data, target)
        # The bits of the NaN that results from two NaNs are unspecified.
        np.testing.assert_array_equal(got, expected)
        defined = expected == expected
        np.testing.assert_array_equal(np.signbit(got[defined]), np.signbit(expected[defined]))
