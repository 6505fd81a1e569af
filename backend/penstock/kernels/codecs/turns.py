"""Which of several decoders, or of their streams, takes the next batch."""

from __future__ import annotations

TURNS = 3
"""How many take turns at small batches."""
# Batches of so few images, or of images of so few pixels, leave the GPU idle at times.
_FEW, _SMALL = 8, 1 << 19
# Batches that are on their way anyway: one is completed when the next is begun.
_BEGUN = 2


class TurnTaking:
    """Those that take turns, by numbers below ``TURNS``.

    Attributes:
        idle: how many have nothing to do while one batch like the last is decoded, and the next begun.
    """

    def __init__(self) -> None:
        self._turn = self.idle = 0

    def next(self, count: int, pixels: int) -> int:
        """Which takes ``count`` images of so many pixels together; large batches always have the first."""
        turns = TURNS if count <= _FEW or pixels <= _SMALL * count else 1
        self.idle = max(turns - _BEGUN, 0)
        self._turn = (self._turn + 1) % turns
        return self._turn
