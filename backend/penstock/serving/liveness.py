"""Ends a Triton that no longer answers but has not ended, so that it is restarted like one that has died.

If a client damages Triton, it may hang instead of crashing: its process exists, but answers nothing.
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
"""After this many seconds without an answer, the server is ended. A check waits for up to 10 seconds, so there are at least
four checks.
"""


class Asked(Protocol):
    """The server interface that this module needs."""

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""

    @property
    def pid(self) -> int:
        """The id of the server's process."""


class Liveness:
    """Checks in a separate thread whether a server is alive.

    Args:
        server: the server that is supervised, which must have answered before.
        report: called with a line of text when the server is ended.
        ending: an event that is set when the supervision ends.
        silent_seconds: the number of seconds without an answer after which the server is ended.
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
        # The process that has answered; a restarted server that has not answered yet may still be loading its models.
        self._process, self._answered = server.pid, time.monotonic()
        threading.Thread(target=self._run, name="penstock-liveness", daemon=True).start()

    def _run(self) -> None:
        pause = min(ASK_SECONDS, self._silent_seconds / 4)
        while not self._ending.wait(pause):
            # The server's process may end at any time.
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
