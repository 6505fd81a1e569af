"""Shared by all frameworks' iterators: the end of an epoch, its last batch, resetting, checkpoints."""

from __future__ import annotations

import itertools
import json
import logging
import math
import warnings
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from penstock.data_types import PipelineAPIType
from penstock.pipeline import Pipeline

_log = logging.getLogger(__name__)


class LastBatchPolicy(Enum):
    """What happens to the last batch of an epoch if it is not full.

    For the samples 1 to 7 in batches of 2:

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
    """An epoch that ends when the pipeline does; the base of counted epochs.

    Attributes:
        counter: samples taken in this epoch, including those read ahead of it.
        size: the number of samples in the epoch; -1: until the pipeline ends.
    """

    size = -1

    def __init__(self) -> None:
        self.counter = 0

    @property
    def over(self) -> bool:
        """Whether everything in the epoch was taken."""
        return False

    @property
    def last_is_short(self) -> bool:
        """Whether the last batch taken must be dropped, because the epoch ended within it."""
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
        """Counts one batch of each pipeline."""
        self.counter += 1

    def within(self) -> list[int] | None:
        """The number of samples of each pipeline's last batch within the epoch; None: all."""
        return None

    def kept(self) -> list[int] | None:
        """Like :meth:`within`, if the other samples must be removed."""
        return None

    def begin_next(self) -> None:
        """Advances to the next epoch."""
        self.counter = 0

    def begin_anew(self) -> None:
        """Advances from any position to the next epoch, of which nothing was read ahead."""
        self.counter = 0

    def __len__(self) -> int:
        return 0

    def state(self) -> dict[str, Any]:
        """The state for checkpoints."""
        return {"counter": self.counter}

    def restore(self, state: dict[str, object]) -> None:
        """Restores a :meth:`state`."""
        for name, value in state.items():
            setattr(self, name, value)


class SizedEpoch(Epoch):
    """An epoch with a number of samples given by the user, over all pipelines together."""

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

    def kept(self) -> list[int] | None:
        if self._policy != LastBatchPolicy.PARTIAL or self.counter <= self.size:
            return None
        whole, rest = divmod(self._step - (self.counter - self.size), self._batch_size)
        return [self._batch_size] * whole + ([rest] if rest else [])

    def begin_next(self) -> None:
        # Samples of the next epoch used to fill a batch are not taken again.
        reads_ahead = self._policy == LastBatchPolicy.FILL and not self._padded
        self.counter = self.counter % self.size if reads_ahead else 0

    def __len__(self) -> int:
        whole, rest = divmod(self.size, self._step)
        return whole + (rest > 0 and self._policy != LastBatchPolicy.DROP)


class ReaderEpoch(Epoch):
    """An epoch of a reader's data set, with a shard for each pipeline.

    Shards differ by up to one sample and readers advance to the next shard after each epoch, so the position read ahead
    in the next shard is tracked for every shard.

    Args:
        metas: ``reader_meta`` of the reader of each pipeline.

    Raises:
        AssertionError: the readers do not agree on the data or how to read it.
    """

    def __init__(self, metas: Sequence[dict[str, Any]], batch_size: int, policy: LastBatchPolicy) -> None:
        super().__init__()
        self._batch_size = batch_size
        self._policy = policy
        self._shards = _common(metas, "number_of_shards", "`num_shards` argument set")
        self._padded = bool(_common(metas, "pad_last_batch", "`pad_last_batch` argument set"))
        self._sticks_to_shard = bool(_common(metas, "stick_to_shard", "`stick_to_shard` argument set"))
        samples = _common(metas, "epoch_size", "size value")
        self._shard_ids = [meta["shard_id"] for meta in metas]
        edges = [samples * shard // self._shards for shard in range(self._shards + 1)]
        self._sizes = [stop - start for start, stop in itertools.pairwise(edges)]
        # Both lists rotate with the shards if pipelines read ahead: entry i belongs to the pipeline that started with
        # shard i.
        self._current_sizes = list(self._sizes)
        self._ahead = [0] * self._shards
        if policy == LastBatchPolicy.DROP:
            self.size = samples // self._shards
        elif self._padded:
            self.size = metas[0]["epoch_size_padded"] // self._shards
        else:
            self.size = self._whole_batches(math.ceil(samples / self._shards))

    def _whole_batches(self, samples: int) -> int:
        return math.ceil(samples / self._batch_size) * self._batch_size

    @property
    def over(self) -> bool:
        return self.counter >= self.size

    def _is_short(self, counter: int) -> bool:
        return self._policy == LastBatchPolicy.DROP and counter > min(self._current_sizes)

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

    def kept(self) -> list[int] | None:
        return self.within() if self._policy == LastBatchPolicy.PARTIAL else None

    def within(self) -> list[int] | None:
        left = [self._batch_size - max(0, self.counter - self._sizes[shard]) for shard in self._shard_ids]
        return [max(0, count) for count in left] if min(left) < self._batch_size else None

    def begin_next(self) -> None:
        if not self._sticks_to_shard:
            self._shard_ids = [(shard + 1) % self._shards for shard in self._shard_ids]
        if self._policy == LastBatchPolicy.FILL and not self._padded:
            self._carry_over()
        else:
            self.counter = 0

    def begin_anew(self) -> None:
        self.counter = 0
        self._ahead = [0] * self._shards
        if not self._sticks_to_shard:
            self._shard_ids = [(shard + 1) % self._shards for shard in self._shard_ids]
            self._turn()

    def _carry_over(self) -> None:
        """Starts an epoch without the samples that the previous epoch's last batches took from it."""
        taken = self.counter - min(self._ahead)
        self._ahead = [ahead + taken - size for ahead, size in zip(self._ahead, self._current_sizes)]
        self.counter = min(self._ahead)
        if not self._sticks_to_shard:
            self._turn()
        self.size = self._whole_batches(max(size - ahead for size, ahead in zip(self._current_sizes, self._ahead)))
        if self.size == 0:
            # The whole epoch has been read already, so it is skipped.
            self._ahead = [0] * self._shards
            self.counter = 0
            self._turn()
            self.size = self._whole_batches(max(self._current_sizes))

    def _turn(self) -> None:
        self._current_sizes = self._current_sizes[-1:] + self._current_sizes[:-1]

    def __len__(self) -> int:
        whole, rest = divmod(self.size, self._batch_size)
        return whole + (rest > 0 and self._policy != LastBatchPolicy.DROP)

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("counter", "size", "_shard_ids", "_current_sizes", "_ahead")}


def _common(metas: Sequence[dict[str, Any]], key: str, what: str) -> Any:
    value = metas[0][key]
    _require(
        all(meta[key] == value for meta in metas), f"Reader Operator should have the same {what} in all the pipelines."
    )
    return value


def _require(condition: Any, message: str) -> None:
    # DALI's iterators reject wrong arguments by assertions, which programs may catch.
    if not condition:
        raise AssertionError(message)


class BaseIterator:
    """Takes batches from one or more pipelines; the frameworks' iterators convert them.

    Args:
        pipelines: one, or a list (one per GPU), with equal batch sizes.
        size: samples in an epoch, of all pipelines together. -1: an epoch ends with the pipeline's source or, with
            ``reader_name``, with the reader's epoch.
        reader_name: the name of each pipeline's reader, which determines size, shards and padding.
        auto_reset: ``"yes"`` or True: the next epoch starts automatically after StopIteration; ``"no"``, False or None:
            :meth:`reset` starts it.
        fill_last_batch: deprecated: True is ``LastBatchPolicy.FILL``, False is ``PARTIAL``.
        last_batch_padded: with ``size``: the reader repeats its last sample in the last batch.
        last_batch_policy: what happens to a last batch that is not full.
        prepare_first_batch: fetch the first batch at once.

    Raises:
        AssertionError: the arguments contradict each other.
        ValueError: ``auto_reset`` or ``last_batch_policy`` is not one of the above.
        RuntimeError: the pipelines have no data.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        _require(pipelines is not None, "Number of provided pipelines has to be at least 1")
        self._pipes: list[Pipeline] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]  # type: ignore[list-item]
        _require(self._pipes, "Number of provided pipelines has to be at least 1")
        self._num_gpus = len(self._pipes)
        for pipe in self._pipes:
            if pipe.max_batch_size is None:
                raise ValueError("The batch size must be set.")
        self.batch_size: int = self._pipes[0].max_batch_size or 0
        _require(
            all(pipe.max_batch_size == self.batch_size for pipe in self._pipes),
            "All pipelines should have the same batch size set",
        )
        self._auto_reset = _as_flag(auto_reset)
        policy = _as_policy(last_batch_policy, fill_last_batch)
        size = int(size)
        _require(size != 0, "Size cannot be 0")
        _require(
            size > 0 or len(self._pipes) == 1 or reader_name,
            "Negative size is supported only for a single pipeline",
        )
        _require(not reader_name or size < 0, "When reader_name is provided, size should not be set")
        _require(
            not reader_name or not last_batch_padded,
            "When reader_name is provided, last_batch_padded should not be set",
        )
        if size > 0:
            warnings.warn(
                "Please set `reader_name`, and don't set `size` and `last_batch_padded` manually, where a reader tells them: some "
                "samples may be missed or duplicated otherwise.",
                UserWarning,
                stacklevel=3,
            )
        for pipe in self._pipes:
            with pipe.running_through(PipelineAPIType.ITERATOR):
                pipe.build()
        self._epoch = self._make_epoch(size, reader_name, policy, last_batch_padded)
        self._last_batch_policy = policy
        self._reader_name = reader_name
        self._fixed_batch_size = bool(reader_name) or size > 0
        self._ever_scheduled = False
        self._ever_consumed = False
        self._first_batch: object = None
        self._prepare_checkpoints()
        # Iterators written for DALI convert batches in their own `__next__`, and fetch the first one there.
        if prepare_first_batch and type(self)._converted is not BaseIterator._converted:
            self._prepare_first_batch()

    def _make_epoch(self, size: int, reader_name: str | None, policy: LastBatchPolicy, padded: bool) -> Epoch:
        if reader_name:
            return ReaderEpoch([pipe.reader_meta(reader_name) for pipe in self._pipes], self.batch_size, policy)
        if size > 0:
            return SizedEpoch(size, self.batch_size, len(self._pipes), policy, padded)
        return Epoch()

    # -- implemented by each framework -----------------------------------------------------------------------------

    def _converted(self, outputs: list[tuple[object, ...]]) -> object:
        """Converts the pipelines' outputs."""
        raise NotImplementedError

    def _trimmed(self, batch: Any, kept: Sequence[int]) -> Any:
        """The converted batch with only the first samples of each pipeline; pipelines past the end of ``kept``
        contribute nothing."""
        raise NotImplementedError

    # -- batches ---------------------------------------------------------------------------------------------------

    def __next__(self) -> Any:
        """The next batch; StopIteration at the end of the epoch."""
        self._ever_consumed = True
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        return self._take_batch()

    def next(self) -> Any:
        """The next batch; StopIteration at the end of the epoch."""
        return next(self)

    def _take_batch(self) -> object:
        batch = None
        while batch is None:
            batch = self._next_batch()
        return batch

    def _next_batch(self) -> object | None:
        """The next batch; None if all of its samples were skipped."""
        outputs = self._get_outputs()
        has_samples = any(pipe.kept_of(self.batch_size) for pipe in self._pipes)
        batch = self._converted(outputs) if has_samples else None
        self._schedule_runs()
        self._advance_and_check_drop_last()
        kept = self._epoch.kept()
        if batch is None or kept is None:
            return batch
        return self._trimmed(batch, [pipe.kept_of(count) for pipe, count in zip(self._pipes, kept)])

    def _get_outputs(self) -> list[tuple[Any, ...]]:
        if not self._ever_scheduled:
            self._schedule_runs()
        if self._epoch.over:
            self._end_epoch()
        try:
            outputs = [self._share_outputs(pipe) for pipe in self._pipes]
        except StopIteration:
            if self._epoch.size < 0 and self._auto_reset:
                self.reset()
            raise
        if self._fixed_batch_size:
            _require(
                all(
                    len(batch) == pipe.kept_of(self.batch_size)
                    for pipe, pipe_outputs in zip(self._pipes, outputs)
                    for batch in pipe_outputs
                ),
                "Variable batch size is not supported by the iterator when reader_name is provided or iterator size is set "
                "explicitly",
            )
        return outputs

    def _share_outputs(self, pipe: Pipeline) -> tuple[Any, ...]:
        with pipe.running_through(PipelineAPIType.ITERATOR):
            return pipe.share_outputs()

    def _schedule_runs(self) -> None:
        self._ever_scheduled = True
        for pipe in self._pipes:
            with pipe.running_through(PipelineAPIType.ITERATOR):
                pipe.schedule_run()

    def _advance_and_check_drop_last(self) -> None:
        """Counts the batch taken; raises StopIteration if it must be dropped."""
        self._epoch.advance()
        if self._epoch.last_is_short:
            self._end_epoch()

    def _remove_padded(self) -> tuple[object, object]:
        """For each pipeline whether its last batch is cut, and the number of samples left; (False, -1): none is."""
        kept = self._epoch.kept()
        if kept is None:
            return False, -1
        return np.less(kept, self.batch_size), np.asarray(kept)

    def _end_epoch(self) -> None:
        if self._auto_reset:
            self.reset()
        raise StopIteration

    def _prepare_first_batch(self) -> None:
        try:
            self._first_batch = self._take_batch()
        except StopIteration:
            # A pipeline that continues from a checkpoint may be at the end of its epoch.
            if not any(pipe.is_restored_from_checkpoint for pipe in self._pipes):
                raise RuntimeError(
                    "It seems that there is no data in the pipeline. This may happen if `last_batch_policy` is set to PARTIAL "
                    "and the requested batch size is greater than the shard size. Otherwise the pipeline's source is empty."
                ) from None
            # That epoch was taken before the checkpoint, so a loop over this iterator begins the next.
            self._ever_consumed = True

    def reset(self) -> None:
        """Starts the next epoch: at the end of this one, or after an error, which ends it.

        Ignored, with a warning in the log, in the midst of an epoch.
        """
        epoch = self._epoch
        if self._failed:
            for pipe in self._pipes:
                pipe.end_epoch()
            self._first_batch = None
            epoch.begin_anew()
            self._begin_pipelines()
            return
        if epoch.next_is_short and not epoch.over:
            # By the iterator's length the epoch is over, but its last batch, which is to be dropped, was not taken yet.
            self._get_outputs()
            self._schedule_runs()
            epoch.advance()
        if not epoch.resettable:
            _log.warning("The iterator does not support resetting while the epoch is not finished. Ignored.")
            return
        epoch.begin_next()
        self._begin_pipelines()

    @property
    def _failed(self) -> bool:
        return any(pipe.failed for pipe in self._pipes)

    def _begin_pipelines(self) -> None:
        for pipe in self._pipes:
            pipe.reset()
            if pipe.empty():
                with pipe.running_through(PipelineAPIType.ITERATOR):
                    pipe.schedule_run()

    def __iter__(self) -> Any:
        if self._ever_consumed and (self._epoch.counter or self._failed):
            self.reset()
        return self

    @property
    def size(self) -> int:
        """Samples in the epoch; -1 if only the pipeline's source knows."""
        return self._epoch.size

    @property
    def _size(self) -> int:
        return self._epoch.size

    @property
    def _counter(self) -> int:
        return self._epoch.counter

    def __len__(self) -> int:
        """Batches in the epoch; 0 if only the pipeline's source knows."""
        return len(self._epoch)

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _prepare_checkpoints(self) -> None:
        enabled = {pipe.settings.enable_checkpointing for pipe in self._pipes}
        if len(enabled) > 1:
            raise ValueError("All wrapped pipelines must have the same value for `enable_checkpointing`.")
        self._enable_checkpointing = enabled.pop()
        if not self._enable_checkpointing:
            return
        self._restore_epoch()
        # Fetching the first batch must not show in a checkpoint made before the user takes it.
        self._initial_checkpoints = self._save()

    def _restore_epoch(self) -> None:
        restored = [pipe for pipe in self._pipes if pipe.is_restored_from_checkpoint]
        if not restored:
            return
        states = [pipe.iterator_state for pipe in self._pipes]
        if len(restored) < len(self._pipes) or any(state != states[0] for state in states):
            _log.warning(
                "The pipelines do not continue from checkpoints of one moment; samples may be missed or repeated."
            )
        if states[0] is None:
            _log.warning("The checkpoint was not made by an iterator; samples may be missed or repeated.")
            return
        self._epoch.restore(json.loads(states[0]))

    def _save(self) -> list[bytes]:
        state = json.dumps(self._epoch.state())
        return [pipe.checkpoint(iterator=state) for pipe in self._pipes]

    def checkpoints(self) -> list[bytes]:
        """The checkpoint of each pipeline, after the last batch taken.

        Raises:
            ValueError: the pipelines were made without ``enable_checkpointing``.
        """
        if not self._enable_checkpointing:
            raise ValueError("Cannot access checkpoints with checkpointing disabled")
        return self._save() if self._ever_consumed else self._initial_checkpoints


# The base class that iterators in programs for DALI derive from. They call `_get_outputs`, `_schedule_runs` and
# `_advance_and_check_drop_last`, and cut batches according to `_remove_padded`.
_DaliBaseIterator = BaseIterator


def _as_flag(auto_reset: str | bool | None) -> bool:
    # 1 and 0 are rejected, as in DALI.
    if auto_reset is True or auto_reset == "yes":
        return True
    if auto_reset is False or auto_reset is None or auto_reset == "no":
        return False
    raise ValueError(f"Unsupported value for `auto_reset` {auto_reset}")


def _as_policy(policy: LastBatchPolicy, fill: bool | None) -> LastBatchPolicy:
    if fill is not None:
        warnings.warn(
            "Please do not use `fill_last_batch`, which is deprecated: use `last_batch_policy` instead.",
            UserWarning,
            stacklevel=4,
        )
        return LastBatchPolicy.FILL if fill else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise ValueError(f"Wrong type for `last_batch_policy`. Expected {LastBatchPolicy}, got {type(policy)}")
    return policy
