"""The connection of a supervisor to a Triton that hosts our backend: the counterpart of `native/lifeline.cc`."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

LIFELINE = "PENSTOCK_LIFELINE"
"""The environment variable with the file descriptor of Triton's end of the connection."""

_POLL_SECONDS = 0.1


class Lifeline:
    """A socket whose other end Triton inherits.

    Triton obeys requests on it, and ends when this process closes its end or dies, even by SIGKILL.
    """

    def __init__(self) -> None:
        self._socket, self._inherited = socket.socketpair()
        self._received = b""

    @property
    def inherited(self) -> int:
        """The file descriptor that Triton inherits."""
        return self._inherited.fileno()

    def started(self) -> None:
        """Close this process's copy of Triton's end; call this after Triton was started."""
        self._inherited.close()

    def listens(self) -> bool:
        """Return whether the server listens; it does after it has loaded the first of our models into its process."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(0)
            self._received += self._socket.recv(64)
        return self._received.startswith(b"listening\n")

    def ask(self, line: str, timeout: float, running: Callable[[], bool]) -> str:
        """Send a line to a server that listens; return its answer, or an empty string if there is none in time.

        Args:
            line: see `native/lifeline.h`.
            timeout: how many seconds to wait for the answer.
            running: whether the server's process is alive.
        """
        deadline = time.monotonic() + timeout
        answer = b""
        with contextlib.suppress(OSError):
            self._socket.settimeout(_POLL_SECONDS)
            self._socket.sendall(line.encode() + b"\n")
            while not answer.endswith(b"\n") and running() and time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    part = self._socket.recv(1024)
                    if not part:
                        break
                    answer += part
        return answer.decode(errors="replace").strip()

    def close(self) -> None:
        """Close the connection; a server that still listens ends then."""
        self._socket.close()
        self._inherited.close()
