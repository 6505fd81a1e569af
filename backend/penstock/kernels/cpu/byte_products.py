"""Sums of products of bytes and 16-bit weights, four at a time, with AVX-512's VNNI instructions.

These instructions multiply unsigned by signed bytes, so a weight is split into a high and a low byte, both signed, and the sum for
the high bytes is multiplied by 256 at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    llvm,
    types,
)
from penstock.kernels.cpu.options import OPTIONS, njit
from penstock.kernels.cpu.simd import element_pointer

_LANES = 16
_NEEDED = ("avx512bw", "avx512vnni")


@intrinsic
def are_supported(_context: TypingContext) -> Intrinsic:
    """Return whether the kernel is compiled for a machine with VNNI instructions; on others, :func:`sum_quads` and :func:`sum_lines` do
    nothing.
    """

    def generate(context: TargetContext, _builder: IRBuilder, _signature: Signature, _args: Sequence[Value]) -> Value:
        return ir.Constant(ir.IntType(1), has_features(context, *_NEEDED))

    return types.boolean(), generate


@njit(inline="always", **OPTIONS)
def high_byte(weight: int) -> np.int32:
    """Return the bits of a weight's high byte, as a number from 0 to 255."""
    return np.int32(((np.int64(weight) + 128) >> 8) & 0xFF)


@njit(inline="always", **OPTIONS)
def low_byte(weight: int) -> np.int32:
    """Return the bits of a weight's low byte, as a number from 0 to 255."""
    return np.int32(np.int64(weight) & 0xFF)


LEAST_WEIGHT, MOST_WEIGHT = -(1 << 15) - 128, (1 << 15) - 129
"""The smallest and the largest weight that can be split into two signed bytes."""


def _shuffled(builder: IRBuilder, first: Value, second: Value, lanes: Sequence[int]) -> Value:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(llvm.INT32, len(lanes)), list(lanes)))


def _called(builder: IRBuilder, name: str, result: ir.Type, *args: Value) -> Value:
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def _loaded(builder: IRBuilder, place: Value, kind: ir.Type) -> Value:
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=1)


def _store(builder: IRBuilder, place: Value, values: Value) -> None:
    builder.store(values, builder.bitcast(place, values.type.as_pointer()), align=1)


def _woven(builder: IRBuilder, first: Value, second: Value, kind: ir.VectorType, high: bool) -> Value:
    """Return two vectors interleaved lane by lane, where ``kind`` defines the lanes: the lower or the upper halves of each 128 bits."""
    part = kind.count // 4
    half = part // 2
    lanes = [
        start + x + which * kind.count
        for start in range(half if high else 0, kind.count, part)
        for x in range(half)
        for which in (0, 1)
    ]
    return _shuffled(builder, builder.bitcast(first, kind), builder.bitcast(second, kind), lanes)


@intrinsic
def transpose_quads(
    _context: TypingContext,
    source: types.Array,
    index: types.Integer,
    stride: types.Integer,
    target: types.Array,
    place: types.Integer,
) -> Intrinsic:
    """Transpose four pixels of three bytes in each of 16 rows; arrays are contiguous uint8.

    ``target[place + (c * 16 + y) * 4 + x] = source[index + y * stride + x * 3 + c]``. The four bytes after the pixels are read, too.
    """
    order = [x * 3 + c for c in range(3) for x in range(4)] + [12, 13, 14, 15]

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        begin, end = (element_pointer(context, builder, *pair) for pair in ((source, *args[:2]), (target, *args[3:5])))
        rows = []
        for _ in range(16):
            rows.append(_loaded(builder, begin, ir.VectorType(llvm.BYTE, 16)))
            begin = builder.gep(begin, [args[2]])
        vectors = []
        for y in range(4):
            upper, lower = (_shuffled(builder, rows[y + k], rows[y + k + 4], range(32)) for k in (0, 8))
            four = _shuffled(builder, upper, lower, range(64))
            vectors.append(
                _shuffled(builder, four, four, [start + lane for start in range(0, 64, 16) for lane in order])
            )
        low, high = (
            [_woven(builder, vectors[k], vectors[k + 1], llvm.WORDS, upper) for k in (0, 2)] for upper in (False, True)
        )
        longs = ir.VectorType(llvm.INT64, 8)
        for pair, upper in ((low, False), (low, True), (high, False)):
            _store(builder, end, _woven(builder, pair[0], pair[1], longs, upper))
            end = builder.gep(end, [ir.Constant(llvm.INT64, 64)])
        return context.get_dummy_value()

    return types.void(source, index, stride, target, place), generate


class _Sums:
    """Vectors of sums in 16 lanes, accumulated in a loop.

    Args:
        count: the number of vectors.
        start: the initial value of all sums.
    """

    def __init__(self, builder: IRBuilder, count: int, start: Value) -> None:
        self._builder = builder
        zero = ir.Constant(llvm.WORDS, None)
        self._parts = [
            [
                cgutils.alloca_once_value(builder, value)
                for value in (zero, llvm.spread_lanes(builder, start, llvm.WORDS))
            ]
            for _ in range(count)
        ]

    def add(self, number: int, values: Value, weights: Sequence[Value]) -> None:
        """Add the products of four bytes and four weights in each lane to vector ``number``; ``weights``: a vector of their high bytes,
        and one of their low bytes.
        """
        builder = self._builder
        for part, factor in zip(self._parts[number], weights):
            product = _called(
                builder,
                "llvm.x86.avx512.vpdpbusd.512",
                llvm.WORDS,
                builder.load(part),
                builder.bitcast(values, llvm.WORDS),
                factor,
            )
            builder.store(product, part)

    def shifted(self, bits: Value) -> list[Value]:
        """Return the vectors of sums, shifted right by their ``bits`` fractional bits."""
        builder, sums = self._builder, []
        eight, shift = (llvm.spread_lanes(builder, value, llvm.WORDS) for value in (ir.Constant(llvm.INT32, 8), bits))
        for high, low in ([builder.load(part) for part in parts] for parts in self._parts):
            sums.append(builder.ashr(builder.add(builder.shl(high, eight), low), shift))
        return sums


def _weights_at(builder: IRBuilder, weights: Value, index: Value) -> list[Value]:
    """Return four weights, broadcast to all lanes: a vector of their high bytes, and one of their low bytes."""
    places = [builder.gep(weights, [builder.add(index, ir.Constant(llvm.INT64, k))]) for k in (0, 1)]
    return [llvm.spread_lanes(builder, builder.load(place), llvm.WORDS) for place in places]


def _half(builder: IRBuilder, bits: Value) -> Value:
    """Return half of ``1 << bits``; 0 if ``bits`` is 0."""
    return builder.lshr(builder.shl(ir.Constant(llvm.INT32, 1), bits), ir.Constant(llvm.INT32, 1))


@intrinsic
def sum_quads(
    _context: TypingContext,
    columns: types.Array,
    place: types.Integer,
    weights: types.Array,
    index: types.Integer,
    count: types.Integer,
    bits: types.Integer,
    target: types.Array,
    end: types.Integer,
) -> Intrinsic:
    """Compute a pixel of three channels in each of 16 rows, as a weighted sum of pixels in the order of
    :func:`transpose_quads`.

    Args:
        columns: ``count`` groups of four pixels from ``place`` on.
        weights: int32; for each group, two numbers from ``index`` on: the high bytes and the low bytes of four weights.
        bits: fractional bits of the weights.
        target: uint8; receives (C, 16) from ``end`` on.
    """

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        if not has_features(context, *_NEEDED):
            return context.get_dummy_value()
        source = element_pointer(context, builder, columns, args[0], args[1])
        factors = element_pointer(context, builder, weights, args[2], args[3])
        result = element_pointer(context, builder, target, args[6], args[7])
        shift = context.cast(builder, args[5], signature.args[5], types.int32)
        sums = _Sums(builder, 3, _half(builder, shift))
        with cgutils.for_range(builder, args[4]) as loop:
            pair = _weights_at(builder, factors, builder.mul(loop.index, ir.Constant(llvm.INT64, 2)))
            first = builder.gep(source, [builder.mul(loop.index, ir.Constant(llvm.INT64, 192))])
            for c in range(3):
                values = _loaded(builder, builder.gep(first, [ir.Constant(llvm.INT64, 64 * c)]), llvm.BYTES)
                sums.add(c, values, pair)
        for c, total in enumerate(sums.shifted(shift)):
            limits = (ir.Constant(llvm.WORDS, [limit] * _LANES) for limit in (0, 255))
            for limit, sign in zip(limits, "><"):
                total = builder.select(builder.icmp_signed(sign, total, limit), total, limit)
            pixels = builder.trunc(total, ir.VectorType(llvm.BYTE, _LANES))
            _store(builder, builder.gep(result, [ir.Constant(llvm.INT64, 16 * c)]), pixels)
        return context.get_dummy_value()

    return types.void(columns, place, weights, index, types.int64, bits, target, end), generate


@intrinsic
def sum_lines(
    _context: TypingContext,
    rows: types.Array,
    place: types.Integer,
    stride: types.Integer,
    weights: types.Array,
    index: types.Integer,
    taps: types.Integer,
    bits: types.Integer,
    target: types.Array,
    end: types.Integer,
) -> Intrinsic:
    """Compute 64 adjacent bytes as weighted sums of 64 bytes in each of ``taps`` rows, of which the first is at ``place`` and each
    other is ``stride`` elements after the one before it.

    Args:
        weights: int32; for every four rows, two numbers from ``index`` on: the high bytes and the low bytes of four weights. Weights for
            rows beyond the last one must be 0.
        bits: fractional bits of the weights.
        target: uint8; receives the bytes from ``end`` on.
    """

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        if not has_features(context, *_NEEDED):
            return context.get_dummy_value()
        source = element_pointer(context, builder, rows, args[0], args[1])
        factors = element_pointer(context, builder, weights, args[3], args[4])
        result = element_pointer(context, builder, target, args[7], args[8])
        shift = context.cast(builder, args[6], signature.args[6], types.int32)
        unit, two, three, four = (ir.Constant(llvm.INT64, k) for k in range(1, 5))
        sums = _Sums(builder, 4, _half(builder, shift))

        def add(number: Value, places: Sequence[Value]) -> None:
            values = [_loaded(builder, each, llvm.BYTES) for each in places]
            pair = _weights_at(builder, factors, builder.mul(number, two))
            for upper in (False, True):
                one, other = (_woven(builder, values[k], values[k + 1], llvm.BYTES, upper) for k in (0, 2))
                for k, high in enumerate((False, True)):
                    sums.add(2 * upper + k, _woven(builder, one, other, llvm.SHORTS, high), pair)

        whole = builder.lshr(args[5], two)
        with cgutils.for_range(builder, whole) as loop:
            begin = builder.mul(builder.mul(loop.index, four), args[2])
            add(
                loop.index,
                [
                    builder.gep(source, [builder.add(begin, builder.mul(args[2], ir.Constant(llvm.INT64, k)))])
                    for k in range(4)
                ],
            )
        rest = builder.and_(args[5], three)
        with builder.if_then(builder.icmp_unsigned(">", rest, ir.Constant(llvm.INT64, 0))):
            # Weights beyond the last row are 0, so the last row can be read instead of the missing ones.
            begin = builder.mul(builder.mul(whole, four), args[2])
            last = builder.sub(rest, unit)
            places = []
            for k in range(4):
                number = ir.Constant(llvm.INT64, k)
                number = builder.select(builder.icmp_unsigned("<", number, last), number, last)
                places.append(builder.gep(source, [builder.add(begin, builder.mul(args[2], number))]))
            add(whole, places)
        first, second, third, fourth = sums.shifted(shift)
        shorts = [
            _called(builder, "llvm.x86.avx512.packssdw.512", llvm.SHORTS, *pair)
            for pair in ((first, second), (third, fourth))
        ]
        _store(builder, result, _called(builder, "llvm.x86.avx512.packuswb.512", llvm.BYTES, *shorts))
        return context.get_dummy_value()

    kind = types.void(rows, place, types.int64, weights, index, types.int64, bits, target, end)
    return kind, generate
