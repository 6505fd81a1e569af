"""The list of kernels that are compiled ahead of time, and of the types for which; it is recorded while tests and presets run.

With ``PENSTOCK_RECORD_KERNELS`` set to a file's path, each process adds what it needs to that file, and ``python -m
penstock.kernels.building --merge`` adds such files to the list, `signatures.txt`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

VARIABLE = "PENSTOCK_RECORD_KERNELS"
LIST = Path(__file__).with_name("signatures.txt")
_CUDA = "cuda "
FIRST = Path(__file__).with_name("first_signatures.txt")
"""The part of the list that the demonstration and common pipelines need; `make setup` compiles it."""


class Kind(Enum):
    """How a kernel's code is called: from Python, by numba's convention at its address, or as a C function."""

    CALL = "call"
    ADDRESS = "address"
    CALLBACK = "callback"


class Signature(NamedTuple):
    """A kernel, and the types for which to compile it.

    Attributes:
        kind: how the kernel is called.
        name: the kernel's name.
        types: the types of its arguments, written as in :mod:`penstock.kernels.cpu.signatures`.
    """

    kind: Kind
    name: str
    types: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name} ({self.types})"


class CudaKernel(NamedTuple):
    """A CUDA kernel to compile.

    Attributes:
        source: the path of its file, relative to the package's folder.
        instance: the kernel's name, with its template arguments.
        preamble: generated source that precedes the file's.
    """

    source: str
    instance: str
    preamble: str

    def __str__(self) -> str:
        return f"{_CUDA}{json.dumps(self)}"


_written = set[str]()
_writing = threading.Lock()


def is_on() -> bool:
    """Return whether this process records kernels."""
    return VARIABLE in os.environ


def record(kind: Kind, name: str, types: str) -> None:
    """Add a kernel to the file if this process records; each kernel is added once."""
    if is_on():
        _write_once(str(Signature(kind, name, types)))


def record_cuda(source: Path, instance: str, preamble: str) -> None:
    """Add a CUDA kernel to the file if this process records; each kernel is added once.

    Args:
        source: the path of its file, relative to the package's folder.
        instance: the kernel's name, with its template arguments.
        preamble: generated source that precedes the file's.
    """
    if is_on():
        _write_once(str(CudaKernel(str(source), instance, preamble)))


def _write_once(line: str) -> None:
    path = os.environ[VARIABLE]
    with _writing:
        if line in _written:
            return
        _written.add(line)
        # A line is appended with a single short write, so that lines of several processes are not mixed.
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)


def read(path: Path = LIST) -> list[Signature]:
    """Return the signatures of CPU kernels in a file, in order.

    Raises:
        ValueError: a line is not a signature.
    """
    signatures = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith(_CUDA):
            continue
        kind, _, rest = line.partition(" ")
        name, opened, types = rest.partition(" (")
        if not opened or not types.endswith(")") or kind not in {kind.value for kind in Kind}:
            raise ValueError(f"{path}:{number}: '{line}' is not of the form 'call module:function (types)'")
        signatures.append(Signature(Kind(kind), name, types[:-1]))
    return signatures


def read_cuda(path: Path = LIST) -> list[CudaKernel]:
    """Return the CUDA kernels in a file, in order."""
    lines = path.read_text().splitlines()
    return [CudaKernel(*json.loads(line.removeprefix(_CUDA))) for line in lines if line.startswith(_CUDA)]


def write(signatures: Iterable[Signature | CudaKernel], path: Path = LIST) -> None:
    """Write signatures to a file, sorted."""
    path.write_text("".join(f"{line}\n" for line in sorted({str(signature) for signature in signatures})))
