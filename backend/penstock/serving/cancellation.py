"""Which requests were cancelled, polled only as often as is nearly free."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

# Polling costs Triton 40 to 100 microseconds per request. This is the fraction of time that polling may take; unused
# time is saved up to this many seconds.
_SHARE = 0.02
_SAVED = 0.005
# What takes longer, in seconds per request, was waiting for a processor, which does not count: one such poll would put off
# the next for a long while.
_LONGEST = 0.001


class Cancellable(Protocol):
    """Something that can be cancelled."""

    def is_cancelled(self) -> bool:
        """Whether the answer is no longer wanted."""


class CancellationWatch:
    """Polls requests for cancellation, unless recent polling would already show in latencies."""

    def __init__(self) -> None:
        self._credit = _SAVED
        self._since = perf_counter()

    def among(self, requests: Sequence[Cancellable]) -> set[int]:
        """The positions of cancelled requests; none if they are not polled."""
        began = perf_counter()
        self._credit = min(self._credit + _SHARE * (began - self._since), _SAVED)
        self._since = began
        if self._credit <= 0:
            return set()
        cancelled = {place for place, request in enumerate(requests) if request.is_cancelled()}
        self._credit -= min(perf_counter() - began, _LONGEST * len(requests))
        return cancelled
