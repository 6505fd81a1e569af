"""The choice of the decoder, or stream, for the next batch."""

from __future__ import annotations

TURNS = 6
"""The largest number of decoders that take turns if batches are very small."""
TURNS_OF_REQUESTS = 3
"""The same, if batches begin only when a request needs them, rather than ahead of time."""
# Small batches, and batches of small images, do not keep the GPU busy all the time; tiny batches leave it idle most of the time.
_MAX_IMAGES_OF_SMALL_BATCH, _MAX_PIXELS_OF_SMALL_IMAGE, _MAX_PIXELS_OF_TINY_BATCH = 8, 1 << 19, 1 << 22
_TURNS_OF_SMALL_BATCHES = 3
# The number of batches in flight in any case: one is completed when the next one has begun.
_BATCHES_IN_FLIGHT = 2


class TurnTaking:
    """Decoders or streams that take turns, by number.

    Args:
        most: the number of decoders or streams, at most :data:`TURNS`.

    Attributes:
        idle: how many decoders have nothing to do while one batch like the last is decoded, and another one begins.
    """

    def __init__(self, most: int = TURNS) -> None:
        self._most, self._turn, self.idle = most, 0, 0

    def next(self, count: int, pixels: int) -> int:
        """Return the number of the decoder for ``count`` images with ``pixels`` pixels in total; large batches always go to the
        first decoder.
        """
        if pixels <= _MAX_PIXELS_OF_TINY_BATCH:
            turns = self._most
        else:
            turns = (
                _TURNS_OF_SMALL_BATCHES
                if count <= _MAX_IMAGES_OF_SMALL_BATCH or pixels <= _MAX_PIXELS_OF_SMALL_IMAGE * count
                else 1
            )
        self.idle = max(turns - _BATCHES_IN_FLIGHT, 0)
        self._turn = (self._turn + 1) % turns
        return self._turn
