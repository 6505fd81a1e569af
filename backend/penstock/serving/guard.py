"""Starts the guardian of a server: a process that cleans up if this process is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from penstock.serving import guardian


class Guard:
    """The guardian, as seen by the process that starts it.

    Args:
        shared_memory: the prefix of the names of the server's shared memory regions.
        folder: the server's folder, which the guardian removes.
    """

    def __init__(self, shared_memory: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            # Without site packages, so that the process is small and ready at once.
            [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), shared_memory, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """From now on, let the guardian end this process group, instead of an earlier one."""
        self._send(str(group).encode())

    def dismiss(self) -> None:
        """End the guardian, as there is nothing left to clean up."""
        self._send(guardian.DONE)
        self._process.communicate()

    def _send(self, word: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(word + b"\n")
            self._process.stdin.flush()
