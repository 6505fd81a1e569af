"""SIMD vectors of integers in numba kernels, complementing those of floats in ``simd.py``, and words of bytes.

Bounds are not checked, and indices don't wrap around: kernels are responsible for those they use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

from penstock.kernels.cpu.code_generation import (
    DataModelManager,
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    intrinsic,
    literal_intrinsic,
)
from penstock.kernels.cpu.simd import element_of, element_pointer, interleaved, spread_lanes, transposed_vectors

_BYTE, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


class IntVector(types.Type):
    """A vector of ``lanes`` copies of a 16-bit or 32-bit integer.

    Vectors and numbers support Python's arithmetic, shift and bitwise operators, but wrap around on overflow.
    """

    def __init__(self, lanes: int, bits: int) -> None:
        self.lanes, self.bits = lanes, bits
        super().__init__(name=f"int{bits}x{lanes}")

    @property
    def registers(self) -> ir.VectorType:
        """The type of LLVM's vectors."""
        return ir.VectorType(ir.IntType(self.bits), self.lanes)


@register_model(IntVector)
class _IntVectorModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, vector: IntVector) -> None:
        super().__init__(manager, vector, vector.registers)


def _define_arithmetic(function: Callable[[object, object], object], instruction: str) -> None:
    """Typed and lowered like numba's own operators: an overload would be compiled again at each use."""

    @type_callable(function)
    def _typed(_context: TypingContext) -> Callable[[types.Type, types.Type], types.Type | None]:
        def result(left: types.Type, right: types.Type) -> types.Type | None:
            if isinstance(left, IntVector) and (left == right or isinstance(right, types.Integer)):
                return left
            return None

        return result

    def compute(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        left, right = args
        if isinstance(signature.args[1], types.Integer):
            kind = signature.args[0]
            number = context.cast(builder, right, signature.args[1], types.int32 if kind.bits == 32 else types.int16)
            right = spread_lanes(builder, number, kind.registers)
        return getattr(builder, instruction)(left, right)

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
    _define_arithmetic(_function, _instruction)


@literal_intrinsic
def zeros(_context: TypingContext, lanes: types.Literal) -> Intrinsic:
    """A vector of zeros, int32."""
    vector = IntVector(lanes.literal_value, 32)
    return vector(lanes), lambda _context, _builder, _signature, _args: ir.Constant(vector.registers, None)


@literal_intrinsic
def load(_context: TypingContext, array: types.Array, index: types.Integer, lanes: types.Literal) -> Intrinsic:
    """``array[index : index + lanes]`` of a contiguous array of integers of at most 16 bits, as int16."""
    vector, element = IntVector(lanes.literal_value, 16), element_of(array)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        values = _loaded(context, builder, array, args[0], args[1], vector.lanes)
        return values if element.bitwidth == 16 else builder.zext(values, vector.registers)

    return vector(array, index, lanes), generate


def _loaded(
    context: TargetContext, builder: IRBuilder, array: types.Array, value: Value, index: Value, lanes: int
) -> Value:
    pointer, element = element_pointer(context, builder, array, value, index), element_of(array)
    stored = ir.VectorType(context.get_data_type(element), lanes)
    return builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8)


@intrinsic
def widened(_context: TypingContext, values: IntVector) -> Intrinsic:
    """int16 as int32."""
    vector = IntVector(values.lanes, 32)
    return vector(values), lambda _context, builder, _signature, args: builder.sext(args[0], vector.registers)


@intrinsic
def narrowed(_context: TypingContext, values: IntVector) -> Intrinsic:
    """int32 cut to int16."""
    vector = IntVector(values.lanes, 16)
    return vector(values), lambda _context, builder, _signature, args: builder.trunc(args[0], vector.registers)


@intrinsic
def high_product(_context: TypingContext, values: IntVector, factor: types.Integer) -> Intrinsic:
    """``values * factor >> 16`` of int16, with a 32-bit product."""

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        wide = ir.VectorType(_INT32, values.lanes)
        number = context.cast(builder, args[1], signature.args[1], types.int32)
        product = builder.mul(builder.sext(args[0], wide), spread_lanes(builder, number, wide))
        return builder.trunc(builder.ashr(product, ir.Constant(wide, [16] * values.lanes)), values.registers)

    return values(values, factor), generate


def _as_bytes(builder: IRBuilder, values: Value) -> Value:
    """Integers saturated to uint8."""
    low, high = (ir.Constant(values.type, [limit] * values.type.count) for limit in (0, 255))
    values = builder.select(builder.icmp_signed(">", values, low), values, low)
    values = builder.select(builder.icmp_signed("<", values, high), values, high)
    return builder.trunc(values, ir.VectorType(_BYTE, values.type.count))


def _store(builder: IRBuilder, pointer: Value, values: Value) -> None:
    builder.store(values, builder.bitcast(pointer, values.type.as_pointer()), align=1)


@intrinsic
def store_rows(
    _context: TypingContext, array: types.Array, index: types.Integer, stride: types.Integer, rows: types.UniTuple
) -> Intrinsic:
    """Stores vectors, saturated, in a contiguous array of uint8, ``stride`` elements apart."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        for i in range(rows.count):
            _store(builder, pointer, _as_bytes(builder, builder.extract_value(args[3], i)))
            pointer = builder.gep(pointer, [args[2]])
        return context.get_dummy_value()

    return types.void(array, index, stride, rows), generate


@intrinsic
def store_pixels(
    _context: TypingContext, array: types.Array, index: types.Integer, channels: types.UniTuple
) -> Intrinsic:
    """Stores pixels, given as a tuple of vectors for the channels, saturated, in a contiguous array of uint8."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        planes = [_as_bytes(builder, builder.extract_value(args[2], c)) for c in range(channels.count)]
        _store(builder, pointer, interleaved(builder, planes))
        return context.get_dummy_value()

    return types.void(array, index, channels), generate


@intrinsic
def store_numbers(_context: TypingContext, array: types.Array, index: types.Integer, values: IntVector) -> Intrinsic:
    """``array[index : index + lanes] = values`` of a contiguous array of the vector's type."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        builder.store(args[2], builder.bitcast(pointer, args[2].type.as_pointer()), align=values.bits // 8)
        return context.get_dummy_value()

    return types.void(array, index, values), generate


@literal_intrinsic
def copy_chunk(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    target: types.Array,
    place: types.Integer,
    length: types.Literal,
    sought: types.Integer,
) -> Intrinsic:
    """``target[place : place + length] = source[index : index + length]`` of uint8, and whether ``sought`` is among them."""

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        values = _loaded(context, builder, source, args[0], args[1], length.literal_value)
        _store(builder, element_pointer(context, builder, target, args[2], args[3]), values)
        number = context.cast(builder, args[5], signature.args[5], types.uint8)
        found = builder.icmp_unsigned("==", values, spread_lanes(builder, number, values.type))
        bits = builder.bitcast(found, ir.IntType(length.literal_value))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(source, index, target, place, length, sought), generate


@literal_intrinsic
def transpose_block(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    stride: types.Integer,
    target: types.Array,
    place: types.Integer,
    spacing: types.Integer,
    length: types.Literal,
) -> Intrinsic:
    """``target[place + k * spacing + i] = source[index + i * stride + k]`` of uint8, for ``i, k < length``, a power of two."""
    size = length.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (element_pointer(context, builder, *pair) for pair in ((source, *args[:2]), (target, *args[3:5])))
        row = ir.VectorType(_BYTE, size).as_pointer()
        rows = []
        for _ in range(size):
            rows.append(builder.load(builder.bitcast(begin, row), align=1))
            begin = builder.gep(begin, [args[2]])
        for column in transposed_vectors(builder, rows):
            _store(builder, end, column)
            end = builder.gep(end, [args[5]])
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place, spacing, length), generate


@intrinsic
def any_lane(_context: TypingContext, values: IntVector) -> Intrinsic:
    """The lanes joined by "or"."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        kind = args[0].type
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_INT32, [kind]), f"llvm.vector.reduce.or.v{kind.count}i32"
        )
        return builder.call(function, [args[0]])

    return types.int32(values), generate


@intrinsic
def load_word(_context: TypingContext, array: types.Array, index: types.Integer) -> Intrinsic:
    """The eight bytes from ``array[index]`` on, of a contiguous array of uint8, as one big-endian number."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        word = builder.load(builder.bitcast(pointer, _INT64.as_pointer()), align=1)
        return builder.bswap(word)

    return types.uint64(array, index), generate


@intrinsic
def leading_zeros(_context: TypingContext, word: types.Integer) -> Intrinsic:
    """How many of the highest bits of a 64-bit word are zeros."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def put(_context: TypingContext, array: types.Array, index: types.Integer, value: types.Integer) -> Intrinsic:
    """``array[index] = value`` of a contiguous array of integers; higher bits are dropped."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        builder.store(context.cast(builder, args[2], value, array.dtype), pointer)
        return context.get_dummy_value()

    return types.void(array, index, value), generate
