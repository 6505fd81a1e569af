"""Kernels that the core calls by address: over runs of elements, and over parts of arrays (:mod:`penstock.core.chains`).

They are compiled for the types of their records and elements, and called by numba's own convention. The last arguments, one number for
each type of element, only tell the types: nothing is passed for them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, from_dtype, types
from numba.core.dispatcher import Dispatcher

from penstock.core.chains import IMAGE, PART, REGION
from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    intrinsic,
)
from penstock.kernels.cpu.options import inner

_BYTE = ir.IntType(8)


@intrinsic
def pointer_to(_context: TypingContext, _address: types.Integer, like: types.Type) -> Intrinsic:
    """A pointer to elements of the type of ``like``, of which ``numba.carray`` makes an array."""

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(types.int64, like), generate


@inner
def elements_at(address: int, count: int, like: np.generic) -> np.ndarray:
    """The elements from an address on, of the type of ``like``."""
    return carray(pointer_to(address, like), (count,))


@inner
def record_at(pointer: Any) -> Any:
    """The record that a kernel's argument points to."""
    return carray(pointer, 1)[0]


RUN = types.int64, types.int64, types.int64
"""The addresses of elements to read and to write, and how many there are."""
IMAGES = (types.CPointer(from_dtype(IMAGE)),)
"""The image to read and to write."""
PARTS = types.CPointer(from_dtype(PART)), types.CPointer(from_dtype(PART)), types.int64
"""The parts to read and to write, and the address of scratch memory."""
MAPPED_REGION = (types.CPointer(from_dtype(REGION)),)
"""The region to change."""


@functools.cache
def address_of(
    kernel: Dispatcher[Any], record: np.dtype, arguments: tuple[types.Type, ...], *elements: np.dtype
) -> int:
    """The address of a kernel, which is compiled if that has not been done before.

    Args:
        kernel: a function of a pointer to a record, of ``arguments``, and of numbers that tell the types of elements.
        record: the struct's type.
        arguments: ``RUN``, ``IMAGES``, ``PARTS`` or ``MAPPED_REGION``.
        elements: their types.
    """
    signature = types.CPointer(from_dtype(record)), *arguments, *(from_dtype(dtype) for dtype in elements)
    if signature not in kernel.overloads:
        kernel.compile(signature)
    compiled: Any = kernel.overloads[signature]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address
