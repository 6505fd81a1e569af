"""Libraries of kernels that were compiled ahead of time, by :mod:`penstock.kernels.building`.

An installed package has one library for each level of processors, in ``native/kernels``. A source checkout has one for this machine, in
``build/kernels``; kernels in it whose sources have changed since are not used.

Some of numba's environment variables, such as ``NUMBA_BOUNDSCHECK`` or ``NUMBA_CPU_NAME``, require other code than was compiled. If one of
them is set, or ``PENSTOCK_KERNELS=compile``, no library is used.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import json
import logging
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.core.compiling import checkout
from penstock.kernels.cpu.calls import NativeCode
from penstock.kernels.cpu.signatures import Array, Tuple, Type, parsed, program_for_results
from penstock.kernels.cpu.source_digests import Compilable
from penstock.kernels.recording import Kind

logger = logging.getLogger(__name__)

FORMAT = 1
"""The version of the format of libraries: of their index, and of the convention by which their kernels are called."""
INDEX = "penstock_kernels_index"
"""The symbol of a library's index: JSON, terminated by a zero byte."""
RELEASE = "penstock_release_memory"
"""The symbol of the function that releases a result's memory."""
NAME = "libpenstock_kernels.so"
MARK = b"penstock kernels %d: %20d bytes\n"
"""The end of a library's file, which a truncated file lacks: the version of the format, and the number of bytes before the mark."""
VARIABLE = "PENSTOCK_KERNELS"
_ASKS_NUMBA = ("NUMBA_BOUNDSCHECK", "NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT", "NUMBA_OPT")
_NATIVE = Path(__file__).parents[2] / "native" / "kernels"

# Processor features that the levels of the x86-64 psABI require, the most demanding level first. Kernels that sum products of bytes are
# much faster with VNNI, so the AVX-512 level requires it: processors without VNNI use the level below.
LEVELS = {
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64-v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
}


class LibraryError(ValueError):
    """A file is not a library of kernels that this version of penstock can use."""


class Entry(NamedTuple):
    """A kernel in a library.

    Attributes:
        address: the address of the kernel's function.
        release: the address of the function that releases the memory of results.
        results: the type of the results, written as in :mod:`penstock.kernels.cpu.signatures`.
    """

    address: int
    release: int
    results: str

    def native_code(self) -> NativeCode:
        """Return the kernel in the form that calls from Python need."""
        (result,) = parsed(self.results)
        return NativeCode(self.address, self.release, program_for_results(result))


class KernelLibrary:
    """A library of kernels.

    Args:
        path: the library's file.
        checks_sources: whether to leave out kernels whose sources have changed since they were compiled.

    Raises:
        LibraryError: the file is damaged, or has another format.
    """

    def __init__(self, path: Path, checks_sources: bool) -> None:
        _check_end(path)
        self.path, self.checks_sources = path, checks_sources
        try:
            self._library = ctypes.CDLL(str(path))
            text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(self._library, INDEX)))
            index = json.loads(text)
        except (OSError, ValueError) as error:
            raise LibraryError(f"'{path}' cannot be loaded: {error}") from error
        self.description: dict[str, object] = {key: value for key, value in index.items() if key != "entries"}
        self._entries: dict[str, dict[str, list[str]]] = index["entries"]

    def find(self, kind: Kind, kernel: Compilable, types: str) -> Entry | None:
        """Return the code of a kernel for these types of arguments, or None. Code for arrays in any order is also used for arrays in a
        specific order.
        """
        own = self._entries.get(f"{kind.value} {kernel.name}", {})
        found = types if types in own else _more_general(own, types) if kind is Kind.CALL else None
        if found is None:
            return None
        digest, symbol, results = own[found]
        if self.checks_sources and digest != kernel.digest:
            return None
        return Entry(self._address(symbol), self._address(RELEASE), results)

    def signatures(self) -> list[str]:
        """Return the library's kernels and types, in the format of `signatures.txt`."""
        return [f"{name} ({types})" for name, own in self._entries.items() for types in own]

    def _address(self, symbol: str) -> int:
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0


def _more_general(compiled: Iterable[str], types: str) -> str | None:
    """Return the first types of arguments for which a kernel was compiled and that accept ``types``; None if there are none."""
    given = parsed(types)
    return next((each for each in compiled if _accept(parsed(each), given)), None)


def _accept(kinds: Sequence[Type], given: Sequence[Type]) -> bool:
    return len(kinds) == len(given) and all(map(_accepts, kinds, given))


def _accepts(kind: Type, given: Type) -> bool:
    """Return whether code for arguments of the type ``kind`` accepts values of the type ``given``; both must be passed in the same form."""
    if isinstance(kind, Array) and isinstance(given, Array):
        is_alike = (kind.element, kind.rank) == (given.element, given.rank)
        return is_alike and kind.order in ("A", given.order) and kind.read_only >= given.read_only
    if isinstance(kind, Tuple) and isinstance(given, Tuple):
        return kind.kind == given.kind and _accept(kind.items, given.items)
    return kind == given


def _check_end(path: Path) -> None:
    size = len(MARK % (0, 0))
    with path.open("rb") as file:
        whole = file.seek(0, os.SEEK_END)
        file.seek(max(whole - size, 0))
        end = file.read()
    if end != MARK % (FORMAT, whole - size):
        is_other = end.startswith(b"penstock kernels ") and end[-7:] == b" bytes\n"
        fault = (
            f"of another version of penstock, or incomplete ({whole} bytes)" if is_other else "damaged or incomplete"
        )
        raise LibraryError(f"'{path}' is {fault}")


def folder_in_checkout() -> Path | None:
    """Return the folder of a checkout's library, or None outside of a checkout. Like the code, it depends on the version of Python and on
    the processor.
    """
    root = checkout()
    return None if root is None else root / "build" / "kernels" / f"{sys.implementation.cache_tag}-{processor()[:40]}"


def folder_of_levels(root: Path, architecture: str) -> Path:
    """Return a checkout's folder of the libraries for a wheel; each library is in a subfolder named by its level.

    Args:
        root: the checkout's root.
        architecture: the wheel's architecture.
    """
    return root / "build" / "kernels" / "levels" / architecture


@functools.cache
def processor() -> str:
    """Return a name for this machine's processor: its model and a digest of its features, as far as the system reports them."""
    facts = _facts()
    text = " ".join(sorted(facts.get("flags", facts.get("Features", "")).split()))
    digest = hashlib.sha256(f"{facts.get('model name', '')} {text}".encode()).hexdigest()[:12]
    return f"{platform.machine()}-{digest}"


@functools.cache
def _facts() -> dict[str, str]:
    """Return the fields that the system reports about the first processor."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            lines = list(itertools.takewhile(str.strip, file))
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


@functools.cache
def library() -> KernelLibrary | None:
    """Return the library for this machine; None if there is none, or if libraries are disabled."""
    named = os.environ.get(VARIABLE, "")
    if named not in ("", "compile"):
        raise ValueError(f"{VARIABLE} must be 'compile' or unset. Got: '{named}'")
    if named or any(os.environ.get(name) for name in _ASKS_NUMBA):
        return None
    shipped = next((path for level in usable_levels() if (path := _NATIVE / level / NAME).is_file()), None)
    folder = folder_in_checkout()
    built = None if folder is None else folder / NAME
    for found in (shipped, built):
        if found is None or not found.is_file():
            continue
        try:
            return KernelLibrary(found, checks_sources=found is built)
        except LibraryError as error:
            logger.warning("%s: kernels are compiled where they are used; `penstock setup` builds it again", error)
    return None


def usable_levels() -> list[str]:
    """Return the levels that this machine's processor supports, the most demanding first."""
    if platform.machine() != "x86_64":
        return [platform.machine()]
    flags = set(_facts().get("flags", "").split())
    wanted = list(LEVELS)
    while wanted and not flags.issuperset(" ".join(LEVELS[level] for level in wanted).split()):
        del wanted[0]
    return wanted
