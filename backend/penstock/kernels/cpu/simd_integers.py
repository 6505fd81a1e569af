"""SIMD vectors of integers in numba kernels, in addition to the vectors of floats in ``simd.py``, and operations on 64-bit words.

Bounds are not checked, and negative indices do not wrap around: kernels must pass valid indices.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    cgutils,
    has_features,
    intrinsic,
    ir,
    literal_intrinsic,
    llvm,
    types,
    vector_types,
)
from penstock.kernels.cpu.simd import element_of, element_pointer, interleaved

GROUP = 16
"""The number of lanes of int16 that AVX2 multiplies and packs at a time."""


@literal_intrinsic
def zeros(_context: TypingContext, lanes: types.Literal) -> Intrinsic:
    """Return a vector of int32 zeros."""
    vector = vector_types.IntVector(lanes.literal_value, 32)
    return vector(lanes), lambda _context, _builder, _signature, _args: ir.Constant(vector.parts, None)


@literal_intrinsic
def zeros_short(_context: TypingContext, lanes: types.Literal) -> Intrinsic:
    """Return a vector of int16 zeros."""
    vector = vector_types.IntVector(lanes.literal_value, 16)
    return vector(lanes), lambda _context, _builder, _signature, _args: ir.Constant(vector.parts, None)


@literal_intrinsic
def load(_context: TypingContext, array: types.Array, index: types.Integer, lanes: types.Literal) -> Intrinsic:
    """Return ``array[index : index + lanes]`` of a contiguous array of integers of at most 16 bits, as int16."""
    vector, element = vector_types.IntVector(lanes.literal_value, 16), element_of(array)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        values = _loaded(context, builder, array, args[0], args[1], vector.lanes)
        return llvm.of_parts(builder, [values if element.bitwidth == 16 else builder.zext(values, vector.part)])

    return vector(array, index, lanes), generate


@literal_intrinsic
def load_alternate(
    _context: TypingContext, array: types.Array, index: types.Integer, lanes: types.Literal
) -> Intrinsic:
    """Return ``array[index : index + lanes]`` of a contiguous array of uint8, as int16: first every other element, then the
    elements between them.
    """
    vector = vector_types.IntVector(lanes.literal_value, 16)
    half = ir.VectorType(ir.IntType(16), vector.lanes // 2)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pairs = builder.bitcast(_loaded(context, builder, array, args[0], args[1], vector.lanes), half)
        even = builder.and_(pairs, ir.Constant(half, [255] * half.count))
        odd = builder.lshr(pairs, ir.Constant(half, [8] * half.count))
        return llvm.of_parts(builder, [_concatenated(builder, [even, odd])])

    return vector(array, index, lanes), generate


@literal_intrinsic
def halves(_context: TypingContext, first: types.Integer, second: types.Integer, lanes: types.Literal) -> Intrinsic:
    """Return a vector of int16 with ``first`` in the lower half of its lanes and ``second`` in the upper half."""
    vector = vector_types.IntVector(lanes.literal_value, 16)
    half = ir.VectorType(ir.IntType(16), vector.lanes // 2)

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        numbers = [context.cast(builder, args[k], signature.args[k], types.int16) for k in (0, 1)]
        return llvm.of_parts(
            builder, [_concatenated(builder, [llvm.spread_lanes(builder, number, half) for number in numbers])]
        )

    return vector(first, second, lanes), generate


def _loaded(
    context: TargetContext, builder: IRBuilder, array: types.Array, value: Value, index: Value, lanes: int
) -> Value:
    pointer, element = element_pointer(context, builder, array, value, index), element_of(array)
    stored = ir.VectorType(context.get_data_type(element), lanes)
    return builder.load(builder.bitcast(pointer, stored.as_pointer()), align=element.bitwidth // 8)


@intrinsic
def widened(_context: TypingContext, values: vector_types.IntVector) -> Intrinsic:
    """Return a vector of int16 as int32."""
    vector = vector_types.IntVector(values.lanes, 32)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        groups = _groups(builder, _joined(builder, args[0]), vector.part.count)
        return llvm.of_parts(builder, [builder.sext(group, vector.part) for group in groups])

    return vector(values), generate


@intrinsic
def narrowed(_context: TypingContext, values: vector_types.IntVector) -> Intrinsic:
    """Return a vector of int32 truncated to int16."""
    vector = vector_types.IntVector(values.lanes, 16)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return llvm.of_parts(builder, [builder.trunc(_joined(builder, args[0]), vector.part)])

    return vector(values), generate


# The lanes that AVX2's instructions interleave: within each half of two vectors, the lanes of the lower halves, and those of the upper
# halves.
_LOW = [x + k for start in (0, 8) for x in range(start, start + 4) for k in (0, GROUP)]
_HIGH = [lane + 4 for lane in _LOW]


def _called(builder: IRBuilder, name: str, result: ir.Type, *args: Value) -> Value:
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def _shuffled(builder: IRBuilder, first: Value, second: Value, lanes: Sequence[int]) -> Value:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(llvm.INT32, len(lanes)), list(lanes)))


def _concatenated(builder: IRBuilder, parts: list[Value]) -> Value:
    """Concatenate vectors of equal size, whose number is a power of two."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.count)
        parts = [_shuffled(builder, *pair, lanes) for pair in zip(parts[::2], parts[1::2])]
    return parts[0]


def _joined(builder: IRBuilder, vector: Value) -> Value:
    """Return a :class:`vector_types.IntVector` as a single LLVM vector."""
    return _concatenated(builder, llvm.parts_of(builder, vector))


def _groups(builder: IRBuilder, values: Value, lanes: int) -> list[Value]:
    """Split a vector into vectors of ``lanes`` lanes."""
    starts = range(0, values.type.count, lanes)
    return [_shuffled(builder, values, values, range(start, start + lanes)) for start in starts]


def pair_of(first: int, second: int) -> int:
    """Pack two factors of 16 bits into one integer: the ``factors`` of the functions below."""
    return second << 16 | (first & 0xFFFF)


def _two_factors(builder: IRBuilder, factors: Value, kind: ir.VectorType) -> list[Value]:
    """Return two vectors of ``kind``, int32: one with the first factor of a pair in all lanes, one with the second."""
    sixteen = ir.Constant(llvm.INT32, 16)
    low = builder.ashr(builder.shl(factors, sixteen), sixteen)
    return [llvm.spread_lanes(builder, number, kind) for number in (low, builder.ashr(factors, sixteen))]


def _multiplied(builder: IRBuilder, woven: Value, factors: Value) -> Value:
    """Multiply every two adjacent lanes of int16 by a pair of factors, and return the sums of both products as int32, with AVX2."""
    half = ir.VectorType(llvm.INT32, GROUP // 2)
    weights = builder.bitcast(llvm.spread_lanes(builder, factors, half), woven.type)
    return _called(builder, "llvm.x86.avx2.pmadd.wd", half, woven, weights)


@intrinsic
def pair_products(
    _context: TypingContext, first: vector_types.IntVector, second: vector_types.IntVector, factors: types.Integer
) -> Intrinsic:
    """Return ``first * a + second * b`` of int16, as int32, where ``factors`` is ``pair_of(a, b)``.

    The number of lanes must be a multiple of 16. They may be in another order, which :func:`packed` undoes.
    """
    vector = vector_types.IntVector(first.lanes, 32)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pair, parts = [part for vector in args[:2] for part in llvm.parts_of(builder, vector)], []
        if not has_features(context, "avx2"):
            numbers = _two_factors(builder, args[2], vector.part)
            for halves in zip(*(_groups(builder, values, vector.part.count) for values in pair)):
                products = zip((builder.sext(half, vector.part) for half in halves), numbers)
                parts.append(builder.add(*(builder.mul(*each) for each in products)))
            return llvm.of_parts(builder, parts)
        for first_group, second_group in zip(*(_groups(builder, values, GROUP) for values in pair)):
            for lanes in (_LOW, _HIGH):
                parts.append(_multiplied(builder, _shuffled(builder, first_group, second_group, lanes), args[2]))
        return llvm.of_parts(builder, parts)

    return vector(first, first, types.int32), generate


@intrinsic
def rounded_product(_context: TypingContext, values: vector_types.IntVector, factor: types.Integer) -> Intrinsic:
    """Return ``values * factor / 32768`` of int16, rounded; the number of lanes must be a multiple of 16."""

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        number = context.cast(builder, args[1], signature.args[1], types.int16)
        (short,) = llvm.parts_of(builder, args[0])
        if has_features(context, "avx2"):
            factors = llvm.spread_lanes(builder, number, ir.VectorType(ir.IntType(16), GROUP))
            products = [
                _called(builder, "llvm.x86.avx2.pmul.hr.sw", factors.type, group, factors)
                for group in _groups(builder, short, GROUP)
            ]
            return llvm.of_parts(builder, [_concatenated(builder, products)])
        wide = ir.VectorType(llvm.INT32, values.lanes)
        factors = llvm.spread_lanes(builder, builder.sext(number, llvm.INT32), wide)
        product = builder.add(
            builder.mul(builder.sext(short, wide), factors), ir.Constant(wide, [1 << 14] * values.lanes)
        )
        return llvm.of_parts(
            builder, [builder.trunc(builder.ashr(product, ir.Constant(wide, [15] * values.lanes)), values.part)]
        )

    return values(values, factor), generate


@intrinsic
def weighted_pairs(_context: TypingContext, values: vector_types.IntVector, factors: types.Integer) -> Intrinsic:
    """Return ``values[2 * i] * first + values[2 * i + 1] * second`` as int32; ``values`` has 16 lanes of int16, and ``factors``
    is ``pair_of(first, second)``.
    """
    vector = vector_types.IntVector(values.lanes // 2, 32)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        (short,) = llvm.parts_of(builder, args[0])
        if has_features(context, "avx2"):
            return llvm.of_parts(builder, [_multiplied(builder, short, args[1])])
        split = [_shuffled(builder, short, short, range(k, values.lanes, 2)) for k in (0, 1)]
        wide = zip((builder.sext(lanes, vector.part) for lanes in split), _two_factors(builder, args[1], vector.part))
        return llvm.of_parts(builder, [builder.add(*(builder.mul(*each) for each in wide))])

    return vector(values, types.int32), generate


@intrinsic
def pairs(_context: TypingContext, numbers: types.Integer) -> Intrinsic:
    """Return a vector of 16 lanes of int16 that alternate between ``first`` and ``second``; ``numbers`` is ``pair_of(first, second)``."""
    vector = vector_types.IntVector(GROUP, 16)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        spread = llvm.spread_lanes(builder, args[0], ir.VectorType(llvm.INT32, GROUP // 2))
        return llvm.of_parts(builder, [builder.bitcast(spread, vector.part)])

    return vector(types.int32), generate


@literal_intrinsic
def adjacent_products(
    _context: TypingContext, array: types.Array, index: types.Integer, factors: types.Integer, lanes: types.Literal
) -> Intrinsic:
    """Return ``array[index + 2 * i] * first + array[index + 2 * i + 1] * second`` of a contiguous array of uint8, as
    int32.

    ``factors`` is ``pair_of(first, second)``; ``lanes``, the number of results, must be a multiple of 8.
    """
    vector = vector_types.IntVector(lanes.literal_value, 32)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        parts = []
        for start in range(0, 2 * vector.lanes, GROUP):
            place = builder.add(args[1], ir.Constant(args[1].type, start))
            values = _loaded(context, builder, array, args[0], place, GROUP)
            if has_features(context, "avx2"):
                short = builder.zext(values, ir.VectorType(ir.IntType(16), GROUP))
                parts.append(_multiplied(builder, short, args[2]))
            else:
                halves = [_shuffled(builder, values, values, range(k, GROUP, 2)) for k in (0, 1)]
                wide = [builder.zext(half, vector.part) for half in halves]
                numbers = _two_factors(builder, args[2], vector.part)
                parts.append(builder.add(*(builder.mul(*pair) for pair in zip(wide, numbers))))
        return llvm.of_parts(builder, parts)

    return vector(array, index, types.int32, lanes), generate


@intrinsic
def packed(_context: TypingContext, values: vector_types.IntVector) -> Intrinsic:
    """Return a result of :func:`pair_products` saturated to int16, with its lanes in their original order."""
    vector = vector_types.IntVector(values.lanes, 16)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        parts, groups = llvm.parts_of(builder, args[0]), []
        for pair in zip(parts[::2], parts[1::2]):
            if has_features(context, "avx2"):
                groups.append(_packed_by_halves(builder, *pair))
            else:
                groups.append(_packed_in_order(builder, *pair))
        return llvm.of_parts(builder, [_concatenated(builder, groups)])

    return vector(values), generate


@intrinsic
def packed_halves(_context: TypingContext, first: vector_types.IntVector, second: vector_types.IntVector) -> Intrinsic:
    """Return two vectors of 8 lanes of int32 as one vector, saturated to int16: the lower halves of both, then the upper halves."""
    vector = vector_types.IntVector(GROUP, 16)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pair = [_joined(builder, values) for values in args]
        if has_features(context, "avx2"):
            return llvm.of_parts(builder, [_packed_by_halves(builder, *pair)])
        ordered = _packed_in_order(builder, *pair)
        lanes = [x + start for start in (0, 4) for k in (0, 8) for x in range(k, k + 4)]
        return llvm.of_parts(builder, [_shuffled(builder, ordered, ordered, lanes)])

    return vector(first, second), generate


def _packed_by_halves(builder: IRBuilder, first: Value, second: Value) -> Value:
    """Return two vectors of 8 lanes of int32 as one vector, saturated to int16, with AVX2: the lower halves of both, then the upper
    halves.
    """
    return _called(builder, "llvm.x86.avx2.packssdw", ir.VectorType(ir.IntType(16), GROUP), first, second)


def _packed_in_order(builder: IRBuilder, first: Value, second: Value) -> Value:
    limited = _clamped(builder, _concatenated(builder, [first, second]), -(1 << 15), (1 << 15) - 1)
    return builder.trunc(limited, ir.VectorType(ir.IntType(16), GROUP))


@literal_intrinsic
def clear(_context: TypingContext, array: types.Array, index: types.Integer, count: types.Literal) -> Intrinsic:
    """Assign ``array[index : index + count] = 0`` of a contiguous array of int16."""
    kind = ir.VectorType(ir.IntType(16), GROUP)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        for start in range(0, count.literal_value, GROUP):
            place = builder.add(args[1], ir.Constant(args[1].type, start))
            _store(builder, element_pointer(context, builder, array, args[0], place), ir.Constant(kind, None))
        return context.get_dummy_value()

    return types.void(array, index, count), generate


@literal_intrinsic
def load_two(
    _context: TypingContext, array: types.Array, first: types.Integer, second: types.Integer, lanes: types.Literal
) -> Intrinsic:
    """Return ``lanes`` elements of a contiguous array of int16 from ``array[first]`` on, followed by ``lanes`` elements from
    ``array[second]`` on.
    """
    vector = vector_types.IntVector(2 * lanes.literal_value, 16)

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        halves = [_loaded(context, builder, array, args[0], place, lanes.literal_value) for place in args[1:3]]
        return llvm.of_parts(builder, [_concatenated(builder, halves)])

    return vector(array, first, second, lanes), generate


def _rotated(builder: IRBuilder, vectors: list[Value], low: Sequence[int], high: Sequence[int]) -> list[Value]:
    """Transpose matrices whose rows are the vectors. An element's position is the bits of its row followed by those of its column; each
    step rotates these by one.

    ``low`` and ``high`` select the lanes that interleave the lower and the upper halves of two vectors.
    """
    half = len(vectors) // 2
    for _ in range(half.bit_length()):
        pairs = list(zip(vectors[:half], vectors[half:]))
        vectors = [_shuffled(builder, *pair, lanes) for pair in pairs for lanes in (low, high)]
    return vectors


@intrinsic
def transposed_pairs(_context: TypingContext, rows: types.UniTuple) -> Intrinsic:
    """Transpose two matrices of 4 x 4 pairs of int16 at once: each of four vectors holds a row of the first matrix, then the same row of
    the second.
    """

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        kind = ir.VectorType(llvm.INT32, GROUP // 2)
        vectors = [builder.bitcast(builder.extract_value(args[0], (i, 0)), kind) for i in range(4)]
        low = [x + k for start in (0, 4) for x in (start, start + 1) for k in (0, kind.count)]
        turned = _rotated(builder, vectors, low, [lane + 2 for lane in low])
        short = ir.VectorType(ir.IntType(16), GROUP)
        return context.make_tuple(
            builder, rows, [llvm.of_parts(builder, [builder.bitcast(vector, short)]) for vector in turned]
        )

    return rows(rows), generate


@intrinsic
def transpose_pixels(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    stride: types.Integer,
    target: types.Array,
    place: types.Integer,
) -> Intrinsic:
    """Transpose four pixels of three bytes in each of 16 rows; arrays are contiguous uint8.

    ``target[place + ((x // 2 * 3 + c) * 16 + y) * 2 + x % 2] = source[index + y * stride + x * 3 + c]``. The four bytes after the
    pixels are read, too.
    """
    # In this order, each channel's values of two pixels are adjacent; the bytes after the pixels fill up the vector.
    order = [x * 3 + c for first in (0, 2) for c in range(3) for x in (first, first + 1)] + [12, 13, 14, 15]

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (element_pointer(context, builder, *pair) for pair in ((source, *args[:2]), (target, *args[3:5])))
        kind = ir.VectorType(llvm.BYTE, 16).as_pointer()
        rows = []
        for _ in range(16):
            rows.append(builder.load(builder.bitcast(begin, kind), align=1))
            begin = builder.gep(begin, [args[2]])
        short = ir.VectorType(ir.IntType(16), GROUP)
        vectors = []
        for pair in zip(rows[:8], rows[8:]):
            lanes = [lane + start for start in (0, 16) for lane in order]
            vectors.append(builder.bitcast(_shuffled(builder, *pair, lanes), short))
        for vector in _rotated(builder, vectors, _LOW, _HIGH)[:6]:
            _store(builder, end, vector)
            end = builder.gep(end, [ir.Constant(llvm.INT64, 32)])
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place), generate


@intrinsic
def store_transposed(
    _context: TypingContext,
    array: types.Array,
    first: types.Integer,
    first_stride: types.Integer,
    second: types.Integer,
    second_stride: types.Integer,
    columns: types.UniTuple,
) -> Intrinsic:
    """Store two matrices of 8 x 8, saturated to uint8: each of eight vectors holds a column of the first matrix, then the same column of
    the second.

    The rows of the first matrix begin at ``array[first]`` and are ``first_stride`` elements apart; those of the second begin at
    ``array[second]`` and are ``second_stride`` apart.
    """
    kind = ir.VectorType(llvm.BYTE, 2 * GROUP)
    # The lanes that interleave the bytes of two vectors, from the lower half of each half.
    low = [x + k for start in (0, GROUP) for x in range(start, start + 8) for k in (0, kind.count)]

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        places = [element_pointer(context, builder, array, args[0], args[k]) for k in (1, 3)]
        strides = args[2], args[4]
        vectors = [builder.extract_value(args[5], (i, 0)) for i in range(8)]
        # Each vector gets columns i and i + 4; then the bytes of the first four columns are interleaved, and those of the last four.
        saturated = [_saturated(context, builder, *pair) for pair in zip(vectors[:4], vectors[4:])]
        turned = _rotated(builder, saturated, low, [lane + 8 for lane in low])
        words = ir.VectorType(llvm.INT32, GROUP // 2)
        # Four vectors: rows 0 to 3 and rows 4 to 7 of columns 0 to 3, then the same rows of columns 4 to 7.
        fours = [builder.bitcast(vector, words) for vector in turned]
        lanes = [x + k for start in (0, 4) for x in (start, start + 1) for k in (0, words.count)]
        for left, right in zip(fours[:2], fours[2:]):
            for chosen in (lanes, [lane + 2 for lane in lanes]):
                rows = builder.bitcast(_shuffled(builder, left, right, chosen), ir.VectorType(ir.DoubleType(), 4))
                for which in (0, 1):
                    for k in (0, 1):
                        row = builder.extract_element(rows, ir.Constant(llvm.INT32, 2 * which + k))
                        _store(builder, places[which], row)
                        places[which] = builder.gep(places[which], [strides[which]])
        return context.get_dummy_value()

    return types.void(array, first, first_stride, second, second_stride, columns), generate


@literal_intrinsic
def store_corners(
    _context: TypingContext,
    array: types.Array,
    first: types.Integer,
    first_stride: types.Integer,
    second: types.Integer,
    second_stride: types.Integer,
    columns: types.UniTuple,
    size: types.Literal,
) -> Intrinsic:
    """Store the upper left ``size`` x ``size`` (1, 2 or 4) elements of two matrices of 4 x 4, saturated to uint8.

    ``columns`` are two vectors of int16: one holds columns 0 and 1 of the first matrix, then those of the second; the other
    holds columns 2 and 3 likewise. Rows are stored as by :func:`store_transposed`.
    """
    lanes = [half + 4 * x + y for half in (0, GROUP) for y in range(4) for x in range(4)]
    extent = size.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        vectors = [builder.extract_value(args[5], (i, 0)) for i in range(2)]
        saturated = _saturated(context, builder, *vectors)
        words = ir.VectorType(llvm.INT32, GROUP // 2)
        rows = builder.bitcast(_shuffled(builder, saturated, saturated, lanes), words)
        for which, (start, stride) in enumerate(((args[1], args[2]), (args[3], args[4]))):
            place = element_pointer(context, builder, array, args[0], start)
            for y in range(extent):
                row = builder.extract_element(rows, ir.Constant(llvm.INT32, 4 * which + y))
                _store(builder, place, row if extent == 4 else builder.trunc(row, ir.IntType(8 * extent)))
                place = builder.gep(place, [stride])
        return context.get_dummy_value()

    return types.void(array, first, first_stride, second, second_stride, columns, size), generate


def _saturated(context: TargetContext, builder: IRBuilder, first: Value, second: Value) -> Value:
    """Return two vectors of 16 numbers as one vector, saturated to uint8: the lower halves of both, then the upper halves."""
    if has_features(context, "avx2"):
        return _called(builder, "llvm.x86.avx2.packuswb", ir.VectorType(llvm.BYTE, 2 * GROUP), first, second)
    parts = [_groups(builder, _as_bytes(builder, values), GROUP // 2) for values in (first, second)]
    return _concatenated(builder, [part for pair in zip(*parts) for part in pair])


def _clamped(builder: IRBuilder, values: Value, least: int, most: int) -> Value:
    low, high = (ir.Constant(values.type, [limit] * values.type.count) for limit in (least, most))
    values = builder.select(builder.icmp_signed(">", values, low), values, low)
    return builder.select(builder.icmp_signed("<", values, high), values, high)


def _as_bytes(builder: IRBuilder, values: Value) -> Value:
    """Return integers saturated to uint8."""
    return builder.trunc(_clamped(builder, values, 0, 255), ir.VectorType(llvm.BYTE, values.type.count))


def _store(builder: IRBuilder, pointer: Value, values: Value) -> None:
    builder.store(values, builder.bitcast(pointer, values.type.as_pointer()), align=1)


@intrinsic
def store_rows(
    _context: TypingContext, array: types.Array, index: types.Integer, stride: types.Integer, rows: types.UniTuple
) -> Intrinsic:
    """Store vectors, saturated to uint8, in a contiguous array, as rows that are ``stride`` elements apart."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        for i in range(rows.count):
            _store(builder, pointer, _as_bytes(builder, _joined(builder, builder.extract_value(args[3], i))))
            pointer = builder.gep(pointer, [args[2]])
        return context.get_dummy_value()

    return types.void(array, index, stride, rows), generate


_PIXELS = 32
"""The number of pixels that :func:`store_alternate_pixels` stores."""


@intrinsic
def store_alternate_pixels(
    _context: TypingContext, array: types.Array, index: types.Integer, channels: types.UniTuple
) -> Intrinsic:
    """Store 32 pixels of three channels, saturated, in a contiguous array of uint8.

    Each channel is a vector of int16, in the order of :func:`load_alternate`.
    """
    order = [x // 2 + x % 2 * _PIXELS // 2 for x in range(_PIXELS)]

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        planes = [_joined(builder, builder.extract_value(args[2], c)) for c in range(3)]
        if has_features(context, "avx2"):
            _store_by_blends(builder, pointer, planes)
        else:
            ordered = [_shuffled(builder, plane, plane, order) for plane in planes]
            _store(builder, pointer, interleaved(builder, [_as_bytes(builder, plane) for plane in ordered]))
        return context.get_dummy_value()

    return types.void(array, index, channels), generate


def _store_by_blends(builder: IRBuilder, pointer: Value, planes: Sequence[Value]) -> None:
    """Store pixels as :func:`store_alternate_pixels` does, 16 at a time, with AVX2's instructions, which move bytes only within 128
    bits.
    """
    kind, half = ir.VectorType(llvm.BYTE, _PIXELS), _PIXELS // 2
    spread = []
    for c, plane in enumerate(planes):
        saturated = _called(builder, "llvm.x86.avx2.packuswb", kind, *_groups(builder, plane, GROUP))
        # Every third of the 48 bytes of 16 pixels belongs to this channel: values are moved to the positions of these bytes modulo 16.
        lanes = [0] * half
        for x in range(half):
            lanes[(3 * x + c) % half] = x // 2 + x % 2 * half // 2
        spread.append(_shuffled(builder, saturated, saturated, lanes + [half + lane for lane in lanes]))
    parts = []
    for begin in range(0, 3 * half, half):
        part = spread[0]
        for c in (1, 2):
            chosen = [kind.count * ((begin + x % half) % 3 == c) + x for x in range(kind.count)]
            part = _shuffled(builder, part, spread[c], chosen)
        parts.append(part)
    for group in (0, 1):
        for k, part in enumerate(parts):
            place = builder.gep(pointer, [ir.Constant(llvm.INT32, half * (3 * group + k))])
            _store(builder, place, _shuffled(builder, part, part, range(half * group, half * (group + 1))))


@intrinsic
def store_numbers(
    _context: TypingContext, array: types.Array, index: types.Integer, values: vector_types.IntVector
) -> Intrinsic:
    """Assign ``array[index : index + lanes] = values`` of a contiguous array of the vector's type."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        vector = _joined(builder, args[2])
        builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=values.bits // 8)
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
    """Assign ``target[place : place + length] = source[index : index + length]`` of uint8; return the number of these elements that
    precede the first ``sought``: ``length`` if there is none.
    """

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        values = _loaded(context, builder, source, args[0], args[1], length.literal_value)
        _store(builder, element_pointer(context, builder, target, args[2], args[3]), values)
        number = context.cast(builder, args[5], signature.args[5], types.uint8)
        found = builder.icmp_unsigned("==", values, llvm.spread_lanes(builder, number, values.type))
        bits = builder.zext(builder.bitcast(found, ir.IntType(length.literal_value)), llvm.INT64)
        # A sentinel bit, which is found if no other bit is set.
        bits = builder.or_(bits, ir.Constant(llvm.INT64, 1 << length.literal_value))
        return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))

    return types.int64(source, index, target, place, length, sought), generate


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
    """Assign ``target[place + k * spacing + i] = source[index + i * stride + k]`` of uint8, for ``i, k < length``, a
    power of two.
    """
    size = length.literal_value

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (element_pointer(context, builder, *pair) for pair in ((source, *args[:2]), (target, *args[3:5])))
        row = ir.VectorType(llvm.BYTE, size).as_pointer()
        rows = []
        for _ in range(size):
            rows.append(builder.load(builder.bitcast(begin, row), align=1))
            begin = builder.gep(begin, [args[2]])
        low = [x + k for x in range(size // 2) for k in (0, size)]
        for column in _rotated(builder, rows, low, [lane + size // 2 for lane in low]):
            _store(builder, end, column)
            end = builder.gep(end, [args[5]])
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place, spacing, length), generate


@intrinsic
def any_lane(_context: TypingContext, values: vector_types.IntVector) -> Intrinsic:
    """Return the bitwise "or" of all lanes."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        vector = _joined(builder, args[0])
        kind = vector.type
        return _called(builder, f"llvm.vector.reduce.or.v{kind.count}i{values.bits}", kind.element, vector)

    return (types.int32 if values.bits == 32 else types.int16)(values), generate


@intrinsic
def load_word(_context: TypingContext, array: types.Array, index: types.Integer) -> Intrinsic:
    """Return the eight bytes from ``array[index]`` on, of a contiguous array of uint8, as one big-endian number."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = element_pointer(context, builder, array, args[0], args[1])
        word = builder.load(builder.bitcast(pointer, llvm.INT64.as_pointer()), align=1)
        return builder.bswap(word)

    return types.uint64(array, index), generate


@intrinsic
def leading_zeros(_context: TypingContext, word: types.Integer) -> Intrinsic:
    """Return the number of zero bits above the highest set bit of a 64-bit word."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def trailing_zeros(_context: TypingContext, word: types.Integer) -> Intrinsic:
    """Return the number of zero bits below the lowest set bit of a 64-bit word."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def count_bits(_context: TypingContext, word: types.Integer) -> Intrinsic:
    """Return the number of set bits of a 64-bit word."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@literal_intrinsic
def gather_bits(_context: TypingContext, words: types.UniTuple, order: types.Literal) -> Intrinsic:
    """Return a vector of 16 lanes of int16 whose bits come from 64-bit words: bit 0 of all lanes from the first word, bit 1 from the
    second, and so on.

    Args:
        words: the words for the lower half of the lanes, then the same number of words for the upper half.
        order: the position in a word of the bit of each lane of a half, packed in the bytes of a number, with the first lane in the lowest
            byte.
    """
    vector, levels = vector_types.IntVector(GROUP, 16), words.count // 2
    numbers = list(order.literal_value.to_bytes(GROUP // 2, "little"))
    octets = ir.VectorType(llvm.BYTE, GROUP)

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        total, none = ir.Constant(vector.part, None), ir.Constant(vector.part, None)
        for level in range(levels):
            pair = ir.Constant(ir.VectorType(llvm.INT64, 2), ir.Undefined)
            for place, number in enumerate((level, levels + level)):
                word = builder.extract_value(args[0], number)
                pair = builder.insert_element(pair, word, ir.Constant(llvm.INT32, place))
            values = builder.bitcast(pair, octets)
            lanes = [8 * half + number // 8 for half in (0, 1) for number in numbers]
            bits = ir.Constant(octets, [1 << number % 8 for number in numbers] * 2)
            masked = builder.and_(_shuffled(builder, values, values, lanes), bits)
            is_set = builder.icmp_unsigned("!=", masked, ir.Constant(octets, None))
            total = builder.or_(total, builder.select(is_set, ir.Constant(vector.part, [1 << level] * GROUP), none))
        return llvm.of_parts(builder, [total])

    return vector(words, order), generate


@intrinsic
def with_first_lanes(
    _context: TypingContext, values: vector_types.IntVector, first: types.Integer, second: types.Integer
) -> Intrinsic:
    """Return ``values``, a vector of int16, with ``first`` in its first lane and ``second`` in the first lane of its upper half."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        vector = _joined(builder, args[0])
        for place, number in ((0, args[1]), (values.lanes // 2, args[2])):
            vector = builder.insert_element(vector, number, ir.Constant(llvm.INT32, place))
        return llvm.of_parts(builder, [vector])

    return values(values, types.int16, types.int16), generate


@intrinsic
def rarely(_context: TypingContext, condition: types.Boolean) -> Intrinsic:
    """Return the condition, and tell the compiler that it is rarely true, so that the code for this case is placed out of the way."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return _called(builder, "llvm.expect.i1", args[0].type, args[0], ir.Constant(args[0].type, 0))

    return types.boolean(types.boolean), generate


@intrinsic
def put(_context: TypingContext, array: types.Array, index: types.Integer, value: types.Integer) -> Intrinsic:
    """Assign ``array[index] = value`` in a contiguous array of integers; bits that do not fit are dropped."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = context.cast(builder, args[1], index, types.intp)
        pointer = element_pointer(context, builder, array, args[0], place)
        builder.store(context.cast(builder, args[2], value, array.dtype), pointer)
        return context.get_dummy_value()

    return types.void(array, index, value), generate
