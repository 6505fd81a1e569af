"""Ends a Triton that has stopped answering without ending: it is then restarted like one that has died.

Damaged by a client, Triton may hang instead of crashing: its process lives, and answers nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Protocol

from penstock.serving.control import Control, ServerError

ASK_SECONDS = 5.0
"""The interval between two checks, in seconds."""

SILENT_SECONDS = 60.0
"""The seconds without an answer after which the server is ended. Each check waits for 10 seconds, so there are at least
four.
"""


class Asked(Protocol):
    """The server interface that this module needs."""

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def running(self) -> bool:
        """Whether its process is alive."""

    @property
    def pid(self) -> int:
        """The server's process id."""


class Liveness:
    """Checks in a separate thread whether a server is alive.

    Args:
        server: the server that is supervised; it has answered already.
        report: called when it is ended.
        ending: set when the supervision ends.
        silent_seconds: the seconds without an answer after which it is ended.
    """

    def __init__(
        self,
        server: Asked,
        report: Callable[[str], None],
        ending: threading.Event,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self._server, self._report, self._ending = server, report, ending
        self._silent_seconds = silent_seconds
        # A server that has not answered yet may still be loading its models.
        self._process, self._answered = server.pid, time.monotonic()
        threading.Thread(target=self._run, name="penstock-liveness", daemon=True).start()

    def _run(self) -> None:
        pause = min(ASK_SECONDS, self._silent_seconds / 4)
        while not self._ending.wait(pause):
            # The process may end at any time.
            with contextlib.suppress(ServerError, OSError):
                self._ask()

    def _ask(self) -> None:
        if not self._server.running:
            return
        process = self._server.pid
        if self._server.control.live():
            self._process, self._answered = process, time.monotonic()
            return
        silent = time.monotonic() - self._answered
        if process == self._process == self._server.pid and silent > self._silent_seconds and not self._ending.is_set():
            self._report(f"Triton has not answered for {silent:.0f} s, although its process lives; it is ended")
            os.killpg(process, signal.SIGKILL)
