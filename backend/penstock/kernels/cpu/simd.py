"""Vectors of floats inside of numba kernels, for loops that LLVM does not vectorize on its own.

A vector has a number of lanes that is fixed when the kernel is compiled; LLVM splits it into registers of whatever width
the machine has. Nothing checks bounds, and indices are not wrapped: a kernel answers for those it uses.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_FLOAT, _INT32 = ir.FloatType(), ir.IntType(32)


class FloatVector(types.Type):
    """float32, ``lanes`` times."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"float32x{lanes}")


@register_model(FloatVector)
class _FloatVectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: FloatVector) -> None:
        super().__init__(manager, vector, ir.VectorType(_FLOAT, vector.lanes))


def _element(context: Any, builder: Any, array: Any, value: Any, index: Any) -> Any:
    """A pointer to ``array[index]``, of a contiguous array."""
    data = cgutils.create_struct_proxy(array)(context, builder, value=value).data
    return builder.gep(data, [index])


@intrinsic
def at(_context: Any, array: Any, index: Any) -> Any:
    """``array[index]`` of a contiguous array."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(_element(context, builder, array, args[0], args[1]))

    return array.dtype(array, index), generate


@intrinsic(prefer_literal=True)
def zeros(_context: Any, lanes: Any) -> Any:
    """A vector of zeros."""
    vector = FloatVector(lanes.literal_value)

    def generate(_context: Any, _builder: Any, _signature: Any, _args: Any) -> Any:
        return ir.Constant(ir.VectorType(_FLOAT, vector.lanes), None)

    return vector(lanes), generate


@intrinsic(prefer_literal=True)
def load(_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """``array[index : index + lanes]`` of a contiguous array of float32 or integers up to 16 bits, as floats."""
    vector, element = FloatVector(lanes.literal_value), array.dtype

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, array, args[0], args[1])
        stored = ir.VectorType(context.get_data_type(element), vector.lanes)
        values = builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8)
        if isinstance(element, types.Float):
            return values
        extend = builder.sext if element.signed else builder.zext
        wide = extend(values, ir.VectorType(_INT32, vector.lanes))
        return builder.sitofp(wide, ir.VectorType(_FLOAT, vector.lanes))

    return vector(array, index, lanes), generate


@intrinsic
def add_product(_context: Any, total: Any, weight: Any, values: Any) -> Any:
    """``total + weight * values``, rounded once where the machine can do that, for a float32 ``weight``."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = args[0].type
        undefined = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(undefined, args[1], ir.Constant(_INT32, 0))
        weights = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, kind.count), None))
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{kind.count}f32"
        )
        return builder.call(function, [weights, args[2], args[0]])

    return total(total, types.float32, values), generate


@intrinsic
def store(_context: Any, array: Any, index: Any, values: Any) -> Any:
    """``array[index : index + lanes] = values`` of a contiguous array of float32."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, array, args[0], args[1])
        builder.store(args[2], builder.bitcast(pointer, args[2].type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, index, values), generate
