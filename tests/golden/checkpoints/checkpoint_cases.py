"""Checkpoints of a reader's shard from which the readers of other shards continue: the reader's arguments, the number of batches
before the checkpoint, and the number of shards that continue.
"""

from __future__ import annotations

import itertools
from typing import Any

BATCHES = 6
"""The number of batches to read after a checkpoint is restored."""
_ORDERS: tuple[dict[str, Any], ...] = (
    {},
    {"stick_to_shard": True},
    {"pad_last_batch": True},
    {"pad_last_batch": True, "stick_to_shard": True},
    {"shuffle_after_epoch": True},
    {"random_shuffle": True, "seed": 3, "initial_fill": 5},
    {"random_shuffle": True, "seed": 3, "initial_fill": 5, "stick_to_shard": True},
)


def cases() -> list[dict[str, Any]]:
    """Return the cases. Each checkpoint is made by shard 0 of 2, after `before` batches; `shards` is the number of shards that continue."""
    return [
        {"samples": samples, "batch_size": batch_size, "reader": reader, "before": before, "shards": shards}
        for (samples, batch_size), reader in itertools.product(((24, 2), (25, 2), (23, 3)), _ORDERS)
        # Leave out shards that end within a batch and are padded: DALI has special rules for them.
        if not (batch_size == 3 and "pad_last_batch" in reader)
        for before, shards in itertools.product((0, 3, 5, 6, 9), (1, 2, 3, 4))
    ]


def labels_of_shards(dali: Any, case: dict[str, Any], files: list[str]) -> list[list[int]]:
    """Return, for each shard, the labels that it reads after the checkpoint. ``dali`` is DALI's module, or Penstock's."""

    def pipeline(shard: int, shards: int, checkpoint: Any) -> Any:
        made = dali.Pipeline(
            case["batch_size"], 1, None, prefetch_queue_depth=1, enable_checkpointing=True, checkpoint=checkpoint
        )
        with made:
            count = case["samples"]
            _, labels = dali.fn.readers.file(
                files=files[:count], labels=list(range(count)), shard_id=shard, num_shards=shards, **case["reader"]
            )
            made.set_outputs(labels)
        made.build()
        return made

    first = pipeline(0, 2, None)
    for _ in range(case["before"]):
        first.run()
    checkpoint = first.checkpoint()
    continued = [pipeline(shard, case["shards"], checkpoint) for shard in range(case["shards"])]
    return [
        [int(label) for _ in range(BATCHES) for label in each.run()[0].as_array().reshape(-1)] for each in continued
    ]
