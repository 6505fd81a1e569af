"""Which requests nobody waits for any more, asked as often as that costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

_SHARE = 0.02  # of the time may go into asking: Triton takes 40 to 100 microseconds to tell it of one request


class Cancellable(Protocol):
    """What can be cancelled."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""


class CancellationWatch:
    """Asks requests whether they were cancelled, but not again before it has paid off to ask."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def among(self, requests: Sequence[Cancellable]) -> set[int]:
        """The places of those that are known to be cancelled; none where it was asked just now."""
        began = perf_counter()
        if began < self._not_before:
            return set()
        cancelled = {place for place, request in enumerate(requests) if request.is_cancelled()}
        ended = perf_counter()
        self._not_before = ended + (ended - began) / _SHARE
        return cancelled
