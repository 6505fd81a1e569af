"""The types of SIMD vectors in kernels, and their arithmetic; see :mod:`penstock.kernels.cpu.simd` and `simd_integers`.

This module is imported only when a kernel with vectors is compiled: the types are subclasses of numba's, and importing numba is slow.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core.base import BaseContext as TargetContext
from numba.core.datamodel import DataModelManager
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.templates import Signature
from numba.extending import lower_builtin, models, register_model, type_callable

from penstock.kernels.cpu import llvm_types as llvm

_LANES = 8
"""The number of lanes of int32 in a register of AVX2."""


class FloatVector(types.Type):
    """A vector of ``lanes`` float32 or float64 numbers. Python's ``+``, ``-``, ``*`` and ``/`` apply to vectors and numbers of the same
    type."""

    def __init__(self, lanes: int, element: types.Float = types.float32) -> None:
        self.lanes = lanes
        self.element = element
        super().__init__(name=f"{element}x{lanes}")

    @property
    def stored(self) -> ir.VectorType:
        """The LLVM type of the vector."""
        return ir.VectorType(llvm.FLOAT if self.element == types.float32 else llvm.DOUBLE, self.lanes)


@register_model(FloatVector)
class _FloatVectorModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, vector: FloatVector) -> None:
        super().__init__(manager, vector, vector.stored)


def _define_arithmetic_of_floats(function: Callable[[object, object], object], instruction: str) -> None:
    """Define an operator of vectors by typing and lowering, as numba defines its own: an overload would be compiled again at each use."""

    @type_callable(function)
    def _typed(_context: TypingContext) -> Callable[[types.Type, types.Type], types.Type | None]:
        def result(left: types.Type, right: types.Type) -> types.Type | None:
            kinds = {side for side in (left, right) if isinstance(side, FloatVector)}
            if len(kinds) != 1:
                return None
            kind = kinds.pop()
            return kind if {left, right} <= {kind, kind.element} else None

        return result

    def compute(_context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        kind = signature.return_type.stored
        operands = (value if value.type == kind else llvm.spread_lanes(builder, value, kind) for value in args)
        return getattr(builder, instruction)(*operands)

    for operands in ((FloatVector, FloatVector), (FloatVector, types.Float), (types.Float, FloatVector)):
        lower_builtin(function, *operands)(compute)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define_arithmetic_of_floats(_function, _instruction)


class IntVector(types.Type):
    """A vector of ``lanes`` integers of 16 or 32 bits.

    Vectors and numbers support Python's arithmetic, shift and bitwise operators, but wrap around on overflow.

    Vectors of 32-bit integers are stored in parts of the size of AVX2's registers: on machines with registers of 512 bits, LLVM would
    otherwise put whole vectors into these, and join and split them around each AVX2 instruction.
    """

    def __init__(self, lanes: int, bits: int) -> None:
        self.lanes, self.bits = lanes, bits
        super().__init__(name=f"int{bits}x{lanes}")

    @property
    def part(self) -> ir.VectorType:
        """The LLVM type of one part."""
        return ir.VectorType(ir.IntType(self.bits), self.lanes // self.count)

    @property
    def count(self) -> int:
        """The number of parts."""
        return max(self.lanes // (_LANES), 1) if self.bits == 32 else 1

    @property
    def parts(self) -> ir.ArrayType:
        """The LLVM type of all parts together."""
        return ir.ArrayType(self.part, self.count)


@register_model(IntVector)
class _IntVectorModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, vector: IntVector) -> None:
        super().__init__(manager, vector, vector.parts)


def _define_arithmetic_of_integers(function: Callable[[object, object], object], instruction: str) -> None:
    """Same as :func:`_define_arithmetic_of_floats`, for :class:`IntVector`."""

    @type_callable(function)
    def _typed(_context: TypingContext) -> Callable[[types.Type, types.Type], types.Type | None]:
        def result(left: types.Type, right: types.Type) -> types.Type | None:
            if isinstance(left, IntVector) and (left == right or isinstance(right, types.Integer)):
                return left
            return None

        return result

    def compute(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        kind = signature.args[0]
        if isinstance(signature.args[1], types.Integer):
            number = context.cast(builder, args[1], signature.args[1], types.int32 if kind.bits == 32 else types.int16)
            others = [llvm.spread_lanes(builder, number, kind.part)] * kind.count
        else:
            others = llvm.parts_of(builder, args[1])
        parts = zip(llvm.parts_of(builder, args[0]), others)
        return llvm.of_parts(builder, [getattr(builder, instruction)(*pair) for pair in parts])

    for right in (IntVector, types.Integer):
        lower_builtin(function, IntVector, right)(compute)


for _function, _instruction in (
    (operator.add, "add"),
    (operator.sub, "sub"),
    (operator.mul, "mul"),
    (operator.lshift, "shl"),
    (operator.rshift, "ashr"),
    (operator.or_, "or_"),
    (operator.xor, "xor"),
):
    _define_arithmetic_of_integers(_function, _instruction)
