"""Which requests were cancelled, polled as often as that costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

# Triton takes 40 to 100 microseconds per request to tell. This is the share of time that polling may take, saved up to
# so many seconds.
_SHARE = 0.02
_SAVED = 0.005


class Cancellable(Protocol):
    """Something that can be cancelled."""

    def is_cancelled(self) -> bool:
        """Whether the answer is not wanted any longer."""


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
        self._credit -= perf_counter() - began
        return cancelled
