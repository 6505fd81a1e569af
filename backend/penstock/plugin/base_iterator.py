"""The base class of all frameworks' iterators: fetching batches, ending and resetting epochs, checkpoints."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.data_types import PipelineAPIType
from penstock.pipeline import Pipeline
from penstock.plugin.dali_members import DaliMembers
from penstock.plugin.epochs import Epoch, LastBatchPolicy, ReaderEpoch, SizedEpoch, require
from penstock.tensors import TensorList

_log = logging.getLogger(__name__)


class BaseIterator(DaliMembers):
    """Takes batches from one or more pipelines; subclasses convert them for their frameworks.

    Args:
        pipelines: a pipeline, or a list with one for each GPU, with equal batch sizes.
        size: the number of samples in an epoch of all pipelines together; -1: an epoch ends with the pipeline's source or, with
            ``reader_name``, with the reader's epoch.
        reader_name: the name of a reader in each pipeline, which determines size, shards and padding.
        auto_reset: ``"yes"`` or True: the next epoch starts automatically after StopIteration; ``"no"``, False or None: the
            program calls :meth:`reset` to start it.
        fill_last_batch: deprecated: True is ``LastBatchPolicy.FILL``, False is ``PARTIAL``.
        last_batch_padded: whether, with ``size``, the reader repeats its last sample in the last batch.
        last_batch_policy: what happens to a last batch that is not full.
        prepare_first_batch: whether to fetch the first batch immediately.

    Raises:
        AssertionError: the arguments contradict each other.
        ValueError: ``auto_reset`` or ``last_batch_policy`` is not one of the above.
        RuntimeError: the first batch was to be fetched, and the pipelines have no data.
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
        require(pipelines is not None, "Number of provided pipelines has to be at least 1")
        self._pipes: list[Pipeline] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]  # type: ignore[list-item]
        require(self._pipes, "Number of provided pipelines has to be at least 1")
        self._num_gpus = len(self._pipes)
        for pipe in self._pipes:
            if pipe.max_batch_size is None:
                raise ValueError("The batch size must be set.")
        self.batch_size: int = self._pipes[0].max_batch_size or 0
        require(
            all(pipe.max_batch_size == self.batch_size for pipe in self._pipes),
            "All pipelines should have the same batch size set",
        )
        self._auto_reset = _as_flag(auto_reset)
        policy = _as_policy(last_batch_policy, fill_last_batch)
        size = int(size)
        require(size != 0, "Size cannot be 0")
        require(
            size > 0 or len(self._pipes) == 1 or reader_name,
            "Negative size is supported only for a single pipeline",
        )
        require(not reader_name or size < 0, "When reader_name is provided, size should not be set")
        require(
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
        self._last_batch_padded = last_batch_padded
        self._epoch = self._make_epoch(size, reader_name, policy, last_batch_padded)
        self._last_batch_policy = policy
        self._reader_name = reader_name
        self._fixed_batch_size = bool(reader_name) or size > 0
        self._ever_scheduled = False
        self._ever_consumed = False
        self._first_batch: object = None
        self._prepare_checkpoints()
        # Iterators written for DALI convert batches in their own `__next__`, and fetch the first batch there.
        if prepare_first_batch and type(self)._converted is not BaseIterator._converted:
            self._prepare_first_batch()

    def _make_epoch(self, size: int, reader_name: str | None, policy: LastBatchPolicy, padded: bool) -> Epoch:
        if reader_name:
            epoch = ReaderEpoch([pipe.reader_meta(reader_name) for pipe in self._pipes], self.batch_size, policy)
            self._last_batch_padded = epoch.padded
            return epoch
        if size > 0:
            return SizedEpoch(size, self.batch_size, len(self._pipes), policy, padded)
        # As in DALI, which divides the size of -1 by the batch size: the length is 0, or invalid if a batch is a single sample.
        return Epoch(self.batch_size > 1)

    # -- implemented by each framework -----------------------------------------------------------------------------

    def _converted(self, outputs: list[tuple[object, ...]]) -> object:
        """Convert the pipelines' outputs."""
        raise NotImplementedError

    def _trimmed(self, batch: Any, rows: Sequence[int]) -> object:
        """Return the converted batch, reduced to the first ``rows[i]`` samples of each pipeline i; pipelines past the end of
        ``rows`` contribute nothing."""
        raise NotImplementedError

    # -- batches ---------------------------------------------------------------------------------------------------

    def __next__(self) -> Any:
        """Return the next batch; raise StopIteration at the end of the epoch."""
        self._ever_consumed = True
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        return self._take_batch()

    def next(self) -> Any:
        """Return the next batch; raise StopIteration at the end of the epoch."""
        return next(self)

    def _take_batch(self) -> object:
        batch = None
        while batch is None:
            batch = self._next_batch()
        return batch

    def _next_batch(self) -> object | None:
        """Return the next batch; None if all of its samples were skipped."""
        outputs = self._get_outputs()
        has_samples = any(pipe.kept_of(self.batch_size) for pipe in self._pipes)
        batch = self._converted(outputs) if has_samples else None
        self._schedule_runs()
        self._advance_and_check_drop_last()
        remaining = self._epoch.remaining()
        if batch is None or remaining is None:
            return batch
        return self._trimmed(batch, [pipe.kept_of(count) for pipe, count in zip(self._pipes, remaining)])

    def _get_outputs(self) -> list[tuple[Any, ...]]:
        if not self._ever_scheduled:
            self._schedule_runs()
        if self._epoch.over:
            self._end_iteration()
        try:
            outputs = [self._share_outputs(pipe) for pipe in self._pipes]
        except StopIteration:
            if self._epoch.size < 0 and self._auto_reset:
                self.reset()
            raise
        if self._fixed_batch_size:
            require(
                all(
                    len(batch) == pipe.kept_of(self.batch_size)
                    for pipe, pipe_outputs in zip(self._pipes, outputs)
                    for batch in pipe_outputs
                ),
                "Variable batch size is not supported by the iterator when reader_name is provided or iterator size is set "
                "explicitly",
            )
        return outputs

    def _share_outputs(self, pipe: Pipeline) -> tuple[TensorList, ...]:
        with pipe.running_through(PipelineAPIType.ITERATOR):
            return pipe.share_outputs()

    def _schedule_runs(self) -> None:
        self._ever_scheduled = True
        for pipe in self._pipes:
            with pipe.running_through(PipelineAPIType.ITERATOR):
                pipe.schedule_run()

    def _advance_and_check_drop_last(self) -> None:
        """Count the batch that was taken last; raise StopIteration if it must be dropped."""
        self._epoch.advance()
        if self._epoch.last_is_short:
            self._end_iteration()

    def _remove_padded(self) -> tuple[object, object]:
        """Return, for each pipeline, whether its last batch is cut, and how many samples of it remain; (False, -1) if none is
        cut.
        """
        remaining = self._epoch.remaining()
        if remaining is None:
            return False, -1
        return np.less(remaining, self.batch_size), np.asarray(remaining)

    def _end_iteration(self) -> None:
        if self._auto_reset:
            self.reset()
        raise StopIteration

    def _prepare_first_batch(self) -> None:
        try:
            self._first_batch = self._take_batch()
        except StopIteration:
            # A pipeline that was restored from a checkpoint may be at the end of its epoch.
            if not any(pipe.is_restored_from_checkpoint for pipe in self._pipes):
                raise RuntimeError(
                    "It seems that there is no data in the pipeline. This may happen if `last_batch_policy` is set to PARTIAL "
                    "and the requested batch size is greater than the shard size. Otherwise the pipeline's source is empty."
                ) from None
            # The epoch ended before the checkpoint was made, so a loop over this iterator must begin the next epoch.
            self._ever_consumed = True

    def reset(self) -> None:
        """Start the next epoch. Call this at the end of an epoch, or after an error, which ends the epoch.

        In the middle of an epoch, this only logs a warning.
        """
        epoch = self._epoch
        if self._failed:
            for pipe in self._pipes:
                pipe.end_epoch()
            self._first_batch = None
            epoch.restart()
            self._begin_pipelines()
            return
        if epoch.next_is_short and not epoch.over:
            # All batches that count were taken, so the epoch is over; its last batch, which is to be dropped, was not taken yet. Take
            # it now.
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
        """The number of samples in the epoch; -1 if only the pipeline's source knows it."""
        return self._epoch.size

    def __len__(self) -> int:
        """Return the number of batches in the epoch; 0, as in DALI, if only the pipeline's source knows it.

        Raises:
            ValueError: only the source knows the number, and a batch is a single sample.
        """
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
        # A checkpoint that is made before the user takes the first batch must not include it, although it was fetched.
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
        """Return a checkpoint of each pipeline, from which it continues after the last batch taken.

        Raises:
            ValueError: the pipelines were made without ``enable_checkpointing``.
        """
        if not self._enable_checkpointing:
            raise ValueError("Cannot access checkpoints with checkpointing disabled")
        return self._save() if self._ever_consumed else self._initial_checkpoints


# The name of the base class from which iterators in programs for DALI derive. These iterators call `_get_outputs`, `_schedule_runs` and
# `_advance_and_check_drop_last`, and use `_remove_padded` to cut batches.
_DaliBaseIterator = BaseIterator


def _as_flag(auto_reset: str | bool | None) -> bool:
    # As in DALI, the numbers 1 and 0 are rejected.
    if isinstance(auto_reset, np.bool_):
        auto_reset = bool(auto_reset)
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
