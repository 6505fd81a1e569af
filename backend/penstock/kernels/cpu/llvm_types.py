"""LLVM's number types, and vectors of them, for code generators."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value

BYTE, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
BYTES, SHORTS, WORDS = (ir.VectorType(number, 512 // number.width) for number in (BYTE, INT16, INT32))
"""Types of vectors of 512 bits."""


def spread_lanes(builder: IRBuilder, number: Value, kind: ir.VectorType) -> Value:
    """Return a vector of the type ``kind`` in which all lanes are ``number``."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(INT32, kind.count), None))


def parts_of(builder: IRBuilder, vector: Value) -> list[Value]:
    """Return the parts of an :class:`IntVector`."""
    return [builder.extract_value(vector, i) for i in range(vector.type.count)]


def of_parts(builder: IRBuilder, parts: Sequence[Value]) -> Value:
    """Return the :class:`IntVector` that consists of these parts."""
    vector = ir.Constant(ir.ArrayType(parts[0].type, len(parts)), ir.Undefined)
    for i, part in enumerate(parts):
        vector = builder.insert_value(vector, part, i)
    return vector
