"""Observes Triton's stubs, the processes in which it runs Python models, through the operating system."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path, PurePath

_NAME = b"triton_python_b"  # the kernel truncates the name of a process to 15 characters


@dataclass(frozen=True)
class Stub:
    """A process that runs one instance of a model.

    Attributes:
        pid: the process id.
        started: the start time, in ticks of the kernel's clock; needed because pids are reused.
        instance: Triton's name for the instance, e.g. ``resize_0_1``.
        model_file: the model file that the process runs, ``<repository>/<model>/<version>/model.py``.
    """

    pid: int
    started: int
    instance: str
    model_file: PurePath

    @property
    def group(self) -> str:
        """The name of the instance's group in the model's configuration."""
        return self.instance.rpartition("_")[0]

    @property
    def model_folder(self) -> Path:
        """The folder of the model, which contains the version's folder."""
        return next((Path(folder.parent) for folder in self.model_file.parents if folder.name.isdigit()), Path())

    def running(self) -> bool:
        """Return whether the process exists and has not ended."""
        stat = _stat(self.pid)
        return stat is not None and stat.started == self.started and stat.state not in "ZX"

    def ended(self) -> str | None:
        """Return how the process ended, as text; None while it runs, and after Triton has collected its exit status."""
        stat = _stat(self.pid)
        if stat is None or stat.started != self.started or stat.state not in "ZX":
            return None
        return describe_end(-(stat.status & 0x7F) if stat.status & 0x7F else stat.status >> 8)

    def kill(self) -> None:
        """Kill the process."""
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def model_in(self, repository: Path) -> str | None:
        """Return the model's name if it was loaded from this repository, otherwise None."""
        try:
            return self.model_file.relative_to(repository).parts[0]
        except (ValueError, IndexError):
            return None


class Stubs:
    """The stubs of one server.

    Args:
        server: the id of the server's process.
        records: the folder in which the launcher records each stub that it starts.
    """

    def __init__(self, server: int, records: Path | None = None) -> None:
        self._server = server
        self._records = records
        # The ids of other processes, which never become stubs: each is examined only once, so that frequent scans are cheap.
        self._foreign_pids: set[int] = set()

    def running(self) -> list[Stub]:
        """Return the stubs that run models or are about to."""
        found = []
        for pid, stat in self._children():
            if stat.state in "ZX":
                continue
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
                # The arguments: program, model file, four about shared memory and the parent, two more, instance name.
                found.append(Stub(pid, stat.started, words[8], PurePath(words[1])))
            except (OSError, IndexError):
                continue
        return found

    def started(self) -> list[Stub]:
        """Return the stubs that were started since the last call, whether or not they still run."""
        found = []
        for path in [] if self._records is None else sorted(self._records.iterdir()):
            pid, *words = path.read_bytes().decode(errors="surrogateescape").split("\0")
            if words[-2:] == ["recorded", ""]:  # the record is complete
                found.append(Stub(int(pid), int(words[0]), words[1], PurePath(words[2])))
                path.unlink()
        return found

    def any_dead(self) -> bool:
        """Return whether a stub has ended, and the server has not collected its exit status yet."""
        return any(stat.state in "ZX" for _, stat in self._children())

    def _children(self) -> list[tuple[int, _Stat]]:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._foreign_pids &= pids
        found = []
        for pid in pids - self._foreign_pids:
            try:
                stat = _stat(pid)
            except OSError:
                continue  # check it again in the next scan
            if stat is None or stat.parent != self._server:
                self._foreign_pids.add(pid)
            elif stat.name == _NAME:
                found.append((pid, stat))
        return found


def describe_end(code: int) -> str:
    """Return how a process ended, as text; ``code`` is its exit code in the form of :mod:`subprocess`.

    >>> describe_end(-9), describe_end(3)
    ('was ended by SIGKILL', 'exited with code 3')
    """
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


_ENDED = (FileNotFoundError, ProcessLookupError, PermissionError)
"""Errors of reading `/proc` that mean that a process has ended or belongs to another user; other errors leave open whether it has."""


@dataclass(frozen=True)
class _Stat:
    name: bytes
    state: str
    parent: int
    started: int
    status: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except _ENDED:
        return None
    # The format is: pid (name) state parent ... The name may contain any characters, so the last parenthesis ends it.
    start, end = text.index(b"("), text.rindex(b")")
    rest = text[end + 2 :].split()
    # QEMU returns a shorter text if a process reads its own status.
    status = int(rest[49]) if len(rest) > 49 else 0
    return _Stat(text[start + 1 : end], rest[0].decode(), int(rest[1]), int(rest[19]), status)
