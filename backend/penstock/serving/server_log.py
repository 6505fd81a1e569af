"""Triton's log, limited in rate and size; survives a full disk and a file that is removed."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LINES_AT_ONCE = 50
"""The number of lines with the same cause that are written at once; further ones are limited to one per second."""
LINES_PER_SECOND = 1.0
MAX_FILE_BYTES = 50 << 20
MAX_FILES = 5

_MAX_CAUSES = 1000
_MAX_CAUSE_BYTES = 200
_CHECK_SECONDS = 1.0
"""The number of seconds between checks that the file still exists at its path."""

_STAMP = re.compile(rb"^[EWIV]\d{4} [\d:.]+ +\d+ ")
_DIGITS = re.compile(rb"\d+")


@dataclass
class _Cause:
    """The state of a cause: of lines that differ only in their numbers."""

    allowance: float
    updated: float
    suppressed: int = 0
    since: float = 0.0


class RateLimit:
    """Decides which lines of a log are written.

    Lines that differ only in numbers and in Triton's time stamp have the same cause.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._causes: OrderedDict[bytes, _Cause] = OrderedDict()

    def admit(self, line: bytes) -> bytes:
        """Return the text to write for a line, which includes the number of lines suppressed before it; b"" if it is suppressed."""
        if line[:1] in (b"+", b"|") or not line.strip():
            return line  # part of a table of settings
        now = self._clock()
        key = _DIGITS.sub(b"#", _STAMP.sub(b"", line[:_MAX_CAUSE_BYTES]))
        cause = self._causes.pop(key, None) or _Cause(LINES_AT_ONCE, now)
        self._causes[key] = cause
        if len(self._causes) > _MAX_CAUSES:
            self._causes.popitem(last=False)
        cause.allowance = min(LINES_AT_ONCE, cause.allowance + (now - cause.updated) * LINES_PER_SECOND)
        cause.updated = now
        if cause.allowance < 1:
            cause.since = cause.since if cause.suppressed else now
            cause.suppressed += 1
            return b""
        cause.allowance -= 1
        suppressed, cause.suppressed = cause.suppressed, 0
        if not suppressed:
            return line
        note = f"[penstock: {suppressed} more lines like the next one in {now - cause.since:.1f} s]\n"
        return note.encode() + line


class LogFile:
    """A log file that is replaced by a new one when it has grown large. Any thread may write to it.

    While the file cannot be written to, lines are lost and counted; later lines are written again.

    Args:
        path: the path of the file; older files have ``.1``, ``.2`` and so on appended.
        report: called with a line of text when lines begin to be lost.
        max_bytes: the size in bytes from which a new file is begun.
        max_files: the number of files that are retained, including the current one.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(
        self,
        path: Path,
        report: Callable[[str], object],
        max_bytes: int = MAX_FILE_BYTES,
        max_files: int = MAX_FILES,
    ) -> None:
        self._path = path
        self._report = report
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._lock = threading.Lock()
        self._closed = False
        self._lost = 0
        self._next_check = 0.0
        self._size = 0
        self._file = self._open(os.O_TRUNC)

    def write(self, text: bytes) -> None:
        """Append whole lines."""
        try:
            with self._lock:
                if not self._closed:
                    self._write(text)
        except OSError as error:
            first, self._lost = not self._lost, self._lost + text.count(b"\n")
            if first:
                self._report(f"Triton's log cannot be written to '{self._path}': {error.strerror}; lines are lost")

    def _write(self, text: bytes) -> None:
        self._reopen_if_gone()
        if self._size and self._size + len(text) > self._max_bytes:
            self._rotate()
        if self._lost:
            self._append(f"[penstock: {self._lost} lines are lost: they could not be written]\n".encode())
            self._lost = 0
        self._append(text)

    def close(self) -> None:
        """Close the file; nothing is written afterwards."""
        with self._lock:
            self._closed = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _append(self, text: bytes) -> None:
        while text:
            written = os.write(self._file, text)
            self._size += written
            text = text[written:]

    def _open(self, mode: int = 0) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | mode, 0o644)
        self._size = os.fstat(file).st_size
        return file

    def _reopen_if_gone(self) -> None:
        """Begin a new file if someone has removed or replaced the current one."""
        now = time.monotonic()
        if self._file >= 0 and now < self._next_check:
            return
        self._next_check = now + _CHECK_SECONDS
        with contextlib.suppress(FileNotFoundError):
            if self._file >= 0 and os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                return
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._open()

    def _rotate(self) -> None:
        older = [self._path.with_name(f"{self._path.name}.{number}") for number in range(1, self._max_files)]
        for source, target in reversed(list(zip([self._path, *older], older))):
            with contextlib.suppress(FileNotFoundError):
                source.replace(target)
        file, self._file = self._file, -1
        os.close(file)
        self._file = self._open(os.O_TRUNC)
