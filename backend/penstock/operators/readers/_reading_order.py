"""The order in which a reader returns samples, as a sequence of indices: shards, shuffling and padding.

The rules are DALI's, so that both read the same data in the same order:

- shard ``k`` of ``n`` consists of the samples from ``size * k // n`` to ``size * (k + 1) // n`` (exclusive);
- a random reader shuffles the list once, then picks samples of one shard at random from a buffer that is filled ahead;
- without padding, a batch may continue into the next epoch, which begins with the next shard unless the reader sticks to one;
- with padding, a shard's last sample is repeated until the batch is full and all shards have the same number of batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from penstock.kernels.random_streams import MinimalStandard, mersenne_twister, mersenne_twister_64, std_shuffle

DEFAULT_SHUFFLE_SEED = 524287


@dataclass(frozen=True)
class OrderSettings:
    """How a reader traverses its samples.

    Attributes:
        size: the number of samples in all shards.
        shard_id, num_shards: the number of the shard to read first, and the number of shards.
        stick_to_shard: read the same shard in each epoch, instead of the next one.
        pad_last_batch: repeat the last sample to fill the last batch.
        shuffle: pick samples at random from a buffer of ``buffer_size`` samples.
        shuffle_list: with ``shuffle``, also shuffle the whole list once, before the first epoch.
        seed: the seed of picking at random.
        epoch_shuffle_seed: shuffle the whole list before each epoch with this seed, and read the same shard in each epoch; None: do not.
        groups: the sizes of the groups of samples (files) that the shuffle before an epoch moves as a whole; None: it moves single samples.
    """

    size: int
    shard_id: int = 0
    num_shards: int = 1
    stick_to_shard: bool = False
    pad_last_batch: bool = False
    shuffle: bool = False
    shuffle_list: bool = True
    buffer_size: int = 1024
    seed: int = 0
    epoch_shuffle_seed: int | None = None
    groups: tuple[int, ...] | None = None

    def start(self, shard: int) -> int:
        """Return the position of a shard's first sample."""
        return self.size * shard // self.num_shards

    def shard_size(self, shard: int) -> int:
        return self.start(shard + 1) - self.start(shard)

    @property
    def keeps_shard(self) -> bool:
        """Whether each epoch reads the same shard of the list, which may have been shuffled before the epoch."""
        return self.stick_to_shard or self.epoch_shuffle_seed is not None

    @property
    def padded_shard_size(self) -> int:
        """The number of samples of the largest shard, to which padding fills up the others."""
        return -(-self.size // self.num_shards)


@dataclass(frozen=True)
class _ShardStart:
    """The state of a reader at the start of a shard.

    Attributes:
        number: how many shards the reader has read before this one.
        epoch: how many epochs the reader had begun, with a shuffle each if epochs are shuffled.
        generator: the state of the random generator that picks samples.
    """

    number: int
    epoch: int
    generator: int


class ReadingOrder:
    """The endless sequence of indices of samples that a reader returns.

    >>> order = ReadingOrder(OrderSettings(size=3))
    >>> [order.next(first_of_batch=True) for _ in range(5)]
    [0, 1, 2, 0, 1]
    """

    def __init__(self, settings: OrderSettings, from_list: bool = False) -> None:
        self.settings = settings
        self._from_list = from_list
        self._generator = MinimalStandard(settings.seed)
        self._epoch = 0
        self._units = self._initial_units()
        self._order = self._initial_order()
        self._last = 0
        self._buffer = np.zeros(max(settings.buffer_size, 1) if settings.shuffle else 1, np.int64)
        self._begin_epoch()
        self._begin_shard(settings.shard_id, 0)

    def _begin_shard(self, shard: int, number: int) -> None:
        """Begin a shard: discard samples read ahead, and fill the buffer.

        Args:
            shard: the shard.
            number: how many shards the reader has read before.
        """
        self._start = _ShardStart(number, self._epoch, self._generator.state)
        self._cursor = self.settings.start(shard)
        self._shard = shard
        self._read_of_shard = 0
        self._given_of_shard = 0
        # The spans [start, end) of the buffer that contain the samples of one shard each, in the order in which shards are read.
        # Positions only grow, and are taken modulo the buffer's size.
        self._spans: deque[list[int]] = deque([[0, 0]])
        for position in range(len(self._buffer)):
            self._buffer[position] = self._read_ahead()

    def end_epoch(self) -> None:
        """Skip the rest of the epoch: the next index is the first one of the next epoch."""
        if self.settings.keeps_shard:
            self._begin_epoch()
        number = self._start.number + 1
        self._begin_shard(self._shard_of(number), number)

    def _shard_of(self, number: int) -> int:
        """Return the shard to read after ``number`` shards."""
        settings = self.settings
        return settings.shard_id if settings.keeps_shard else (settings.shard_id + number) % settings.num_shards

    def take(self, count: int) -> np.ndarray:
        """Return the sample indices of the next batch, int64 of shape (count,).

        >>> ReadingOrder(OrderSettings(size=3)).take(5).tolist()
        [0, 1, 2, 0, 1]
        """
        from penstock.operators.readers._order_cpu import pick

        indices, done = np.empty(count, np.int64), 0
        while done < count:
            steps = min(count - done, self._simple_steps())
            if not steps:
                indices[done] = self.next(first_of_batch=done == 0)
                done += 1
                continue
            (start, end), target = self._spans[0], self._spans[-1][1]
            state = self._generator.state if self.settings.shuffle else -1
            following, picked = self._order[self._cursor : self._cursor + steps], indices[done : done + steps]
            state = pick(self._buffer, following, start, end, target, state, picked)
            if self.settings.shuffle:
                self._generator.state = state
            done += steps
            self._spans[0][0] += steps
            self._spans[-1][1] += steps
            self._given_of_shard += steps
            self._read_of_shard += steps
            self._last = int(indices[done - 1])
            self._cursor += steps
            self._wrap()
        return indices

    def _simple_steps(self) -> int:
        """Return how many samples can be picked from the first span, with as many samples read ahead, before a shard or epoch ends."""
        settings = self.settings
        left = settings.shard_size(self._shard) - self._read_of_shard
        (start, end), several = self._spans[0], len(self._spans) > 1
        picked = end - start if several or start == end else left
        last = settings.start(settings.shard_id + 1) if settings.keeps_shard else settings.size
        return min(picked, left, last - self._cursor)

    def next(self, first_of_batch: bool) -> int:
        """Return the index of the next sample.

        Args:
            first_of_batch: whether this is the first sample of a batch; padding can only end before a batch.
        """
        settings = self.settings
        if self._spans[0][0] == self._spans[0][1]:
            incomplete = self._given_of_shard < settings.padded_shard_size or not first_of_batch
            if settings.pad_last_batch and incomplete:
                self._given_of_shard += 1
                return self._last
            self._spans.popleft()
            self._given_of_shard = 0
            self._start = self._next_start()
        start, end = self._spans[0]
        capacity = len(self._buffer)
        picked = (start + (self._generator.below(end - start) if settings.shuffle else 0)) % capacity
        self._last = int(self._buffer[picked])
        self._buffer[picked] = self._buffer[start % capacity]
        self._spans[0][0] += 1
        target = self._spans[-1][1] % capacity
        self._buffer[target] = self._read_ahead()
        self._given_of_shard += 1
        return self._last

    def _read_ahead(self) -> int:
        """Return the next index in storage order; extend the span of its shard by one."""
        settings = self.settings
        if self._read_of_shard == settings.shard_size(self._shard):
            self._read_of_shard = 0
            if not settings.keeps_shard:
                self._shard = (self._shard + 1) % settings.num_shards
            end = self._spans[-1][1]
            self._spans.append([end, end])
        self._read_of_shard += 1
        self._spans[-1][1] += 1
        index = int(self._order[self._cursor])
        self._cursor += 1
        self._wrap()
        return index

    def _wrap(self) -> None:
        settings = self.settings
        if settings.keeps_shard:
            if self._cursor >= settings.start(settings.shard_id + 1):
                self._cursor = settings.start(settings.shard_id)
                self._begin_epoch()
        elif self._cursor >= settings.size:
            self._cursor = 0
            self._begin_epoch()

    # -- the order of storage ----------------------------------------------------------------------------------

    def _initial_units(self) -> Sequence[int]:
        groups = self.settings.groups
        return range(self.settings.size if groups is None else len(groups))

    def _initial_order(self) -> np.ndarray:
        if self.settings.shuffle and self.settings.shuffle_list:
            return np.array(std_shuffle(range(self.settings.size), mersenne_twister(DEFAULT_SHUFFLE_SEED)), np.int64)
        return np.arange(self.settings.size, dtype=np.int64)

    def _begin_epoch(self) -> None:
        self._epoch += 1
        seed = self.settings.epoch_shuffle_seed
        if seed is not None:
            # Single samples are shuffled starting from the previous epoch's order; but groups, and single samples in pipelines with
            # checkpoints, starting from the files' order.
            from_list = self._from_list or self.settings.groups is not None
            units = self._initial_units() if from_list else self._units
            self._units = std_shuffle(units, mersenne_twister_64((self._epoch << 32) + seed), bits=64)
            self._order = self._expanded(self._units)

    def _expanded(self, units: list[int]) -> np.ndarray:
        """Return the sample indices of units, in order; a unit is the index of a sample or, if there are groups, of a group."""
        groups = self.settings.groups
        if groups is None:
            return np.array(units, np.int64)
        ends = list(accumulate(groups))
        return np.concatenate([np.arange(ends[unit] - groups[unit], ends[unit], dtype=np.int64) for unit in units])

    # -- checkpoints -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the position between two batches, as data for JSON. Readers of any shard can continue from it."""
        settings = self.settings
        start, given = self._start, self._given_of_shard
        is_drained = self._spans[0][0] == self._spans[0][1]
        if is_drained and not (settings.pad_last_batch and given < settings.padded_shard_size):
            start, given = self._next_start(), 0
        return {**asdict(start), "given": given}

    def _next_start(self) -> _ShardStart:
        """Return the state at the start of the next shard. The current shard must be at its end."""
        epoch = self._start.epoch + self.settings.keeps_shard
        return _ShardStart(self._start.number + 1, epoch, self._generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a :meth:`state`. A reader of another shard may have written it, and the number of shards may have been different.

        As in DALI, this reader then has begun as many shards as the other reader had, and skips as many samples as the other reader had
        returned of the last one.
        """
        settings, start = self.settings, _ShardStart(state["number"], state["epoch"], state["generator"])
        self._epoch = 0
        self._units = self._initial_units()
        self._order = self._initial_order()
        while self._epoch < start.epoch:
            self._begin_epoch()
        self._generator.state = start.generator
        self._begin_shard(self._shard_of(start.number), start.number)
        left = state["given"]
        while left:
            # Skip samples shard by shard, as each shard is padded separately.
            count = min(left, settings.padded_shard_size) if settings.pad_last_batch else left
            self.take(count)
            left -= count
