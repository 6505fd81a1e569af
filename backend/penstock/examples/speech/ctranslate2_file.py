"""Reads the weights of CTranslate2 models, without CTranslate2.

Such a file consists of the version number of the format, the name and revision of the network's description, the weights, each with its
name, shape, type and bytes, and aliases of weights. Strings begin with their length and end with a zero byte.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from penstock.errors import PenstockError

__all__ = ["WeightsFileError", "read_weights"]

_VERSION = 6
# NumPy's types by CTranslate2's type numbers. Other types, such as bfloat16, are refused.
_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}
_MAX_DIMENSIONS = 8


class WeightsFileError(PenstockError, ValueError):
    """Raised if a file is not a CTranslate2 model, is damaged, or has weights of types that cannot be read."""


def read_weights(data: bytes, description: str) -> dict[str, np.ndarray]:
    """Return the named weights of a file.

    Args:
        data: the file's bytes.
        description: the network's description that the file must name, such as ``WhisperSpec``.

    Raises:
        WeightsFileError: the file is of another kind, is damaged, or has weights that are neither float16, float32 nor
            integers of 8 to 32 bits.
    """
    reader = _Reader(data)
    if reader.number("<I") != _VERSION:
        raise WeightsFileError(f"this is not a file of CTranslate2's format in version {_VERSION}")
    found = reader.string()
    if found != description:
        raise WeightsFileError(f"the file holds a {found[:100]!r} instead of a {description}")
    reader.number("<I")  # skip the revision of the description
    weights: dict[str, np.ndarray] = {}
    for _ in range(reader.number("<I")):
        name, values = reader.weight()
        if name in weights:
            raise WeightsFileError(f"the weight {name} occurs twice")
        weights[name] = values
    for _ in range(reader.number("<I")):
        # The alias is not needed: the code that builds the network knows which weights are shared.
        alias, name = reader.string(), reader.string()
        if name not in weights or alias in weights:
            raise WeightsFileError(
                f"{alias[:100]!r} is another name of {name[:100]!r}, which is not a weight, or the former is a weight itself"
            )
    if reader.position != len(data):
        raise WeightsFileError(f"{len(data) - reader.position} bytes follow the weights")
    return weights


class _Reader:
    """Reads a file from its beginning to its end.

    Attributes:
        position: the offset of the next byte.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self.position = 0

    def take(self, count: int) -> memoryview:
        """Return the next ``count`` bytes."""
        if count > len(self._data) - self.position:
            raise WeightsFileError("the file is truncated")
        taken = self._data[self.position : self.position + count]
        self.position += count
        return taken

    def number(self, form: str) -> int:
        """Return the next number; ``form`` is its format for :mod:`struct`."""
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def string(self) -> str:
        """Return the next string."""
        content = bytes(self.take(self.number("<H")))
        try:
            return content.removesuffix(b"\0").decode("ascii")
        except UnicodeDecodeError as error:
            raise WeightsFileError("the file is damaged: a name is not valid text") from error

    def weight(self) -> tuple[str, np.ndarray]:
        """Return the name of the next weight, and the weight."""
        name = self.string()
        rank = self.number("B")
        if rank > _MAX_DIMENSIONS:
            raise WeightsFileError(f"{name[:100]!r} has {rank} dimensions")
        shape = [self.number("<I") for _ in range(rank)]
        kind, size = self.number("B"), self.number("<I")
        if kind not in _TYPES:
            raise WeightsFileError(f"{name[:100]!r} is of type {kind}, which is not read")
        dtype = np.dtype(_TYPES[kind])
        if size != math.prod(shape) * dtype.itemsize:
            raise WeightsFileError(f"{name[:100]!r} has {size} bytes, which its shape {shape} does not need")
        return name, np.frombuffer(self.take(size), dtype).reshape(shape)
