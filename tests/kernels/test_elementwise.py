"""Arithmetic on arrays: integer semantics, NaN, and merging of short loops."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.elementwise import evaluate

SHAPES = [
    ((700, 3), (3,)),
    ((3,), (700, 3)),
    ((40, 30, 3), (3,)),
    ((40, 30, 3), (1, 3)),
    ((40, 30, 3), (30, 1)),
    ((40, 30, 3), (40, 1, 1)),
    ((40, 30, 3), ()),
    ((40, 1, 3), (1, 30, 1)),
    ((2, 2000), (2, 1)),
    ((5,), (5,)),
]


@pytest.mark.parametrize(("one", "other"), SHAPES)
@pytest.mark.parametrize(("function", "expected"), [("sub", np.subtract), ("min", np.minimum), ("gt", np.greater)])
def test_broadcasts(one: tuple[int, ...], other: tuple[int, ...], function: str, expected: np.ufunc) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 255, shape).astype(np.uint8) for shape in (one, other))
    wanted = expected(a.astype(np.int32), b.astype(np.int32))
    out = np.empty(wanted.shape, wanted.dtype)
    evaluate(function, [a, b.astype(np.int32)], out)
    np.testing.assert_array_equal(out, wanted)


def test_takes_views() -> None:
    image = np.arange(60 * 50 * 3, dtype=np.float32).reshape(60, 50, 3)
    out = np.empty((30, 50, 3), np.float32)
    evaluate("mul", [image[::2, ::-1], np.float32([1, 2, 3])], out)
    np.testing.assert_array_equal(out, image[::2, ::-1] * np.float32([1, 2, 3]))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_integers_are_divided_toward_zero(kind: type) -> None:
    a, b = np.array([-7, 7, -7, 7, -6], kind), np.array([2, -2, -2, 2, 3], kind)
    out = np.empty(5, kind)
    evaluate("div", [a, b], out)
    assert out.tolist() == [-3, -3, 3, 3, -2]
    evaluate("mod", [a, b], out)
    assert out.tolist() == [-1, 1, -1, 1, 0]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_shifts_count_as_processors_do(kind: type) -> None:
    """Narrow types are shifted as 32-bit values; the count is taken modulo the number of bits."""
    bits = max(np.dtype(kind).itemsize * 8, 32)
    numbers, counts = np.array([1, 3, 100, 5, 7, 9], kind), np.array([0, 3, 1, bits, bits + 2, bits - 1], np.int64)
    out = np.empty(6, kind)
    evaluate("lshift", [numbers, counts], out)
    mask = (1 << 8 * np.dtype(kind).itemsize) - 1
    expected = [int(number) << (int(count) % bits) & mask for number, count in zip(numbers, counts)]
    assert [int(number) & mask for number in out] == expected
    evaluate("rshift", [numbers, counts], out)
    assert out.tolist() == [int(number) >> (int(count) % bits) for number, count in zip(numbers, counts)]


def test_division_by_zero_is_refused_for_integers_alone() -> None:
    with pytest.raises(ValueError, match="division by zero"):
        evaluate("div", [np.array([1]), np.array([0])], np.empty(1, np.int64))
    out = np.empty(1, np.float32)
    evaluate("fdiv", [np.array([1]), np.array([0])], out)
    assert np.isinf(out).all()


def test_nan_gives_the_second_operand() -> None:
    nan, out = np.float32(np.nan), np.empty(2, np.float32)
    for function in ("min", "max"):
        evaluate(function, [np.array([nan, nan]), np.array(1, np.float32)], out)
        assert out.tolist() == [1, 1]
        evaluate(function, [np.float32([1, 2]), np.array([nan, 5], np.float32)], out)
        assert np.isnan(out[0])
        evaluate(function, [np.float32([1, 2]), np.array(nan, np.float32)], out)
        assert np.isnan(out).all()


def test_clamps_between_constants() -> None:
    out = np.empty(4, np.float32)
    evaluate("clamp", [np.float32([-1, 0.5, 9, np.nan]), np.array(0, np.int32), np.array(1, np.float32)], out)
    assert out.tolist() == [0, 0.5, 1, pytest.approx(np.nan, nan_ok=True)]


def test_compares_by_value_across_signs() -> None:
    out = np.empty(1, np.bool_)
    evaluate("lt", [np.array([-1], np.int64), np.array([2**63], np.uint64)], out)
    assert out[0]
    evaluate("geq", [np.array([2**63], np.uint64), np.array([-1], np.int8)], out)
    assert out[0]


def test_reciprocal_roots_without_a_number_are_dali_s() -> None:
    out = np.empty(3, np.float32)
    evaluate("rsqrt", [np.float32([0, np.inf, 4])], out)
    assert np.isnan(out).tolist() == [True, True, False]
    assert out[2] == 0.5
