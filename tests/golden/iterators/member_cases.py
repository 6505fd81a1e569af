"""The members of DALI's base iterator that programs read and set, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SAMPLES, BATCH = 13, 4
_READERS = (
    (1, False, False, "FILL"),
    (2, False, False, "FILL"),
    (2, True, False, "PARTIAL"),
    (2, False, True, "DROP"),
    (3, False, False, "PARTIAL"),
)
_FLAGS = ("_is_stick_to_shard", "_last_batch_padded")
_MEMBERS = (
    "_size",
    "_counter",
    "_counter_per_gpu",
    "_shard_sizes_per_gpu",
    "_shard_sizes_per_gpu_initial",
    "_shards_id",
    "_shards_num",
    "_size_no_pad",
    *_FLAGS,
)


def trace(iterator: Callable[..., Any], pipeline: Callable[..., Any], policies: Any) -> list[Any]:
    """Return the results and the members' values of some iterators, batch by batch, as data for JSON.

    Args:
        iterator: a function that makes an iterator from a list of pipelines; the iterator returns each pipeline's labels.
        pipeline: a function that makes a pipeline with a reader called `reader`; its arguments are the shard, the number of shards,
            `pad_last_batch` and `stick_to_shard`.
        policies: `LastBatchPolicy` of DALI or of Penstock.
    """
    told: list[Any] = []
    for shards, pad, stick, policy in _READERS:
        pipes = [pipeline(shard, shards, pad, stick) for shard in range(shards)]
        made = iterator(pipes, reader_name="reader", last_batch_policy=policies[policy], auto_reset=True)
        told.append(_members(made))
        told += [[batch, _members(made)] for _ in range(3) for batch in made]
    made = iterator([pipeline(0, 1, False, False)], size=10, auto_reset=True)
    made._size = 6
    told.append([len(made), list(made), _members(made)])
    made._size = -1
    told.append(_members(made))
    made = iterator([pipeline(0, 1, False, False)])
    next(made)
    made._size = 8
    told.append([len(made), list(made), _members(made)])
    made = iterator([pipeline(0, 1, False, False)], reader_name="reader", auto_reset=True)
    made._size = 8
    told.append([len(made), list(made), _members(made)])
    made._counter = 4
    made._counter_per_gpu, made._shards_id = np.array([1]), np.array([0])
    made._shard_sizes_per_gpu = np.array([12])
    told.append(_members(made))
    try:
        made._end_iteration()
    except StopIteration:
        told.append(_members(made))
    return told


def _members(iterator: Any) -> list[Any]:
    """Return the values of the members of `_MEMBERS`; None for members that the iterator does not have."""
    values = [getattr(iterator, name, None) for name in _MEMBERS]
    flags = [bool(value) if name in _FLAGS else value for name, value in zip(_MEMBERS, values)]
    return [np.asarray(value).tolist() for value in flags]
