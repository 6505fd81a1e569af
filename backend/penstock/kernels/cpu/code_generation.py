"""Types and decorators for functions that generate machine code through numba and LLVM.

The libraries have few annotations; these names fill the gap.
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
# The result of an intrinsic: its signature, and the function that generates its code.
Intrinsic = tuple[Signature, Generate]


class Number(Protocol):
    """numba's type of a number; for integers also signedness and limits."""

    bitwidth: int
    signed: bool
    minval: int
    maxval: int


class Vector(Protocol):
    """A SIMD vector in a kernel, with element-wise arithmetic."""

    def __add__(self, other: Vector | float, /) -> Vector: ...

    def __sub__(self, other: Vector | float, /) -> Vector: ...

    def __mul__(self, other: Vector | float, /) -> Vector: ...

    def __truediv__(self, other: Vector | float, /) -> Vector: ...

    def __lshift__(self, bits: int, /) -> Vector: ...

    def __rshift__(self, bits: int, /) -> Vector: ...

    def __or__(self, other: Vector | int, /) -> Vector: ...


def intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """numba's decorator: ``function`` maps argument types to a signature and a code generator; the result is called by
    kernels."""
    made: Callable[..., Any] = numba.extending.intrinsic(function)
    return made


def literal_intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """Like :func:`intrinsic`, for functions that need the values of constants."""
    made: Callable[..., Any] = numba.extending.intrinsic(prefer_literal=True)(function)
    return made
