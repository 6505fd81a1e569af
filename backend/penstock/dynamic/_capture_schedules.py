"""The states that random operators of a captured loop get in later steps, drawn ahead of time."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from penstock.dynamic._rngs import RNG, STATE_WORDS


def _used_unexpectedly() -> NoReturn:
    raise RuntimeError(
        "The generator of a captured random operator was used unexpectedly: each step of a captured loop must draw as many numbers "
        "as its first one, and nothing else may draw from the generator, or set it, between steps"
    )


class Schedule:
    """The states that random operators will get from a generator. Each step draws as often as the first one, and in the same order.

    Args:
        rng: the generator.
    """

    def __init__(self, rng: RNG) -> None:
        self.rng = rng
        # The positions, within a step, at which the calls of the step draw.
        self.offsets: list[int] = []
        self.period = 0
        self._start = rng.draws
        self._version = rng.version
        self._ahead = rng.clone()
        self._waiting = 0

    @property
    def offset(self) -> int:
        """Return the position of the generator within the step."""
        return self.rng.draws - self._start

    def begin(self) -> None:
        """Record that the first step has ended."""
        self.period = self.offset
        self._version = self.rng.version
        self._start = self.rng.draws
        self.discard_ahead()

    def discard_ahead(self) -> None:
        """Discard the states that were drawn ahead."""
        self._ahead, self._waiting = self.rng.clone(), 0

    def next_states(self) -> list[np.ndarray]:
        """Draw the states for one more step."""
        states, done = [], 0
        for offset in self.offsets:
            self._ahead.advance(offset - done)
            states.append(np.array(self._ahead.draw(STATE_WORDS), np.uint32))
            done = offset + STATE_WORDS
        self._ahead.advance(self.period - done)
        self._waiting += 1
        return states

    def begin_step(self) -> None:
        """Begin a step; raise RuntimeError if the generator has been used since the end of the last step."""
        if self.offset or self.rng.version != self._version or not self._waiting:
            _used_unexpectedly()
        self._waiting -= 1

    def end_step(self) -> None:
        """End a step; raise RuntimeError if it drew more or fewer numbers than the first step."""
        if self.offset != self.period or self.rng.version != self._version:
            _used_unexpectedly()
        self._start = self.rng.draws
