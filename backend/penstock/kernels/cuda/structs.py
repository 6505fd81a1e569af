"""Structs that kernels read, declared once: each is a ``NamedTuple`` whose fields are annotated with their C types.

::

    class _Line(NamedTuple):
        source: Pointer
        size: Int64
        weights: Annotated[Sequence[float], Repeated(np.float32, 4)]

:func:`records` lays out instances as C does, and the struct's C declaration is inserted before the kernels
(:mod:`penstock.kernels.cuda.sources`). The declaration also tells which fields are pointers, so that recorded launches can be repeated with
other addresses (:mod:`penstock.kernels.cuda.recording`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from penstock.data_types import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    from_numpy_dtype,
)

# A class that declares a struct.
Struct = type[tuple[object, ...]]

CUDA_TYPES = {
    BOOL: "bool",
    UINT8: "uint8",
    UINT16: "uint16",
    UINT32: "uint32",
    UINT64: "uint64",
    INT8: "int8",
    INT16: "int16",
    INT32: "int32",
    INT64: "int64",
    FLOAT16: "float16",
    FLOAT: "float",
    FLOAT64: "double",
}


@functools.cache
def cuda_type(dtype: DALIDataType | np.dtype) -> str:
    """Return the name of a type in kernel sources."""
    return CUDA_TYPES[from_numpy_dtype(dtype) if isinstance(dtype, np.dtype) else dtype]


# -- fields ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """Marks a field as an address on the GPU; 0 is the null pointer."""


@dataclass(frozen=True)
class Repeated:
    """An array of ``count`` values, of a NumPy type, addresses or structs; annotates a field."""

    of: type[np.generic] | Address | Struct
    count: int


Pointer = Annotated[int, Address()]
Int32 = Annotated[int, np.int32]
Int64 = Annotated[int, np.int64]
UInt64 = Annotated[int, np.uint64]
Float = Annotated[float, np.float32]
Double = Annotated[float, np.float64]


@dataclass(frozen=True)
class _Field:
    """A field of a struct.

    Attributes:
        type: the C type.
        dtype: one element's dtype.
        count: the length, if the field is an array; None: it is a single value.
        pointers: the byte offsets of addresses in one element.
        struct: the class of an element that is a struct; otherwise None.
    """

    name: str
    type: str
    dtype: np.dtype
    count: int | None
    pointers: tuple[int, ...]
    struct: Struct | None

    @classmethod
    def of(cls, name: str, kind: object) -> _Field:
        count: int | None = None
        if isinstance(kind, Repeated):
            count = kind.count
            kind = kind.of
        if isinstance(kind, Address):
            return cls(name, "uint64", np.dtype(np.uint64), count, (0,), None)
        if isinstance(kind, type) and issubclass(kind, np.generic):
            dtype = np.dtype(kind)
            return cls(name, cuda_type(dtype), dtype, count, (), None)
        if isinstance(kind, type) and issubclass(kind, tuple):
            layout = layout_of(kind)
            return cls(name, layout.name, layout.dtype, count, layout.pointers, kind)
        raise TypeError(f"The field '{name}' has a type that kernels do not support: {kind!r}")

    @property
    def text(self) -> str:
        extent = "" if self.count is None else f"[{self.count}]"
        return f"    {self.type} {self.name}{extent};\n"

    def places(self, offset: int) -> Iterator[int]:
        """Yield the byte offsets of the field's addresses in a struct in which the field begins at ``offset``."""
        for number in range(1 if self.count is None else self.count):
            yield from (offset + number * self.dtype.itemsize + place for place in self.pointers)


# -- layouts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How a struct is laid out in memory.

    Attributes:
        name: the name of the struct in C: the Python name without leading underscores.
        dtype: the structured dtype, aligned as in C.
        pointers: the byte offsets of the addresses in the struct.
        text: the declaration in C.
        parts: the classes of the structs that it contains.
    """

    name: str
    dtype: np.dtype
    pointers: tuple[int, ...]
    text: str
    parts: tuple[Struct, ...]


@functools.cache
def layout_of(struct: Struct) -> Layout:
    """Return the layout of a struct.

    Raises:
        TypeError: a field has a type that kernels don't support.
    """
    hints = get_type_hints(struct, include_extras=True)
    fields = [_Field.of(name, getattr(hint, "__metadata__", (hint,))[0]) for name, hint in hints.items()]
    kinds = [(f.name, f.dtype) if f.count is None else (f.name, f.dtype, (f.count,)) for f in fields]
    dtype = np.dtype(kinds, align=True)
    offsets = {name: offset for name, (_, offset, *_) in (dtype.fields or {}).items()}
    name = struct.__name__.lstrip("_")
    return Layout(
        name,
        dtype,
        tuple(place for field in fields for place in field.places(offsets[field.name])),
        f"struct {name} {{\n{''.join(field.text for field in fields)}}};\n",
        tuple(field.struct for field in fields if field.struct is not None),
    )


def declarations(structs: Sequence[Struct]) -> str:
    """Return the C declarations of structs; the declarations of structs that another one contains precede it."""
    known: dict[Struct, str] = {}

    def declare(struct: Struct) -> None:
        if struct not in known:
            layout = layout_of(struct)
            for part in layout.parts:
                declare(part)
            known[struct] = layout.text

    for struct in structs:
        declare(struct)
    return "".join(known.values())


# -- records -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Records:
    """An array of structs in the layout that kernels read.

    Attributes:
        struct: the class of the structs.
        rows: the structs, as a structured array.
    """

    struct: Struct
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the values of one field of all structs."""
        column: np.ndarray = self.rows[name]
        return column

    def __setitem__(self, name: str, values: ArrayLike) -> None:
        self.rows[name] = values

    def take(self, indices: np.ndarray) -> Records:
        """Return the structs at these indices, or those for which a mask is true."""
        return Records(self.struct, self.rows[indices])

    def addresses(self) -> np.ndarray:
        """Return the indices of all addresses among the 64-bit words of the array."""
        layout = layout_of(self.struct)
        words = np.array(layout.pointers, np.int64) // 8
        return (np.arange(len(self))[:, None] * (layout.dtype.itemsize // 8) + words).reshape(-1)


def records(struct: Struct, rows: Sequence[tuple[object, ...]]) -> Records:
    """Return instances of a struct in the layout that kernels read."""
    return Records(struct, np.array(list(rows), layout_of(struct).dtype))


def blank_records(struct: Struct, count: int) -> Records:
    """Return ``count`` structs filled with zeros."""
    return Records(struct, np.zeros(count, layout_of(struct).dtype))
