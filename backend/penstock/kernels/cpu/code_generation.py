"""What numba and LLVM hand to functions that generate machine code.

The libraries have few annotations: these names say what is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

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
