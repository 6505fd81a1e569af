"""Runs a pipeline on the user's data for some time, and measures it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import click

from penstock.cli._inputs import InputError, InputFiles
from penstock.serving.model_files import load_pipeline
from penstock.serving.probing import multi_run_sources

if TYPE_CHECKING:
    from penstock.pipeline import Pipeline
    from penstock.tensors import TensorListCPU

MAX_FILES = 1024
"""The largest number of files that are read into memory."""

_NUM_WARM_UP_BATCHES = 3


@dataclass
class Measurement:
    """The measurements of a run.

    Attributes:
        samples: the number of samples that the pipeline returned.
        seconds: the seconds from the first batch to the last.
        cpu: the CPU time in seconds, summed over all threads.
        waits: how many seconds the consumer waited, for each batch.
    """

    samples: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Return the number of samples per second."""
        return self.samples / self.seconds if self.seconds else 0.0

    def wait(self, percentile: float) -> float:
        """Return a quantile of the waits for a batch, in seconds; ``percentile`` is from 0 to 1."""
        return sorted(self.waits)[min(int(percentile * len(self.waits)), len(self.waits) - 1)]


def opened(file: Path, batch_size: int | None, num_threads: int | None, trace: bool = False) -> Pipeline:
    """Return the pipeline in a file, with these settings unless they are None; by default, it has a thread for each core."""
    pipeline = load_pipeline(file)
    settings = pipeline.settings
    settings.batch_size = batch_size or settings.batch_size
    settings.num_threads = num_threads or settings.num_threads
    settings.trace = trace
    pipeline.set_missing(batch_size=32, num_threads=len(os.sched_getaffinity(0)))
    return pipeline


@contextmanager
def bad_data(option: str) -> Iterator[None]:
    """Report files that do not fit the pipeline as an invalid value of an option."""
    try:
        yield
    except InputError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def measure(pipeline: Pipeline, paths: Sequence[str], seconds: float, ran: Callable[[int, float], None]) -> Measurement:
    """Measure a pipeline for some time, after warm-up batches, in which kernels are compiled.

    Args:
        pipeline: the pipeline, which must not have run yet.
        paths: the files for the pipeline's inputs; see :class:`~penstock.cli._inputs.InputFiles`.
        seconds: how long to measure; at least one batch runs.
        ran: called after each batch with its number of samples and the fraction of the time that has passed.

    Raises:
        InputError: the files do not fit the pipeline, or a sample lasts for several runs.
        OperatorError: an operator failed.
    """
    if multi_run_sources(pipeline):
        raise InputError("A sample of this pipeline's input lasts for several runs, which cannot be measured")
    files = InputFiles(pipeline, paths, MAX_FILES)
    batches = files.batches(cycle=True)
    # One batch is fed before each run; before the first run, feed what the prefetch queue needs in addition.
    for _ in range(max(map(pipeline.input_feed_count, files.names), default=1) - 1):
        _feed(pipeline, batches)
    for _ in range(_NUM_WARM_UP_BATCHES):
        _run(pipeline, batches)
    if pipeline.trace is not None:
        pipeline.trace.clear()
    found, began, worked = Measurement(), perf_counter(), process_time()
    while found.seconds < seconds:
        before = perf_counter()
        count = _run(pipeline, batches)
        found.waits.append(perf_counter() - before)
        found.samples += count
        found.seconds = perf_counter() - began
        ran(count, min(found.seconds / seconds, 1.0))
    found.cpu = process_time() - worked
    return found


def _feed(pipeline: Pipeline, batches: Iterator[Mapping[str, TensorListCPU]]) -> None:
    for name, batch in next(batches, {}).items():
        pipeline.feed_input(name, batch)


def _run(pipeline: Pipeline, batches: Iterator[Mapping[str, TensorListCPU]]) -> int:
    """Run the next batch and return its number of samples; at the end of an epoch, start the next one."""
    _feed(pipeline, batches)
    try:
        return len(pipeline.run()[0])
    except StopIteration:
        pipeline.reset()
        return len(pipeline.run()[0])
