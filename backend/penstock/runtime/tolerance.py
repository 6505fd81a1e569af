"""Batches with tolerated failures of samples in readers or decoders."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from penstock.errors import OperatorError, PenstockError, TooManyErrorsError
from penstock.graph import OpNode
from penstock.schema.tolerance import ON_ERROR, RAISE, REPLACE

_log = logging.getLogger(__name__)
_MAX_LISTED_SAMPLES: Final = 1000


@dataclass(frozen=True)
class SkippedSample:
    """A sample that was skipped or replaced.

    Attributes:
        source: the file that the sample comes from, with the sample's position if the file holds several; empty if unknown.
        reason: the message of the sample's error.
        operator: the operator that could not read or decode it, e.g. ``penstock.fn.decoders.image``.
        iteration: the index of the batch, counted since the pipeline was built.
        sample: the sample's position in the batch.
        replaced: whether another sample replaces it; False: it was skipped.
    """

    source: str
    reason: str
    operator: str
    iteration: int
    sample: int
    replaced: bool


class SkippedSamples:
    """The samples that a pipeline skipped or replaced; iteration yields the latest thousand.

    Args:
        max_skipped: the largest number of samples to tolerate; None: no limit.

    Attributes:
        count: the number of samples so far.
    """

    def __init__(self, max_skipped: int | None = None) -> None:
        self._max_skipped = max_skipped
        self.count = 0
        self._latest: deque[SkippedSample] = deque(maxlen=_MAX_LISTED_SAMPLES)

    def __iter__(self) -> Iterator[SkippedSample]:
        return iter(list(self._latest))

    def __len__(self) -> int:
        return self.count

    def add(self, sample: SkippedSample) -> None:
        """Count a sample; raise TooManyErrorsError if there are more than are tolerated."""
        self.count += 1
        self._latest.append(sample)
        _log.warning(
            "sample %d of batch %d was %s: %s %s",
            *(sample.sample, sample.iteration, "replaced" if sample.replaced else "skipped"),
            *(sample.source, sample.reason),
        )
        if self._max_skipped is not None and self.count > self._max_skipped:
            raise TooManyErrorsError(
                f"{self.count} samples could not be read, but `max_errors` of the pipeline allows {self._max_skipped}. "
                f"The latest: {sample.source or f'sample {sample.sample}'}: {sample.reason}"
            )


def policy_of(node: OpNode, default: str) -> str:
    """Return the policy for samples that fail in an operator."""
    if ON_ERROR.name not in node.schema.all_arguments:
        return RAISE
    return str(node.arguments.get(ON_ERROR.name) or default)


def tolerated(nodes: Iterator[OpNode], default: str) -> bool:
    """Return whether failures are tolerated in any of the operators or of the operators fused in them."""
    written = chain.from_iterable((node, *node.steps) for node in nodes)
    return any(policy_of(node, default) != RAISE for node in written)


def policy_for(node: OpNode, error: PenstockError, default: str) -> str:
    """Return the policy for a sample that failed with this error: the policy of the operator that raised it, which may be
    fused in ``node``."""
    if not isinstance(error, OperatorError):
        return RAISE
    for step in node.steps:
        if (step.display_name, step.origin) == (error.operator, error.origin):
            return policy_of(step, default)
    return policy_of(node, default)


def kept_samples(size: int, failed: dict[int, str]) -> list[int]:
    """Return the positions of the samples to return, in order; ``failed``: the policy of each failed position.

    A sample to be replaced is replaced by the nearest good one before it or, if there is none, by the first good one; without any
    good sample, it is skipped.
    """
    good = [position for position in range(size) if position not in failed]
    positions: list[int] = []
    last = good[0] if good else None
    for position in range(size):
        if position not in failed:
            last = position
        elif failed[position] != REPLACE:
            continue
        if last is not None:
            positions.append(last)
    return positions
