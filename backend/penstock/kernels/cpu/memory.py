"""Copies and prefetches of memory, counters that threads share, and calls of C functions, for kernels. Nothing is checked: kernels are
responsible for the addresses that they use.
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
    intrinsic,
    ir,
    llvm,
    types,
)


@intrinsic
def copy_bytes(
    _context: TypingContext, _target: types.Integer, _source: types.Integer, _size: types.Integer
) -> Intrinsic:
    """Copy bytes from one address to another; the two ranges must not overlap."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        target, source = (builder.inttoptr(address, llvm.BYTE.as_pointer()) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def prefetch(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Ask for the cache line at an address, which may be invalid, to be read into the caches."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        pointer = llvm.BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, llvm.INT32, llvm.INT32, llvm.INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # For reading, into all caches, data.
        options = [ir.Constant(llvm.INT32, option) for option in (0, 3, 1)]
        builder.call(function, [builder.inttoptr(args[0], pointer), *options])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def counted(_context: TypingContext, count: types.Array) -> Intrinsic:
    """Increment the first element of an array of int64 atomically; return its previous value, which no other call gets."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = cgutils.create_struct_proxy(count)(context, builder, value=args[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(llvm.INT64, 1), "monotonic")

    return types.int64(count), generate


@intrinsic
def call(_context: TypingContext, _address: types.Integer, arguments: types.BaseTuple) -> Intrinsic:
    """Call the C function at an address and return its result, an int32; arguments are pointers and integers, passed as int64."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        address, given = args
        values = cgutils.unpack_tuple(builder, given)
        kind = ir.FunctionType(llvm.INT32, [llvm.INT64] * len(values))
        return builder.call(builder.inttoptr(address, kind.as_pointer()), values)

    return types.int32(types.int64, arguments), generate
