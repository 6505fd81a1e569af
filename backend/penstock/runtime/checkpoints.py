"""Checkpoints: the state from which an equal pipeline continues with the next batch.

A checkpoint is JSON: the position of the consumer (what was prefetched beyond it is made again), and what each operator
with state had after the last batch that was taken. Nothing in it executes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.errors import SerializationError, UnsupportedVersionError

if TYPE_CHECKING:
    from penstock.pipeline import Pipeline
    from penstock.runtime.executor import Executor

FORMAT = "penstock-checkpoint"
VERSION = 1


def operator_states(executor: Executor) -> dict[str, Any]:
    """What each operator with state is in, by its name."""
    states = {name: operator.state() for name, operator in executor.plan.named_operators()}
    return {name: state for name, state in states.items() if state is not None}


def save_checkpoint(pipeline: Pipeline, iterator: Any = None) -> bytes:
    """The checkpoint of a pipeline that was made with ``enable_checkpointing=True``.

    Args:
        pipeline: at the point from which to continue.
        iterator: what a plugin's iterator wants to have back.

    Raises:
        RuntimeError: the pipeline keeps no states.
    """
    if not pipeline._enable_checkpointing:
        raise RuntimeError(
            "Cannot save the checkpoint. The `enable_checkpointing` was not specified when creating the pipeline"
        )
    executor = pipeline.executor
    document = {
        "format": FORMAT,
        "version": VERSION,
        "seed": executor.plan.seed,
        "epoch": pipeline._consumer_epoch,
        "iteration": pipeline._consumer_iteration,
        "batches": pipeline._consumer_batches,
        "operators": operator_states(executor) if pipeline._consumed_states is None else pipeline._consumed_states,
        "iterator": iterator,
    }
    return json.dumps(document).encode()


def checkpoint_seed(checkpoint: str | bytes, own: int | None) -> int:
    """The seed of a pipeline that continues from a checkpoint: its own where it has one."""
    return _parsed(checkpoint)["seed"] if own is None else own


def restore_checkpoint(pipeline: Pipeline, checkpoint: str | bytes) -> Any:
    """Continues from a checkpoint; gives back what a plugin's iterator had saved.

    Raises:
        UnsupportedVersionError: a later version of Penstock wrote it.
        SerializationError: it is no checkpoint, or one of another pipeline.
    """
    document = _parsed(checkpoint)
    executor = pipeline.executor
    operators = dict(executor.plan.named_operators())
    expected, found = operator_states(executor).keys(), document["operators"].keys()
    if expected != found:
        raise SerializationError(
            "The checkpoint is of another pipeline: "
            f"it holds the states of {sorted(found)}, this pipeline has operators with state {sorted(expected)}"
        )
    for name, state in document["operators"].items():
        operators[name].restore(state)
    executor.iteration = document["batches"]
    pipeline._epoch = pipeline._consumer_epoch = document["epoch"]
    pipeline._consumer_iteration = document["iteration"]
    pipeline._consumer_batches = document["batches"]
    pipeline._consumed_states = document["operators"]
    for source in pipeline._sources:
        source.skip(document["iteration"], executor.max_batch_size)
    return document["iterator"]


def _parsed(checkpoint: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(checkpoint)
    except ValueError as error:
        raise SerializationError(f"This is no checkpoint: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SerializationError("This is no checkpoint of Penstock")
    if not isinstance(document.get("version"), int) or document["version"] > VERSION:
        raise UnsupportedVersionError(
            f"This checkpoint is in version {document.get('version')}, and this Penstock reads versions up to {VERSION}: upgrade it"
        )
    if not isinstance(document.get("operators"), dict) or not all(
        isinstance(document.get(key), int) for key in ("seed", "epoch", "iteration", "batches")
    ):
        raise SerializationError("This checkpoint is damaged: it lacks what a checkpoint has")
    return document
