"""Worker processes that call callbacks."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from penstock import pickling
from penstock.compat.multiproc.messages import TaskArgs
from penstock.runtime.parallel import NoObserver
from penstock.runtime.sources import Source
from penstock.runtime.worker_processes import Worker


class _Group(Protocol):
    source_desc: Source
    batch: bool


@dataclass
class _Context:
    """The scheduled batches of a callback."""

    dedicated_worker_id: int | None
    is_batch: bool
    scheduled: deque[list[_Part]] = field(default_factory=deque)

    @property
    def scheduled_minibatches(self) -> deque[list[_Part]]:
        return self.scheduled

    task_queue = partially_received = scheduled_minibatches


@dataclass(eq=False)
class _Part:
    """A worker's part of a batch; its data and error are None until it is received."""

    worker: int
    slot: int
    data: list[Any] | None = None
    error: Exception | None = None


@dataclass
class _Callbacks:
    """Makes, in a worker, the function that calls the callbacks.

    Args:
        sources: pairs of a source and its ``cycle``; pickled for workers that are spawned.
    """

    sources: list[tuple[object, object]] | bytes

    def __call__(self) -> Callable[..., object]:
        pairs = pickling.loads(self.sources) if isinstance(self.sources, bytes) else self.sources
        sources = [Source(source, cycle) for source, cycle in pairs]

        def call(index: int, *arguments: object) -> object:
            return sources[index].call(*arguments)

        return call


class WorkerPool:
    """Worker processes that call several callbacks.

    The items of an iterable come in order, so each iterable has its own worker if there are enough workers.
    """

    def __init__(self, groups: Sequence[_Group], num_workers: int, start_method: str) -> None:
        sources = [group.source_desc for group in groups]
        ordered = [index for index, source in enumerate(sources) if source.is_iterable]
        if len(ordered) == len(sources):
            num_workers = min(num_workers, len(ordered))
        self.contexts = [
            _Context(ordered.index(index) % num_workers if index in ordered else None, group.batch)
            for index, group in enumerate(groups)
        ]
        pairs = [(source.source, source.cycle) for source in sources]
        load = _Callbacks(pairs if start_method == "fork" else pickling.dumps(pairs))
        self._turns = itertools.count()
        self._awaited: list[deque[_Part]] = [deque() for _ in range(num_workers)]
        self._observer = NoObserver()
        context = get_context(start_method)
        self._workers = [Worker(context, load) for _ in range(num_workers)]

    @classmethod
    def from_groups(
        cls,
        groups: Sequence[_Group],
        keep_alive_queue_size: int,
        start_method: str = "fork",
        num_workers: int = 1,
        py_callback_pickler: object = None,
    ) -> WorkerPool:
        """Start workers for these groups' callbacks.

        Args:
            groups: the callback groups. Each has a `source_desc` (see `get_callback_from_source`), and `batch`, which says whether the
                callback is called for whole batches.
            keep_alive_queue_size: without effect, as results remain as long as they are used.
            start_method: `fork` or `spawn`.
            num_workers: the number of processes; fewer are started if all sources are iterables and there are fewer sources.
            py_callback_pickler: without effect.
        """
        return cls(groups, num_workers, start_method)

    @property
    def pool(self) -> WorkerPool:
        """The worker processes: this object. DALI has a separate object for them."""
        return self

    @property
    def _processes(self) -> list[BaseProcess]:
        return [worker.process for worker in self._workers]

    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        return [worker.process.pid for worker in self._workers]

    def schedule_batch(self, context_i: int, work_batch: TaskArgs) -> None:
        """Make the workers call the callback ``context_i`` for one batch."""
        context = self.contexts[context_i]
        calls = [(context_i, *arguments) for arguments in work_batch.calls]
        shares: dict[int, Sequence[tuple[object, ...]]]
        if context.dedicated_worker_id is not None:
            shares = {context.dedicated_worker_id: [(context_i,)]}
        elif work_batch.is_batch:
            shares = {next(self._turns) % len(self._workers): calls}
        else:
            share = -(-len(calls) // len(self._workers))
            shares = {
                index: calls[index * share : (index + 1) * share]
                for index in range(len(self._workers))
                if calls[index * share : (index + 1) * share]
            }
        parts = []
        for index, indices in shares.items():
            part = _Part(index, self._workers[index].send(indices, 0))
            self._awaited[index].append(part)
            parts.append(part)
        context.scheduled.append(parts)

    def receive_batch(self, context_i: int) -> list[object]:
        """Return the samples of the oldest scheduled batch of callback ``context_i``; raise the callback's error, if any."""
        context = self.contexts[context_i]
        samples: list[Any] = []
        for part in context.scheduled.popleft():
            samples += self._received(part)
        return list(samples[0]) if context.is_batch else samples

    def _received(self, part: _Part) -> list[Any]:
        """Return the data of a part; as workers answer in the order of their tasks, receive earlier parts first."""
        awaited = self._awaited[part.worker]
        while part.data is None and part.error is None:
            oldest = awaited.popleft()
            try:
                oldest.data = self._workers[oldest.worker].receive(oldest.slot)
            except Exception as error:
                oldest.error = error
        if part.error is not None:
            raise part.error
        assert part.data is not None
        return part.data

    def reset(self) -> None:
        """Drop all scheduled batches."""
        for context in self.contexts:
            for part in itertools.chain.from_iterable(context.scheduled):
                if part in self._awaited[part.worker]:
                    try:
                        self._received(part)
                    except Exception:
                        continue
            context.scheduled.clear()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()
