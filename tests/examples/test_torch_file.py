"""Files of PyTorch tensors are read without PyTorch, and files whose pickle uses any other function are refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from penstock.examples.torch_file import TorchFileError, read_tensors

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
MACHINE = {"protocol_version": VERSION, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
VALUES = np.arange(12, dtype=np.float32)


class Global:
    """A function or class of a module, which is pickled by its name."""

    def __init__(self, module: str, name: str, *arguments: Any) -> None:
        self.module, self.name, self.arguments = module, name, arguments


class Storage:
    def __init__(self, reference: Any) -> None:
        self.reference = reference


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes pickles as PyTorch does, with the names of modules that need not exist here."""

    def persistent_id(self, obj: Any) -> Any:
        return obj.reference if isinstance(obj, Storage) else None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if not isinstance(obj, Global):
            super().save(obj, save_persistent_id)
            return
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        if obj.arguments:
            super().save(obj.arguments)
            self.write(pickle.REDUCE)


def pickled(obj: Any) -> bytes:
    stream = io.BytesIO()
    Pickler(stream, 2).dump(obj)
    return stream.getvalue()


def storage(count: int = 12, *, kind: str = "FloatStorage", key: str = "1", place: str = "cpu") -> Storage:
    return Storage(("storage", Global("torch", kind), key, place, count, None))


def tensor(
    store: Storage, offset: Any = 0, shape: Any = (3, 4), stride: Any = (4, 1), function: str = "_rebuild_tensor_v2"
) -> Global:
    return Global("torch._utils", function, store, offset, shape, stride, False, OrderedDict())


def file_of(named: Any, keys: Any = ("1",), values: bytes = VALUES.tobytes(), count: int = 12) -> bytes:
    head = b"".join(pickled(part) for part in (MAGIC, VERSION, MACHINE, named, list(keys)))
    return head + struct.pack("<q", count) + values


def test_tensors_are_views_of_storages() -> None:
    shared = storage()
    named = OrderedDict(whole=tensor(shared), part=tensor(shared, 5, (2,), (1,)), one=tensor(shared, 3, (), ()))
    read = read_tensors(file_of(named))
    assert list(read) == ["whole", "part", "one"]
    np.testing.assert_array_equal(read["whole"], VALUES.reshape(3, 4))
    np.testing.assert_array_equal(read["part"], [5, 6])
    assert read["one"].shape == ()
    assert read["one"] == 3


def test_integers_and_doubles() -> None:
    for kind, dtype in (("LongStorage", np.int64), ("DoubleStorage", np.float64)):
        values = np.array([3, -4], dtype)
        named = {"two": tensor(storage(2, kind=kind), 0, (2,), (1,))}
        read = read_tensors(file_of(named, values=values.tobytes(), count=2))["two"]
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    "function",
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("torch", "load"),
        ("collections", "OrderedDict.fromkeys"),
        ("numpy", "fromfile"),
        ("penstock.examples.torch_file", "_Tensor"),
    ],
    ids=".".join,
)
def test_other_functions_are_refused(function: tuple[str, str], tmp_path: Any) -> None:
    touched = tmp_path / "touched"
    named = {"weight": Global(*function, f"touch {touched}")}
    with pytest.raises(TorchFileError, match="which tensors do not need"):
        read_tensors(file_of(named))
    assert not touched.exists()


def test_a_real_reduce_is_refused() -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.getpid, ()

    with pytest.raises(TorchFileError, match=r"posix\.getpid"):
        read_tensors(file_of({"weight": Hostile()}))


def hostile(operations: bytes) -> bytes:
    """Return a file of tensors whose pickle consists of these operations."""
    return b"".join(map(pickled, (MAGIC, VERSION, MACHINE))) + b"\x80\x02" + operations + b"."


@pytest.mark.parametrize(
    "operations",
    [
        # The opcode BUILD changes attributes of an object: of a storage type (two ways), of the rebuilding function, of a class.
        b"ctorch\nFloatStorage\n}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xsb",
        b"ctorch\nFloatStorage\nN}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xs\x86b",
        b"ctorch._utils\n_rebuild_tensor_v2\nN}X\x08\x00\x00\x00__call__K\x01s\x86b",
        b"ccollections\nOrderedDict\nN}X\x04\x00\x00\x00keysK\x01s\x86b",
        # In turn: a call of a storage type, an extension code, and references to storages that do not exist.
        b"ctorch\nFloatStorage\n)R",
        b"\x82\x01",
        b"K\x01Q",
        b"(X\x07\x00\x00\x00storageX\x05\x00\x00\x00floatX\x01\x00\x00\x001X\x03\x00\x00\x00cpuK\x0cNtQ",
        b"Pabc\n",
        # Files that make a reader allocate gigabytes, for the memo or for bytes that do not follow.
        b"Nr\xff\xff\xff\xff",
        b"\x96\x00\x00\x00\x00\x01\x00\x00\x00",
        b"",
    ],
)
def test_what_was_found_cannot_be_misused(operations: bytes) -> None:
    with pytest.raises(TorchFileError):
        read_tensors(hostile(operations))


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"w": tensor(storage(), 1)}, "exceeds its storage"),
        ({"w": tensor(storage(), 0, (12, 10**9), (10**9, 1))}, "exceeds its storage"),
        ({"w": tensor(storage(), -4)}, "no valid storage or shape"),
        ({"w": tensor(storage(), 0, (-3, -4))}, "no valid storage or shape"),
        ({"w": tensor(storage(), 0, (None, 4))}, "no valid storage or shape"),
        ({"w": tensor(storage(), 0, (4, 3), (1, 4))}, "not contiguous"),
        ({"w": tensor(None)}, "no valid storage or shape"),  # type: ignore[arg-type]
        ({"w": tensor(storage(place="cuda:0"))}, "not a storage"),
        ({"w": tensor(storage(-12))}, "not a storage"),
        ({"w": tensor(storage(kind="HalfStorage"))}, "torch.HalfStorage"),
        ({"w": 1}, "not a named tensor"),
        ({1: tensor(storage())}, "not a named tensor"),
        ([tensor(storage())], "named tensors"),
        ({"w": tensor(storage()), "v": tensor(storage(11), 0, (2,), (1,))}, "in two ways"),
    ],
)
def test_impossible_tensors_are_refused(named: Any, reason: str) -> None:
    with pytest.raises(TorchFileError, match=reason):
        read_tensors(file_of(named))


def test_damaged_files_are_refused() -> None:
    whole = file_of({"w": tensor(storage())})
    assert read_tensors(whole)
    for end in range(0, len(whole), 7):
        with pytest.raises(TorchFileError):
            read_tensors(whole[:end])
    with pytest.raises(TorchFileError, match="truncated"):
        read_tensors(file_of({"w": tensor(storage())}, count=13))
    with pytest.raises(TorchFileError, match="the storages that the file lists are not those"):
        read_tensors(file_of({"w": tensor(storage())}, keys=("1", "2")))
    with pytest.raises(TorchFileError, match=r"before 1\.6"):
        read_tensors(pickled(MAGIC) + pickled(VERSION + 1))
    with pytest.raises(TorchFileError, match="little-endian"):
        read_tensors(b"".join(map(pickled, (MAGIC, VERSION, {"little_endian": False}))))


def test_mutated_files_raise_nothing_else() -> None:
    whole = np.frombuffer(file_of({"w": tensor(storage())}), np.uint8)
    random = np.random.default_rng(0)
    for _ in range(500):
        mutated = whole.copy()
        mutated[random.integers(0, len(whole), 3)] = random.integers(0, 256, 3)
        try:
            read_tensors(mutated.tobytes())
        except TorchFileError:
            continue
