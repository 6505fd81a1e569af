"""Arithmetic, indexing, reductions and reshaping with random arguments, compared with DALI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from side_by_side import difference, source

TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64", "bool")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}
FUNCTIONS = ("min", "max", "atan2", "fpow", "pow")
UNARY = ("sqrt", "exp", "log", "floor", "ceil", "abs", "fabs", "sin", "cbrt", "rsqrt", "tanh", "log2")


def values(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Return random nonzero numbers of a type, small enough to be raised to powers."""
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind.startswith("float"):
        return (rng.random(shape) * 6 - 3).astype(kind)
    numbers = rng.integers(1, 9, shape)
    if kind.startswith("int"):
        numbers = numbers * rng.choice([-1, 1], shape)
    return numbers.astype(kind)


def shape_of(rng: np.random.Generator, rank: int, most: int = 6) -> tuple[int, ...]:
    return tuple(int(extent) for extent in rng.integers(1, most, rank))


def broadcast(shapes: list[tuple[int, ...]], rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return shapes that broadcast with the given ones: without some first dimensions, and with some extents of 1.

    The same dimensions are changed in all samples, as DALI would otherwise read beyond the end of a sample.
    """
    first, ones = int(rng.integers(0, len(shapes[0]) + 1)), rng.random(len(shapes[0])) < 0.3
    return [tuple(1 if one else extent for extent, one in zip(shape, ones))[first:] for shape in shapes]


def constant(rng: np.random.Generator) -> Any:
    return [True, 3, -2, 2.5, 7][int(rng.integers(0, 5))]


@pytest.mark.parametrize("seed", range(120))
def test_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.choice(TYPES, 2)
    rank, most = int(rng.integers(1, 4)), 9 if seed % 3 else 40
    shapes = [tuple(1 + extent for extent in shape_of(rng, rank, most)) for _ in range(3)]
    first = source([values(rng, shape, one) for shape in shapes])
    second = source([values(rng, shape, other) for shape in broadcast(shapes, rng)])
    number = constant(rng)
    symbol = str(rng.choice([*OPERATORS, *FUNCTIONS]))

    def define(module: Any) -> Any:
        a = first(module)
        b = number if seed % 4 == 0 else second(module)
        if seed % 8 == 0:
            a, b = b, a
        return OPERATORS[symbol](a, b) if symbol in OPERATORS else getattr(module.math, symbol)(a, b)

    assert difference(define) == ""


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", TYPES)
def test_unary_functions(name: str, kind: str) -> None:
    data = source([values(np.random.default_rng(seed), (5, 7), kind) for seed in range(3)])
    assert difference(lambda m: getattr(m.math, name)(data(m))) == ""


def _slice(rng: np.random.Generator, extent: int) -> Any:
    """Return a random subscript, such as DALI accepts: few slices with a negative step, none that starts at the end."""
    if rng.random() < 0.25:
        return int(rng.integers(-extent, extent))
    start, stop = sorted(int(bound) for bound in rng.integers(0, extent + 1, 2))
    if rng.random() < 0.3:
        return slice(None, None, [-1, 2, -2][int(rng.integers(0, 3))])
    return slice(
        start - extent if start < extent and rng.random() < 0.3 else start, stop, [None, 1, 2][int(rng.integers(0, 3))]
    )


@pytest.mark.parametrize("seed", range(60))
def test_subscripts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = shape_of(rng, rank)
    data = source([values(rng, shape, "int32") for _ in range(3)], "ABCD"[:rank] if seed % 2 else None)
    index = tuple(_slice(rng, extent) for extent in shape[: int(rng.integers(1, rank + 1))])
    assert difference(lambda m: data(m)[index], exact=True) == ""


@pytest.mark.parametrize("seed", range(60))
def test_reductions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    kind = str(rng.choice(TYPES[:9]))
    data = source([values(rng, shape_of(rng, rank, 12), kind) for _ in range(3)])
    axes = sorted({int(axis) for axis in rng.integers(0, rank, int(rng.integers(1, rank + 1)))})
    name = str(rng.choice(["sum", "mean", "min", "max", "mean_square", "rms", "variance", "std_dev"]))
    given = {"axes": axes, "keep_dims": bool(seed % 2)}

    def define(module: Any) -> Any:
        reductions, x = module.fn.reductions, data(module)
        if name in ("variance", "std_dev"):
            return getattr(reductions, name)(x, reductions.mean(x, axes=axes), ddof=seed % 3, **given)
        return getattr(reductions, name)(x, **given)

    assert difference(define) == ""


@pytest.mark.parametrize("seed", range(40))
def test_normalize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shapes = [shape_of(rng, rank, 30) for _ in range(3)]
    axes = sorted({int(axis) for axis in rng.integers(0, rank, int(rng.integers(1, rank + 1)))})
    together = bool(rng.random() < 0.3)
    if together:
        shapes = [tuple(s[axis] if axis in axes else shapes[0][axis] for axis in range(rank)) for s in shapes]
    kind = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")[seed % 7]
    data = source([values(rng, shape, kind) for shape in shapes])
    given = {
        "axes": axes,
        "batch": together,
        "epsilon": float(seed % 3),
        "ddof": seed % 2,
        "shift": float(seed % 5),
        "scale": 2.0,
    }
    assert difference(lambda m: m.fn.normalize(data(m), **given), tolerance=1e-4) == ""


@pytest.mark.parametrize("seed", range(40))
def test_relabelling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    shape = shape_of(rng, rank)
    data = source([values(rng, shape, "int16") for _ in range(3)], "ABCDE"[:rank])
    perm = [int(axis) for axis in rng.permutation(rank)]
    place = int(rng.integers(0, rank + 1))

    def define(module: Any) -> Any:
        fn, x = module.fn, data(module)
        y = fn.transpose(x, perm=perm)
        z = fn.expand_dims(y, axes=[place], new_axis_names="Z")
        flat = fn.reshape(z, shape=[-1])
        return y, z, flat, fn.squeeze(z, axis_names="Z"), fn.cat(y, y, axis=place - 1), fn.stack(x, x, axis=place)

    assert difference(define, exact=True) == ""


@pytest.mark.parametrize("seed", range(24))
def test_casts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 256, (3, 8 * 64), np.uint8)
    kind = TYPES[seed % 10]
    samples = [np.nan_to_num(row.view(kind)) for row in bits]
    data = source(samples)
    wanted = ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT", "FLOAT64", "BOOL")

    def define(module: Any) -> Any:
        return tuple(module.fn.cast(data(module), dtype=getattr(module.types, name)) for name in wanted)

    assert difference(define, exact=True) == ""
