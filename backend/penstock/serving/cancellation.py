"""Detection of cancelled requests, polled so rarely that it costs almost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

# Polling costs Triton 40 to 100 microseconds per request. The fraction of time that polling may take, and the seconds
# of unused time that may be saved up.
_MAX_POLLING_SHARE = 0.02
_MAX_SAVED_SECONDS = 0.005
# Polls that took longer, in seconds per request, were waiting for a processor. They do not count, as the next poll would be delayed for a
# long while.
_MAX_SECONDS_PER_POLL = 0.001


class Cancellable(Protocol):
    """A request that may be cancelled."""

    def is_cancelled(self) -> bool:
        """Return whether the answer is no longer wanted."""


class CancellationWatch:
    """Polls requests for cancellation, unless recent polling would already show in latencies."""

    def __init__(self) -> None:
        self._credit = _MAX_SAVED_SECONDS
        self._since = perf_counter()

    def among(self, requests: Sequence[Cancellable]) -> set[int]:
        """Return the positions of cancelled requests; none if they are not polled."""
        began = perf_counter()
        self._credit = min(self._credit + _MAX_POLLING_SHARE * (began - self._since), _MAX_SAVED_SECONDS)
        self._since = began
        if self._credit <= 0:
            return set()
        cancelled = {position for position, request in enumerate(requests) if request.is_cancelled()}
        self._credit -= min(perf_counter() - began, _MAX_SECONDS_PER_POLL * len(requests))
        return cancelled
