"""Reads records of TensorFlow's TFRecord files: ``tf.train.Example`` messages, and the features in them.

Source: tensorflow/core/example/{example,feature}.proto.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.codecs.protobuf import Messages

if TYPE_CHECKING:
    from google.protobuf.message import Message

INT64, STRING, FLOAT32 = 0, 1, 2
_DTYPES: dict[int, np.dtype] = {INT64: np.dtype(np.int64), STRING: np.dtype(np.uint8), FLOAT32: np.dtype(np.float32)}
# For each kind of value, the name, and the field of a feature that holds such values.
_LISTS = {INT64: ("int64", "int64_list"), STRING: ("string", "bytes_list"), FLOAT32: ("float32", "float_list")}
# Names are declared as bytes, since files may contain any bytes. A FloatList is not parsed, but kept as raw bytes: see `_floats`.
_MESSAGES = Messages(
    "penstock.tfrecord",
    {
        "Example": ((1, "features", "optional", "Features"),),
        "Features": ((1, "feature", "repeated", "Entry"),),
        "Entry": ((1, "key", "optional", "bytes"), (2, "value", "optional", "Feature")),
        "Feature": (
            (1, "bytes_list", "optional", "BytesList"),
            (2, "float_list", "optional", "bytes"),
            (3, "int64_list", "optional", "Int64List"),
        ),
        "BytesList": ((1, "value", "repeated", "bytes"),),
        "Int64List": ((1, "value", "repeated", "int64"),),
        "PackedFloats": ((1, "value", "repeated", "bytes"),),
        "Floats": ((1, "value", "repeated", "float"),),
    },
)

# Bytes around the data: the length (8) and the checksum of the length (4) before it, and the checksum of the data (4) after it.
_HEADER, _FOOTER = 12, 4


@dataclass(frozen=True)
class Feature:
    """How to read a feature of a record.

    Attributes:
        kind: the kind of values: 0: int64, 1: string (bytes), 2: float32.
        shape: the shape of a feature of fixed length; None for one of variable length.
        default_value: the value to use if a record lacks the feature.
        partial_shape: trailing extents of a feature of variable length.
    """

    kind: int
    shape: list[int] | None
    default_value: int | str | float
    partial_shape: list[int] | None = None

    @property
    def dtype(self) -> np.dtype:
        return _DTYPES[self.kind]

    @cached_property
    def count(self) -> int:
        """The number of values of a feature that has a fixed length."""
        return math.prod(self.shape or ())

    @property
    def ndim(self) -> int:
        """The number of dimensions of the result."""
        if self.kind == STRING:
            return 1
        return 1 + len(self.partial_shape or ()) if self.shape is None else len(self.shape)


def record_data(record: np.ndarray) -> memoryview:
    """Return the message in a stored record, which has the length and checksums around it."""
    size = int.from_bytes(record[:8].tobytes(), "little")
    if size > record.size - _HEADER - _FOOTER:
        raise ValueError(
            f"Damaged TFRecord: it declares {size} bytes of data, and has {record.size - _HEADER - _FOOTER}"
        )
    return record[_HEADER : _HEADER + size].data


def parse_example(message: memoryview) -> dict[str, Message]:
    """Return the features of a ``tf.train.Example``, by name.

    Raises:
        ValueError: the message is damaged.
        ImportError: protobuf is not installed.
    """
    try:
        example = _MESSAGES.parse("Example", message)
        return {entry.key.decode(): entry.value for entry in example.features.feature}
    except ValueError as error:
        raise ValueError(f"Damaged TFRecord: its {len(message)} bytes are not a tf.train.Example") from error


def _kind(name: str, held: Message) -> int | None:
    """Return the kind of a feature's values; None if it has no values. Raise ValueError if it has values of several kinds."""
    kinds = [kind for kind, (_, field) in _LISTS.items() if held.HasField(field)]
    if len(kinds) > 1:
        raise ValueError(f"Damaged TFRecord: the feature '{name}' has values of {len(kinds)} types")
    return kinds[0] if kinds else None


def has_values(name: str, found: Mapping[str, Message]) -> bool:
    """Return whether a record has values of a feature, of any kind."""
    return name in found and _kind(name, found[name]) is not None


def take(feature: Feature, name: str, found: Mapping[str, Message]) -> np.ndarray:
    """Return the array of one feature.

    A string is returned as a vector of bytes; if there are several, the first one. Missing values are replaced by the default.

    Raises:
        ValueError: the record has values of another kind or of several kinds, or more values than fit the shape.
    """
    held = found[name] if name in found else _MESSAGES.new("Feature")
    kind = _kind(name, held)
    if kind not in (None, feature.kind):
        raise ValueError(f"The feature '{name}' holds {_LISTS[kind][0]}, not {_LISTS[feature.kind][0]}")
    if feature.kind == STRING:
        if feature.shape is None or feature.count > 1:
            raise ValueError(
                f"Tensors of strings are not supported: the feature '{name}' must be a single string (shape ())"
            )
        first = next(iter(held.bytes_list.value), None)
        return np.frombuffer(str(feature.default_value).encode() if first is None else first, np.uint8)
    numbers = _floats(held.float_list) if feature.kind == FLOAT32 else np.array(held.int64_list.value, np.int64)
    if feature.shape is None:
        try:
            return numbers.reshape(-1, *(feature.partial_shape or ()))
        except ValueError as error:
            raise ValueError(
                f"Feature size not matching partial shape: '{name}' has {numbers.size} values for {feature.partial_shape}"
            ) from error
    count = feature.count
    if numbers.size > count:
        raise ValueError(
            f"Output tensor shape is too small: {list(feature.shape)}. Expected at least {numbers.size} elements, which the "
            f"feature '{name}' has"
        )
    if numbers.size < count:
        rest = np.full(count - numbers.size, feature.default_value, feature.dtype)
        numbers = np.concatenate([numbers, rest])
    return numbers.reshape(feature.shape)


def _floats(encoded: bytes) -> np.ndarray:
    """Return the numbers of a FloatList.

    Protobuf returns numbers one by one. Here, packed numbers, the only form that TensorFlow writes, are read as raw bytes, which is 40
    times faster for long lists.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet

    message = _MESSAGES.parse("PackedFloats", encoded)
    if len(UnknownFieldSet(message)):
        numbers = _MESSAGES.parse("Floats", encoded).value
        return np.fromiter(numbers, np.float32, len(numbers))
    packed = b"".join(message.value)
    if len(packed) % 4:
        raise ValueError("A list of floats in the record is truncated")
    return np.frombuffer(packed, "<f4")
