"""The functions of arithmetic expressions on numpy arrays, with C's semantics for integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _divide(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Integers truncate toward zero; floating point is divided plainly."""
    if out.dtype.kind == "f":
        np.divide(a, b, out=out)
        return
    _refuse_zero(b)
    np.floor_divide(a, b, out=out)
    if out.dtype.kind == "i":
        inexact = (np.multiply(out, b) != a) & ((a < 0) != (b < 0))
        np.add(out, inexact, out=out, casting="unsafe")


def _modulo(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The remainder with the sign of the dividend."""
    if out.dtype.kind != "f":
        _refuse_zero(b)
    np.fmod(a, b, out=out)


def _refuse_zero(divisor: np.ndarray) -> None:
    if not np.all(divisor):
        raise ValueError("Integer division by zero.")


def _power(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Integers stay integers; a negative exponent gives 0."""
    if out.dtype.kind == "i":
        negative = b < 0
        np.power(a, np.where(negative, 0, b).astype(out.dtype), out=out)
        np.copyto(out, 0, where=negative)
        return
    np.power(a, b, out=out)


def _minimum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, np.where(a < b, a, b))


def _maximum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, np.where(a > b, a, b))


def _clamp(value: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray) -> None:
    at_least = np.where(value > low, value, low)
    np.copyto(out, np.where(at_least < high, at_least, high))


def _rsqrt(a: np.ndarray, out: np.ndarray) -> None:
    np.sqrt(a, out=out)
    np.divide(1, out, out=out)
    if out.dtype == np.float32:
        # What the reciprocal square root instruction and one step of Newton's method make of zero.
        np.copyto(out, np.nan, where=a == 0)


def _ufunc(function: Any) -> Callable[..., None]:
    def apply(*operands: np.ndarray, out: np.ndarray) -> None:
        function(*operands, out=out)

    return apply


_FUNCTIONS: dict[str, Callable[..., None]] = {
    "add": _ufunc(np.add),
    "sub": _ufunc(np.subtract),
    "mul": _ufunc(np.multiply),
    "div": _divide,
    "fdiv": _ufunc(np.divide),
    "mod": _modulo,
    "pow": _power,
    "fpow": _ufunc(np.power),
    "min": _minimum,
    "max": _maximum,
    "clamp": _clamp,
    "atan2": _ufunc(np.arctan2),
    "minus": _ufunc(np.negative),
    "plus": _ufunc(np.positive),
    "abs": _ufunc(np.absolute),
    "fabs": _ufunc(np.fabs),
    "bitand": _ufunc(np.bitwise_and),
    "bitor": _ufunc(np.bitwise_or),
    "bitxor": _ufunc(np.bitwise_xor),
    "bitnot": _ufunc(np.invert),
    "lshift": _ufunc(np.left_shift),
    "rshift": _ufunc(np.right_shift),
    "rsqrt": _rsqrt,
    "sqrt": _ufunc(np.sqrt),
    "cbrt": _ufunc(np.cbrt),
    "exp": _ufunc(np.exp),
    "log": _ufunc(np.log),
    "log2": _ufunc(np.log2),
    "log10": _ufunc(np.log10),
    "floor": _ufunc(np.floor),
    "ceil": _ufunc(np.ceil),
    "sin": _ufunc(np.sin),
    "cos": _ufunc(np.cos),
    "tan": _ufunc(np.tan),
    "asin": _ufunc(np.arcsin),
    "acos": _ufunc(np.arccos),
    "atan": _ufunc(np.arctan),
    "sinh": _ufunc(np.sinh),
    "cosh": _ufunc(np.cosh),
    "tanh": _ufunc(np.tanh),
    "asinh": _ufunc(np.arcsinh),
    "acosh": _ufunc(np.arccosh),
    "atanh": _ufunc(np.arctanh),
}
_COMPARISONS: dict[str, Any] = {
    "eq": np.equal,
    "neq": np.not_equal,
    "lt": np.less,
    "leq": np.less_equal,
    "gt": np.greater,
    "geq": np.greater_equal,
}


def evaluate(function: str, operands: list[np.ndarray], out: np.ndarray) -> None:
    """Computes ``function`` of broadcast operands into ``out``, whose dtype is the type of the result."""
    with np.errstate(all="ignore"):
        if function in _COMPARISONS:
            _compare(_COMPARISONS[function], operands[0], operands[1], out)
            return
        same = [operand if operand.dtype == out.dtype else operand.astype(out.dtype) for operand in operands]
        if out.dtype == np.bool_ and function in ("lshift", "rshift"):
            same = [operand.astype(np.uint8) for operand in same]
            np.copyto(out, _shifted(function, *same))
            return
        _FUNCTIONS[function](*same, out=out)


def _shifted(function: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.left_shift if function == "lshift" else np.right_shift)(a.astype(np.int32), b) != 0


def _compare(comparison: Any, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """By value, also where one operand is uint64 and the other signed, which no common integer type holds."""
    if {a.dtype.kind, b.dtype.kind} == {"u", "i"} and np.uint64 in (a.dtype, b.dtype):
        if a.dtype.kind == "i":
            negative, sign = a < 0, comparison(-1, 0)
        else:
            negative, sign = b < 0, comparison(0, -1)
        comparison(a.astype(np.uint64), b.astype(np.uint64), out=out)
        np.copyto(out, sign, where=negative)
        return
    if "f" in a.dtype.kind + b.dtype.kind:
        common = np.float64 if np.float64 in (a.dtype, b.dtype) else np.float32
        a, b = a.astype(common), b.astype(common)
    comparison(a, b, out=out)
