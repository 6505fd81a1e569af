"""Triton's page of metrics, as model instances write on it.

To change a metric in Triton takes 20 to 150 microseconds, so what happens is added up by the model and sent now and then, by a
thread of its own.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from penstock.serving.metrics import Changes, Metric, Series, Tally

logger = logging.getLogger(__name__)

_INTERVAL = 0.25  # seconds


class MetricsPage:
    """Triton's page of metrics, as one model instance writes on it.

    Series of the same labels are one, whichever process writes: what the instances of a model count adds up. They outlive the
    model: a counter goes on where it was when the model is loaded again.

    Args:
        pb_utils: Triton's module.
        model, version: the labels of all series.
        instance: the label of gauges, which each instance has for itself.
    """

    def __init__(self, pb_utils: Any, model: str, version: str, instance: str) -> None:
        self._kinds = pb_utils.MetricFamily
        self._common = {"model": model, "version": version}
        self._families: dict[Metric, Any] = {}
        self._series: dict[Series, Any] = {}
        self._instance = instance
        self._gauges: set[Metric] = set()

    def write(self, changes: Changes) -> None:
        """Brings the page up to date."""
        for (metric, labels), raised in changes.counts.items():
            self._at(metric, labels).increment(raised)
        for (metric, value), times in changes.observed.items():
            for _ in range(times):
                self._at(metric, ()).observe(value)
        for metric, value in changes.gauges.items():
            self._at(metric, (self._instance,)).set(value)
            self._gauges.add(metric)

    def clear(self) -> None:
        """Sets all gauges to 0."""
        for metric in self._gauges:
            self._at(metric, (self._instance,)).set(0)

    def _at(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        series = self._series.get((metric, labels))
        if series is None:
            series = self._series[metric, labels] = self._made(metric, labels)
        return series

    def _made(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        declared = metric.value
        if metric not in self._families:
            self._families[metric] = self._kinds(
                name=declared.name, description=declared.doc, kind=getattr(self._kinds, declared.kind)
            )
        names = self._common | dict(zip(declared.labels, labels))
        buckets = {"buckets": list(declared.buckets)} if declared.buckets else {}
        return self._families[metric].Metric(labels=names, **buckets)


class MetricsWriter:
    """Writes what a model has counted on the page, a quarter of a second after it has happened.

    Args:
        page: where it goes.
        tally: what is counted.
    """

    def __init__(self, page: MetricsPage, tally: Tally) -> None:
        self._page = page
        self._tally = tally
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._write_until_closed, name="penstock-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Sends what is left, and that nothing is held any more."""
        self._closed.set()
        self._tally.changed.set()
        self._thread.join()

    def _write_until_closed(self) -> None:
        try:
            while not self._closed.is_set():
                self._tally.changed.wait()
                self._closed.wait(_INTERVAL)
                self._page.write(self._tally.take())
            self._page.clear()
        except Exception:
            logger.exception("no more metrics are written")
