"""What numba and LLVM hand to functions that generate machine code.

The libraries have few annotations: these names say what is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numba.extending
from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext as TargetContext
from numba.core.datamodel import DataModelManager
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.templates import Signature

__all__ = [
    "DataModelManager",
    "Generate",
    "IRBuilder",
    "Intrinsic",
    "Signature",
    "TargetContext",
    "TypingContext",
    "Value",
    "Vector",
    "intrinsic",
    "literal_intrinsic",
]

Generate = Callable[[TargetContext, IRBuilder, Signature, Sequence[Value]], Value]
# What an intrinsic gives for its arguments' types.
Intrinsic = tuple[Signature, Generate]


class Number(Protocol):
    """The type of numbers; of integers also whether they are signed, and their limits."""

    bitwidth: int
    signed: bool
    minval: int
    maxval: int


class Vector(Protocol):
    """A vector, for which kernels are compiled: numbers side by side, which are added, multiplied and so on."""

    def __add__(self, other: Vector | float, /) -> Vector: ...

    def __sub__(self, other: Vector | float, /) -> Vector: ...

    def __mul__(self, other: Vector | float, /) -> Vector: ...

    def __lshift__(self, bits: int, /) -> Vector: ...

    def __rshift__(self, bits: int, /) -> Vector: ...

    def __or__(self, other: Vector | int, /) -> Vector: ...


def intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """numba's decorator: ``function`` takes types and says what code is made; what kernels call takes and gives values."""
    made: Callable[..., Any] = numba.extending.intrinsic(function)
    return made


def literal_intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """The same, for functions that need to know the values of constants."""
    made: Callable[..., Any] = numba.extending.intrinsic(prefer_literal=True)(function)
    return made
