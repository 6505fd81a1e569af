"""Libraries of kernels that were compiled ahead of time: calls of all kinds, and library files that must not be used."""

from __future__ import annotations

import ctypes
import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import from_dtype, types
from numba.core.errors import TypingError

from penstock.kernels import recording
from penstock.kernels.cpu import libraries
from penstock.kernels.cpu.calls import KernelError
from penstock.kernels.cpu.compiling import numba_types
from penstock.kernels.cpu.signatures import UnknownTypeError, described, parsed, pointer_to, text_of
from penstock.kernels.recording import Kind, Signature

HERE = Path(__file__).parent
PAIR = "compiled_ahead:Pair(float64[1]C, float64)"
SIGNATURES = [
    ("call", "sums", "float32[2]C, float64[1]C"),
    ("call", "sums", "readonly float32[2]A, float64[1]C"),
    ("call", "numbers", "int64, float64, bool, uint8, float32"),
    ("call", "largest", "int64"),
    ("call", "largest", "uint64"),
    ("call", "nothing", "none"),
    ("call", "view", "float32[2]C"),
    ("call", "view_and_others", "float32[2]C"),
    ("call", "spread", f"{PAIR}, (int64, (float64, float64))"),
    ("call", "refused", "int64"),
    ("call", "huge", "int64"),
    ("callback", "difference", "int64, int64 -> int32"),
]

BUILD = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from penstock.core.compiling import compiler
from penstock.kernels.building import build_library
from penstock.kernels.building.targets import this_machine
from penstock.kernels import recording

listed, library = map(Path, sys.argv[2:])
built = build_library(recording.read(listed), this_machine(), library, compiler(), processes=1)
print(built.compiled, built.kept, built.failures)
"""


def build(folder: Path, signatures: list[tuple[str, str, str]]) -> str:
    """Build a library in a separate process, because a process that builds one cannot call kernels."""
    listed = folder / "signatures.txt"
    recording.write(
        [Signature(Kind(kind), f"compiled_ahead:{name}", types) for kind, name, types in signatures], listed
    )
    command = [sys.executable, "-c", BUILD, str(HERE), str(listed), str(folder / "library.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library")
    assert build(made, SIGNATURES) == f"{len(SIGNATURES)} 0 []"
    return made


@pytest.fixture
def kernels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the module of kernels, imported again so that it uses the library."""
    library = libraries.KernelLibrary(folder / "library.so", checks_sources=True)
    monkeypatch.setattr(libraries, "library", lambda: library)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.delitem(sys.modules, "compiled_ahead", raising=False)
    yield importlib.import_module("compiled_ahead")
    sys.modules.pop("compiled_ahead")


def compiled_here(kernel: Any) -> bool:
    """Return whether numba was asked to compile a kernel."""
    return "dispatcher" in vars(kernel)


def test_arrays(kernels: Any) -> None:
    rows, out = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(2)
    assert kernels.sums(rows, out) is None
    np.testing.assert_array_equal(out, [5, 50])
    # An array that is not contiguous, and read-only.
    turned = np.ascontiguousarray(rows.T).T[::1, ::2]
    turned.flags.writeable = False
    kernels.sums(turned, out)
    np.testing.assert_array_equal(out, [4, 34])
    assert not compiled_here(kernels.sums)


def test_code_for_any_order_takes_arrays_of_a_certain_one(kernels: Any) -> None:
    out = np.zeros(2)
    in_columns = np.arange(6, dtype=np.float32).reshape(3, 2).T
    assert in_columns.flags.f_contiguous
    kernels.sums(in_columns, out)
    np.testing.assert_array_equal(out, [20, 35])
    assert not compiled_here(kernels.sums)
    # The reverse does not hold: for `out`, there is only code for writable arrays, which does not accept read-only ones.
    out.flags.writeable = False
    with pytest.raises(TypingError, match="readonly"):
        kernels.sums(in_columns, out)
    assert compiled_here(kernels.sums)


def test_arrays_of_other_classes_are_taken_as_arrays(kernels: Any, tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "file", np.float32, "w+", shape=(2, 3))
    mapped[:] = 2
    out = np.zeros(2)
    kernels.sums(mapped, out)
    np.testing.assert_array_equal(out, [12, 12])
    assert not compiled_here(kernels.sums)


def test_numbers(kernels: Any) -> None:
    result = kernels.numbers(-5, 3.0, True, np.uint8(255), np.float32(0.5))
    assert result == (-4, 1.5, False, 256, 1.0)
    assert [type(value) for value in result] == [int, float, bool, int, float]
    assert kernels.numbers(np.int64(2), np.float64(1.0), np.bool_(False), np.uint8(0), np.float32(0)) == (
        3,
        0.5,
        True,
        1,
        0,
    )
    for number in (0, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1):
        assert kernels.largest(number) == number
    assert kernels.nothing(None) is None
    assert not any(map(compiled_here, (kernels.numbers, kernels.largest, kernels.nothing)))


def test_tuples_and_new_arrays(kernels: Any) -> None:
    given = kernels.Pair(np.array([1.0, 2.0]), 0.5)
    for _ in range(3):
        filled, pair = kernels.spread(given, (3, (1.0, 0.25)))
        np.testing.assert_array_equal(filled, np.full((3, 2), 1.25))
        np.testing.assert_array_equal(pair.numbers, [2, 4])
        assert type(pair) is kernels.Pair
        assert pair.factor == 1.5
        assert filled.flags.writeable
        assert filled.flags.owndata
    assert not compiled_here(kernels.spread)


def test_references_are_not_kept(kernels: Any) -> None:
    rows, out = np.ones((2, 3), np.float32), np.zeros(2)
    kernels.sums(rows, out)
    before = [sys.getrefcount(value) for value in (rows, out, None)]
    for _ in range(1000):
        kernels.sums(rows, out)
    after = [sys.getrefcount(value) for value in (rows, out, None)]
    assert after[:2] == before[:2]
    assert abs(after[2] - before[2]) < 500


def test_errors_of_kernels(kernels: Any) -> None:
    with pytest.raises(ValueError, match="a negative number"):
        kernels.refused(-1)
    assert kernels.refused(4) == 4
    with pytest.raises(MemoryError):
        kernels.huge(1 << 58)
    assert len(kernels.huge(10)) == 10


def test_views_of_arguments_are_refused(kernels: Any) -> None:
    with pytest.raises(
        KernelError, match="compiled_ahead:view returned a view of an argument, and kernels may only return new"
    ):
        kernels.view(np.ones((3, 2), np.float32))
    for _ in range(100):  # shows a leak unless each call releases its other results
        with pytest.raises(KernelError, match="returned a view"):
            kernels.view_and_others(np.ones((3, 2), np.float32))
    # Kernels must not return views, but an empty view shares no memory with the argument.
    assert kernels.view(np.ones((1, 2), np.float32)).shape == (0, 2)


def test_callbacks(kernels: Any) -> None:
    called = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)(kernels.difference.address)
    assert called(3, 10) == -7


def test_types_that_nobody_foresaw_are_compiled_once_and_told(kernels: Any, caplog: pytest.LogCaptureFixture) -> None:
    out = np.zeros(2)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            kernels.sums(np.ones((2, 3), np.uint8), out)
    np.testing.assert_array_equal(out, [3, 3])
    assert [record.getMessage() for record in caplog.records] == [
        "compiled_ahead:sums is compiled now, as no library has it for (uint8[2]C, float64[1]C)"
    ]
    # Kernels that are in the library are still called from it.
    kernels.sums(np.ones((2, 3), np.float32), out)
    assert kernels.sums.signatures == ["uint8[2]C, float64[1]C", "float32[2]C, float64[1]C"]


def test_a_wrong_number_of_arguments(kernels: Any) -> None:
    with pytest.raises(TypeError):
        kernels.sums(np.zeros((2, 2), np.float32))


def test_only_what_has_changed_is_compiled_again(folder: Path) -> None:
    assert build(folder, SIGNATURES) == f"0 {len(SIGNATURES)} []"
    assert build(folder, [*SIGNATURES, ("call", "largest", "int32")]) == f"1 {len(SIGNATURES)} []"
    listed = build(folder, [("call", "missing", "int64"), ("call", "sums", "int64, int64"), *SIGNATURES])
    assert "there is no kernel compiled_ahead:missing" in listed
    assert "call compiled_ahead:sums (int64, int64): TypingError" in listed
    assert build(folder, SIGNATURES) == f"0 {len(SIGNATURES)} []"


def test_what_changed_since_is_not_taken_from_a_library(kernels: Any, folder: Path) -> None:
    library = libraries.KernelLibrary(folder / "library.so", checks_sources=True)
    assert library.find(Kind.CALL, kernels.sums, "float32[2]C, float64[1]C") is not None
    vars(kernels.sums)["digest"] = "other"
    assert library.find(Kind.CALL, kernels.sums, "float32[2]C, float64[1]C") is None


@pytest.mark.parametrize("damage", ["cut off", "emptied", "longer", "of another version", "no library"])
def test_other_files_are_refused(folder: Path, tmp_path: Path, damage: str) -> None:
    data = (folder / "library.so").read_bytes()
    end = libraries.MARK % (libraries.FORMAT, len(data) - len(libraries.MARK % (0, 0)))
    assert data.endswith(end)
    text = b"no library\n"
    damaged = {
        "cut off": data[: len(data) // 2],
        "emptied": b"",
        "longer": data + b"x",
        "of another version": data[: -len(end)] + libraries.MARK % (libraries.FORMAT + 1, len(data) - len(end)),
        "no library": text + libraries.MARK % (libraries.FORMAT, len(text)),
    }[damage]
    path = tmp_path / "library.so"
    path.write_bytes(damaged)
    message = {"of another version": "of another version", "no library": "cannot be loaded"}.get(damage, "damaged")
    with pytest.raises(libraries.LibraryError, match=message):
        libraries.KernelLibrary(path, checks_sources=False)


def test_levels_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries.platform, "machine", lambda: "x86_64")

    def usable(flags: str) -> list[str]:
        monkeypatch.setattr(libraries, "_facts", lambda: {"flags": flags})
        return libraries.usable_levels()

    second, third, fourth = (libraries.LEVELS[f"x86-64-v{number}"] for number in (2, 3, 4))
    assert usable("") == []
    assert usable(f"{second} fpu") == ["x86-64-v2"]
    assert usable(f"{second} {third}") == ["x86-64-v3", "x86-64-v2"]
    assert usable(f"{fourth} {second} {third}") == ["x86-64-v4", "x86-64-v3", "x86-64-v2"]
    assert usable(f"{fourth} {second}") == ["x86-64-v2"]


@pytest.mark.parametrize(
    "text",
    ["", "int64", "()", "readonly uint8[3]A, (int64, (none, bool))", "*{[('anchor', '<i8', (5,))]}, float32", PAIR],
)
def test_types_as_text(text: str) -> None:
    assert ", ".join(map(text_of, parsed(text))) == text


@pytest.mark.parametrize("align", [False, True])
def test_structs_are_for_numba_what_their_texts_say(align: bool) -> None:
    kind = np.dtype([("factor", np.float64), ("numbers", np.int64, (2, 3)), ("last", np.float32)], align=align)
    (pointer,) = numba_types(pointer_to(kind))
    assert pointer == types.CPointer(from_dtype(kind))
    text, _ = described([np.zeros(2, kind)])
    (array,) = numba_types(text)
    assert array.dtype == from_dtype(kind)


@pytest.mark.parametrize("text", ["(int64", "int64)", "int64; bool", "float32[2]"])
def test_other_texts_are_no_types(text: str) -> None:
    with pytest.raises(ValueError, match=r"parenthes|does not describe types|ends within a type"):
        parsed(text)


def test_types_that_have_no_text() -> None:
    for value in ("text", [1], 1 << 70, np.zeros(2, ">i4"), np.frombuffer(bytes(9), np.uint8)[1:].view(np.int64)):
        with pytest.raises(UnknownTypeError):
            described([value])


def test_signatures_are_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recorded"
    monkeypatch.setenv(recording.VARIABLE, str(path))
    monkeypatch.setattr(recording, "_written", set())
    for _ in range(2):
        recording.record(Kind.CALL, "module:kernel", "int64, (bool)")
    assert recording.read(path) == [Signature(Kind.CALL, "module:kernel", "int64, (bool)")]
    path.write_text("call module:kernel\n")
    with pytest.raises(ValueError, match="recorded:1: 'call module:kernel' is not of the form"):
        recording.read(path)
