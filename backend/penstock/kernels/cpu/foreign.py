"""Calls of C functions by address from numba kernels, and access to memory by address.

A kernel that refers to a ctypes function can't be cached; one that takes an address can. Nothing is checked: kernels
are responsible for the addresses that they use.
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
def call(_context: TypingContext, _address: types.Integer, arguments: types.BaseTuple) -> Intrinsic:
    """Call the C function at an address, which returns ``int``; its arguments are pointers and integers, passed as
    int64.
    """

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        address, given = args
        values = cgutils.unpack_tuple(builder, given)
        kind = ir.FunctionType(llvm.INT32, [llvm.INT64] * len(values))
        return builder.call(builder.inttoptr(address, kind.as_pointer()), values)

    return types.int32(types.int64, arguments), generate


@intrinsic
def word_at(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Return the 64-bit word at an address."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.load(builder.inttoptr(args[0], llvm.INT64.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic
def byte_at(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Return the byte at an address."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.zext(builder.load(builder.inttoptr(args[0], llvm.BYTE.as_pointer())), llvm.INT64)

    return types.int64(types.int64), generate


@intrinsic
def bytes_from(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Return a pointer to the bytes from an address on, of which ``numba.carray`` makes an array."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.inttoptr(args[0], llvm.BYTE.as_pointer())

    return types.CPointer(types.uint8)(types.int64), generate


@intrinsic
def words_from(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Like :func:`bytes_from`, of words of 64 bits."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.inttoptr(args[0], llvm.INT64.as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@intrinsic
def counted(_context: TypingContext, count: types.Array) -> Intrinsic:
    """Return the first element of an array of int64, which becomes greater by one; threads never get the same."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = cgutils.create_struct_proxy(count)(context, builder, value=args[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(llvm.INT64, 1), "monotonic")

    return types.int64(count), generate


@intrinsic
def counted_at(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Return the word at an address, which becomes greater by one; threads never get the same.

    A thread sees what those wrote that counted before it.
    """

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        place = builder.inttoptr(args[0], llvm.INT64.as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(llvm.INT64, 1), "acq_rel")

    return types.int64(types.int64), generate


@intrinsic
def set_int(_context: TypingContext, _address: types.Integer, _value: types.Integer) -> Intrinsic:
    """Store the lower 32 bits of a word at an address."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        builder.store(builder.trunc(args[1], llvm.INT32), builder.inttoptr(args[0], llvm.INT32.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def set_word(_context: TypingContext, _address: types.Integer, _value: types.Integer) -> Intrinsic:
    """Store a 64-bit word at an address."""

    def generate(context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        builder.store(args[1], builder.inttoptr(args[0], llvm.INT64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


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
