"""Which requests nobody waits for any more, asked as often as that costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

# Triton takes 40 to 100 microseconds to tell it of one request. So much of the time may go into asking, saved up to so many seconds.
_SHARE = 0.02
_SAVED = 0.005


class Cancellable(Protocol):
    """What can be cancelled."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""


class CancellationWatch:
    """Asks requests whether they were cancelled, unless so much was asked lately that it would tell in the answers' times."""

    def __init__(self) -> None:
        self._credit = _SAVED
        self._since = perf_counter()

    def among(self, requests: Sequence[Cancellable]) -> set[int]:
        """The places of those that were cancelled; none where they are not asked."""
        began = perf_counter()
        self._credit = min(self._credit + _SHARE * (began - self._since), _SAVED)
        self._since = began
        if self._credit <= 0:
            return set()
        cancelled = {place for place, request in enumerate(requests) if request.is_cancelled()}
        self._credit -= perf_counter() - began
        return cancelled
