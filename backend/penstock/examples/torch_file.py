"""Reads tensors from files that PyTorch saved before version 1.6, without PyTorch and without executing code in the
files.

Such a file is a sequence of pickles: a magic number, a version, facts about the machine, the named tensors, which refer to
storages by keys, and the keys in the order in which the values of the storages follow. In general, a pickle can call anything
and reserve any amount of memory; here, it can only make ordered dictionaries and name tensors.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import pickletools
import struct
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import PenstockError

__all__ = ["TorchFileError", "read_tensors"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
# The opcodes that PyTorch writes. Other opcodes can reserve memory for data that is not in the file.
_OPCODES = frozenset(
    [
        "PROTO",
        "STOP",
        "GLOBAL",
        "BINPERSID",
        "REDUCE",
        "BUILD",
        "MARK",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "BINUNICODE",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_DICT",
        "SETITEM",
        "SETITEMS",
        "BINPUT",
        "LONG_BINPUT",
        "BINGET",
        "LONG_BINGET",
    ]
)
_COUNT = struct.Struct("<q")  # the number of values, before the values of each storage
_TYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "LongStorage": np.dtype("<i8"),
}


class TorchFileError(PenstockError, ValueError):
    """Raised if a file does not contain tensors, is damaged, or contains anything that tensors do not need."""


def read_tensors(data: bytes) -> dict[str, np.ndarray]:
    """Return the named tensors of a file.

    Args:
        data: the file's bytes.

    Raises:
        TorchFileError: the file contains anything but contiguous tensors of floats or 64-bit integers.
    """
    stream = io.BytesIO(data)
    try:
        if (_load(stream), _load(stream)) != (_MAGIC, _VERSION):
            raise TorchFileError("this is not a file of PyTorch's format before 1.6")
        machine = _load(stream)
        if not isinstance(machine, dict) or machine.get("little_endian") is not True:
            raise TorchFileError("only little-endian files can be read")
        named = _load(stream)
        keys = _load(stream)
        if not isinstance(named, dict) or not isinstance(keys, list):
            raise TorchFileError("the file does not hold named tensors")
        storages = _read_storages(stream, keys, _storages(named))
    except TorchFileError:
        raise
    except Exception as error:  # A damaged pickle can raise almost any exception.
        raise TorchFileError(f"the file is damaged: {error}") from error
    return {name: tensor.array(storages) for name, tensor in named.items()}


# Tuples, because a pickle could modify other containers after they were checked.
class _Storage(NamedTuple):
    """The values of which tensors are views."""

    dtype: str
    key: str
    size: int


class _Tensor(NamedTuple):
    """A tensor: a view of a storage's values."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]

    def array(self, storages: dict[str, np.ndarray]) -> np.ndarray:
        values = storages[self.storage.key]
        return values[self.offset : self.offset + math.prod(self.shape)].reshape(self.shape).copy()


class _StorageType:
    """Stands for one of PyTorch's storage classes; cannot be called."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise TorchFileError("the file modifies a type")


class _Rebuild:
    """Stands for the function with which PyTorch rebuilds tensors."""

    __slots__ = ()

    def __call__(
        self, storage: object, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *others: object
    ) -> _Tensor:
        extents = (offset, *shape)
        if not isinstance(storage, _Storage) or not all(type(extent) is int and extent >= 0 for extent in extents):
            raise TorchFileError("a tensor has no valid storage or shape")
        contiguous = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        if stride != contiguous or offset + math.prod(shape) > storage.size:
            raise TorchFileError("a tensor is not contiguous or exceeds its storage")
        return _Tensor(storage, offset, tuple(shape))


class _Unpickler(pickle.Unpickler):
    """Loads pickles, and refuses everything that tensors do not need."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Rebuild()
        if module == "torch" and name in _TYPES:
            return _StorageType(name)
        raise TorchFileError(f"the file asks for {module}.{name}, which tensors do not need")

    def persistent_load(self, reference: Any) -> _Storage:
        match reference:
            case ("storage", _StorageType() as kind, str() as key, "cpu", int() as count, None) if count >= 0:
                return _Storage(kind.name, key, count)  # type: ignore[attr-defined]
        raise TorchFileError(f"the file refers to {str(reference)[:100]}, which is not a storage")


def _load(stream: io.BytesIO) -> Any:
    """Load the next pickle, after checking its opcodes."""
    begin = stream.tell()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if opcode.name not in _OPCODES:
            raise TorchFileError(f"the file has the opcode {opcode.name}, which tensors do not need")
        # The unpickler reserves memory up to the highest index. Without gaps, no index exceeds the number of opcodes.
        if opcode.name == "LONG_BINPUT" and (argument is None or argument > number):
            raise TorchFileError("the file is damaged: its memo has gaps")
    stream.seek(begin)
    return _Unpickler(stream).load()


def _storages(named: dict[Any, Any]) -> dict[str, _Storage]:
    """Return the storages that the tensors refer to, by key."""
    storages: dict[str, _Storage] = {}
    for name, tensor in named.items():
        if not isinstance(name, str) or not isinstance(tensor, _Tensor):
            raise TorchFileError(f"{str(name)[:100]!r} is not a named tensor")
        if storages.setdefault(tensor.storage.key, tensor.storage) != tensor.storage:
            raise TorchFileError(f"storage {tensor.storage.key} is described in two ways")
    return storages


def _read_storages(stream: io.BytesIO, keys: list[Any], expected: dict[str, _Storage]) -> dict[str, np.ndarray]:
    """Read the storages' values, which follow the pickles."""
    if sorted(map(str, keys)) != sorted(expected):
        raise TorchFileError("the storages that the file lists are not those that its tensors refer to")
    found = {}
    for key in keys:
        storage = expected[key]
        (count,) = _COUNT.unpack(stream.read(_COUNT.size))
        dtype = _TYPES[storage.dtype]
        values = stream.read(storage.size * dtype.itemsize)
        if count != storage.size or len(values) != storage.size * dtype.itemsize:
            raise TorchFileError(f"storage {key} is truncated")
        found[key] = np.frombuffer(values, dtype)
    return found
