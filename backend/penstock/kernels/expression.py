"""Parse the arithmetic expressions in saved pipelines, and determine their result types."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from penstock.data_types import (
    BOOL,
    ENUM_TYPES,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    dtype_name,
)

TYPE_WORDS = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint8": UINT8,
    "uint16": UINT16,
    "uint32": UINT32,
    "uint64": UINT64,
    "float16": FLOAT16,
    "float32": FLOAT,
    "float64": FLOAT64,
}
_FLOATING = (FLOAT16, FLOAT, FLOAT64)
_SIGNED = (INT8, INT16, INT32, INT64)
_UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
_WIDER_SIGNED = {UINT8: INT16, UINT16: INT32, UINT32: INT64, UINT64: INT64}

COMPARISONS = ("eq", "neq", "lt", "leq", "gt", "geq")
BITWISE = ("bitand", "bitor", "bitxor", "lshift", "rshift")
KEEPING_UNARY = ("minus", "abs", "plus", "bitnot")
FLOATING_UNARY = (
    *(
        "sqrt",
        "rsqrt",
        "cbrt",
        "exp",
        "log",
        "log2",
        "log10",
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
FLOATING_BINARY = ("fdiv", "fpow", "atan2")
ARITHMETIC = ("add", "sub", "mul", "div", "mod", "pow", "min", "max")
ARITY = {
    **dict.fromkeys((*COMPARISONS, *BITWISE, *FLOATING_BINARY, *ARITHMETIC), 2),
    **dict.fromkeys((*KEEPING_UNARY, *FLOATING_UNARY), 1),
    "clamp": 3,
}
# Python's operators for the functions.
SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "fdiv": "/",
    "div": "//",
    "mod": "%",
    "pow": "**",
    "minus": "-",
    "eq": "==",
    "neq": "!=",
    "lt": "<",
    "leq": "<=",
    "gt": ">",
    "geq": ">=",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
    "bitnot": "~",
    "lshift": "<<",
    "rshift": ">>",
}
# Only these functions accept two booleans.
_BOOL_PAIRS = ("mul", "bitand", "bitor", "bitxor", "lshift", "rshift", *COMPARISONS)


@dataclass(frozen=True)
class Operand:
    """An operand: input number ``index``, or constant number ``index`` of type ``dtype``."""

    index: int
    dtype: DALIDataType | None = None

    @property
    def is_input(self) -> bool:
        return self.dtype is None

    @property
    def is_real(self) -> bool:
        """Whether a constant is real; real constants are numbered separately from integers."""
        return self.dtype in _FLOATING


@dataclass(frozen=True)
class Expression:
    """A function and its operands."""

    function: str
    operands: tuple[Operand, ...]


_WHOLE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
_INPUT = re.compile(r"&(\d+)")
_CONSTANT = re.compile(r"\$(\d+):(\w+)")


@functools.lru_cache(maxsize=1024)
def parse(description: str) -> Expression:
    """Parse a description such as ``add(&0 $0:int32)``; raise RuntimeError if it is invalid."""
    match = _WHOLE.fullmatch(description)
    if match is None:
        raise RuntimeError(f"'{description}' is not an expression of one function, such as add(&0 &1)")
    function, text = match.groups()
    if function not in ARITY:
        raise RuntimeError(f"'{function}' in the expression '{description}' is not a known function")
    operands = tuple(_operand(word, description) for word in text.split())
    if len(operands) != ARITY[function]:
        raise RuntimeError(
            f"'{function}' takes {ARITY[function]} operands, the expression '{description}' has {len(operands)}"
        )
    return Expression(function, operands)


def _operand(word: str, description: str) -> Operand:
    if match := _INPUT.fullmatch(word):
        return Operand(int(match[1]))
    match = _CONSTANT.fullmatch(word)
    if match is None or match[2] not in TYPE_WORDS:
        raise RuntimeError(
            f"'{word}' in the expression '{description}' is not an operand: write &0 for inputs, $0:int32 for constants"
        )
    return Operand(int(match[1]), TYPE_WORDS[match[2]])


def promote(left: DALIDataType, right: DALIDataType) -> DALIDataType:
    """Return the common type of two operands: a floating-point type if there is one; for a signed and an unsigned integer, the next wider
    signed type if necessary.
    """
    for dtype in (FLOAT64, FLOAT, FLOAT16):
        if dtype in (left, right):
            return dtype
    if BOOL in (left, right):
        return right if left == BOOL else left
    if (left in _SIGNED) == (right in _SIGNED):
        order = _SIGNED if left in _SIGNED else _UNSIGNED
        return max(left, right, key=order.index)
    signed, unsigned = (left, right) if left in _SIGNED else (right, left)
    return max(signed, _WIDER_SIGNED[unsigned], key=_SIGNED.index)


def result_type(function: str, types: tuple[DALIDataType, ...]) -> DALIDataType:
    """Return the type of a function's result; raise RuntimeError for unsupported operands."""
    for side, dtype in zip(("Left operand", "Right operand"), types):
        if dtype in ENUM_TYPES:
            raise RuntimeError(f"{side} data type not supported by `{function}`: {dtype_name(dtype)}")
    if FLOAT16 in types:
        raise RuntimeError(f"`{function}` does not take float16 operands: cast them to FLOAT first")
    if len(types) == 1:
        return _unary_type(function, types[0])
    common = functools.reduce(promote, types)
    if function in BITWISE and common in _FLOATING:
        raise RuntimeError(
            f"Inputs to bitwise operator `{SYMBOLS[function]}` must be of integral type. "
            f"Got {' and '.join(map(dtype_name, types))}."
        )
    if common == BOOL and function not in _BOOL_PAIRS:
        raise RuntimeError(
            f"Inputs to arithmetic operator `{SYMBOLS.get(function, function)}` cannot be booleans. "
            "Consider using bitwise operators, or cast one of the inputs; `*` takes booleans, too."
        )
    if function in COMPARISONS:
        return BOOL
    if function in FLOATING_BINARY and common not in _FLOATING:
        return FLOAT
    return common


def _unary_type(function: str, dtype: DALIDataType) -> DALIDataType:
    if dtype == BOOL and function != "bitnot":
        raise RuntimeError(
            f"Input to arithmetic operator `{SYMBOLS.get(function, function)}` cannot be a boolean. "
            "Consider using bitwise operator `~`, or cast the input."
        )
    if function in FLOATING_UNARY:
        return dtype if dtype in _FLOATING else FLOAT
    if function == "bitnot":
        if dtype in _FLOATING:
            raise RuntimeError(
                f"Inputs to bitwise operator `{SYMBOLS[function]}` must be of integral type. Got {dtype_name(dtype)}."
            )
        return dtype
    return dtype
