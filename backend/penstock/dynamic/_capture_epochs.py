"""Iterates over the epochs of a captured loop: the first step is traced, and the pipeline computes later ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from penstock.dynamic._batch import Batch
from penstock.dynamic._capture import Loop
from penstock.dynamic._capture_nodes import Root, StepValues
from penstock.tensors import TensorList


class LoopRoot(Root, Protocol):
    """The data that a captured loop iterates over."""

    def begin_epoch(self) -> None:
        """Called when an epoch begins."""

    def has_more(self) -> bool:
        """Return whether the epoch may have another step; some sources know only after they have been read."""

    def count_step(self) -> None:
        """Called when a step begins."""

    def first(self, loop: Loop) -> list[TensorList]:
        """Return the outputs for a step without a pipeline; raise StopIteration at the end."""

    def left(self, loop: Loop) -> None:
        """Called if the loop's body was left before the end of the epoch."""


def epoch_of(loop: Loop, root: LoopRoot) -> Iterator[StepValues]:
    """Yield the steps of one epoch: the first step of the loop is traced, and the pipeline computes later ones."""
    root.begin_epoch()
    if loop.is_traced:
        try:
            data = root.first(loop)
        except StopIteration:
            loop.end()
            return
        source = loop.add_source(root, len(data))
        yield from _step(loop, root, loop.values_of(source, data))
        loop.finish_tracing()
    if loop.pipeline is None:
        yield from _without_pipeline(loop, root)
        return
    while root.has_more():
        if not loop.next_step():
            loop.start_over()
            return
        yield from _step(loop, root, loop.produced_by_source(loop.sources[0]))


def _step(loop: Loop, root: LoopRoot, value: StepValues) -> Iterator[StepValues]:
    root.count_step()
    try:
        with loop.active():
            yield value
    except GeneratorExit:
        root.left(loop)
        raise
    loop.end_step()


def _without_pipeline(loop: Loop, root: LoopRoot) -> Iterator[StepValues]:
    with contextlib.suppress(StopIteration):
        while root.has_more():
            data = root.first(loop)
            root.count_step()
            yield root.shaped([Batch.of(batch) for batch in data])
