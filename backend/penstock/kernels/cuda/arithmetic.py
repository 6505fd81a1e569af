"""Arithmetic expressions on GPU: a kernel is generated for each function and combination of types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch
from penstock.kernels.expression import COMPARISONS
from penstock.tensors.cuda import require_cupy
from penstock.types import BOOL, FLOAT64, DALIDataType, numpy_dtype

_DIMS, _OPERANDS = 6, 3
_EXPRESSION = np.dtype(
    [
        ("target", np.uint64),
        ("operands", np.uint64, _OPERANDS),
        ("extents", np.int64, _DIMS),
        ("strides", np.int64, (_OPERANDS, _DIMS)),
    ],
    align=True,
)
_OPERATORS = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "fdiv": "a / b",
    "bitand": "a & b",
    "bitor": "a | b",
    "bitxor": "a ^ b",
    "lshift": "a << b",
    "rshift": "a >> b",
    "min": "a < b ? a : b",
    "max": "a > b ? a : b",
    "minus": "-a",
    "plus": "a",
    "clamp": "((a > b ? a : b) < c ? (a > b ? a : b) : c)",
}
_COMPARING = {"eq": "==", "neq": "!=", "lt": "<", "leq": "<=", "gt": ">", "geq": ">="}
_RENAMED = {"fpow": "pow", "abs": "fabs"}


def _body(function: str, result: DALIDataType, types: Sequence[DALIDataType]) -> str:
    """Statements that return the result of the operands a, b and c."""
    kind = numpy_dtype(result).kind
    integral = kind in "iub"
    if function in _COMPARING:
        return _comparison(function, types)
    if function == "div":
        return "if (b == 0) { *zero = 1; return 0; } return a / b;" if integral else "return a / b;"
    if function == "mod":
        return "if (b == 0) { *zero = 1; return 0; } return a % b;" if integral else "return fmod(a, b);"
    if function == "pow" and integral:
        return (
            "if (b < 0) return 0; Result power = 1; Result base = a; uint64 left = b;"
            "while (left) { if (left & 1) power *= base; base *= base; left >>= 1; } return power;"
        )
    if function == "bitnot":
        return "return !a;" if result == BOOL else "return ~a;"
    if function == "abs" and integral:
        return "return a;" if kind == "u" else "return a < 0 ? -a : a;"
    if function in _OPERATORS:
        return f"return {_OPERATORS[function]};"
    name = _RENAMED.get(function, function)
    suffix = "" if result == FLOAT64 else "f"
    if function == "rsqrt" and result != FLOAT64:
        return 'return a == 0 ? nanf("") : 1.0f / sqrtf(a);'
    operands = "a, b" if len(types) == 2 else "a"
    return f"return {name}{suffix}({operands});"


def _comparison(function: str, types: Sequence[DALIDataType]) -> str:
    symbol = _COMPARING[function]
    kinds = [numpy_dtype(dtype).kind for dtype in types]
    if sorted(kinds) == ["i", "u"]:
        if kinds[0] == "i":
            return f"return a < 0 ? (-1 {symbol} 0) : (uint64(a) {symbol} uint64(b));"
        return f"return b < 0 ? (0 {symbol} -1) : (uint64(a) {symbol} uint64(b));"
    return f"return a {symbol} b;"


@functools.cache
def _kernel(function: str, result: DALIDataType, types: tuple[DALIDataType, ...]) -> Any:
    names = "abc"[: len(types)]
    loads = []
    for index, (name, dtype) in enumerate(zip(names, types)):
        value = f"reinterpret_cast<const {cuda_type(dtype)} *>(operands[{index}])[offset[{index}]]"
        if function in COMPARISONS:
            loads.append(f"auto {name} = {value};")
        else:
            loads.append(f"Result {name} = Result({value});")
    generated = (
        f"typedef {cuda_type(result)} Result;\n"
        "__device__ inline Result compute(const uint64 *operands, const int64 *offset, int *zero) {\n"
        f"    {' '.join(loads)}\n    {_body(function, result, types)}\n}}\n"
    )
    return kernel("arithmetic", "evaluate", generated)


def evaluate_batch(
    function: str, types: tuple[DALIDataType, ...], result: DALIDataType, jobs: Sequence[tuple[Sequence[Any], Any]]
) -> None:
    """Computes ``function`` for all samples in one launch.

    Args:
        function: name of the expression's function.
        types: of the operands.
        result: type of the results.
        jobs: the operands (arrays on the GPU) and the target of each sample.

    Raises:
        ValueError: integers were divided by zero.
    """
    jobs = [job for job in jobs if job[1].size]
    if not jobs:
        return
    cupy = require_cupy()
    descriptors = np.zeros(len(jobs), _EXPRESSION)
    kept = []
    for entry, (operands, target) in zip(descriptors, jobs):
        operands = contiguous(operands)
        kept.append(operands)
        if target.ndim > _DIMS:
            raise RuntimeError(f"Data of {target.ndim} dimensions is not supported on GPU: at most {_DIMS}")
        entry["target"] = target.data.ptr
        entry["extents"] = (1,) * (_DIMS - target.ndim) + target.shape
        for index, operand in enumerate(operands):
            entry["operands"][index] = operand.data.ptr
            entry["strides"][index] = _strides(operand.shape)
    zero = cupy.zeros(1, np.int32)
    launch(_kernel(function, result, types), descriptors, [blocks_for(job[1].shape) for job in jobs], zero)
    divides = function in ("div", "mod") and numpy_dtype(result).kind in "iub"
    if divides and int(zero[0]):
        raise ValueError("Integer division by zero.")


def _strides(shape: Sequence[int]) -> list[int]:
    strides, step = [0] * _DIMS, 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[_DIMS - len(shape) + axis] = 0 if shape[axis] == 1 else step
        step *= shape[axis]
    return strides
