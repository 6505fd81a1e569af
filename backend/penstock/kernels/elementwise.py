"""The functions of arithmetic expressions on NumPy arrays, with C's semantics for integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# In inner loops over fewer elements than this, NumPy's overhead dominates.
_SHORT = 1024


def _in(out: np.ndarray) -> dict[str, Any]:
    """Return the keyword arguments with which a ufunc computes in the type of ``out``, converting operands in chunks."""
    return {"out": out, "dtype": out.dtype, "casting": "unsafe"}


def _converted(operands: Sequence[np.ndarray], out: np.ndarray) -> list[np.ndarray]:
    return [operand if operand.dtype == out.dtype else operand.astype(out.dtype) for operand in operands]


def _divide(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Divide ``a`` by ``b``; integer division truncates toward zero."""
    if out.dtype.kind == "f":
        np.divide(a, b, **_in(out))
        return
    _refuse_zero(b)
    np.floor_divide(a, b, **_in(out))
    if out.dtype.kind == "i" and (_may_be_negative(a) or _may_be_negative(b)):
        a, b = _converted((a, b), out)
        inexact = (np.multiply(out, b) != a) & ((a < 0) != (b < 0))
        np.add(out, inexact, out=out, casting="unsafe")


def _may_be_negative(operand: np.ndarray) -> bool:
    """Return whether an operand may be negative after conversion to a signed integer; this includes large uint64 values."""
    if operand.dtype == np.uint64:
        operand = operand.view(np.int64)
    return operand.dtype.kind == "i" and (operand.size > 1 or bool((operand < 0).any()))


def _modulo(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute the remainder, which has the sign of the dividend."""
    if out.dtype.kind != "f":
        _refuse_zero(b)
    np.fmod(a, b, **_in(out))


def _refuse_zero(divisor: np.ndarray) -> None:
    if not np.all(divisor):
        raise ValueError("Integer division by zero.")


def _power(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Raise ``a`` to the power ``b``. Integers stay integers; for them, a negative exponent yields 0."""
    if out.dtype.kind == "i":
        (b,) = _converted((b,), out)
        negative = b < 0
        np.power(a, np.where(negative, 0, b).astype(out.dtype), **_in(out))
        np.copyto(out, 0, where=negative)
        return
    np.power(a, b, **_in(out))


def _minimum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    _chosen(a, b, out, np.minimum, np.fmin, np.less)


def _maximum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    _chosen(a, b, out, np.maximum, np.fmax, np.greater)


def _chosen(a: np.ndarray, b: np.ndarray, out: np.ndarray, plain: Any, ignoring_nan: Any, compare: Any) -> None:
    """Choose ``a`` where ``compare(a, b)`` is true, otherwise ``b``; so if either is NaN, the result is ``b``."""
    if out.dtype.kind != "f":
        plain(a, b, **_in(out))
    elif b.size == 1 and not np.isnan(b).any():
        ignoring_nan(a, b, **_in(out))
    else:
        a, b = _converted((a, b), out)
        np.copyto(out, np.where(compare(a, b), a, b))


def _clamp(value: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray) -> None:
    """Clamp values. NaN stays NaN, a limit that is NaN is ignored, and where ``low`` exceeds ``high``, the result is ``high``."""
    if out.dtype.kind != "f":
        np.maximum(value, low, **_in(out))
        np.minimum(out, high, **_in(out))
        return
    value, low, high = _converted((value, low, high), out)
    np.copyto(out, np.where(low > value, low, value))
    np.copyto(out, high, where=high < out)


def _rsqrt(a: np.ndarray, out: np.ndarray) -> None:
    np.sqrt(a, **_in(out))
    np.divide(1, out, out=out)
    if out.dtype == np.float32:
        # As in DALI: the instruction for reciprocal square roots, followed by one Newton step, gives NaN for zero and infinity.
        np.copyto(out, np.nan, where=(a == 0) | (a == np.inf))


def _shift(function: Any) -> Callable[..., None]:
    """Return a function that shifts ``a`` by the lowest bits of ``b``, as processors do; narrow types are treated as 32 bits wide."""

    def apply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        a = a.astype(out.dtype if out.itemsize >= 4 else np.int32, copy=False)
        count = b.astype(np.int64) & (8 * a.itemsize - 1)
        np.copyto(out, function(a, count.astype(a.dtype)), casting="unsafe")

    return apply


def _ufunc(function: Any) -> Callable[..., None]:
    def apply(*operands: np.ndarray, out: np.ndarray) -> None:
        function(*operands, **_in(out))

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
    "lshift": _shift(np.left_shift),
    "rshift": _shift(np.right_shift),
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
_COMPARISONS: dict[str, object] = {
    "eq": np.equal,
    "neq": np.not_equal,
    "lt": np.less,
    "leq": np.less_equal,
    "gt": np.greater,
    "geq": np.greater_equal,
}


def evaluate(function: str, operands: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Apply ``function`` to operands, which are broadcast, and write the results to ``out``, whose dtype is the result type.

    Raises:
        ValueError: integers are divided by zero.
    """
    operands, out = _with_long_loops(operands, out)
    with np.errstate(all="ignore"):
        if function in _COMPARISONS:
            _compare(_COMPARISONS[function], operands[0], operands[1], out)
        elif out.dtype == np.bool_ and function in ("lshift", "rshift"):
            np.copyto(out, _shifted(function, *operands))
        else:
            _FUNCTIONS[function](*operands, out=out)


def _with_long_loops(operands: Sequence[np.ndarray], out: np.ndarray) -> tuple[Sequence[np.ndarray], np.ndarray]:
    """Return the same arrays with their innermost dimensions merged, if that makes a short inner loop longer.

    Operands that are broadcast along the merged dimensions (a value for each channel, say) are repeated along them.
    """
    if out.size <= _SHORT or out.ndim < 2 or out.shape[-1] >= _SHORT or not out.flags.c_contiguous:
        return operands, out
    if all(operand.size == 1 or operand.shape == out.shape for operand in operands):
        return operands, out
    split, inner = out.ndim - 1, out.shape[-1]
    while split and inner < _SHORT:
        split -= 1
        inner *= out.shape[split]
    lead, tail = out.shape[:split], out.shape[split:]
    joined = []
    for operand in operands:
        if operand.size == 1:
            joined.append(operand.reshape(()))
        elif operand.shape == out.shape:
            joined.append(operand.reshape(*lead, inner))
        elif all(extent == 1 for extent in operand.shape[: max(operand.ndim - len(tail), 0)]):
            part = operand.reshape(operand.shape[max(operand.ndim - len(tail), 0) :])
            joined.append(np.broadcast_to(part, tail).reshape(inner))
        else:
            return operands, out
    return joined, out.reshape(*lead, inner)


def _shifted(function: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shift = np.left_shift if function == "lshift" else np.right_shift
    moved: np.ndarray = shift(a.astype(np.int32), b.astype(np.uint8)) != 0
    return moved


def _compare(comparison: Any, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compare by value; this includes uint64 and signed integers, which have no common integer type.

    As in DALI, a negative integer is less than any floating-point number, even if that is negative or NaN: DALI treats negative
    integers as it does in comparisons with unsigned integers.
    """
    kinds = a.dtype.kind + b.dtype.kind
    if {a.dtype.kind, b.dtype.kind} == {"u", "i"} and np.uint64 in (a.dtype, b.dtype):
        if a.dtype.kind == "i":
            negative, sign = a < 0, comparison(-1, 0)
        else:
            negative, sign = b < 0, comparison(0, -1)
        comparison(a.astype(np.uint64), b.astype(np.uint64), out=out)
        np.copyto(out, sign, where=negative)
    elif "f" in kinds:
        common = np.dtype(np.float64 if np.float64 in (a.dtype, b.dtype) else np.float32)
        comparison(a, b, out=out, signature=(common, common, np.dtype(np.bool_)), casting="unsafe")
        if "i" in kinds:
            integers, sign = (a, comparison(-1, 0)) if kinds[0] == "i" else (b, comparison(0, -1))
            np.copyto(out, sign, where=integers < 0)
    else:
        comparison(a, b, out=out)


def folded(function: np.ufunc, data: np.ndarray, axes: tuple[int, ...], **options: Any) -> Any:
    """Reduce the elements along ``axes`` with ``function``, one dimension at a time.

    The outermost dimension comes first: then the inner loops are long, while loops over a few channels would be short.
    """
    for gone, axis in enumerate(sorted(axes)):
        data = function.reduce(data, axis=axis - gone, **options)
    return data
