"""Traces: when each thread of a pipeline works and waits, as a summary and as a file for Perfetto."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, NamedTuple

from penstock.graph import OpNode
from penstock.graph.listing import title
from penstock.tensors.cuda import require_cupy

if TYPE_CHECKING:
    from penstock.runtime.workers import Parallel


class Kind(Enum):
    """What a thread does during a span."""

    OPERATOR = "operator"
    SAMPLE = "sample"
    SOURCE = "source"
    NO_INPUT = "waiting for input"
    NO_BATCH = "waiting for a batch"
    NO_DEMAND = "waiting for demand"


class Span(NamedTuple):
    """A period of a thread's time.

    Attributes:
        name: the name of the operator or source.
        kind: work or waiting.
        thread: the thread's name.
        start: the start time, in seconds, by :func:`time.perf_counter`.
        wall: the duration, in seconds of wall-clock time.
        cpu: the CPU time of the thread during the span, in seconds.
    """

    name: str
    kind: Kind
    thread: str
    start: float
    wall: float
    cpu: float


@dataclass
class OperatorTimes:
    """The times of one operator, in seconds, summed over all batches.

    Attributes:
        name: the operator's name.
        batches: the number of runs.
        wall: the wall-clock time of the runs, on the thread that runs the pipeline.
        cpu: the CPU time of all threads.
        gpu: the time of the runs on the GPU, from the first work to the last; None on the CPU.
    """

    name: str
    batches: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    gpu: float | None = None


@dataclass
class Summary:
    """A summary of a trace; times are in seconds.

    Attributes:
        elapsed: the time from the first span's start to the last one's end.
        operators: the times of each operator, the longest first.
        threads: the CPU time of each thread.
        num_threads: the pipeline's number of CPU threads.
        cores: the number of CPU cores that this process may use.
        source: the time in the callbacks of external sources.
        starved: how long the pipeline waited for input data.
        blocked: how long the consumer waited for batches.
        idle: how long the pipeline, its queue full, waited for the consumer.
        queue_fill: the mean number of finished batches in the queue when the consumer asked for one.
        depth: the queue's depth; 0: none.
        batches: the number of batches that the consumer took.
    """

    elapsed: float
    operators: list[OperatorTimes]
    threads: dict[str, float]
    num_threads: int
    cores: int
    source: float
    starved: float
    blocked: float
    idle: float
    queue_fill: float
    depth: int
    batches: int

    def advice(self) -> list[str]:
        """Return advice for more throughput, the most effective first."""
        if not self.batches or not self.operators:
            return ["Nothing ran: there is no advice."]
        waited = (self.blocked + self.source) / self.elapsed
        if self.depth and waited < 0.1:
            return [
                f"The pipeline keeps up: its consumer waited {waited:.0%} of the time. To go faster, speed that up."
            ]
        return list(self._remedies()) or [self._largest_part()]

    def _remedies(self) -> Iterator[str]:
        if not self.depth:
            yield "Batches are not prefetched: set `exec_pipelined=True` and `exec_async=True`."
        if self.source > 0.3 * self.elapsed:
            yield (
                f"External sources took {self.source / self.elapsed:.0%} of the time, on the consumer's thread: use "
                "`parallel=True` with `py_num_workers`, or a reader."
            )
        if self.starved > 0.3 * self.elapsed:
            yield f"The pipeline waited {self.starved / self.elapsed:.0%} of the time for input: feed batches earlier."
        yield from self._remedies_for_threads()
        overhead = self.elapsed - self.idle - self.starved - sum(one.wall for one in self.operators)
        if self.depth and overhead > 0.2 * self.elapsed:
            yield (
                f"{overhead / self.batches * 1e6:.0f} us a batch ({overhead / self.elapsed:.0%}) passed between operators: "
                "use a larger `batch_size`."
            )

    def _largest_part(self) -> str:
        slowest, total = self.operators[0], sum(one.wall for one in self.operators)
        share = slowest.wall / max(total, 1e-9)
        return f"Nothing stands out: of the operators' time, `{slowest.name}` takes the largest part, {share:.0%}."

    def _remedies_for_threads(self) -> Iterator[str]:
        slowest, busy = self.operators[0], sum(one.cpu for one in self.operators)
        used = busy / max(sum(one.wall for one in self.operators), 1e-9)
        if slowest.gpu is not None and slowest.gpu > 0.5 * self.elapsed:
            yield f"The GPU is the limit: `{slowest.name}` kept it busy for {slowest.gpu / self.elapsed:.0%} of the time."
        elif used > 0.75 * self.num_threads:
            more = min(self.cores, 2 * self.num_threads)
            yield (
                f"Threads are busy: set `num_threads` to {more}, instead of {self.num_threads}."
                if more > self.num_threads
                else f"All cores ({self.cores}) are busy; `{slowest.name}` takes the most CPU. Use smaller images, or a GPU."
            )
        elif slowest.cpu < 0.5 * slowest.wall:
            yield (
                f"`{slowest.name}` waits rather than computes ({slowest.cpu / slowest.wall:.0%} CPU), say for storage: raise "
                "`num_threads`, `prefetch_queue_depth` or its `read_ahead`."
            )
        elif self.num_threads > 1 and used < 0.5 * self.num_threads:
            yield (
                f"`{slowest.name}` leaves {self.num_threads - used:.1f} of {self.num_threads} threads idle: use a "
                "larger `batch_size`, unless other processes keep the cores busy."
            )


class Trace:
    """Records what a pipeline does while it runs; ``Pipeline(trace=True).trace`` is one.

    Args:
        num_threads: the pipeline's number of CPU threads.
        depth: the pipeline's prefetch queue depth.
        titles: operators' display names, by node name.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=1, trace=True)
    ... def doubled():
    ...     return fn.external_source(lambda: np.ones((2, 3), np.float32)) * 2
    >>> pipe = doubled()
    >>> _ = pipe.run()
    >>> pipe.trace.summary().batches
    1
    """

    def __init__(self, num_threads: int, depth: int, titles: Mapping[str, str]) -> None:
        self.spans: list[Span] = []
        self._titles = titles
        self._num_threads = num_threads
        self._depth = depth
        self._fills: list[int] = []
        # For each run of a GPU operator: its name, and the events before and after its work.
        self._events: list[tuple[str, object, object]] = []

    # -- recording -------------------------------------------------------------------------------------------------

    @contextmanager
    def span(self, name: str, kind: Kind) -> Iterator[None]:
        """Record the time until the context ends."""
        start, cpu = perf_counter(), thread_time()
        try:
            yield
        finally:
            took, worked = perf_counter() - start, thread_time() - cpu
            title, thread = self._titles.get(name, name), threading.current_thread().name
            self.spans.append(Span(title, kind, thread, start, took, worked))

    @contextmanager
    def operator(self, name: str, stream: object | None) -> Iterator[None]:
        """Record one run of an operator; ``stream``: the stream of its GPU work, if any."""
        if stream is None:
            with self.span(name, Kind.OPERATOR):
                yield
            return
        first, last = (require_cupy().cuda.Event() for _ in range(2))
        first.record(stream)
        try:
            with self.span(name, Kind.OPERATOR):
                yield
        finally:
            last.record(stream)
            self._events.append((self._titles[name], first, last))

    def parallel(self, parallel: Parallel, name: str) -> Parallel:
        """Wrap ``parallel`` so that each task is recorded as a sample of the operator ``name``."""

        def recorded(task: Callable[[int], None], count: int, costs: Sequence[int] | None = None) -> None:
            def run(index: int) -> None:
                with self.span(name, Kind.SAMPLE):
                    task(index)

            parallel(run, count, costs)

        return recorded

    def consumed(self, fill: int) -> None:
        """Record that the consumer requested a batch while ``fill`` finished ones were queued."""
        self._fills.append(fill)

    def clear(self) -> None:
        """Discard everything recorded, for instance after the warm-up batches, which compile kernels."""
        self.spans.clear()
        self._fills.clear()
        self._events.clear()

    # -- reading ---------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Return the recorded times in numbers."""
        spans = list(self.spans)
        elapsed = max((one.start + one.wall for one in spans), default=0.0) - min(
            (one.start for one in spans), default=0.0
        )
        waits: defaultdict[Kind, float] = defaultdict(float)
        threads: defaultdict[str, float] = defaultdict(float)
        for one in spans:
            waits[one.kind] += one.wall
        for one in _outermost(spans):
            threads[one.thread] += one.cpu
        return Summary(
            elapsed=elapsed,
            operators=self._operators(spans),
            threads=dict(threads),
            num_threads=self._num_threads,
            cores=len(os.sched_getaffinity(0)),
            source=waits[Kind.SOURCE],
            starved=waits[Kind.NO_INPUT],
            blocked=waits[Kind.NO_BATCH],
            idle=waits[Kind.NO_DEMAND],
            queue_fill=sum(self._fills) / len(self._fills) if self._fills else 0.0,
            depth=self._depth,
            batches=len(self._fills),
        )

    def _operators(self, spans: Sequence[Span]) -> list[OperatorTimes]:
        found: dict[str, OperatorTimes] = {}
        for one in _outermost(spans):
            if one.kind not in (Kind.OPERATOR, Kind.SAMPLE):
                continue
            times = found.setdefault(one.name, OperatorTimes(one.name))
            times.cpu += one.cpu
            if one.kind is Kind.OPERATOR:
                times.wall += one.wall
                times.batches += 1
        for name, first, last in self._events:
            last.synchronize()  # type: ignore[attr-defined]
            found[name].gpu = (found[name].gpu or 0.0) + require_cupy().cuda.get_elapsed_time(first, last) / 1e3
        return sorted(found.values(), key=lambda times: max(times.wall, times.gpu or 0.0), reverse=True)

    def write(self, path: str | Path) -> None:
        """Write the trace in Chrome's format (JSON), for https://ui.perfetto.dev and chrome://tracing."""
        spans = list(self.spans)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(one.thread for one in spans))}
        begin = min((one.start for one in spans), default=0.0)
        events: list[dict[str, object]] = [
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": name}}
            for name, number in numbers.items()
        ]
        events += [
            {
                "ph": "X",
                "name": one.name if one.kind in (Kind.OPERATOR, Kind.SAMPLE) else f"{one.kind.value}: {one.name}",
                "cat": one.kind.value,
                "pid": 1,
                "tid": numbers[one.thread],
                "ts": (one.start - begin) * 1e6,
                "dur": one.wall * 1e6,
                "args": {"cpu_us": one.cpu * 1e6},
            }
            for one in spans
        ]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def titles(operators: Sequence[OpNode]) -> dict[str, str]:
    """Return display names of operators by node name: the name of the function called, plus the node's name if several
    operators have that name.
    """
    count = Counter(map(title, operators))
    return {op.name: title(op) if count[title(op)] == 1 else f"{title(op)} '{op.name}'" for op in operators}


def _outermost(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans that are not inside another span of the same thread."""
    ends: dict[str, float] = {}
    for one in sorted(spans, key=lambda span: (span.start, -span.wall)):
        if one.start >= ends.get(one.thread, float("-inf")):
            ends[one.thread] = one.start + one.wall
            yield one
