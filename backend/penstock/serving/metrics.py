"""The metrics of a served model. They are needed because Triton's metrics count requests that its Python backend answered with an
error as successes.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True)
class Family:
    """A metric for all models. Each model has a separate series, with the labels ``model`` and ``version``.

    Attributes:
        name: the name in Prometheus, including the unit.
        kind: ``COUNTER``, ``GAUGE`` or ``HISTOGRAM``.
        doc: the metric's description.
        labels: the names of further labels.
        buckets: the upper bounds of a histogram's buckets.
    """

    name: str
    kind: str
    doc: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Metric(Enum):
    """All metrics."""

    # Members are compared by identity: the hash of Enum, of the member's name, would take more time than the rest of the counting.
    __hash__ = object.__hash__

    REQUESTS = Family("penstock_requests_total", "COUNTER", "Requests, failed ones included.")
    FAILED_REQUESTS = Family(
        "penstock_failed_requests_total",
        "COUNTER",
        "Requests that got an error: by whose fault it is, by its kind, and by the operator that raised it.",
        ("fault", "kind", "operator"),
    )
    SAMPLES = Family("penstock_samples_total", "COUNTER", "Samples that were run, failed ones included.")
    BATCH_SIZE = Family(
        "penstock_batch_size",
        "HISTOGRAM",
        "Samples that were run as one batch.",
        buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    )
    EXECUTION_SECONDS = Family(
        "penstock_execution_seconds_total", "COUNTER", "Seconds spent on batches, from their requests to their answers."
    )
    OPERATOR_SECONDS = Family(
        "penstock_operator_seconds_total",
        "COUNTER",
        "Host seconds of each operator; for operators on the GPU, the time to launch their work.",
        ("operator", "device"),
    )
    FUSED_SAMPLES = Family(
        "penstock_fused_samples_total",
        "COUNTER",
        "Samples of fused operators: computed at once (how: fused), or step by step (how: the reason).",
        ("operator", "how"),
    )
    ISOLATED_DECODES = Family(
        "penstock_isolated_decodes_total",
        "COUNTER",
        "Operations in decoder processes: reading a file's header is one, decoding it another.",
    )
    DECODER_DEATHS = Family(
        "penstock_decoder_deaths_total",
        "COUNTER",
        "Decoder processes that died on a file, or timed out.",
    )
    CANNOT_ANSWER = Family(
        "penstock_model_cannot_answer",
        "GAUGE",
        "1 while the self-check of an instance fails for a reason of the server, otherwise 0.",
        ("instance",),
    )
    HOST_BYTES = Family(
        "penstock_host_memory_bytes",
        "GAUGE",
        "Bytes of host memory that an instance holds for its batches.",
        ("instance",),
    )
    GPU_BYTES = Family(
        "penstock_gpu_memory_bytes",
        "GAUGE",
        "Bytes of GPU memory that an instance holds for its batches.",
        ("instance",),
    )


Series = tuple[Metric, tuple[str, ...]]


@dataclass
class Changes:
    """Changes to the metrics since they were last taken.

    Attributes:
        counts: increments of counters.
        observed: how often histograms observed each value.
        gauges: current values.
    """

    counts: defaultdict[Series, float] = field(default_factory=lambda: defaultdict(float))
    observed: Counter[tuple[Metric, float]] = field(default_factory=Counter)
    gauges: dict[Metric, float] = field(default_factory=dict)


class Tally:
    """Collects changes until they are taken; any thread may add changes.

    >>> tally = Tally()
    >>> with tally as changes:
    ...     changes.counts[Metric.SAMPLES, ()] += 8

    Attributes:
        changed: an event that is set while there are changes to take.
    """

    def __init__(self) -> None:
        self.changed = threading.Event()
        self._lock = threading.Lock()
        self._changes = Changes()

    def __enter__(self) -> Changes:
        self._lock.acquire()
        return self._changes

    def __exit__(self, *_: object) -> None:
        if not self.changed.is_set():
            self.changed.set()
        self._lock.release()

    def take(self) -> Changes:
        """Return the changes since the last call."""
        with self._lock:
            self.changed.clear()
            changes, self._changes = self._changes, Changes()
        return changes
