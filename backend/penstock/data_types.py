"""Data types, image types, interpolation types, typed constants, and the information passed to callbacks.

Enumeration values are those of DALI's wire format, so that saved pipelines can be exchanged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, EnumMeta, IntEnum
from operator import index
from typing import Any, NoReturn

import numpy as np

from penstock.errors import as_imported

__all__ = [
    "CPU_ONLY_DEVICE_ID",
    "BatchInfo",
    "CUDAStream",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "PipelineAPIType",
    "SampleInfo",
    "ScalarConstant",
    "TensorLayout",
    "dtype_name",
    "element_size",
    "from_numpy_dtype",
    "numpy_dtype",
    "to_dali_type",
    "to_numpy_type",
]


class _Closed(EnumMeta):
    """The metaclass of enumerations that cannot be iterated over or indexed, like DALI's, which are defined in C++.

    Attributes:
        is_unsigned: whether the members' numbers are unsigned.
    """

    is_unsigned: bool

    def __iter__(cls) -> Iterator[Any]:
        raise TypeError(f"'{cls.__name__}' is not iterable: its members are in `{cls.__name__}.__members__`")

    def __len__(cls) -> int:
        raise TypeError(f"'{cls.__name__}' has no len(): its members are in `{cls.__name__}.__members__`")

    def __contains__(cls, value: object) -> bool:
        raise TypeError(f"'{cls.__name__}' is not iterable: its members are in `{cls.__name__}.__members__`")

    def __getitem__(cls, name: str) -> NoReturn:
        raise TypeError(f"'{cls.__name__}' is not subscriptable: its members are in `{cls.__name__}.__members__`")

    def __call__(cls, value: Any) -> Any:  # type: ignore[override]  # enumerations are not made from Python's functional form
        numbers = range(2**32) if cls.is_unsigned else range(-(2**31), 2**31)
        if not hasattr(value, "__index__") or index(value) not in numbers:
            raise TypeError(f"{cls.__name__} must be made from a 32-bit integer, got {value!r}")
        return super().__call__(index(value))

    def __dir__(cls) -> list[str]:
        return [*cls.__members__, "name", "value"]


def _refused(symbol: str) -> Callable[..., Any]:
    """Return a method for a Python operator that numbers have and these enumerations lack; it raises TypeError."""

    def refuse(self: object, *others: object) -> NoReturn:
        kinds = " and ".join(f"'{type(operand).__name__}'" for operand in (self, *others))
        raise TypeError(f"'{symbol}' is not supported for {kinds}")

    return refuse


class NamedEnum(IntEnum, metaclass=_Closed):
    """An enumeration of the wire format: names for numbers, without arithmetic and ordering.

    A member equals its number, and is an int, so that arrays and compiled code accept it.
    """

    def __init_subclass__(cls, unsigned: bool = False) -> None:
        cls.is_unsigned = unsigned

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
        return str(self)

    def __bool__(self) -> bool:
        # Unlike the number 0, the first member is true, so that `dtype or FLOAT` is UINT8 for UINT8.
        return True

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, (NamedEnum, float)) and type(other) is not type(self):
            return False
        # NotImplemented, unless the other value is a number.
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return type(self), (self.value,)

    def __dir__(self) -> list[str]:
        return dir(type(self))

    @classmethod
    def _missing_(cls, value: object) -> Any:
        """Return a nameless member for a number without a name; a newer version of DALI may write such numbers."""
        unnamed = int.__new__(cls, index(value))  # type: ignore[arg-type]
        unnamed._name_, unnamed._value_ = "???", int(unnamed)  # private: documented, for members made by hand
        return unnamed

    __lt__, __le__, __gt__, __ge__ = map(_refused, ("<", "<=", ">", ">="))
    __add__, __sub__, __mul__, __truediv__ = map(_refused, "+-*/")
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(_refused, "+-*/")
    __or__, __and__, __xor__ = map(_refused, "|&^")
    __ror__, __rand__, __rxor__ = map(_refused, "|&^")
    __neg__, __invert__, __abs__, __round__ = map(_refused, ("-", "~", "abs", "round"))


class DALIDataType(NamedEnum):
    """Type of a tensor's elements, or of an operator's argument."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    _BOOL_VEC = 13
    _INT32_VEC = 14
    _STRING_VEC = 15
    _FLOAT_VEC = 16
    FEATURE = 17
    _FEATURE_VEC = 18
    _FEATURE_DICT = 19
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24
    _TENSOR_LAYOUT_VEC = 25
    _DATA_TYPE_VEC = 26
    _INT64_VEC = 27
    # Not in DALI: the number is far from those that DALI may use next.
    BFLOAT16 = 1000

    def __call__(self) -> str:
        """Return the type in the notation of the buffer protocol. Deprecated: for programs that call ``tensor.dtype()``, once a method."""
        warnings.warn("Calling '.dtype()' is deprecated, please use '.dtype' instead", Warning, stacklevel=2)
        return "=" + numpy_dtype(self).char.replace("l", "q").replace("L", "Q")


class DALIImageType(NamedEnum, unsigned=True):
    """Colour space of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(NamedEnum, unsigned=True):
    """Resampling filter."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(Enum):
    """The API through which a program runs a pipeline."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
BFLOAT16 = DALIDataType.BFLOAT16
STRING = DALIDataType.STRING
FEATURE = DALIDataType.FEATURE
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT
RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA
INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

# Old names of image and video layouts; they include the batch dimension, which the layouts do not have.
NCHW = "CHW"
NHWC = "HWC"
NFCHW = "FCHW"
NFHWC = "FHWC"
SAME = ""
CPU_ONLY_DEVICE_ID = -99999


class TensorLayout(str):
    """The names of a tensor's dimensions, one letter each; equals a str with these letters."""

    def __new__(cls, layout: str) -> TensorLayout:
        if not isinstance(layout, str):
            raise TypeError(f"A TensorLayout must be made from a str, got {layout!r}")
        return super().__new__(cls, layout)

    def __repr__(self) -> str:
        return f"{as_imported('penstock.types')}.TensorLayout({super().__repr__()})"


_NUMPY: dict[DALIDataType, np.dtype] = {
    UINT8: np.dtype(np.uint8),
    UINT16: np.dtype(np.uint16),
    UINT32: np.dtype(np.uint32),
    UINT64: np.dtype(np.uint64),
    INT8: np.dtype(np.int8),
    INT16: np.dtype(np.int16),
    INT32: np.dtype(np.int32),
    INT64: np.dtype(np.int64),
    FLOAT16: np.dtype(np.float16),
    FLOAT: np.dtype(np.float32),
    FLOAT64: np.dtype(np.float64),
    BOOL: np.dtype(np.bool_),
    IMAGE_TYPE: np.dtype(np.int32),
    DATA_TYPE: np.dtype(np.int32),
    INTERP_TYPE: np.dtype(np.int32),
    BFLOAT16: np.dtype(np.uint16),
}
NUMBER_TYPES = tuple(dtype for dtype in DALIDataType.__members__.values() if 0 <= dtype.value <= BOOL.value)
"""The types whose elements are numbers."""
_DALI: dict[np.dtype, DALIDataType] = {_NUMPY[t]: t for t in NUMBER_TYPES}
_BY_NAME: dict[str, DALIDataType] = {dtype.name: own for dtype, own in _DALI.items()}
ENUM_TYPES: dict[DALIDataType, type[NamedEnum]] = {
    IMAGE_TYPE: DALIImageType,
    DATA_TYPE: DALIDataType,
    INTERP_TYPE: DALIInterpType,
}
"""The types whose elements are members of an enumeration, by the enumeration."""
CODED_TYPES = (BFLOAT16, *ENUM_TYPES)
"""The types that numpy lacks: tensors store their elements as the bits or numbers of another type."""

_SHORT_NAMES = (
    {t: _NUMPY[t].name for t in NUMBER_TYPES}
    | {FLOAT: "float", FLOAT64: "double"}
    | {t: kind.__name__ for t, kind in ENUM_TYPES.items()}
)


def enum_type(value: object) -> DALIDataType | None:
    """Return the type of tensors that hold ``value``, or the elements if it is a list; None if they are not members of an
    enumeration.
    """
    members = value if isinstance(value, (list, tuple)) else [value]
    for dtype, kind in ENUM_TYPES.items():
        if members and all(isinstance(member, kind) for member in members):
            return dtype
    return None


def check_readable(dtype: DALIDataType) -> None:
    """Raise TypeError for types whose elements are enumerations, which nothing outside a pipeline can read."""
    if dtype in ENUM_TYPES:
        raise TypeError(
            f"DALI enum types cannot be used with buffer protocol: this holds {dtype_name(dtype)}. In the pipeline, "
            "use `nvidia.dali.fn.cast` to convert to an integral type"
        )


def numpy_dtype(dtype: DALIDataType) -> np.dtype:
    """Return the numpy dtype that stores elements of type ``dtype``.

    >>> numpy_dtype(FLOAT)
    dtype('float32')
    """
    try:
        return _NUMPY[dtype]
    except KeyError:
        raise TypeError(f"{dtype} has no numpy equivalent") from None


def from_numpy_dtype(dtype: Any) -> DALIDataType:
    """Return the DALI type of a numpy dtype; raise TypeError if there is none."""
    key = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)
    found = _DALI.get(key)
    if found is None:
        found = _DALI.get(key.newbyteorder("="))
        if found is None or not key.isnative:
            raise TypeError(f"numpy dtype {dtype} cannot be held in a tensor; use one of {sorted(map(str, _DALI))}")
    return found


def dtype_name(dtype: DALIDataType) -> str:
    """Return the name of a type for messages: ``uint8``, ``float``, ``double`` ..."""
    return _SHORT_NAMES.get(dtype, dtype.name.lower())


def element_size(dtype: DALIDataType) -> int:
    """Return the size of an element in bytes."""
    return numpy_dtype(dtype).itemsize


def to_numpy_type(dali_type: DALIDataType) -> type:
    """Return the numpy scalar type for a DALI type, e.g. ``types.FLOAT`` -> ``numpy.float32``; may raise KeyError."""
    if dali_type in ENUM_TYPES:
        raise KeyError(dali_type)
    return _NUMPY[dali_type].type


def to_dali_type(framework_type: object) -> DALIDataType:
    """Return the DALI type for a numpy dtype, a Python type, or a PyTorch or JAX dtype."""
    if isinstance(framework_type, DALIDataType):
        return framework_type
    if framework_type is bool:
        return BOOL
    # Names of types are accepted, but not the codes that numpy also accepts ("f4").
    if isinstance(framework_type, str) and framework_type not in _BY_NAME:
        raise TypeError(f"{framework_type!r} could not be converted into any known DALIDataType")
    if framework_type in (int, None):
        raise TypeError(f"{framework_type!r} could not be converted into any known DALIDataType: use one with a size")
    if framework_type is float:
        return FLOAT
    try:
        return from_numpy_dtype(framework_type)
    except TypeError:
        name = str(framework_type).rpartition(".")[2]
        found = {"float": FLOAT, "double": FLOAT64, "half": FLOAT16}.get(name, _BY_NAME.get(name))
        if found is None:
            raise TypeError(f"{framework_type!r} could not be converted into any known DALIDataType") from None
        return found


@dataclass(frozen=True)
class SampleInfo:
    """The argument of an external source's callback that returns single samples."""

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


@dataclass(frozen=True)
class BatchInfo:
    """The argument of an external source's callback that returns batches, with ``batch_info=True``."""

    iteration: int
    epoch_idx: int


class CUDAStream:
    """A CUDA stream, identified by its address."""

    def __init__(self, ptr: int = 0) -> None:
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """The address, as a number."""
        return self._ptr

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._ptr


def _int_fits(value: int, dtype: DALIDataType) -> bool:
    info = np.iinfo(numpy_dtype(dtype))
    return bool(info.min <= value <= info.max)


def _no_scalar(value: object) -> str:
    # Not `repr` of the value, which shows an enumeration without its module.
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"Expected scalar value of type 'bool', 'int' or 'float', got <class '{kind}'>: {value!r}"


class ScalarConstant:
    """A number with a type, for use in expressions.

    Python's numbers get the type BOOL, INT32 or FLOAT, NumPy's keep their type; methods convert to other types:
    ``types.Constant(3).uint8()``.
    """

    def __init__(self, value: object, dtype: DALIDataType | None = None) -> None:
        if isinstance(value, NamedEnum):
            raise TypeError(_no_scalar(value))
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())[()]
        if isinstance(value, ScalarConstant):
            dtype, value = dtype or value.dtype, value.value
        if not isinstance(value, (bool, int, float, np.number, np.bool_)):
            raise TypeError(_no_scalar(value))
        if dtype is None:
            if isinstance(value, np.generic):
                dtype = from_numpy_dtype(value.dtype)
            else:
                dtype = BOOL if isinstance(value, bool) else INT32 if isinstance(value, int) else FLOAT
        if dtype not in NUMBER_TYPES:
            raise TypeError(f"DALI ScalarConstant can only hold one of: {[*NUMBER_TYPES]} types, not {dtype!r}.")
        self.dtype: DALIDataType = DALIDataType(dtype)
        self.value: Any = self._converted(value)
        self.shape: list[int] = []

    def _converted(self, value: Any) -> object:
        kind = numpy_dtype(self.dtype).kind
        if kind == "b":
            return bool(value)
        if kind in "iu":
            return int(value)
        with np.errstate(over="ignore"):
            return float(np.float32(value))

    @property
    def fits(self) -> bool:
        """Whether the value is within the range of the type."""
        return numpy_dtype(self.dtype).kind not in "iu" or _int_fits(self.value, self.dtype)

    def _as(self, dtype: DALIDataType) -> ScalarConstant:
        return ScalarConstant(self.value, dtype)

    def bool(self) -> ScalarConstant:
        return self._as(BOOL)

    def int8(self) -> ScalarConstant:
        return self._as(INT8)

    def int16(self) -> ScalarConstant:
        return self._as(INT16)

    def int32(self) -> ScalarConstant:
        return self._as(INT32)

    def int64(self) -> ScalarConstant:
        return self._as(INT64)

    def uint8(self) -> ScalarConstant:
        return self._as(UINT8)

    def uint16(self) -> ScalarConstant:
        return self._as(UINT16)

    def uint32(self) -> ScalarConstant:
        return self._as(UINT32)

    def uint64(self) -> ScalarConstant:
        return self._as(UINT64)

    def float16(self) -> ScalarConstant:
        return self._as(FLOAT16)

    def float32(self) -> ScalarConstant:
        return self._as(FLOAT)

    def float64(self) -> ScalarConstant:
        return self._as(FLOAT64)

    def __eq__(self, other: object) -> Any:
        # A node implements the operation, which makes an expression of the constant's type.
        if not isinstance(other, ScalarConstant):
            return NotImplemented
        return self.value == other.value and self.dtype == other.dtype

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, ScalarConstant):
            return NotImplemented
        return self.value != other.value or self.dtype != other.dtype

    # Not hashable, because comparing it with a node makes a node.
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> Any:
        self._check_conversion("biu", "bool")
        return bool(self.value)

    def __int__(self) -> int:
        self._check_conversion("biu", "int")
        return int(self.value)

    def __float__(self) -> float:
        self._check_conversion("f", "float")
        return float(self.value)

    def _check_conversion(self, kinds: str, builtin: str) -> None:
        """Raise TypeError unless the type is one of ``kinds``: conversion between kinds must be explicit."""
        if numpy_dtype(self.dtype).kind not in kinds:
            types = [dtype for dtype in NUMBER_TYPES if numpy_dtype(dtype).kind in kinds]
            words = "the float types" if kinds == "f" else "bool or int types"
            raise TypeError(
                f"DALI ScalarConstant must be converted to one of {words}: ({types}) explicitly before casting to builtin "
                f"`{builtin}`."
            )

    def __str__(self) -> str:
        return f"{self.value}:{self.dtype}"

    def __repr__(self) -> str:
        return f"{self.value}"
