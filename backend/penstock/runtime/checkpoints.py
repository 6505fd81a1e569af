"""Checkpoints: the state from which a pipeline continues with the next batch.

A checkpoint is JSON. It contains the consumer's position and the state of each stateful operator after the last batch taken;
batches that were prefetched beyond the position are computed again. Nothing in it is executable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.errors import SerializationError, UnsupportedVersionError
from penstock.runtime.plan import Plan

FORMAT = "penstock-checkpoint"
VERSION = 1


@dataclass
class Position:
    """The consumer's position in the sequence of batches, without the batches prefetched beyond it.

    Attributes:
        epoch: the epoch's number, from 0.
        iteration: batches taken in the epoch.
        batches: batches taken since the start.
        states: the states of the operators after the last batch taken; None: before the first.
    """

    epoch: int = 0
    iteration: int = 0
    batches: int = 0
    states: dict[str, object] | None = None


def save_checkpoint(plan: Plan, position: Position, iterator: object = None) -> bytes:
    """Return the checkpoint of a pipeline that keeps its operators' states.

    Args:
        plan: the pipeline's plan.
        position: the position from which to continue.
        iterator: state of a plugin's iterator.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "seed": plan.seed,
        "epoch": position.epoch,
        "iteration": position.iteration,
        "batches": position.batches,
        "operators": plan.states() if position.states is None else position.states,
        "iterator": iterator,
    }
    return json.dumps(document).encode()


def checkpoint_seed(checkpoint: str | bytes, seed: int | None) -> int:
    """Return ``seed``; if it is None, the seed stored in the checkpoint."""
    return _parsed(checkpoint)["seed"] if seed is None else seed


def restore_checkpoint(plan: Plan, checkpoint: str | bytes) -> tuple[Position, Any]:
    """Restore the operators' states; return the position and the state of a plugin's iterator.

    Raises:
        UnsupportedVersionError: the checkpoint was written by a later version of Penstock.
        SerializationError: the data is not a checkpoint, or is a checkpoint of another pipeline.
    """
    document = _parsed(checkpoint)
    operators = dict(plan.named_operators())
    expected, found = plan.states().keys(), document["operators"].keys()
    if expected != found:
        raise SerializationError(
            "The checkpoint is of another pipeline: "
            f"it holds the states of {sorted(found)}, this pipeline has operators with state {sorted(expected)}"
        )
    for name, state in document["operators"].items():
        operators[name].restore(state)
    position = Position(document["epoch"], document["iteration"], document["batches"], document["operators"])
    return position, document["iterator"]


def _parsed(checkpoint: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(checkpoint)
    except ValueError as error:
        raise SerializationError(f"This is not a checkpoint: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SerializationError("This is not a checkpoint of Penstock")
    if not isinstance(document.get("version"), int) or document["version"] > VERSION:
        raise UnsupportedVersionError(
            f"This checkpoint is in version {document.get('version')}, but this Penstock reads versions up to {VERSION}: upgrade Penstock"
        )
    if not isinstance(document.get("operators"), dict) or not all(
        isinstance(document.get(key), int) for key in ("seed", "epoch", "iteration", "batches")
    ):
        raise SerializationError("This checkpoint is damaged: parts of it are missing")
    return document
