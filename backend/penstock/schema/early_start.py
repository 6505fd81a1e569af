"""What an operator that starts a batch early tells the runtime."""

from __future__ import annotations

from typing import NamedTuple


class EarlyStart(NamedTuple):
    """What starting a batch showed, from which the runtime schedules the next ones.

    Attributes:
        batches_ahead: how many batches beyond the prefetch depth are worth starting early.
        occupies_host: whether completing batches like this one takes host time, which a thread of its own would spend meanwhile.
    """

    batches_ahead: int = 0
    occupies_host: bool = False

    def joined(self, other: EarlyStart) -> EarlyStart:
        """What two operators of one pipeline showed together."""
        return EarlyStart(max(self.batches_ahead, other.batches_ahead), self.occupies_host or other.occupies_host)
