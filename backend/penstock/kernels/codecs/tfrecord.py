"""Records of TensorFlow's TFRecord files: ``tf.train.Example`` messages, and what to take of them.

Source: tensorflow/core/example/{example,feature}.proto and protobuf's description of its encoding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.kernels.codecs.protobuf import fields, integers

INT64, STRING, FLOAT32 = 0, 1, 2
_DTYPES: dict[int, np.dtype] = {INT64: np.dtype(np.int64), STRING: np.dtype(np.uint8), FLOAT32: np.dtype(np.float32)}
_NAMES = {INT64: "int64", STRING: "string", FLOAT32: "float32"}

# Around the data: 8 bytes of length, 4 of its checksum; 4 of the data's checksum behind.
_HEADER, _FOOTER = 12, 4


@dataclass(frozen=True)
class Feature:
    """What to take of a record under a feature's name.

    Attributes:
        kind: 0: int64, 1: string (bytes), 2: float32.
        shape: of a feature of fixed length; None for one of variable length.
        default_value: stands for what the record lacks.
        partial_shape: trailing extents of a feature of variable length.
    """

    kind: int
    shape: list[int] | None
    default_value: int | str | float
    partial_shape: list[int] | None = None

    @property
    def dtype(self) -> np.dtype:
        return _DTYPES[self.kind]

    @property
    def ndim(self) -> int:
        """The rank of the result."""
        if self.kind == STRING:
            return 1
        return 1 + len(self.partial_shape or ()) if self.shape is None else len(self.shape)


def record_data(record: np.ndarray) -> memoryview:
    """The message in a record as it stands in the file, with length and checksums around it."""
    size = int.from_bytes(record[:8].tobytes(), "little")
    if size > record.size - _HEADER - _FOOTER:
        raise ValueError(f"Damaged TFRecord: {size} bytes are announced, {record.size - _HEADER - _FOOTER} are there")
    return record[_HEADER : _HEADER + size].data


def parse_example(message: memoryview) -> dict[str, tuple[int, memoryview]]:
    """The features of a ``tf.train.Example``: for each name the kind and the undecoded list.

    Raises:
        ValueError: the message is damaged.
    """
    found: dict[str, tuple[int, memoryview]] = {}
    try:
        for number, features in fields(message):
            if number != 1:
                continue
            for _, entry in fields(features):
                parts = dict(fields(entry))
                content = dict(fields(parts.get(2, memoryview(b""))))
                if content:
                    ((kind, values),) = content.items()
                    found[bytes(parts[1]).decode()] = _KINDS[kind], values
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"Damaged TFRecord: its {len(message)} bytes are no tf.train.Example") from error
    return found


_KINDS = {1: STRING, 2: FLOAT32, 3: INT64}


def take(feature: Feature, name: str, found: dict[str, tuple[int, memoryview]]) -> np.ndarray:
    """The array of one feature.

    Strings are vectors of bytes: the first one where there are several. Missing values are the default.

    Raises:
        ValueError: the record holds values of another type, or more of them than the shape.
    """
    kind, values = found.get(name, (feature.kind, memoryview(b"")))
    if kind != feature.kind:
        raise ValueError(f"The feature '{name}' holds {_NAMES[kind]}, not {_NAMES[feature.kind]}")
    if feature.kind == STRING:
        if feature.shape is None or math.prod(feature.shape) > 1:
            raise ValueError(
                f"Tensors of strings are not supported: the feature '{name}' must be a single string (shape ())"
            )
        first = next((value for _, value in fields(values)), None)
        return np.frombuffer(bytearray(str(feature.default_value).encode()) if first is None else first, np.uint8)
    numbers = _floats(values) if kind == FLOAT32 else _integers(values)
    if feature.shape is None:
        try:
            return numbers.reshape(-1, *(feature.partial_shape or ()))
        except ValueError as error:
            raise ValueError(
                f"Feature size not matching partial shape: '{name}' has {numbers.size} values for {feature.partial_shape}"
            ) from error
    count = math.prod(feature.shape)
    if numbers.size > count:
        raise ValueError(
            f"Output tensor shape is too small: {list(feature.shape)}. Expected at least {numbers.size} elements, which the "
            f"feature '{name}' has"
        )
    if numbers.size < count:
        rest = np.full(count - numbers.size, feature.default_value, feature.dtype)
        numbers = np.concatenate([numbers, rest])
    return numbers.reshape(feature.shape)


def _floats(values: memoryview) -> np.ndarray:
    encoded = [part for number, part in fields(values) if number == 1]
    if any(len(part) % 4 for part in encoded):
        raise ValueError("A list of floats in the record holds no whole number of them")
    parts = [np.frombuffer(part, "<f4") for part in encoded]
    return np.concatenate(parts).astype(np.float32, copy=False) if parts else np.empty(0, np.float32)


def _integers(values: memoryview) -> np.ndarray:
    return np.array([number for _, part in fields(values) for number in integers(part)], np.int64)
