"""Read and write memory by address, for compiled functions that the core's threads run in tests."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    intrinsic,
    ir,
    llvm,
    types,
)


@intrinsic
def word_at(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Return the 64-bit word at an address."""

    def generate(_context: TargetContext, builder: IRBuilder, _signature: Signature, args: Sequence[Value]) -> Value:
        return builder.load(builder.inttoptr(args[0], llvm.INT64.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic
def counted_at(_context: TypingContext, _address: types.Integer) -> Intrinsic:
    """Increment the word at an address atomically, and return its previous value, which no other thread gets.

    Afterwards, a thread sees everything that threads wrote before they incremented the word.
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
