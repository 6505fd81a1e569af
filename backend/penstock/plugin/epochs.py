"""Counts the epochs of iterators: where an epoch ends, what its last batch is, and where the next epoch begins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any


class LastBatchPolicy(Enum):
    """What happens to the last batch of an epoch if it is not full.

    With samples 1 to 7 in batches of 2:

    ======= ================ =========== ===========================
    policy  reader pads      last batch  the next epoch begins with
    ======= ================ =========== ===========================
    FILL    yes              7, 7        1, 2
    FILL    no               7, 1        2, 3
    DROP    yes              5, 6        1, 2
    DROP    no               5, 6        2, 3
    PARTIAL yes              7           1, 2
    PARTIAL no               7           2, 3
    ======= ================ =========== ===========================
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


class Epoch:
    """An epoch that ends when the pipeline's source ends; the base class of epochs with a known size.

    Args:
        has_length: whether the epoch's ``len`` is 0, rather than raising ValueError.

    Attributes:
        counter: the number of samples of this epoch that were taken, including those that the previous epoch took; if
            `size` is -1, the number of batches.
        size: the number of samples in the epoch; -1: the epoch ends when the pipeline's source ends.
    """

    size = -1

    def __init__(self, has_length: bool = True) -> None:
        self.counter = 0
        self._has_length = has_length

    @property
    def over(self) -> bool:
        """Whether all samples in the epoch were taken."""
        return False

    @property
    def last_is_short(self) -> bool:
        """Whether the batch taken last must be dropped, because the epoch ended in the middle of it."""
        return False

    @property
    def next_is_short(self) -> bool:
        """Whether the next batch must be dropped."""
        return False

    @property
    def resettable(self) -> bool:
        """Whether the next epoch may start."""
        return True

    def advance(self) -> None:
        """Count one batch of each pipeline."""
        self.counter += 1

    def within(self) -> list[int] | None:
        """Return how many samples of each pipeline's last batch belong to the epoch; None: all."""
        return None

    def remaining(self) -> list[int] | None:
        """Return how many samples of each pipeline's last batch remain after it is cut; None: it is not cut."""
        return None

    def begin_next(self) -> None:
        """Advance to the next epoch."""
        self.counter = 0

    def restart(self) -> None:
        """Advance from any position to the next epoch; no samples of it were taken yet."""
        self.counter = 0

    def __len__(self) -> int:
        if not self._has_length:
            raise ValueError(
                "__len__() should return >= 0, but only the pipeline's source knows how many batches it has"
            )
        return 0

    def state(self) -> dict[str, Any]:
        """Return the state for checkpoints."""
        return {"counter": self.counter}

    def restore(self, state: dict[str, object]) -> None:
        """Restore a state that :meth:`state` returned."""
        for name, value in state.items():
            setattr(self, name, value)


class SizedEpoch(Epoch):
    """An epoch for which the user sets the number of samples of all pipelines together."""

    def __init__(self, size: int, batch_size: int, pipelines: int, policy: LastBatchPolicy, padded: bool) -> None:
        super().__init__()
        self.size = size
        self._batch_size = batch_size
        self._step = batch_size * pipelines
        self._policy = policy
        self._padded = padded

    @property
    def over(self) -> bool:
        return self.counter >= self.size

    @property
    def last_is_short(self) -> bool:
        return self._policy == LastBatchPolicy.DROP and self.counter > self.size

    @property
    def next_is_short(self) -> bool:
        return self._policy == LastBatchPolicy.DROP and self.counter + self._step > self.size

    @property
    def resettable(self) -> bool:
        return self.over

    def advance(self) -> None:
        self.counter += self._step

    def remaining(self) -> list[int] | None:
        if self._policy != LastBatchPolicy.PARTIAL or self.counter <= self.size:
            return None
        whole, rest = divmod(self._step - (self.counter - self.size), self._batch_size)
        return [self._batch_size] * whole + ([rest] if rest else [])

    def begin_next(self) -> None:
        # Samples of the next epoch that filled the last batch are not taken again.
        reads_ahead = self._policy == LastBatchPolicy.FILL and not self._padded
        self.counter = self.counter % self.size if reads_ahead else 0

    def __len__(self) -> int:
        whole, rest = divmod(self.size, self._step)
        return whole + (rest > 0 and self._policy != LastBatchPolicy.DROP)


class ReaderEpoch(Epoch):
    """An epoch of a reader's data set, with a shard for each pipeline.

    Shards differ in size by up to one sample, and readers advance to the next shard after each epoch. So this tracks, for every
    shard, how many samples of the next shard were already read.

    Args:
        metas: ``reader_meta`` of the reader of each pipeline.

    Attributes:
        samples: the number of samples in the data set.
        shards: the number of the data set's shards.
        padded: whether readers fill a shard's last batch with its last sample.
        sticks_to_shard: whether readers stay in their shards.
        shard_ids: the shard of each pipeline.
        sizes: the number of samples of each shard.
        current_sizes, ahead: the number of samples of each shard, and how many of them the previous epoch has already read.
            Both rotate with the shards if pipelines read ahead: entry i belongs to the pipeline that started with shard i.

    Raises:
        AssertionError: the readers differ in their data set, shards or padding.
    """

    def __init__(self, metas: Sequence[Mapping[str, int]], batch_size: int, policy: LastBatchPolicy) -> None:
        super().__init__()
        self._batch_size = batch_size
        self._policy = policy
        self.shards = _common(metas, "number_of_shards", "`num_shards` argument set")
        self.padded = bool(_common(metas, "pad_last_batch", "`pad_last_batch` argument set"))
        self.sticks_to_shard = bool(_common(metas, "stick_to_shard", "`stick_to_shard` argument set"))
        self.samples = samples = _common(metas, "epoch_size", "size value")
        self.shard_ids = [meta["shard_id"] for meta in metas]
        edges = [samples * shard // self.shards for shard in range(self.shards + 1)]
        self.sizes = [stop - start for start, stop in itertools.pairwise(edges)]
        self.current_sizes = list(self.sizes)
        self.ahead = [0] * self.shards
        if policy == LastBatchPolicy.DROP:
            self.size = samples // self.shards
        elif self.padded:
            self.size = metas[0]["epoch_size_padded"] // self.shards
        else:
            self.size = self._whole_batches(math.ceil(samples / self.shards))

    def _whole_batches(self, samples: int) -> int:
        return math.ceil(samples / self._batch_size) * self._batch_size

    @property
    def over(self) -> bool:
        return self.counter >= self.size

    def _is_short(self, counter: int) -> bool:
        return self._policy == LastBatchPolicy.DROP and counter > min(self.current_sizes)

    @property
    def last_is_short(self) -> bool:
        return self._is_short(self.counter)

    @property
    def next_is_short(self) -> bool:
        return self._is_short(self.counter + self._batch_size)

    @property
    def resettable(self) -> bool:
        return self.over

    def advance(self) -> None:
        self.counter += self._batch_size

    def remaining(self) -> list[int] | None:
        return self.within() if self._policy == LastBatchPolicy.PARTIAL else None

    def within(self) -> list[int] | None:
        left = [self._batch_size - max(0, self.counter - self.sizes[shard]) for shard in self.shard_ids]
        return [max(0, count) for count in left] if min(left) < self._batch_size else None

    def begin_next(self) -> None:
        if not self.sticks_to_shard:
            self.shard_ids = [(shard + 1) % self.shards for shard in self.shard_ids]
        if self._policy == LastBatchPolicy.FILL and not self.padded:
            self._carry_over()
        else:
            self.counter = 0

    def restart(self) -> None:
        self.counter = 0
        self.ahead = [0] * self.shards
        if not self.sticks_to_shard:
            self.shard_ids = [(shard + 1) % self.shards for shard in self.shard_ids]
            self._turn()

    def _carry_over(self) -> None:
        """Start the next epoch without those of its samples that the last batches of the previous epoch contained."""
        consumed = self.counter - min(self.ahead)
        self.ahead = [ahead + consumed - size for ahead, size in zip(self.ahead, self.current_sizes)]
        self.counter = min(self.ahead)
        if not self.sticks_to_shard:
            self._turn()
        self.size = self._whole_batches(max(size - ahead for size, ahead in zip(self.current_sizes, self.ahead)))
        if self.size == 0:
            # All samples of the epoch were read already, so the epoch is skipped.
            self.ahead = [0] * self.shards
            self.counter = 0
            self._turn()
            self.size = self._whole_batches(max(self.current_sizes))

    def _turn(self) -> None:
        self.current_sizes = self.current_sizes[-1:] + self.current_sizes[:-1]

    def __len__(self) -> int:
        whole, rest = divmod(self.size, self._batch_size)
        return whole + (rest > 0 and self._policy != LastBatchPolicy.DROP)

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("counter", "size", "shard_ids", "current_sizes", "ahead")}


def _common(metas: Sequence[Mapping[str, int]], key: str, what: str) -> int:
    value = metas[0][key]
    require(
        all(meta[key] == value for meta in metas), f"Reader Operator should have the same {what} in all the pipelines."
    )
    return value


def require(condition: object, message: str) -> None:
    """Raise AssertionError unless the condition holds, as DALI's iterators do for wrong arguments."""
    if not condition:
        raise AssertionError(message)
