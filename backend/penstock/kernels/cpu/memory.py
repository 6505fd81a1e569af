"""Copies of memory, counters that threads share, and calls of C functions, for kernels. Addresses are not checked: the kernels
that pass them are responsible.
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
