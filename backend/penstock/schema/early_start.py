"""Scheduling hints from operators that start a batch early."""

from __future__ import annotations

from typing import NamedTuple


class EarlyStart(NamedTuple):
    """Hints from an operator that started a batch early, for the runtime to schedule the next batches.

    Attributes:
        batches_ahead: the number of batches, beyond the prefetch depth, that are worth starting early.
        occupies_host: whether completing batches like this one takes host time, which a separate thread could spend
            instead.
    """

    batches_ahead: int = 0
    occupies_host: bool = False

    def joined(self, other: EarlyStart) -> EarlyStart:
        """Combine the hints of two operators of the same pipeline."""
        return EarlyStart(max(self.batches_ahead, other.batches_ahead), self.occupies_host or other.occupies_host)
