"""Kernels that the compiled core calls by address, on runs of elements or on parts of arrays (:mod:`penstock.core.chains`).

They are compiled for the types of their records and elements, and called by numba's calling convention. The last
arguments, one value of each element type, only select these types: nothing is passed for them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.core.chains import IMAGE, PART, REGION
from penstock.kernels.cpu import signatures
from penstock.kernels.cpu.callables import Kernel
from penstock.kernels.cpu.code_generation import (
    Intrinsic,
    IRBuilder,
    Signature,
    TargetContext,
    TypingContext,
    Value,
    carray,
    intrinsic,
    types,
)
from penstock.kernels.cpu.options import inner


@intrinsic
def pointer_to(_context: TypingContext, _address: types.Integer, like: types.Type) -> Intrinsic:
    """Return a pointer to elements of the type of ``like``, or, if ``like`` is a struct's dtype, to structs of that type;
    ``numba.carray`` makes an array of the pointer.
    """

    def generate(context: TargetContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype if isinstance(like, types.DType) else like)(types.int64, like), generate


@inner
def elements_at(address: int, count: int, like: np.generic | np.dtype) -> np.ndarray:
    """Return an array of the ``count`` elements at an address: of the type of ``like`` or, if ``like`` is a struct's dtype, structs."""
    return carray(pointer_to(address, like), (count,))


@inner
def bytes_at(address: int, size: int) -> np.ndarray:
    """Return an array of the ``size`` bytes at an address."""
    return elements_at(address, size, np.uint8(0))


@inner
def record_at(pointer: Any) -> Any:
    """Return the record to which a kernel's argument points."""
    return carray(pointer, 1)[0]


RUN = "int64", "int64", "int64"
"""Types of arguments: the address of the elements to read, the address of the elements to write, and their number."""
IMAGES = (signatures.pointer_to(IMAGE),)
"""Type of the argument: the images to read and to write, in one struct."""
PARTS = signatures.pointer_to(PART), signatures.pointer_to(PART), "int64"
"""Types of arguments: the part to read, the part to write, and the address of scratch memory."""
MAPPED_REGION = (signatures.pointer_to(REGION),)
"""Type of the argument: the region to change."""


@functools.cache
def address_of(kernel: Kernel, record: np.dtype, arguments: tuple[str, ...], *elements: np.dtype) -> int:
    """Return the address of a kernel; compile it if necessary.

    Args:
        kernel: a function whose parameters are a pointer to a record, ``arguments``, and one value of each element type.
        record: the struct's type.
        arguments: ``RUN``, ``IMAGES``, ``PARTS`` or ``MAPPED_REGION``.
        elements: the element types.
    """
    return kernel.address(", ".join((signatures.pointer_to(record), *arguments, *(dtype.name for dtype in elements))))
