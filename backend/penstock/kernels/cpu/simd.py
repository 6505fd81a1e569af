"""SIMD vectors, mostly of floats, in numba kernels, for loops that LLVM does not vectorize by itself.

A vector's number of lanes is fixed when the kernel is compiled; LLVM splits it into registers of the machine's width.
Bounds are not checked, and negative indices do not wrap around: kernels must pass valid indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Number,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    cgutils,
    intrinsic,
    ir,
    is_for_x86,
    literal_intrinsic,
    llvm,
    types,
    vector_types,
)
from penstock.kernels.cpu.convert import below_half


def element_pointer(
    context: TargetContext, builder: IRBuilder, array: types.Array | types.CPointer, value: Value, index: Value
) -> Value:
    """Return a pointer to ``array[index]``, for a contiguous array or a result of :func:`pointer`."""
    if isinstance(array, types.CPointer):
        return builder.gep(value, [index])
    data = cgutils.create_struct_proxy(array)(context, builder, value=value).data
    return builder.gep(data, [index])


def element_of(array: types.Array) -> Number:
    """Return the type of an array's elements, which must be numbers."""
    return cast(Number, array.dtype)


def _picked(builder: IRBuilder, values: Value, lanes: list[int]) -> Value:
    """Return a vector of the lanes of ``values`` with the numbers ``lanes``."""
    mask = ir.Constant(ir.VectorType(llvm.INT32, len(lanes)), lanes)
    return builder.shuffle_vector(values, ir.Constant(values.type, ir.Undefined), mask)


def _as_floats(builder: IRBuilder, values: Value, element: Number) -> Value:
    """Return values of type ``element``, which is float32 or an integer of at most 16 bits, as floats."""
    if isinstance(element, types.Float):
        return values
    extend, count = (builder.sext if element.signed else builder.zext), values.type.count
    return builder.sitofp(extend(values, ir.VectorType(llvm.INT32, count)), ir.VectorType(llvm.FLOAT, count))


def interleaved(builder: IRBuilder, planes: list[Value]) -> Value:
    """Return the lanes of two or three vectors, interleaved."""
    lanes = planes[0].type.count
    joined = _picked_of_two(builder, planes[0], planes[1], list(range(2 * lanes)))
    rest = planes[2] if len(planes) > 2 else planes[1]
    rest = _picked_of_two(builder, rest, ir.Constant(rest.type, ir.Undefined), list(range(2 * lanes)))
    return _picked_of_two(builder, joined, rest, [c * lanes + x for x in range(lanes) for c in range(len(planes))])


def _picked_of_two(builder: IRBuilder, first: Value, second: Value, lanes: list[int]) -> Value:
    """Return a vector of the lanes of two vectors with the numbers ``lanes``; those of the second vector follow those of the first."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(llvm.INT32, len(lanes)), lanes))


@intrinsic
def pointer(_context: TypingContext, array: types.Array) -> Intrinsic:
    """Return a pointer to a contiguous array's elements. Unlike with the array itself, numba counts no references when it is used."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return cgutils.create_struct_proxy(array)(context, builder, value=args[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def at(_context: TypingContext, array: types.Array, index: types.Integer) -> Intrinsic:
    """Return ``array[index]`` of a contiguous array or a result of :func:`pointer`."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = context.cast(builder, args[1], index, types.intp)
        return builder.load(element_pointer(context, builder, array, args[0], place))

    return array.dtype(array, index), generate


@intrinsic
def unaligned_at(_context: TypingContext, array: types.CPointer, index: types.Integer) -> Intrinsic:
    """Return ``array[index]`` for a pointer to elements that need not be aligned."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        element = builder.gep(args[0], [context.cast(builder, args[1], index, types.intp)])
        return builder.load(element, align=1)

    return array.dtype(array, index), generate


@intrinsic
def pointer_at(_context: TypingContext, array: types.CPointer, index: types.Integer) -> Intrinsic:
    """Return the address of ``array[index]``, for a result of :func:`pointer`."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = context.cast(builder, args[1], index, types.intp)
        return builder.gep(args[0], [place])

    return array(array, index), generate


@literal_intrinsic
def part_of(
    _context: TypingContext, array: types.CPointer, index: types.Integer, start: types.Literal, size: types.Literal
) -> Intrinsic:
    """Return ``size`` bytes of ``array[index]``, from its byte ``start`` on, as one number; for a result of
    :func:`pointer`.
    """
    kind = ir.IntType(8 * size.literal_value)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        element = builder.gep(args[0], [context.cast(builder, args[1], index, types.intp)])
        part = builder.gep(
            builder.bitcast(element, ir.IntType(8).as_pointer()), [ir.Constant(llvm.INT32, start.literal_value)]
        )
        return builder.zext(builder.load(builder.bitcast(part, kind.as_pointer())), ir.IntType(64))

    return types.uint64(array, index, start, size), generate


@literal_intrinsic
def zeros(_context: TypingContext, lanes: types.Literal) -> Intrinsic:
    """Return a vector of zeros."""
    vector = vector_types.FloatVector(lanes.literal_value)

    def generate(_context: TargetContext, _builder: IRBuilder, _signature: Signature, _args: Sequence[Value]) -> Value:
        return ir.Constant(ir.VectorType(llvm.FLOAT, vector.lanes), None)

    return vector(lanes), generate


@literal_intrinsic
def spread(_context: TypingContext, number: types.Float, lanes: types.Literal) -> Intrinsic:
    """Return a vector with the float32 ``number`` in all lanes."""
    vector = vector_types.FloatVector(lanes.literal_value)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return llvm.spread_lanes(builder, args[0], ir.VectorType(llvm.FLOAT, vector.lanes))

    return vector(types.float32, lanes), generate


@literal_intrinsic
def load(_context: TypingContext, array: types.Array, index: types.Integer, lanes: types.Literal) -> Intrinsic:
    """Return ``array[index : index + lanes]`` of a contiguous array of float32, or of integers of at most 16 bits, as floats."""
    vector, element = vector_types.FloatVector(lanes.literal_value), element_of(array)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        stored = ir.VectorType(context.get_data_type(element), vector.lanes)
        values = builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8)
        return _as_floats(builder, values, element)

    return vector(array, index, lanes), generate


@literal_intrinsic
def load_pixels(
    _context: TypingContext,
    array: types.Array,
    index: types.Integer,
    lanes: types.Literal,
    channels: types.Literal,
    mirrored: types.Literal,
) -> Intrinsic:
    """Return ``lanes`` pixels from ``array[index]`` on, as a tuple of one vector for each channel.

    Args:
        array: contiguous, of float32, or of integers of at most 16 bits.
        mirrored: whether to reverse the order of pixels.
    """
    vector, element, step = vector_types.FloatVector(lanes.literal_value), element_of(array), channels.literal_value
    result = types.UniTuple(vector, step)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        stored = ir.VectorType(context.get_data_type(element), vector.lanes * step)
        pixels = builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8)
        order = range(vector.lanes)[:: -1 if mirrored.literal_value else 1]
        planes = [_picked(builder, pixels, [x * step + channel for x in order]) for channel in range(step)]
        return context.make_tuple(builder, result, [_as_floats(builder, plane, element) for plane in planes])

    return result(array, index, lanes, channels, mirrored), generate


@intrinsic
def load_channel(_context: TypingContext, array: types.Array, index: types.Integer) -> Intrinsic:
    """Return ``array[index + 3 * k]`` for ``k < 8``, of a contiguous array of uint8, as floats; no bytes after the last one are read."""
    vector = vector_types.FloatVector(8)
    half = ir.VectorType(ir.IntType(8), 16)
    # Two overlapping halves are loaded. The first one begins at the index and holds four of the bytes at 0, 3, 6 and 9; the second one
    # begins 6 bytes later and holds the other four at 6, 9, 12 and 15. Each becomes a four-byte number whose other bytes are 0.
    lanes = [lane for x in (0, 3, 6, 9, 22, 25, 28, 31) for lane in (x, 32, 32, 32)]

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin = element_pointer(context, builder, array, args[0], args[1])
        halves = []
        for offset in (0, 6):
            place = builder.gep(begin, [ir.Constant(llvm.INT32, offset)])
            halves.append(builder.load(builder.bitcast(place, half.as_pointer()), align=1))
        both = _picked_of_two(builder, halves[0], halves[1], list(range(32)))
        spread = _picked_of_two(builder, both, ir.Constant(both.type, None), lanes)
        return builder.sitofp(builder.bitcast(spread, ir.VectorType(llvm.INT32, 8)), vector.stored)

    return vector(array, index), generate


@literal_intrinsic
def mix_pixels(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    weights: types.UniTuple,
    bits: types.Literal,
    target: types.Array,
    place: types.Integer,
    lanes: types.Literal,
) -> Intrinsic:
    """Store weighted sums of the channels of ``lanes`` pixels of three bytes; weights are integers, scaled by ``2 ** bits``.

    ``target[place + x] = sum over c of source[index + x * 3 + c] * weights[c] / 2 ** bits``, with halves rounded up. Both
    arrays are contiguous uint8; the weights are a tuple of int32.
    """
    pixels, shift = lanes.literal_value, bits.literal_value
    kind = ir.VectorType(llvm.INT32, pixels)

    def all_lanes(number: int) -> ir.Constant:
        return ir.Constant(kind, [number] * pixels)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin = element_pointer(context, builder, source, *args[:2])
        end = element_pointer(context, builder, target, *args[4:6])
        stored = ir.VectorType(ir.IntType(8), pixels * 3).as_pointer()
        values = builder.load(builder.bitcast(begin, stored), align=1)
        mixed = all_lanes(1 << (shift - 1))
        for channel in range(3):
            plane = builder.zext(_picked(builder, values, [x * 3 + channel for x in range(pixels)]), kind)
            weight = llvm.spread_lanes(builder, builder.extract_value(args[2], channel), kind)
            mixed = builder.add(mixed, builder.mul(plane, weight))
        mixed = builder.trunc(builder.lshr(mixed, all_lanes(shift)), ir.VectorType(ir.IntType(8), pixels))
        builder.store(mixed, builder.bitcast(end, mixed.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(source, index, weights, bits, target, place, lanes), generate


@literal_intrinsic
def copy_mirrored(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    target: types.Array,
    place: types.Integer,
    lanes: types.Literal,
    width: types.Literal,
) -> Intrinsic:
    """Copy ``lanes`` pixels of ``width`` elements in reverse order, from ``source[index]`` on to ``target[place]`` on.

    Both arrays are contiguous and of the same type.
    """
    pixels, step = lanes.literal_value, width.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (
            element_pointer(context, builder, array, *args[k : k + 2]) for k, array in ((0, source), (2, target))
        )
        stored = ir.VectorType(context.get_data_type(source.dtype), pixels * step).as_pointer()
        align = element_of(source).bitwidth // 8
        values = builder.load(builder.bitcast(begin, stored), align=align)
        order = [x * step + k for x in reversed(range(pixels)) for k in range(step)]
        builder.store(_picked(builder, values, order), builder.bitcast(end, stored), align=align)
        return context.get_dummy_value()

    return types.void(source, index, target, place, lanes, width), generate


@literal_intrinsic
def copy_split(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    target: types.Array,
    place: types.Integer,
    stride: types.Integer,
    lanes: types.Literal,
) -> Intrinsic:
    """Copy ``lanes`` pixels of three elements from ``source[index]`` on to three planes ``stride`` elements apart.

    ``target[place + c * stride + x] = source[index + x * 3 + c]``. Both arrays are contiguous and of the same type.
    """
    pixels = lanes.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        element, align = context.get_data_type(source.dtype), element_of(source).bitwidth // 8
        begin, end = (
            element_pointer(context, builder, array, *args[k : k + 2]) for k, array in ((0, source), (2, target))
        )
        interleaved = ir.VectorType(element, pixels * 3).as_pointer()
        values = builder.load(builder.bitcast(begin, interleaved), align=align)
        for channel in range(3):
            plane = _picked(builder, values, [x * 3 + channel for x in range(pixels)])
            builder.store(plane, builder.bitcast(end, plane.type.as_pointer()), align=align)
            end = builder.gep(end, [args[4]])
        return context.get_dummy_value()

    return types.void(source, index, target, place, stride, lanes), generate


@literal_intrinsic
def copy_joined(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    stride: types.Integer,
    target: types.Array,
    place: types.Integer,
    lanes: types.Literal,
) -> Intrinsic:
    """Do the reverse of :func:`copy_split`: ``target[place + x * 3 + c] = source[index + c * stride + x]``."""
    pixels = lanes.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        element, align = context.get_data_type(source.dtype), element_of(source).bitwidth // 8
        begin, end = (
            element_pointer(context, builder, array, *args[k : k + 2]) for k, array in ((0, source), (3, target))
        )
        planes, plane = [], ir.VectorType(element, pixels)
        for _ in range(3):
            planes.append(builder.load(builder.bitcast(begin, plane.as_pointer()), align=align))
            begin = builder.gep(begin, [args[2]])
        values = interleaved(builder, planes)
        builder.store(values, builder.bitcast(end, values.type.as_pointer()), align=align)
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place, lanes), generate


@intrinsic
def joined(
    _context: TypingContext,
    first: vector_types.FloatVector,
    second: vector_types.FloatVector,
    third: vector_types.FloatVector,
    fourth: vector_types.FloatVector,
) -> Intrinsic:
    """Return the lanes of four vectors of the same type, one vector after the other."""
    result = vector_types.FloatVector(4 * first.lanes)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        lanes = list(range(2 * first.lanes))
        halves = [_picked_of_two(builder, args[place], args[place + 1], lanes) for place in (0, 2)]
        return _picked_of_two(builder, halves[0], halves[1], list(range(4 * first.lanes)))

    return result(first, second, third, fourth), generate


@literal_intrinsic
def repeated(
    _context: TypingContext,
    values: vector_types.FloatVector,
    begin: types.Literal,
    count: types.Literal,
    times: types.Literal,
) -> Intrinsic:
    """Return ``count`` lanes of a vector, from ``begin`` on, each repeated ``times`` times."""
    numbers = range(begin.literal_value, begin.literal_value + count.literal_value)
    lanes = [number for number in numbers for _ in range(times.literal_value)]

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return _picked(builder, args[0], lanes)

    return vector_types.FloatVector(len(lanes))(values, begin, count, times), generate


def _sum_with_product(builder: IRBuilder, total: Value, weight: Value, values: Value) -> Value:
    """Return ``total + weight * values``; ``weight`` is a vector or a number."""
    kind = total.type
    weights = weight if weight.type == kind else llvm.spread_lanes(builder, weight, kind)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{kind.count}f32"
    )
    return builder.call(function, [weights, values, total])


@intrinsic
def add_product(
    _context: TypingContext, total: vector_types.FloatVector, weight: types.Type, values: vector_types.FloatVector
) -> Intrinsic:
    """Return ``total + weight * values``, rounded only once on machines with fused multiply-add; ``weight`` is a float32 number or a
    vector.
    """
    kind = weight if isinstance(weight, vector_types.FloatVector) else types.float32
    return total(total, kind, values), lambda _c, builder, _s, args: _sum_with_product(builder, *args)


@intrinsic
def subtract_product(
    _context: TypingContext, total: vector_types.FloatVector, weight: types.Type, values: vector_types.FloatVector
) -> Intrinsic:
    """Return ``total - weight * values``, rounded as by :func:`add_product`."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return _sum_with_product(builder, args[0], args[1], builder.fneg(args[2]))

    kind = weight if isinstance(weight, vector_types.FloatVector) else types.float32
    return total(total, kind, values), generate


@intrinsic
def fused(_context: TypingContext, left: types.Type, right: types.Type, rest: types.Type) -> Intrinsic:
    """Return ``left * right + rest`` of float32, rounded only once, even on machines without fused multiply-add.

    ``left`` and ``rest`` may both be vectors; then ``right`` is a vector, or a number for all lanes.
    """
    vector = left if isinstance(left, vector_types.FloatVector) else None
    if vector is None:
        left = rest = types.float32
    factor = right if isinstance(right, vector_types.FloatVector) else types.float32

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        kind, name = args[0].type, "f32"
        weights = args[1]
        if vector is not None:
            name = f"v{vector.lanes}f32"
            weights = weights if weights.type == kind else llvm.spread_lanes(builder, weights, kind)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.{name}")
        return builder.call(function, [args[0], weights, args[2]])

    return rest(left, factor, rest), generate


@intrinsic
def turn_floats(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    stride: types.Integer,
    target: types.Array,
    place: types.Integer,
    spacing: types.Integer,
) -> Intrinsic:
    """Assign ``target[place + k * spacing + i] = source[index + i * stride + k]`` of contiguous float32, for ``i, k <
    8``.
    """
    row = ir.VectorType(llvm.FLOAT, 8).as_pointer()

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (element_pointer(context, builder, *pair) for pair in ((source, *args[:2]), (target, *args[3:5])))
        rows = []
        for _ in range(8):
            rows.append(builder.load(builder.bitcast(begin, row), align=4))
            begin = builder.gep(begin, [args[2]])
        for column in transposed_vectors(builder, rows):
            builder.store(column, builder.bitcast(end, row), align=4)
            end = builder.gep(end, [args[5]])
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place, spacing), generate


@intrinsic
def larger(_context: TypingContext, values: vector_types.FloatVector, others: vector_types.FloatVector) -> Intrinsic:
    """Return the larger number of each pair of lanes; if either number is NaN, the one in ``others``."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return values(values, others), generate


def transposed_vectors(builder: IRBuilder, vectors: list[Value]) -> list[Value]:
    """Transpose n vectors of n lanes, where n is a power of two: lane ``i`` of vector ``k`` becomes lane ``k`` of vector ``i``.

    Each step swaps elements whose row and column differ in one bit, from the highest bit to the lowest.
    """
    vectors, count = list(vectors), len(vectors)
    lanes, distance = range(count), count // 2
    while distance:
        upper = [lane if not lane & distance else lane - distance + count for lane in lanes]
        lower = [lane + distance if not lane & distance else lane + count for lane in lanes]
        for i in (i for i in lanes if not i & distance):
            pair = vectors[i], vectors[i + distance]
            vectors[i], vectors[i + distance] = (_picked_of_two(builder, *pair, order) for order in (upper, lower))
        distance //= 2
    return vectors


def _woven_columns(builder: IRBuilder, rows: list[Value]) -> list[Value]:
    """Do what :func:`transposed_vectors` does by steps that interleave the lanes of two vectors."""
    count = len(rows)
    low = [lane + k for lane in range(count // 2) for k in (0, count)]
    high = [lane + count // 2 for lane in low]
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(rows[: count // 2], rows[count // 2 :]))
        rows = [_picked_of_two(builder, *pair, lanes) for pair in pairs for lanes in (low, high)]
    return rows


@intrinsic
def transposed(_context: TypingContext, rows: types.UniTuple) -> Intrinsic:
    """Return :func:`transposed_vectors` of a tuple of vectors, of floats or of integers."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        vectors = [builder.extract_value(args[0], i) for i in range(rows.count)]
        return context.make_tuple(builder, rows, transposed_vectors(builder, vectors))

    return rows(rows), generate


@literal_intrinsic
def store_transposed(
    _context: TypingContext,
    target: types.Array,
    source: types.Array,
    firsts: types.Array,
    index: types.Integer,
    lanes: types.Literal,
) -> Intrinsic:
    """Assign ``target[i * lanes + k] = source[firsts[k] + index + i]`` for all ``i`` and ``k`` below ``lanes``, a power of two.

    Args:
        target: contiguous, of the source's type.
        source: contiguous, of float32 or integers up to 16 bits.
        firsts: contiguous, int64.
    """
    count, element = lanes.literal_value, element_of(source)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        stored, rows = ir.VectorType(context.get_data_type(element), count), []
        for k in range(count):
            first = builder.load(element_pointer(context, builder, firsts, args[2], ir.Constant(llvm.INT64, k)))
            pointer = element_pointer(context, builder, source, args[1], builder.add(first, args[3]))
            rows.append(builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8))
        # Bytes fit one register for each row, and are woven by one instruction for each half of a pair.
        columns = _woven_columns(builder, rows) if element.bitwidth == 8 else transposed_vectors(builder, rows)
        for i, column in enumerate(columns):
            pointer = element_pointer(context, builder, target, args[0], ir.Constant(llvm.INT64, i * count))
            builder.store(column, builder.bitcast(pointer, column.type.as_pointer()), align=element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(target, source, firsts, types.int64, lanes), generate


@intrinsic
def rounded(_context: TypingContext, values: vector_types.FloatVector, like: types.Type) -> Intrinsic:
    """Return the values rounded and saturated to the type of ``like``, as by
    :func:`~penstock.kernels.cpu.convert.converted`, but as floats.

    ``like`` is a float32 or an integer of at most 16 bits.
    """

    number = cast(Number, like)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        given = args[0]
        if isinstance(like, types.Float):
            return given
        kind, whole_kind = given.type, ir.VectorType(llvm.INT32, values.lanes)

        def all_lanes(value: float) -> ir.Constant:
            return ir.Constant(kind, [value] * values.lanes)

        low, high = all_lanes(float(number.minval)), all_lanes(float(number.maxval))
        inside = builder.select(builder.fcmp_ordered(">", given, low), given, low)
        inside = builder.select(builder.fcmp_ordered("<", inside, high), inside, high)
        if number.signed:
            inside = builder.select(builder.fcmp_ordered("ord", given, given), inside, all_lanes(0.0))
        half, bits = all_lanes(float(below_half(np.float32))), (1 << number.bitwidth) - 1
        if not number.signed:
            whole = builder.fptosi(builder.fadd(inside, half), whole_kind)
            # This changes no bits, but shows the compiler that the number is small, so that it does not convert the number to float and
            # back if the number is then stored as an integer.
            whole = builder.and_(whole, ir.Constant(whole_kind, [bits] * values.lanes))
        else:
            is_positive = builder.fcmp_ordered(">", inside, all_lanes(0.0))
            away = builder.select(is_positive, half, all_lanes(-float(below_half(np.float32))))
            whole = builder.fptosi(builder.fadd(inside, away), whole_kind)
        return builder.sitofp(whole, kind)

    return values(values, like), generate


@intrinsic
def store(
    _context: TypingContext, array: types.Array, index: types.Integer, values: vector_types.FloatVector
) -> Intrinsic:
    """Assign ``array[index : index + lanes] = values``, for a contiguous array of float32 or of uint8; for uint8, values are
    truncated.
    """
    element = element_of(array)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer, stored = element_pointer(context, builder, array, args[0], args[1]), args[2]
        if isinstance(element, types.Integer):
            # Values are converted to signed integers first: machines have an instruction for that.
            whole = builder.fptosi(stored, ir.VectorType(llvm.INT32, values.lanes))
            stored = builder.trunc(whole, ir.VectorType(context.get_data_type(element), values.lanes))
        builder.store(stored, builder.bitcast(pointer, stored.type.as_pointer()), align=element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, values), generate


@intrinsic
def store_pixels(
    _context: TypingContext, array: types.Array, index: types.Integer, channels: types.UniTuple
) -> Intrinsic:
    """Store pixels, given as one vector for each of three channels, from ``array[index]`` on, as :func:`store` does."""
    element = element_of(array)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        planes = [builder.extract_value(args[2], channel) for channel in range(3)]
        if isinstance(element, types.Integer):
            whole, kind = ir.VectorType(llvm.INT32, channels.dtype.lanes), context.get_data_type(element)
            narrow = ir.VectorType(kind, channels.dtype.lanes)
            planes = [builder.trunc(builder.fptosi(plane, whole), narrow) for plane in planes]
        stored = interleaved(builder, planes)
        builder.store(stored, builder.bitcast(pointer, stored.type.as_pointer()), align=element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, channels), generate


@intrinsic
def store_past_cache(
    _context: TypingContext, array: types.Array, index: types.Integer, values: vector_types.FloatVector
) -> Intrinsic:
    """Assign ``array[index : index + lanes] = values``, for a contiguous array of float32, past the cache: for outputs
    that are larger than the cache. The address must be a multiple of the vector's size. Call :func:`fence` after the last store.
    """

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        kind = args[2].type
        stored = builder.store(args[2], builder.bitcast(pointer, kind.as_pointer()), align=kind.count * 4)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(llvm.INT32, 1)]))
        return context.get_dummy_value()

    return types.void(array, index, values), generate


@intrinsic
def fence(_context: TypingContext) -> Intrinsic:
    """Make what :func:`store_past_cache` has written visible to other threads before any later write."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, _args: Sequence[Value]) -> Value:
        if is_for_x86(context):
            # LLVM's own fences do not suffice: they assume that stores past the cache are ordered like other stores on x86.
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        else:
            builder.fence("release")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def total(_context: TypingContext, values: vector_types.FloatVector) -> Intrinsic:
    """Return the sum of the lanes, whose number is a power of two: the upper half is added to the lower one until one lane is left."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        left = args[0]
        while left.type.count > 1:
            half = left.type.count // 2
            lower, upper = (
                _picked(builder, left, list(range(half))),
                _picked(builder, left, list(range(half, 2 * half))),
            )
            left = builder.fadd(lower, upper)
        return builder.extract_element(left, ir.Constant(llvm.INT32, 0))

    return values.element(values), generate


@intrinsic
def widened(_context: TypingContext, values: vector_types.FloatVector) -> Intrinsic:
    """Return the values as float64."""
    vector = vector_types.FloatVector(values.lanes, types.float64)
    return vector(values), lambda _c, builder, _s, args: builder.fpext(args[0], vector.stored)
