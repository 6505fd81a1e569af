"""Detects cancelled requests by polling, so rarely that it costs almost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

# Polling takes Triton 40 to 100 microseconds per request. The first constant is the fraction of time that polling may take; the second
# is how many seconds of unused polling time may accumulate.
_MAX_POLLING_SHARE = 0.02
_MAX_SAVED_SECONDS = 0.005
# The maximum number of seconds per request that count as polling time. A poll that took longer was waiting for a processor; if
# all of that time counted, the next poll would be delayed for long.
_MAX_SECONDS_PER_POLL = 0.001


class Cancellable(Protocol):
    """A request that may be cancelled."""

    def is_cancelled(self) -> bool:
        """Return whether the request was cancelled."""


class CancellationWatch:
    """Polls requests for cancellation, unless recent polls have used up the time for polling."""

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
