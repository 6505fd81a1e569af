"""The functions of arithmetic expressions in CUDA C++; they return the same results as on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.data_types import BOOL, FLOAT64, DALIDataType, numpy_dtype
from penstock.kernels.cuda.elementwise import evaluate_batch
from penstock.kernels.cuda.launch import OnGpu
from penstock.kernels.expression import COMPARISONS

_OPERATORS = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "fdiv": "a / b",
    "bitand": "a & b",
    "bitor": "a | b",
    "bitxor": "a ^ b",
    "min": "a < b ? a : b",
    "max": "a > b ? a : b",
    "minus": "-a",
    "plus": "a",
    "clamp": "(c < (b > a ? b : a) ? c : (b > a ? b : a))",
}
_COMPARING = {"eq": "==", "neq": "!=", "lt": "<", "leq": "<=", "gt": ">", "geq": ">="}
_RENAMED = {"fpow": "pow", "abs": "fabs"}
_BY_ZERO = "if (b == 0) { *divided_by_zero = 1; return 0; }"


def compute_function(
    function: str,
    types: tuple[DALIDataType, ...],
    result: DALIDataType,
    jobs: Sequence[tuple[Sequence[OnGpu], OnGpu]],
) -> None:
    """Compute ``function`` for all samples in one launch.

    Args:
        function: the name of the expression's function.
        types: the operands' types.
        result: the type of the results.
        jobs: the operands and the target of each sample, arrays on the GPU.

    Raises:
        ValueError: an integer was divided by zero.
    """
    dividing = function in ("div", "mod") and numpy_dtype(result).kind in "iub"
    evaluate_batch(_body(function, result, types), jobs, function not in COMPARISONS, dividing)


def _body(function: str, result: DALIDataType, types: Sequence[DALIDataType]) -> str:
    """Return the C++ statements that compute a function of the operands a, b and c and return the result."""
    kind = numpy_dtype(result).kind
    integral = kind in "iub"
    if function in _COMPARING:
        return _comparison(function, types)
    if function == "div":
        return f"{_BY_ZERO} return a / b;" if integral else "return a / b;"
    if function == "mod":
        return f"{_BY_ZERO} return a % b;" if integral else "return fmod(a, b);"
    if function == "pow" and integral:
        return (
            "if (b < 0) return 0; Result power = 1; Result base = a; uint64 left = b;"
            "while (left) { if (left & 1) power *= base; base *= base; left >>= 1; } return power;"
        )
    if function == "bitnot":
        return "return !a;" if result == BOOL else "return ~a;"
    if function == "abs" and integral:
        return "return a;" if kind == "u" else "return a < 0 ? -a : a;"
    if function in ("lshift", "rshift"):
        count = f"(b & {max(32, 8 * numpy_dtype(result).itemsize) - 1})"
        return f"return a {'<<' if function == 'lshift' else '>>'} {count};"
    if function in _OPERATORS:
        return f"return {_OPERATORS[function]};"
    name = _RENAMED.get(function, function)
    suffix = "" if result == FLOAT64 else "f"
    if function == "rsqrt":
        return "return 1.0 / sqrt(a);" if result == FLOAT64 else 'return a == 0 ? nanf("") : 1.0f / sqrtf(a);'
    operands = "a, b" if len(types) == 2 else "a"
    return f"return {name}{suffix}({operands});"


def _comparison(function: str, types: Sequence[DALIDataType]) -> str:
    symbol = _COMPARING[function]
    kinds = [numpy_dtype(dtype).kind for dtype in types]
    if sorted(kinds) == ["i", "u"]:
        if kinds[0] == "i":
            return f"return a < 0 ? (-1 {symbol} 0) : (uint64(a) {symbol} uint64(b));"
        return f"return b < 0 ? (0 {symbol} -1) : (uint64(a) {symbol} uint64(b));"
    if kinds == ["i", "f"]:
        return f"return a < 0 ? (-1 {symbol} 0) : (a {symbol} b);"
    if kinds == ["f", "i"]:
        return f"return b < 0 ? (0 {symbol} -1) : (a {symbol} b);"
    return f"return a {symbol} b;"
