"""Types of elements: ``DType``, its instances, and the values that can be used in place of them."""

from __future__ import annotations

import builtins
from enum import Enum, auto

import numpy as np

from penstock.data_types import (
    BFLOAT16,
    BOOL,
    DATA_TYPE,
    FLOAT,
    FLOAT16,
    FLOAT64,
    IMAGE_TYPE,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERP_TYPE,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    numpy_dtype,
    to_dali_type,
)


class Kind(Enum):
    """The kind of a type's elements."""

    signed = auto()
    unsigned = auto()
    float = auto()
    bool = auto()
    enum = auto()


# The number of exponent bits by the number of bits: IEEE 754 formats, and the 8-bit format of machine learning.
_EXPONENT_BITS = {8: 4, 16: 5, 32: 8, 64: 11}


class DType:
    """The type of a tensor's elements. Programs use the instances, such as ``dynamic.uint8``.

    Attributes:
        kind: the kind of elements.
        bits, bytes: the size of an element.
        exponent_bits, significand_bits: the number of exponent and significand bits of a floating-point type; None for other types.
        type_id: the type's number in pipelines and files; None for types that tensors cannot have.
        name: a name that :func:`dtype` accepts, e.g. ``u8``.

    >>> dtype(np.float32), dtype("u8") is uint8
    (DType(kind=Kind.float, bits=32, exponent_bits=8, significand_bits=23), True)
    """

    def __init__(
        self,
        kind: Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: DALIDataType | None = None,
        name: str | None = None,
        docs: str | None = None,
    ) -> None:
        self.kind, self.bits, self.type_id = kind, bits, type_id
        self.bytes = (bits + 7) // 8 if bytes is None else bytes
        self.exponent_bits = self.significand_bits = None
        if kind is Kind.float:
            self.exponent_bits = _EXPONENT_BITS[bits] if exponent_bits is None else exponent_bits
            rest = bits - 1 - self.exponent_bits
            self.significand_bits = rest if significand_bits is None else significand_bits
        self.name = name or _short_name(kind, bits)
        self.__doc__ = docs or f"Elements of {bits} bits: {kind.name}."

    @staticmethod
    def from_type_id(type_id: DALIDataType) -> DType:
        """Return the type with this number; raise KeyError if there is none."""
        return _by_id[type_id]

    @staticmethod
    def from_fw_type(framework_type: object) -> DType:
        """Return the type that corresponds to a type of NumPy or another framework."""
        return _by_id[to_dali_type(framework_type)]

    @staticmethod
    def parse(name: str) -> DType:
        """Return the type with this name; raise ValueError if there is none."""
        found = _by_name.get(name)
        if found is None:
            raise ValueError(f"Unsupported type name: '{name}'. The types are: {', '.join(_by_name)}")
        return found

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        text = f"kind={self.kind}, bits={self.bits}"
        if self.exponent_bits is not None:
            text += f", exponent_bits={self.exponent_bits}, significand_bits={self.significand_bits}"
        return f"DType({text})"

    def _identity(self) -> tuple[object, ...]:
        enumeration = self.type_id if self.kind is Kind.enum else None
        return self.kind, self.bits, self.exponent_bits, self.significand_bits, enumeration

    def __eq__(self, other: object) -> builtins.bool:
        return self is other or (isinstance(other, DType) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())


def _short_name(kind: Kind, bits: int) -> str:
    return "bool" if kind is Kind.bool else f"{kind.name[0].replace('s', 'i')}{bits}"


# The values that :func:`dtype` accepts.
DTypeLike = DType | DALIDataType | str | np.dtype | type

int8 = DType(Kind.signed, 8, type_id=INT8)
int16 = DType(Kind.signed, 16, type_id=INT16)
int32 = DType(Kind.signed, 32, type_id=INT32)
int64 = DType(Kind.signed, 64, type_id=INT64)
uint8 = DType(Kind.unsigned, 8, type_id=UINT8)
uint16 = DType(Kind.unsigned, 16, type_id=UINT16)
uint32 = DType(Kind.unsigned, 32, type_id=UINT32)
uint64 = DType(Kind.unsigned, 64, type_id=UINT64)
float16 = DType(Kind.float, 16, type_id=FLOAT16)
float32 = DType(Kind.float, 32, type_id=FLOAT)
float64 = DType(Kind.float, 64, type_id=FLOAT64)
bool = DType(Kind.bool, 8, type_id=BOOL)
bfloat16 = DType(Kind.float, 16, 8, 7, type_id=BFLOAT16, name="bfloat16")
DataType = DType(Kind.enum, 32, type_id=DATA_TYPE, name="DataType", docs="Elements are types.")
ImageType = DType(Kind.enum, 32, type_id=IMAGE_TYPE, name="ImageType", docs="Elements are types of images.")
InterpType = DType(Kind.enum, 32, type_id=INTERP_TYPE, name="InterpType", docs="Elements are kinds of interpolation.")

setattr(DType, "Kind", Kind)  # noqa: B010  (an attribute of the class named like its module's class confuses type checkers)
_ALL = [candidate for candidate in list(globals().values()) if isinstance(candidate, DType)]
_by_id = {candidate.type_id: candidate for candidate in _ALL if candidate.type_id is not None}
_by_name = {candidate.name: candidate for candidate in _ALL}


def dtype(like: DTypeLike) -> DType:
    """Return the type for ``like``: a type's number in pipelines, its name, or a type of NumPy or another framework."""
    if isinstance(like, DType):
        return like
    if isinstance(like, DALIDataType):
        return _by_id[like]
    if isinstance(like, str):
        return DType.parse(like)
    return DType.from_fw_type(like)


def type_id(dtype: DType | DALIDataType) -> DALIDataType:
    """Return the number of a type in pipelines; raise ValueError if it has none."""
    found = dtype.type_id if isinstance(dtype, DType) else dtype
    if not isinstance(found, DALIDataType):
        raise ValueError(f"Invalid dtype: {dtype!r}")
    return found


def array_dtype(kind: DType) -> np.dtype:
    """Return the NumPy dtype of arrays with elements of a type."""
    return numpy_dtype(type_id(kind))
