"""Kernels with every kind of argument and result, which `test_libraries.py` compiles ahead of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.options import brief, cfunc, inner, kernel


class Pair(NamedTuple):
    """A named tuple that is used as argument and as result."""

    numbers: np.ndarray
    factor: float


@inner
def squared(x: float) -> float:
    return x * x


@kernel
def sums(rows: np.ndarray, out: np.ndarray) -> None:
    for y in range(rows.shape[0]):
        out[y] = 0.0
        for x in range(rows.shape[1]):
            out[y] += squared(rows[y, x])


@brief
def numbers(a: int, b: float, c: bool, d: np.uint8, e: np.float32) -> tuple[int, float, bool, int, float]:
    return a + 1, b / 2, not c, d + np.uint8(1), e * np.float32(2)


@kernel
def view(rows: np.ndarray) -> np.ndarray:
    return rows[1:]


@kernel
def view_and_others(rows: np.ndarray) -> tuple[np.ndarray, int, np.uint8, float, np.ndarray]:
    return rows[1:], rows.shape[0], np.uint8(7), 0.5, np.zeros(3)


@kernel
def largest(number: int) -> int:
    return number


@kernel
def nothing(x: None) -> None:
    return None


@kernel
def spread(pair: Pair, more: tuple[int, tuple[float, float]]) -> tuple[np.ndarray, Pair]:
    doubled = pair.numbers * 2
    return np.full((more[0], 2), more[1][0] + more[1][1]), Pair(doubled, pair.factor + 1.0)


@kernel
def refused(number: int) -> int:
    if number < 0:
        raise ValueError("a negative number")
    return number


@kernel
def huge(count: int) -> np.ndarray:
    return np.empty(count, np.float64)


@cfunc("int64, int64", "int32")
def difference(a: int, b: int) -> int:
    return a - b
