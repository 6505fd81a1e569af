"""Makes a system call in the processes of a server fail, counts the calls of each program by kind, and records which call
failed.

`failing_calls.c` is preloaded into `penstock serve` and every process that it starts, and communicates with this module through a file.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_calls.c")
VARIABLE = "PENSTOCK_FAILING_CALLS"


class Program(Enum):
    """The programs that serve, in the order of `enum program`."""

    COMMAND = 0
    TRITON = 1
    WORKER = 2
    GUARDIAN = 3
    STUB = 4
    LAUNCHER = 5


class Kind(Enum):
    """The kinds of system calls, in the order of `enum kind`."""

    OPEN = 0
    CREATE = 1
    WRITE = 2
    MAP = 3
    FORK = 4
    THREAD = 5
    DESCRIPTOR = 6


ERRORS = {
    Kind.OPEN: (errno.EMFILE, errno.ENOMEM),
    Kind.CREATE: (errno.ENOSPC, errno.EROFS),
    Kind.WRITE: (errno.ENOSPC,),
    Kind.MAP: (errno.ENOMEM,),
    Kind.FORK: (errno.ENOMEM,),
    Kind.THREAD: (errno.EAGAIN,),
    Kind.DESCRIPTOR: (errno.EMFILE,),
}
"""The errors with which calls of each kind fail."""


@dataclass(frozen=True)
class Fault:
    """A call that is to fail.

    Attributes:
        program: the program that makes the call.
        kind: the kind of the call.
        error: the number of the error (errno) with which it fails.
        number: which of the program's calls of this kind fails, counted from 1 since :meth:`FailingCalls.arm`.
    """

    program: Program
    kind: Kind
    error: int
    number: int

    def __str__(self) -> str:
        return f"{self.program.name.lower()} {self.kind.name.lower()} {self.number} {errno.errorcode[self.error]}"


@dataclass(frozen=True)
class Failed:
    """A call that has failed: the process and the library that made it, and the call with its path."""

    pid: int
    call: str
    library: str


# The order of the fields in `struct control`: armed, program, kind, error, number, claimed_by, failed_in, the counts, the call.
_FIELDS = struct.Struct("7q")
_COUNTS = struct.Struct(f"{len(Program) * len(Kind)}q")
_CALL_BYTES = 512
_DESCRIPTION_SECONDS = 5.0


class FailingCalls:
    """The compiled library, and the file through which it communicates with processes into which it is preloaded.

    Args:
        folder: the folder for the library and the file.

    Attributes:
        variables: the environment variables with which to start a server.
    """

    def __init__(self, folder: Path) -> None:
        library, self.path = folder / "failing_calls.so", folder / "control"
        flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE), "-ldl", "-pthread"], check=True)
        self.path.write_bytes(bytes(_FIELDS.size + _COUNTS.size + _CALL_BYTES))
        with self.path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)
        self.variables = {"LD_PRELOAD": str(library), VARIABLE: str(self.path)}

    def arm(self, fault: Fault | None = None) -> None:
        """From now on, count calls, and make the call that ``fault`` describes fail."""
        self._shared[:] = bytes(len(self._shared))
        chosen = (fault.program.value, fault.kind.value, fault.error, fault.number) if fault else (0, 0, 0, 0)
        _FIELDS.pack_into(self._shared, 0, 0, *chosen, 0, 0)
        self._shared[:8] = struct.pack("q", 1)

    def disarm(self) -> Failed | None:
        """From now on, let all calls succeed; return the call that has failed, or None."""
        self._shared[:8] = bytes(8)
        *_, pid, described = _FIELDS.unpack_from(self._shared)
        if not pid:
            return None
        # The process whose call failed may still be writing the description of the call, or may have been killed before that.
        deadline = time.monotonic() + _DESCRIPTION_SECONDS
        while not described and time.monotonic() < deadline:
            time.sleep(0.001)
            described = _FIELDS.unpack_from(self._shared)[-1]
        text = self._shared[_FIELDS.size + _COUNTS.size :].partition(b"\0")[0].decode(errors="replace")
        call, _, library = text.rpartition(" of ")
        return Failed(pid, call, library)

    def counts(self) -> Counter[tuple[Program, Kind]]:
        """Return the number of calls since :meth:`arm`, by program and kind."""
        numbers = iter(_COUNTS.unpack_from(self._shared, _FIELDS.size))
        return Counter({(program, kind): next(numbers) for program in Program for kind in Kind})

    def processes(self) -> dict[int, list[str]]:
        """Return the living processes into which the library is preloaded, whoever started them, with their command lines."""
        found = {}
        mark = f"{VARIABLE}={self.path}".encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_text(errors="replace").split("\0")[:-1]
            except OSError:  # the process has ended, or belongs to another user
                continue
        # Both files are empty for a zombie process.
        found.pop(os.getpid(), None)
        return found
