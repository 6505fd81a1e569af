"""Types and decorators for functions that generate machine code through numba and LLVM.

Neither library is imported before a kernel is compiled (:mod:`penstock.kernels.cpu.deferred`). Both have few type annotations; the
types here stand in for the missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from penstock.kernels.cpu.deferred import DeferredFunction, DeferredIntrinsic, DeferredModule

if TYPE_CHECKING:
    from llvmlite import ir
    from llvmlite.ir import IRBuilder, Value
    from numba import carray, types
    from numba.core import cgutils
    from numba.core.base import BaseContext as TargetContext
    from numba.core.cpu import CPUContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

    from penstock.kernels.cpu import llvm_types as llvm
    from penstock.kernels.cpu import vector_types

    Generate = Callable[[TargetContext, IRBuilder, Signature, Sequence[Value]], Value]
    # The result of an intrinsic: its signature, and the function that generates its code.
    Intrinsic = tuple[Signature, Generate]
else:
    # Imported for annotations only.
    Generate = Intrinsic = IRBuilder = Signature = TargetContext = TypingContext = Value = Any
    ir, types, cgutils = (DeferredModule(name) for name in ("llvmlite.ir", "numba.core.types", "numba.core.cgutils"))
    llvm, vector_types = (DeferredModule(f"penstock.kernels.cpu.{name}") for name in ("llvm_types", "vector_types"))
    carray = DeferredFunction("numba", "carray")

__all__ = [
    "Generate",
    "IRBuilder",
    "Intrinsic",
    "Signature",
    "TargetContext",
    "TypingContext",
    "Value",
    "Vector",
    "carray",
    "cgutils",
    "has_features",
    "intrinsic",
    "ir",
    "is_for_x86",
    "literal_intrinsic",
    "llvm",
    "types",
    "vector_types",
]


class Number(Protocol):
    """numba's type of a number; ``signed`` and the limits exist for integers only."""

    bitwidth: int
    signed: bool
    minval: int
    maxval: int


class Vector(Protocol):
    """A SIMD vector in a kernel, with element-wise arithmetic."""

    def __add__(self, other: Vector | float | np.floating[Any], /) -> Vector: ...

    def __sub__(self, other: Vector | float | np.floating[Any], /) -> Vector: ...

    def __mul__(self, other: Vector | float | np.floating[Any], /) -> Vector: ...

    def __truediv__(self, other: Vector | float | np.floating[Any], /) -> Vector: ...

    def __lshift__(self, bits: int, /) -> Vector: ...

    def __rshift__(self, bits: int, /) -> Vector: ...

    def __or__(self, other: Vector | int, /) -> Vector: ...

    def __xor__(self, other: Vector | int, /) -> Vector: ...


def intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """Return an intrinsic that kernels can call, made of a function that maps the types of its arguments to a signature and a code
    generator.
    """
    return DeferredIntrinsic(function)


def literal_intrinsic(function: Callable[..., Intrinsic]) -> Callable[..., Any]:
    """Same as :func:`intrinsic`, for functions that need the values of arguments that are constants."""
    return DeferredIntrinsic(function, prefer_literal=True)


def is_for_x86(context: TargetContext) -> bool:
    """Return whether code is generated for x86-64."""
    triple, _, _ = cast("CPUContext", context).codegen().magic_tuple()
    return bool(triple.startswith("x86_64"))


def has_features(context: TargetContext, *names: str) -> bool:
    """Return whether code is generated for a machine that has these features, as LLVM names them."""
    codegen = cast("CPUContext", context).codegen()
    _, _, features = codegen.magic_tuple()
    return set(features.split(",")).issuperset(f"+{name}" for name in names)
