"""Reports, in plain words, the progress of a server that starts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_INTERVAL_SECONDS = 5.0
"""The number of seconds between two reports of progress."""
_MAX_NAMES = 3

_LOADING = re.compile(r'"loading: (.+):\d+"')
_LOADED = re.compile(r"(?:successfully loaded|failed to load) '([^']*)'")


class StartProgress:
    """Follows the start of a server in the lines of Triton's log.

    Args:
        show: called with one line at a time.
    """

    def __init__(self, show: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._clock = clock
        self._began = self._shown = clock()
        self._loading: dict[str, float] = {}

    def begin(self, what: str) -> None:
        """Report that a phase begins."""
        self._shown = self._clock()
        self._show(what)

    def observe(self, line: str) -> None:
        """Process the next line of the log."""
        if loading := _LOADING.search(line):
            self._loading.setdefault(loading[1], self._clock())
        elif loaded := _LOADED.search(line):
            self._loading.pop(loaded[1], None)

    def look(self) -> None:
        """Report progress if nothing was reported for a while."""
        now = self._clock()
        if now - self._shown < _INTERVAL_SECONDS:
            return
        loading = dict(self._loading)
        if not loading:
            self.begin(f"Triton is starting, for {now - self._began:.0f} s so far")
            return
        names = sorted(loading, key=loading.__getitem__)
        listed = ", ".join(names[:_MAX_NAMES])
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        seconds = now - min(loading.values())
        self.begin(
            f"loading {listed}{more}, for {seconds:.0f} s so far (kernels are compiled when they are first needed, and then kept)"
        )

    def end(self) -> None:
        """Report that the server is ready."""
        self._show(f"ready after {self._clock() - self._began:.1f} s")
