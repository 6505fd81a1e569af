"""Random number generators, from which random operators draw their states."""

from __future__ import annotations

import operator
import re
import secrets
import threading
from collections.abc import Callable
from typing import SupportsIndex, final

import numpy as np

STATE_WORDS = 7
"""The number of draws that one call of a random operator takes."""

_MASK = 0xFFFFFFFFFFFFFFFF
_NUM_WORDS_AHEAD = 64
# The number of words in all blocks of all streams.
_NUM_POSITIONS = 1 << 130
_STATE = re.compile(r"Philox_([0-9A-F]{16})_([0-9A-F]{16}):([0-9A-F]{16})_([0-3])")


class RNGState(str):
    """The state of an :class:`RNG`, as a string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"RNGState('{self}')"


@final
class RNG:
    """A random number generator. Random operators accept a generator as ``rng``, and draw their state for a batch from it.

    The numbers are those of Philox4x32-10, as in DALI.

    Args:
        seed: a seed of 64 bits; by default a random one.
        state: the state to continue from; cannot be combined with ``seed``.

    >>> RNG(seed=42)(), RNG(seed=42)()
    (2632642643, 2632642643)
    """

    on_draw: Callable[[RNG], None] | None = None
    """If not None, this function is called before a number is drawn."""

    def __init__(self, seed: int | None = None, state: object = None) -> None:
        if seed is not None and state is not None:
            raise ValueError("Cannot specify both `seed` and `state`")
        self.draws = self.version = 0
        if state is None:
            self.seed = secrets.randbits(64) if seed is None else seed
        else:
            self.set_state(state)

    def _begin(self, key: int, position: int) -> None:
        # A position counts words across all blocks of all streams.
        self._key, self._position = key, position
        # Numbers that were computed ahead, and the position of the first of them.
        self._ahead, self._ahead_from = np.empty(0, np.uint64), position
        self.version += 1

    def __call__(self) -> int:
        """Return the next number, an integer from 0 to 2**32 - 1."""
        return self.draw(1)[0]

    def draw(self, count: int) -> list[int]:
        """Return the next ``count`` numbers."""
        if self.on_draw is not None:
            self.on_draw(self)
        start = self._position - self._ahead_from
        if start < 0 or start + count > self._ahead.size:
            self._compute(max(count, _NUM_WORDS_AHEAD))
            start = 0
        self._position += count
        self.draws += count
        return self._ahead[start : start + count].tolist()

    def _compute(self, count: int) -> None:
        from penstock.kernels.cpu.philox import fill_blocks

        block, phase = divmod(self._position % _NUM_POSITIONS, 4)
        stream, counter = divmod(block, _MASK + 1)
        ahead = np.empty(-(-(phase + count) // 4) * 4, np.uint64)
        fill_blocks(ahead, np.uint64(self._key), np.uint64(stream), np.uint64(counter))
        self._ahead, self._ahead_from = ahead[phase:], self._position

    def advance(self, n: SupportsIndex) -> None:
        """Skip ``n`` numbers."""
        count = operator.index(n)
        if count < 0:
            raise ValueError(f"A generator cannot go back: advance({count})")
        if count:
            if self.on_draw is not None:
                self.on_draw(self)
            self._position += count
            self.draws += count

    @property
    def seed(self) -> int:
        """Set the seed and start again; the seed cannot be read."""
        raise AttributeError("The seed of a generator can only be set; read `state` for its position")

    @seed.setter
    def seed(self, value: int) -> None:
        self._begin(operator.index(value) & _MASK, 0)

    @property
    def state(self) -> RNGState:
        """The state of the generator, as a string that can be stored."""
        return self.get_state()

    @state.setter
    def state(self, value: object) -> None:
        self.set_state(value)

    def get_state(self, *, cuda_stream: object = None) -> RNGState:
        """Return the state of the generator, as a string that can be stored."""
        block, phase = divmod(self._position % _NUM_POSITIONS, 4)
        stream, counter = divmod(block, _MASK + 1)
        return RNGState(f"Philox_{self._key:016X}_{stream:016X}:{counter:016X}_{phase}")

    def set_state(self, value: object) -> None:
        """Continue from a state, or its string; raise ValueError for anything else."""
        match = _STATE.fullmatch(str(value))
        if match is None:
            raise ValueError(f"This is not the state of a generator: {value!r}")
        key, stream, block = (int(word, 16) for word in match.groups()[:3])
        self._begin(key, 4 * ((stream << 64) + block) + int(match[4]))

    def clone(self) -> RNG:
        """Return another generator that will draw the same numbers as this one."""
        return RNG(state=self.state)

    def __repr__(self) -> str:
        return f"RNG(state='{self.state}')"


class _Default(threading.local):
    """The default generator of a thread."""

    def __init__(self) -> None:
        self.rng = RNG()


_default = _Default()


def get_default_rng() -> RNG:
    """Return this thread's default generator, which random operators use if they get none."""
    return _default.rng


def set_seed(seed: int) -> None:
    """Set the seed of this thread's default generator."""
    _default.rng.seed = seed


def chosen_rng(rng: object) -> RNG:
    """Return the generator that was passed, or the thread's default one for None; raise ValueError for anything else."""
    if rng is None:
        return _default.rng
    if not isinstance(rng, RNG):
        raise ValueError(f"rng must be an instance of RNG, but got {type(rng).__module__}.{type(rng).__qualname__}")
    return rng
