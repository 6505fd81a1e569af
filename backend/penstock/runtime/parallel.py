"""External sources whose callbacks run in worker processes."""

from __future__ import annotations

import functools
import pickle
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from penstock import pickling
from penstock.data_types import BatchInfo, SampleInfo
from penstock.errors import as_imported
from penstock.runtime.settings import PipelineSettings
from penstock.runtime.sources import Source, is_generator_function
from penstock.runtime.worker_processes import Worker


@dataclass
class _Batch:
    """A batch that workers are preparing; ``parts``: the worker's index and the task's slot for each part."""

    parts: list[tuple[int, int]] = field(default_factory=list)


@dataclass(eq=False)
class ParallelSource(Source):
    """A source whose callback runs in worker processes, ahead of time.

    Args:
        prefetch_queue_depth: batches to prepare ahead.
    """

    prefetch_queue_depth: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        # Data can be used in place: workers do not overwrite their results while something refers to them.
        self.no_copy = True
        self._workers: list[Worker] = []
        self._pending: deque[_Batch] = deque()
        self._next_worker = 0
        self._scheduled = self._scheduled_samples = 0
        # The number of the current pass over the source: prefetched calls belong to one pass, and end with it.
        self._round = 0
        if not self.is_iterable and not self.takes_info:
            info = as_imported("penstock.types")
            raise TypeError(
                "Callable passed to External Source in parallel mode (when `parallel=True`) must accept exactly one argument: "
                f"`{info}.SampleInfo` if run with `batch=False` or either `{info}.BatchInfo` or integer that "
                "represents the index of the batch within the epoch if `batch=True`. Got a callable that does not accept "
                "arguments instead."
            )
        if self.is_iterable and not self.batch:
            what = "a generator function" if is_generator_function(self.source) else "an iterable"
            raise TypeError(f"Parallel external source with {what} must be run in a batch mode: with `batch=True`")

    def start(self, settings: PipelineSettings) -> None:
        """Start the worker processes: only one for an iterable, as its items come in order."""
        if self._workers:
            return
        context = get_context(settings.py_start_method)
        load = self._loader(settings)
        for _ in range(1 if self.is_iterable else settings.py_num_workers):
            self._workers.append(Worker(context, load))
        self._max_batch_size = settings.batch_size or 1

    def _loader(self, settings: PipelineSettings) -> Callable[[], Callable[..., object]]:
        """Return the factory that creates the callback in a worker."""
        if settings.py_start_method == "fork":
            return _Inherited(self.source, self.cycle)
        dumps, loads = _pickler_functions(settings.py_callback_pickler)
        return _Pickled(_dumped(self.source, dumps), loads, self.cycle)

    def fetch(self, batch_size: int, epoch: int) -> list[Any]:
        while len(self._pending) < self.prefetch_queue_depth + 1:
            self._schedule(batch_size, epoch)
        batch = self._pending.popleft()
        parts, stopped = [], False
        for worker, slot in batch.parts:
            try:
                parts.append(self._workers[worker].receive(slot))
            except StopIteration:
                stopped = True
        if stopped:
            self._drop_pending()
            self.reset()
            raise StopIteration
        self.iteration += 1
        self.sample += batch_size
        return self._outputs(parts)

    def _outputs(self, parts: list[list[object]]) -> list[Any]:
        if self.batch:
            data = parts[0][0]
            return [data] if self.num_outputs is None else self._checked(data)
        samples: list[object] = [sample for part in parts for sample in part]
        if self.num_outputs is None:
            return [samples]
        return [list(column) for column in zip(*map(self._checked, samples))]

    def _schedule(self, batch_size: int, epoch: int) -> None:
        batch = _Batch()
        if self.batch or self.is_iterable:
            worker = self._next_worker = (self._next_worker + 1) % len(self._workers)
            calls = self._batch_calls(batch_size, epoch)
            batch.parts.append((worker, self._workers[worker].send(calls, self._round)))
        else:
            infos = [(SampleInfo(self._scheduled_samples + i, i, self._scheduled, epoch),) for i in range(batch_size)]
            share = -(-batch_size // len(self._workers))
            for worker in range(len(self._workers)):
                calls = infos[worker * share : (worker + 1) * share]
                if calls:
                    batch.parts.append((worker, self._workers[worker].send(calls, self._round)))
        self._scheduled += 1
        self._scheduled_samples += batch_size
        self._pending.append(batch)

    def _batch_calls(self, batch_size: int, epoch: int) -> Sequence[tuple[object, ...]]:
        if self.is_iterable:
            return [()] * (1 if self.batch else batch_size)
        return [(BatchInfo(self._scheduled, epoch) if self.batch_info else self._scheduled,)]

    def reset(self) -> None:
        """Start a new epoch; an iterable that is not at its end continues."""
        if not self.is_iterable:
            self._drop_pending()
            self._scheduled = self._scheduled_samples = 0
        super().reset()

    def restart(self, settings: PipelineSettings) -> None:
        """Restart with new workers: a worker may have died, or be in the middle of an iterable's data."""
        self.close()
        self._scheduled = self._scheduled_samples = 0
        self.start(settings)

    def _drop_pending(self) -> None:
        """Drop batches prepared beyond the end of the epoch."""
        self._round += 1
        while self._pending:
            for worker, slot in self._pending.popleft().parts:
                try:
                    self._workers[worker].receive(slot)
                except StopIteration:
                    continue
        self._scheduled = self._scheduled_samples = 0

    def skip(self, iterations: int, batch_size: int) -> None:
        self.iteration = self._scheduled = iterations
        self.sample = self._scheduled_samples = iterations * batch_size

    def pids(self) -> list[int]:
        """Return the ids of the running worker processes."""
        return [worker.process.pid for worker in self._workers]

    def shared_memory(self) -> tuple[list[int], list[int]]:
        """Return the size in bytes of each shared buffer, and the same sizes divided by the largest number of samples per worker."""
        sizes = [memory.size for worker in self._workers for memory in worker.memories.values()]
        per_sample = max(1, self._max_batch_size // max(1, len(self._workers)))
        return sizes, [size // per_sample for size in sizes]

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()
        self._workers = []
        self._pending.clear()


@dataclass
class _Inherited:
    """Creates the callback in a forked worker, which has inherited the source."""

    source: Any
    cycle: object

    def __call__(self) -> Callable[..., Any]:
        return _single_argument(Source(self.source, self.cycle))


@dataclass
class _Pickled:
    """Creates the callback in a spawned worker, from the pickled source."""

    data: bytes
    loads: Callable[[bytes], object]
    cycle: object

    def __call__(self) -> Callable[..., Any]:
        return _single_argument(Source(self.loads(self.data), self.cycle))


class NoObserver:
    """Stands in for DALI's thread that observes the workers; no such thread exists here."""

    def __init__(self) -> None:
        self.thread = threading.Thread(name="penstock-no-observer")


class RunningWorkers:
    """The worker processes of a pipeline's sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = [source for source in sources if isinstance(source, ParallelSource)]

    @property
    def pool(self) -> RunningWorkers:
        """The worker processes: this object. In DALI, programs access the processes and their observer through a separate
        object."""
        return self

    @functools.cached_property
    def _observer(self) -> NoObserver:
        return NoObserver()

    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [pid for source in self._sources for pid in source.pids()]

    def close(self) -> None:
        """End the workers."""
        for source in self._sources:
            source.close()


def check_workers(sources: Sequence[Source], workers: object) -> None:
    """Raise RuntimeError for parallel sources without workers; warn if there are more workers than can be used."""
    parallel = [source for source in sources if isinstance(source, ParallelSource)]
    if not parallel:
        return
    if not isinstance(workers, int) or workers <= 0:
        raise RuntimeError(
            "The external source cannot run in parallel mode without Python workers pool. The pipeline contains "
            "`fn.external_source` with `parallel` argument specified to True, but the `py_num_workers` was set to "
            f"`{workers}`: it must be a positive integer."
        )
    if workers > len(parallel) and all(source.is_iterable for source in parallel):
        warnings.warn(
            f"There will be run only {len(parallel)} python worker{'s' if len(parallel) > 1 else ''}, even though {workers} were "
            "specified to run: each iterable source has one.",
            Warning,
            stacklevel=4,
        )


def _single_argument(source: Source) -> Callable[..., object]:
    return source.call


def _pickler_functions(pickler: object) -> tuple[Callable[[object], bytes], Callable[[bytes], object]]:
    """Return functions that serialize a callback, and restore it in the worker, where pickle alone fails."""
    if pickler is None:
        return pickling.dumps, pickling.loads
    parts = pickler if isinstance(pickler, (tuple, list)) else (pickler,)
    module, dumping, loading = (*parts, {}, {})[:3]
    return functools.partial(module.dumps, **dumping), functools.partial(module.loads, **loading)


def _dumped(source: object, dumps: Callable[[object], bytes]) -> bytes:
    try:
        return dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise type(error)(
            f"The external source's callback cannot be sent to worker processes that are spawned: {error}. Let it create "
            "such objects in the worker, give a `py_callback_pickler` that can send them, or use py_start_method='fork'."
        ) from error
