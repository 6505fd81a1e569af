"""Starts the guardian of a server, a process that cleans up if this one is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from penstock.serving import guardian


class Guard:
    """The guardian, from the point of view of the process that starts it.

    Args:
        shared_memory: the prefix of the names of the server's shared memory.
        folder: the server's folder, to be removed.
    """

    def __init__(self, shared_memory: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            # Plain Python without packages, so that it is small and ready at once.
            [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), shared_memory, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Make the guardian end this process group from now on, and no earlier one."""
        self._send(str(group).encode())

    def dismiss(self) -> None:
        """End the guardian: there is nothing to clean up any more."""
        self._send(guardian.DONE)
        self._process.communicate()

    def _send(self, word: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(word + b"\n")
            self._process.stdin.flush()
