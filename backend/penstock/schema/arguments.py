"""Arguments of operators: their types, defaults, conversion and checks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from penstock.data_types import (
    BFLOAT16,
    BOOL,
    DATA_TYPE,
    ENUM_TYPES,
    FLOAT,
    IMAGE_TYPE,
    INT32,
    INT64,
    INTERP_TYPE,
    UINT32,
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    ScalarConstant,
    dtype_name,
)


def _to_int(value: Any) -> int:
    return int(value)


def _to_bool(value: object) -> bool:
    # DALI's enumeration members are all truthy, even the one with the number 0.
    return isinstance(value, Enum) or bool(value)


def _to_float(value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(float(value)))


def _to_string(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_NUMBERS = {kind: {member.value for member in kind.__members__.values()} for kind in ENUM_TYPES.values()}
_ENUM_WORDS = {DALIDataType: "data type", DALIImageType: "image type", DALIInterpType: "interpolation type"}


def _to_enum(kind: Any) -> Callable[[object], object]:
    def convert(value: Any) -> Any:
        try:
            number = int(value)
        except TypeError:
            raise TypeError(f"Expected a {kind.__name__}, got {value!r} of type {type(value).__name__}") from None
        if number in _NUMBERS[kind]:
            return kind(number)
        if not 0 <= number < 2**31:
            raise TypeError(f"{number} is not a valid {kind.__name__}")
        raise RuntimeError(f"Unknown {_ENUM_WORDS[kind]}: there is no {kind.__name__} with the number {number}")

    return convert


def _as_is(value: object) -> object:
    return value


@dataclass(frozen=True)
class ArgumentType:
    """How arguments of one type are converted, saved, and read from tensors.

    Attributes:
        convert: function that converts the user's value, or one element of a list, to the operator's value.
        wire: the type's name in the DALI wire format.
        tensor_dtype: the only accepted dtype of tensors; None if tensors are not accepted.
    """

    convert: Callable[[Any], Any]
    wire: str
    tensor_dtype: DALIDataType | None = None


_SCALARS: dict[str, ArgumentType] = {
    "bool": ArgumentType(_to_bool, "bool", BOOL),
    "int32": ArgumentType(_to_int, "int64", INT32),
    "uint32": ArgumentType(_to_int, "int64", UINT32),
    "int64": ArgumentType(_to_int, "int64", INT64),
    "float": ArgumentType(_to_float, "float", FLOAT),
    "string": ArgumentType(_to_string, "string"),
    "layout": ArgumentType(_to_string, "string"),
    "DALIDataType": ArgumentType(_to_enum(DALIDataType), "int64", DATA_TYPE),
    "DALIImageType": ArgumentType(_to_enum(DALIImageType), "int64", IMAGE_TYPE),
    "DALIInterpType": ArgumentType(_to_enum(DALIInterpType), "int64", INTERP_TYPE),
    "object": ArgumentType(_as_is, ""),
    "tfrecord.Feature": ArgumentType(_as_is, "TFRecord"),
    "dict[str,tfrecord.Feature]": ArgumentType(_as_is, ""),
}


@dataclass(frozen=True)
class Deprecation:
    """How an argument was deprecated: whether it was renamed, or has no effect.

    Attributes:
        since: the DALI version that deprecated it.
        renamed_to: the argument's new name.
        removed: whether the argument is accepted with a warning, and ignored.
        instead: another argument, with a different meaning, that is to be used in its place.
    """

    since: str = ""
    renamed_to: str | None = None
    removed: bool = False
    instead: str | None = None


@dataclass(frozen=True)
class Argument:
    """One argument of an operator.

    Args:
        name: the argument's name for users.
        type: ``bool``, ``int32``, ``uint32``, ``int64``, ``float``, ``string``, ``layout``, ``DALIDataType``,
            ``DALIImageType``, ``DALIInterpType``, ``object``; or one of these followed by ``[]``, for a list.
        default: the default value; ``None``: the argument is absent unless set.
        required: whether the argument must be passed.
        tensor: whether the argument may be computed in the graph, with a value for each sample.
        per_frame: whether a tensor with a leading F dimension has one value for each frame of a sequence.
        deprecated: how the argument was deprecated; None: it is not.
        hidden: whether signatures omit the argument.
        apart: whether the argument is stored outside of the operator's arguments, like the user's function, which cannot be saved.
            Signatures show it.
        zero_dimensional: whether tensors must have no dimensions; otherwise, one element in any shape is accepted.
        matrix: whether tensors for a list may have more than one dimension.
        uniform: whether tensors for a list must have the same number of values in all samples of a batch.
        any_integer: whether tensors may have any integer type, not only the argument's.
        with_bfloat16: whether the argument is a type that may be BFLOAT16.
        path: whether the argument names files or folders; a confined pipeline checks these before opening them.
        choices: the possible values, if there are few.
        example: a valid value for sweeps and documentation, if type and default do not suggest one.
        tensor_example: an example of a value that is computed in the graph, if its shape differs from the constant's.
        exempt: the reason why sweeps do not set the argument.
        doc: the description: the argument's effect, units and accepted values.
    """

    name: str
    type: str
    default: Any = None
    doc: str = ""
    required: bool = False
    tensor: bool = False
    per_frame: bool = False
    deprecated: Deprecation | None = None
    hidden: bool = False
    apart: bool = False
    zero_dimensional: bool = False
    matrix: bool = False
    uniform: bool = False
    any_integer: bool = False
    with_bfloat16: bool = False
    path: bool = False
    choices: tuple[str, ...] = ()
    example: object = None
    tensor_example: object = None
    exempt: str = ""

    @functools.cached_property
    def is_list(self) -> bool:
        return self.type.endswith("[]")

    @functools.cached_property
    def element(self) -> ArgumentType:
        return _SCALARS[self.type.removesuffix("[]")]

    def convert(self, value: Any) -> Any:
        """Convert the user's value to the operator's value.

        Raises:
            TypeError, ValueError, OverflowError: the value cannot be converted; the message says what was expected.
            RuntimeError: the value is an empty list, and the argument is not a list.
        """
        if isinstance(value, ScalarConstant):
            value = value.value
        if isinstance(value, np.ndarray) and value.size == 1 and value.ndim <= 1:
            value = value.item()
        is_sequence = isinstance(value, (list, tuple))
        if not self.is_list:
            if is_sequence and not value and self.type != "object":
                raise RuntimeError(
                    f"Argument '{self.name}' is not a vector: it expects {self.describe_type()}, got {value!r}"
                )
            values = [value]
        else:
            values = value if is_sequence else [value]
        converted = [self._convert_element(v.value if isinstance(v, ScalarConstant) else v) for v in values]
        if not self.with_bfloat16 and any(value is BFLOAT16 for value in converted):
            raise ValueError(
                f"Argument '{self.name}' cannot be BFLOAT16: convert with `fn.cast(..., dtype=types.BFLOAT16)`"
            )
        return converted if self.is_list else converted[0]

    def _convert_element(self, value: object) -> object:
        try:
            return self.element.convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            # Subclasses, such as UnicodeDecodeError, have other constructors, so raise the base class.
            kind = next(kind for kind in (TypeError, OverflowError, ValueError) if isinstance(error, kind))
            raise kind(f"Argument '{self.name}' expects {self.describe_type()}, got {value!r}: {error}") from error

    def deprecation_text(self) -> str:
        """Return the warning for a deprecated argument; empty if the text depends on the operator's name."""
        if self.deprecated is None or not (self.deprecated.removed or self.deprecated.renamed_to):
            return ""
        if self.deprecated.renamed_to:
            new = self.deprecated.renamed_to
            return f"The argument `{self.name}` is a deprecated alias for `{new}`. Use `{new}` instead."
        if self.name == "seed":
            return 'The argument "seed" should not be used with operators that don\'t use random numbers.'
        return f"The argument `{self.name}` is no longer used and will be removed in a future release."

    def python_type(self) -> str:
        """Return the argument's type in Python's terms: ``float or list of float``."""
        element = self.type.removesuffix("[]")
        word = {"int32": "int", "int64": "int", "uint32": "int", "string": "str", "layout": "str"}.get(element, element)
        return f"{word} or list of {word}" if self.is_list else word

    def describe_type(self) -> str:
        name = self.type.removesuffix("[]")
        text = f"a list of {name}" if self.is_list else f"a {name}"
        return text + (" or a tensor of them" if self.tensor else "")

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise RuntimeError unless a tensor with samples of these shapes suits this list argument; see ``matrix`` and ``uniform``."""
        if shapes and len(shapes[0]) > 1 and not self.matrix:
            raise RuntimeError(
                f"Argument '{self.name}' expects a vector for each sample: input with dimension ({len(shapes[0])}) and shape "
                f"{list(shapes[0])} cannot be converted to dimension (1)"
            )
        if self.uniform and len(set(shapes)) > 1:
            raise RuntimeError(
                f'Expected uniform shape for argument "{self.name}": all samples must have equally many values, got shapes '
                f"{', '.join(str(list(shape)) for shape in shapes)}"
            )

    def check_tensor(self, shape: tuple[int, ...], dtype: DALIDataType, stored: np.dtype) -> None:
        """Raise TypeError or ValueError unless a sample of this shape and type suits this argument; ``stored``: its NumPy dtype."""
        wanted = self.element.tensor_dtype
        if wanted is not None and dtype is not wanted and not (self.any_integer and stored.kind in "iu"):
            raise TypeError(
                f'Unexpected type of argument "{self.name}". Expected {dtype_name(wanted)} and got {dtype_name(dtype)}, which cannot '
                "be converted: use `fn.cast`"
            )
        if not self.is_list and (math.prod(shape) != 1 or (shape and self.zero_dimensional)):
            raise ValueError(
                f"Argument '{self.name}' expects one value for each sample: input with dimension ({len(shape)}) and shape "
                f"{list(shape)} cannot be converted to dimension (0)"
            )

    def from_tensor(self, value: np.ndarray, dtype: DALIDataType) -> Any:
        """Return the operator's value of this argument for one sample of a tensor; ``dtype``: the type of the tensor's elements."""
        self.check_tensor(value.shape, dtype, value.dtype)
        if self.is_list:
            return value.tolist() if value.ndim == 1 else value.reshape(-1).tolist()
        wanted = self.element.tensor_dtype
        converted = wanted is INT32 or wanted in ENUM_TYPES
        return self.element.convert(value.item()) if converted else value.item()


def common_arguments(seedable: bool) -> tuple[Argument, ...]:
    """Return the arguments that every operator accepts."""
    deprecated_seed = Deprecation("1.46", removed=True)
    return (
        Argument("bytes_per_sample_hint", "int32[]", [0], "Accepted for compatibility; buffers grow as needed."),
        Argument("preserve", "bool", False, "Keep the operator even if no output of the pipeline depends on it."),
        Argument(
            "seed",
            "int32",
            -1,
            "Seed of the random stream; by default it is derived from the pipeline's seed.",
            deprecated=None if seedable else deprecated_seed,
            hidden=not seedable,
        ),
    )
