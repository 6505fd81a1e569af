"""The types of a kernel's arguments and results: as text, and as programs with which `backend/calls` recognizes arguments and makes
results.

As text, a number is ``int64``, an array ``float32[2]C`` (rank; order C, F, or A for any other) or ``readonly uint8[1]C``, a tuple
``(int64, bool)``, a named tuple ``module:Class(int64, bool)``, and a pointer to a struct ``*{[('anchor', '<i8', (5,))]}``. numba makes
the same distinctions, so each text stands for exactly one of numba's types.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

_LARGEST, _LEAST, _BEYOND = (1 << 63) - 1, -(1 << 63), 1 << 64


class UnknownTypeError(TypeError):
    """An argument has a type for which kernels are not compiled ahead of time."""


class Number(NamedTuple):
    """The type of a number, or of None.

    Attributes:
        name: NumPy's name of the type; ``bool``; or ``none``.
    """

    name: str


class Struct(NamedTuple):
    """The type of a NumPy struct.

    Attributes:
        fields: the fields, as ``numpy.lib.format`` writes them. The word ``aligned`` precedes them if the struct is aligned as in C:
            numba treats such structs as another type.
    """

    fields: str


class Array(NamedTuple):
    """The type of an array.

    Attributes:
        element: the type of the elements.
        rank: the number of dimensions.
        order: the order in memory: C, F or A (any).
        read_only: whether the array is read-only.
    """

    element: Number | Struct
    rank: int
    order: str
    read_only: bool


class Pointer(NamedTuple):
    """The type of the address of a struct."""

    target: Struct


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple.

    Attributes:
        kind: ``module:Class``; empty for Python's ``tuple``.
        items: the types of the items.
    """

    kind: str
    items: tuple[Type, ...]


Type: TypeAlias = "Number | Array | Pointer | Tuple"


class Operation(IntEnum):
    """The operations of `calls.cc`."""

    WHOLE = 0
    NATURAL = 1
    REAL = 2
    TRUTH = 3
    NOTHING = 4
    SCALAR = 5
    ARRAY = 6
    TUPLE = 7
    WHOLE_OF = 8
    NATURAL_OF = 9
    REAL_OF = 10
    ARRAY_OF = 11


class Program(NamedTuple):
    """A program with which `calls.cc` recognizes or makes values of some types.

    Attributes:
        words: the program, as int64 numbers: operations and their operands.
        size: the number of words in which the values are passed.
        kept: objects to keep alive, because the program contains their addresses.
    """

    words: list[int]
    size: int
    kept: list[object]


_WORDS_OF_ARRAY = 5
_ALIGNED = "aligned "
_NUMBERS: dict[type, str] = {
    kind: np.dtype(kind).name
    for kind in (
        np.bool_,
        *(np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float32, np.float64),
    )
}


def described(arguments: Sequence[object]) -> tuple[str, Program]:
    """Return the types of arguments as text, and the program with which `calls.cc` recognizes exactly these types.

    Raises:
        UnknownTypeError: kernels do not support the type of an argument.
    """
    program = Program([], 0, [])
    texts = []
    for argument in arguments:
        text, size = _described(argument, program)
        texts.append(text)
        program = program._replace(size=program.size + size)
    return ", ".join(texts), program


def _described(value: Any, program: Program) -> tuple[str, int]:
    words, kind = program.words, type(value)
    if kind is bool:
        words.append(Operation.TRUTH)
        return "bool", 1
    if kind is int:
        if _LEAST <= value <= _LARGEST:
            words.append(Operation.WHOLE)
            return "int64", 1
        if _LARGEST < value < _BEYOND:
            words.append(Operation.NATURAL)
            return "uint64", 1
        raise UnknownTypeError(f"{value} does not fit into 64 bits")
    if kind is float:
        words.append(Operation.REAL)
        return "float64", 1
    if value is None:
        words.append(Operation.NOTHING)
        return "none", 1
    if kind is np.ndarray:
        return _described_array(value, program)
    if kind in _NUMBERS:
        words += Operation.SCALAR, id(kind), np.dtype(kind).itemsize
        program.kept.append(kind)
        return _NUMBERS[kind], 1
    if isinstance(value, tuple):
        name = "" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}"
        words += Operation.TUPLE, id(kind), len(value)
        program.kept.append(kind)
        parts = [_described(item, program) for item in value]
        return f"{name}({', '.join(text for text, _ in parts)})", sum(size for _, size in parts)
    raise UnknownTypeError(f"{kind.__module__}.{kind.__qualname__}")


def _described_array(array: np.ndarray, program: Program) -> tuple[str, int]:
    dtype, flags = array.dtype, array.flags
    if not flags.aligned or not dtype.isnative or dtype.kind not in "biufcV":
        raise UnknownTypeError(f"an array of {dtype}, aligned: {flags.aligned}")
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    is_struct = dtype.fields is not None
    if is_struct:
        program.kept.append(dtype)
    kind = id(dtype) if is_struct else 0
    program.words.extend((Operation.ARRAY, dtype.num, kind, dtype.itemsize))
    program.words.extend((array.ndim, "CFA".index(order), not flags.writeable))
    element = _struct(dtype) if is_struct else Number(dtype.name)
    return text_of(Array(element, array.ndim, order, not flags.writeable)), _WORDS_OF_ARRAY + 2 * array.ndim


@functools.cache
def _struct(dtype: np.dtype) -> Struct:
    fields = repr(np.lib.format.dtype_to_descr(dtype))
    return Struct(_ALIGNED + fields if dtype.isalignedstruct else fields)


def pointer_to(dtype: np.dtype) -> str:
    """Return the text of the type of pointers to a struct."""
    return text_of(Pointer(_struct(dtype)))


def text_of(kind: Type | Struct) -> str:
    """Return a type as text."""
    if isinstance(kind, Number):
        return kind.name
    if isinstance(kind, Struct):
        return f"{{{kind.fields}}}"
    if isinstance(kind, Pointer):
        return f"*{text_of(kind.target)}"
    if isinstance(kind, Array):
        return f"{'readonly ' if kind.read_only else ''}{text_of(kind.element)}[{kind.rank}]{kind.order}"
    return f"{kind.kind}({', '.join(map(text_of, kind.items))})"


_TOKEN = re.compile(r"\s*(\{[^}]*\}|[\w.]+:[\w.<>]+|\w+|[\[\]()*,])")


def parsed(text: str) -> tuple[Type, ...]:
    """Return the types that a text describes.

    Raises:
        ValueError: the text does not describe a type.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens).replace(" ", "") != text.replace(" ", ""):
        raise ValueError(f"'{text}' does not describe types")
    rest = iter([*tokens, ")"])
    try:
        types = _parsed_items(rest)
    except StopIteration:
        raise ValueError(f"'{text}' ends within a type") from None
    if next(rest, None) is not None:
        raise ValueError(f"'{text}' has an unmatched closing parenthesis")
    return types


def _parsed_items(tokens: Iterator[str]) -> tuple[Type, ...]:
    """Parse types that are separated by commas, up to a closing parenthesis; return them."""
    items: list[Type] = []
    read_only, kind, is_pointer = False, "", False
    for token in tokens:
        if token == ")":
            return tuple(items)
        if token == ",":
            read_only, kind, is_pointer = False, "", False
        elif token == "readonly":
            read_only = True
        elif token == "*":
            is_pointer = True
        elif ":" in token and not token.startswith("{"):
            kind = token
        elif token == "(":
            items.append(Tuple(kind, _parsed_items(tokens)))
        elif token == "[":
            rank, _, order = int(next(tokens)), next(tokens), next(tokens)
            items.append(Array(cast(Number | Struct, items.pop()), rank, order, read_only))
        else:
            element = Struct(token[1:-1]) if token.startswith("{") else Number(token)
            items.append(cast(Type, Pointer(element) if is_pointer and isinstance(element, Struct) else element))
    raise ValueError("a parenthesis is not closed")


def dtype_of(element: Number | Struct) -> np.dtype:
    """Return NumPy's type for a number or struct."""
    if isinstance(element, Number):
        return np.dtype(element.name)
    dtype = np.lib.format.descr_to_dtype(ast.literal_eval(element.fields.removeprefix(_ALIGNED)))
    if not element.fields.startswith(_ALIGNED):
        return dtype
    # `descr_to_dtype` never marks its result as aligned, even if the fields are aligned.
    kinds, offsets = zip(*(field[:2] for field in cast(dict[str, tuple[np.dtype, int]], dtype.fields).values()))
    fields = {"names": dtype.names, "formats": kinds, "offsets": offsets, "itemsize": dtype.itemsize}
    return np.dtype(cast(Any, fields), align=True)


def class_of(kind: str) -> type:
    """Return the class of a tuple type, from its ``kind``."""
    if not kind:
        return tuple
    module, _, name = kind.partition(":")
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return cast(type, found)


def program_for_results(result: Type) -> Program:
    """Return the program that makes Python objects of results of a type."""
    program = Program([], 0, [])
    return program._replace(size=_add_result(result, program))


def _add_result(result: Type, program: Program) -> int:
    words = program.words
    if isinstance(result, Tuple):
        kind = class_of(result.kind)
        words += Operation.TUPLE, id(kind), len(result.items)
        program.kept.append(kind)
        return sum(_add_result(item, program) for item in result.items)
    if isinstance(result, Array):
        make = functools.partial(_new_array, dtype_of(result.element))
        words += Operation.ARRAY_OF, id(make), make.args[0].itemsize, result.rank
        program.kept.append(make)
        return _WORDS_OF_ARRAY + 2 * result.rank
    if isinstance(result, Number) and result.name in ("none", "bool"):
        words.append(Operation.NOTHING if result.name == "none" else Operation.TRUTH)
        return 1
    dtype = dtype_of(result)  # type: ignore[arg-type]
    words += {"i": Operation.WHOLE_OF, "u": Operation.NATURAL_OF, "f": Operation.REAL_OF}[dtype.kind], dtype.itemsize
    return 1


def _new_array(dtype: np.dtype, *shape: int) -> np.ndarray:
    return np.empty(shape, dtype)
