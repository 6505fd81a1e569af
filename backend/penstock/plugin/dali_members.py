"""The members of DALI's base iterator that programs read and set, implemented by this package's epochs."""

from __future__ import annotations

import numpy as np

from penstock.plugin.epochs import Epoch, LastBatchPolicy, ReaderEpoch, SizedEpoch


class DaliMembers:
    """Adds properties with DALI's names for the state of an iterator's epoch.

    Arrays are read-only copies: assign a new array to change the state.
    """

    batch_size: int
    _epoch: Epoch
    _num_gpus: int
    _last_batch_policy: LastBatchPolicy
    _last_batch_padded: bool
    _fixed_batch_size: bool

    @property
    def _size(self) -> int:
        """The number of samples in the epoch; -1 if only the pipeline's source knows it."""
        return self._epoch.size

    @_size.setter
    def _size(self, size: int) -> None:
        if isinstance(self._epoch, ReaderEpoch):
            self._epoch.size = int(size)
            return
        counter = self._epoch.counter
        if size < 0:
            self._epoch = Epoch(self.batch_size > 1)
        else:
            policy, padded = self._last_batch_policy, self._last_batch_padded
            if not isinstance(self._epoch, SizedEpoch):
                # So far, the epoch counted batches, not samples.
                counter *= self.batch_size * self._num_gpus
            self._epoch = SizedEpoch(int(size), self.batch_size, self._num_gpus, policy, padded)
        self._epoch.counter = counter
        self._fixed_batch_size = size > 0

    @property
    def _counter(self) -> int:
        return self._epoch.counter

    @_counter.setter
    def _counter(self, counter: int) -> None:
        self._epoch.counter = int(counter)

    @property
    def _reader_epoch(self) -> ReaderEpoch:
        if not isinstance(self._epoch, ReaderEpoch):
            raise AttributeError("An iterator has shards only if it was made with `reader_name`")
        return self._epoch

    @property
    def _size_no_pad(self) -> int:
        return self._reader_epoch.samples

    @property
    def _shards_num(self) -> int:
        return self._reader_epoch.shards

    @property
    def _is_stick_to_shard(self) -> bool:
        return self._reader_epoch.sticks_to_shard

    @_is_stick_to_shard.setter
    def _is_stick_to_shard(self, sticks: bool) -> None:
        self._reader_epoch.sticks_to_shard = bool(sticks)

    @property
    def _shards_id(self) -> np.ndarray:
        return _copied(self._reader_epoch.shard_ids)

    @_shards_id.setter
    def _shards_id(self, shards: np.ndarray) -> None:
        self._reader_epoch.shard_ids = np.asarray(shards).tolist()

    @property
    def _shard_sizes_per_gpu(self) -> np.ndarray:
        return _copied(self._reader_epoch.current_sizes)

    @_shard_sizes_per_gpu.setter
    def _shard_sizes_per_gpu(self, sizes: np.ndarray) -> None:
        self._reader_epoch.current_sizes = np.asarray(sizes).tolist()

    @property
    def _shard_sizes_per_gpu_initial(self) -> np.ndarray:
        return _copied(self._reader_epoch.sizes)

    @property
    def _counter_per_gpu(self) -> np.ndarray:
        return _copied(self._reader_epoch.ahead)

    @_counter_per_gpu.setter
    def _counter_per_gpu(self, counts: np.ndarray) -> None:
        self._reader_epoch.ahead = np.asarray(counts).tolist()


def _copied(values: list[int]) -> np.ndarray:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array
