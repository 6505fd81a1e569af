"""Arithmetic, comparison, bitwise and mathematical functions on all pairs of types."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from case import NUMPY_TYPES, Family
from case import feed_here as feed

FAMILY = Family("arithmetic")


def values(name: str, second: bool = False) -> list[np.ndarray]:
    kind = np.dtype(name)
    if kind == np.bool_:
        sample = [True, False, True, True] if second else [True, True, False, False]
    elif kind.kind == "f":
        sample = [2.5, -0.5, 3.0, 0.25] if second else [1.5, -2.5, 0.0, 7.0]
    else:
        info = np.iinfo(kind)
        sample = [2, 3, 1, 5] if second else [7, info.max, info.min, 100]
    return [np.array(sample, kind)] * 3


BINARY: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
FUNCTIONS = ["min", "max", "pow", "fpow", "atan2"]
UNARY = (
    *(
        "sqrt",
        "rsqrt",
        "cbrt",
        "exp",
        "log",
        "log2",
        "log10",
        "abs",
        "fabs",
        "floor",
        "ceil",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
    ),
    *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
PAIRS = [(a, b) for a in NUMPY_TYPES for b in NUMPY_TYPES if {a, b} & {"uint8", "int32", "float32", "bool", "uint64"}]
for left, right in PAIRS:
    first, second = feed(values(left)), feed(values(right, second=True))
    for symbol, function in BINARY.items():
        if symbol in ("**", "<<", ">>") and "64" in left + right and "u" in left + right:
            # For the extreme values used here, results of these operations are undefined in C++.
            continue
        FAMILY.add(f"{left} {symbol} {right}", lambda m, f=function, a=first, b=second: f(a(m), b(m)))
for left, right in [(a, b) for a in ("uint8", "int32", "float32", "float64") for b in ("int8", "float32", "bool")]:
    first, second = feed(values(left)), feed(values(right, second=True))
    for name in FUNCTIONS:
        FAMILY.add(f"{name}({left}, {right})", lambda m, n=name, a=first, b=second: getattr(m.math, n)(a(m), b(m)))
for kind in NUMPY_TYPES:
    node = feed(values(kind))
    FAMILY.add(f"-{kind}", lambda m, a=node: -a(m))
    FAMILY.add(f"+{kind}", lambda m, a=node: +a(m))
    FAMILY.add(f"~{kind}", lambda m, a=node: ~a(m))
    for name in UNARY:
        FAMILY.add(f"{name}({kind})", lambda m, n=name, a=node: getattr(m.math, n)(a(m)))
    for text, constant in (
        ("1", 1),
        ("2.5", 2.5),
        ("True", True),
        ("np.uint8(3)", np.uint8(3)),
        ("np.float32(3)", np.float32(3)),
    ):
        FAMILY.add(f"{kind} + {text}", lambda m, a=node, c=constant: a(m) + c)
        FAMILY.add(
            f"{text} - {kind}", lambda m, a=node, c=constant: m.types.Constant(c) - a(m) if c is True else c - a(m)
        )
    FAMILY.add(f"{kind} * Constant(3).uint8()", lambda m, a=node: a(m) * m.types.Constant(3).uint8())
    FAMILY.add(f"clamp({kind})", lambda m, a=node: m.math.clamp(a(m), 0.5, 20))
INT = feed(values("int32"))
FAMILY.add("constant out of range", lambda m: INT(m) + 3000000000)
FAMILY.add("np.float64 constant", lambda m: INT(m) + np.float64(1))
FAMILY.add("division by zero", lambda m: INT(m) // 0)
FAMILY.add("modulo zero", lambda m: INT(m) % 0)
FAMILY.add("float division by zero", lambda m: INT(m) / 0)
FAMILY.add("array operand", lambda m: INT(m) + np.ones(4, np.float32))
FAMILY.add("list operand", lambda m: INT(m) + [1, 2, 3, 4])  # noqa: RUF005
FAMILY.add("text operand", lambda m: INT(m) + "a")
FAMILY.add("constants alone", lambda m: m.types.Constant(1) + m.types.Constant(2))
GRID, ROW = feed([np.arange(6, dtype=np.int32).reshape(2, 3)] * 3), feed([np.arange(3, dtype=np.int32)] * 3)
FAMILY.add("broadcast", lambda m: GRID(m) * ROW(m))
FAMILY.add("no broadcast", lambda m: GRID(m) * INT(m))
HW, W = feed([np.zeros((2, 3), np.int32)] * 3, "HW"), feed([np.zeros(3, np.int32)] * 3, "W")
FAMILY.add("layout suffix", lambda m: HW(m) + W(m))
FAMILY.add("layouts that differ", lambda m: HW(m) + feed([np.zeros(3, np.int32)] * 3, "C")(m))
# In DALI, a negative integer is less than every real number and NaN, and shifts use only the lowest bits of their count.
REALS = [-100.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 1.0, float("nan"), float("inf"), float("-inf")]
for kind in ("int8", "int32", "int64", "uint8"):
    integers = np.arange(-3, 3).astype(kind)
    left = feed([np.repeat(integers, len(REALS))] * 3)
    for real in ("float32", "float64"):
        right = feed([np.tile(np.array(REALS, real), len(integers))] * 3)
        for symbol in ("==", "!=", "<", "<=", ">", ">="):
            FAMILY.add(
                f"{kind} {symbol} {real}, negative",
                lambda m, f=BINARY[symbol], a=left, b=right: (f(a(m), b(m)), f(b(m), a(m)), f(a(m), -1.5), f(b(m), -1)),
                exact=True,
            )
    for counts in ("int32", "uint8", "int64"):
        count = feed([np.array([-33, -1, 0, 5, 31, 32, 63, 64, 100]).astype(counts)] * 3)
        number = feed([np.array([3, -5, 7, 100, 1, -1, 90, 2, 77]).astype(kind)] * 3)
        FAMILY.add(
            f"{kind} shifted by far, {counts}", lambda m, a=number, c=count: (a(m) << c(m), a(m) >> c(m)), exact=True
        )
LIMITS = [array.ravel().astype(np.float32) for array in np.meshgrid(*[[float("nan"), -1, 0, 1, 2]] * 3)]
FAMILY.add("clamp of and by NaN", lambda m: m.math.clamp(*(feed([limit] * 3)(m) for limit in LIMITS)), exact=True)
FAMILY.add("clamp with crossed limits", lambda m: m.math.clamp(INT(m), 4, 1), exact=True)
LARGE = feed([np.array([2**64 - 1, 2**63, 2**63 + 5, 7, 2], np.uint64)] * 3)
SMALL = feed([np.array([4, -3, -2, -2, 5], np.int32)] * 3)
FAMILY.add("uint64 // int32, large", lambda m: (LARGE(m) // SMALL(m), LARGE(m) // 4, LARGE(m) % SMALL(m)), exact=True)
FAMILY.add("int32 ** uint64, large", lambda m: (SMALL(m) ** LARGE(m), 3 ** LARGE(m)), exact=True)
FAMILY.add("constant of INT8 == node", lambda m: m.types.Constant(200, dtype=m.types.INT8) == INT(m))
FAMILY.add("constant of FLOAT16 == node", lambda m: m.types.Constant(1.5).float16() == INT(m))
