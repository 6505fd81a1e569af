"""The processes in which Triton runs Python models, its stubs, as seen through the operating system."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path, PurePath

_NAME = b"triton_python_b"  # the kernel keeps 15 characters of a process's name


@dataclass(frozen=True)
class Stub:
    """A process that runs one instance of a model.

    Attributes:
        pid: the process's number.
        started: the start time, on the kernel's clock, since pids are reused.
        instance: Triton's name of the instance, e.g. ``resize_0_1``.
        model_file: the file it runs, ``<repository>/<model>/<version>/model.py``.
    """

    pid: int
    started: int
    instance: str
    model_file: PurePath

    @property
    def group(self) -> str:
        """The instance's group in the model's configuration."""
        return self.instance.rpartition("_")[0]

    @property
    def model_folder(self) -> Path:
        """The model's folder, which contains the version's."""
        return next((Path(folder.parent) for folder in self.model_file.parents if folder.name.isdigit()), Path())

    def running(self) -> bool:
        """Return whether the process exists and has not ended."""
        stat = _stat(self.pid)
        return stat is not None and stat.started == self.started and stat.state not in "ZX"

    def ended(self) -> str | None:
        """Return the exit status of the process, until Triton collects it; None while it runs and afterwards."""
        stat = _stat(self.pid)
        if stat is None or stat.started != self.started or stat.state not in "ZX":
            return None
        return describe_end(-(stat.status & 0x7F) if stat.status & 0x7F else stat.status >> 8)

    def kill(self) -> None:
        """End the process by force."""
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def model_in(self, repository: Path) -> str | None:
        """Return the model's name, if it was loaded from this repository."""
        try:
            return self.model_file.relative_to(repository).parts[0]
        except (ValueError, IndexError):
            return None


class Stubs:
    """The stubs of one server.

    Args:
        server: its process.
        records: the folder in which the stubs' launcher records each one that it starts.
    """

    def __init__(self, server: int, records: Path | None = None) -> None:
        self._server = server
        self._records = records
        # Other processes never become stubs: each is read only once, so that frequent scans are cheap.
        self._foreign_pids: set[int] = set()

    def running(self) -> list[Stub]:
        """Return the stubs that run models, or are about to."""
        found = []
        for pid, stat in self._children():
            if stat.state in "ZX":
                continue
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
                # Arguments: program, model file, four about shared memory and the parent, two more, instance name.
                found.append(Stub(pid, stat.started, words[8], PurePath(words[1])))
            except (OSError, IndexError):
                continue
        return found

    def started(self) -> list[Stub]:
        """Return the stubs that were started since the last call, whether or not they still run."""
        found = []
        for path in [] if self._records is None else sorted(self._records.iterdir()):
            pid, *words = path.read_bytes().decode(errors="surrogateescape").split("\0")
            if words[-2:] == ["recorded", ""]:  # and the record is complete
                found.append(Stub(int(pid), int(words[0]), words[1], PurePath(words[2])))
                path.unlink()
        return found

    def any_dead(self) -> bool:
        """Return whether a stub has ended whose status the server has not collected."""
        return any(stat.state in "ZX" for _, stat in self._children())

    def _children(self) -> list[tuple[int, _Stat]]:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._foreign_pids &= pids
        found = []
        for pid in pids - self._foreign_pids:
            try:
                stat = _stat(pid)
            except OSError:
                continue  # checked again in the next scan
            if stat is None or stat.parent != self._server:
                self._foreign_pids.add(pid)
            elif stat.name == _NAME:
                found.append((pid, stat))
        return found


def describe_end(code: int) -> str:
    """Return how a process ended, from its exit code in the form of :mod:`subprocess`.

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
"""Errors of reading `/proc` for a process that has ended or is another user's; other errors say nothing about it."""


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
    # pid (name) state parent ...; the name may contain anything, so the last parenthesis ends it.
    start, end = text.index(b"("), text.rindex(b")")
    rest = text[end + 2 :].split()
    # QEMU returns a shorter text to a process that reads about itself.
    status = int(rest[49]) if len(rest) > 49 else 0
    return _Stat(text[start + 1 : end], rest[0].decode(), int(rest[1]), int(rest[19]), status)
