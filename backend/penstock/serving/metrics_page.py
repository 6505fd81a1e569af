"""Writes the metrics of model instances to Triton's metrics page.

Changing a metric in Triton takes 20 to 150 microseconds, so the model accumulates changes, and a thread sends them several times
a second.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.serving.metrics import Changes, Family, Metric, Series, Tally

logger = logging.getLogger(__name__)

_WRITE_INTERVAL_SECONDS = 0.25  # seconds


class SeriesOnPage(Protocol):
    """A series on the page; its kind determines which of these methods it supports."""

    def increment(self, value: float) -> None:
        """Increment a counter."""

    def set(self, value: float) -> None:
        """Set a gauge."""

    def observe(self, value: float) -> None:
        """Add an observation to a histogram."""


MakeSeries = Callable[[Family, Mapping[str, str]], SeriesOnPage]
"""A function that creates a series of a family with these labels, or returns the existing one."""


class MetricsPage:
    """Writes the metrics of one model instance to Triton's metrics page.

    If several instances of a model use the same labels, they share a series, so their counts add up. Series outlive the model: when
    the model is reloaded, its counters continue.

    Args:
        make: a function that creates series.
        model, version: the labels of all series.
        instance: the additional label of gauges, which are separate for each instance.
    """

    def __init__(self, make: MakeSeries, model: str, version: str, instance: str) -> None:
        self._make = make
        self._common = {"model": model, "version": version}
        self._series: dict[Series, SeriesOnPage] = {}
        self._instance = instance
        self._gauges: set[Metric] = set()

    def write(self, changes: Changes) -> None:
        """Write changes to the page.

        Requests are counted last, so that a reader who sees their number also sees everything else about them.
        """
        for metric, value in changes.gauges.items():
            self._series_of(metric, (self._instance,)).set(value)
            self._gauges.add(metric)
        for (metric, value), times in changes.observed.items():
            for _ in range(times):
                self._series_of(metric, ()).observe(value)
        for (metric, labels), raised in sorted(changes.counts.items(), key=_is_of_requests):
            self._series_of(metric, labels).increment(raised)

    def clear(self) -> None:
        """Set all gauges to 0."""
        for metric in self._gauges:
            self._series_of(metric, (self._instance,)).set(0)

    def _series_of(self, metric: Metric, labels: tuple[str, ...]) -> SeriesOnPage:
        series = self._series.get((metric, labels))
        if series is None:
            named = self._common | dict(zip(metric.value.labels, labels))
            series = self._series[metric, labels] = self._make(metric.value, named)
        return series


def _is_of_requests(change: tuple[Series, float]) -> bool:
    (metric, _), _ = change
    return metric is Metric.REQUESTS


class MetricsWriter:
    """Writes a model's changes to the page, a quarter of a second after the first one.

    Args:
        page: the page to write to.
        tally: the tally that collects the changes.
    """

    def __init__(self, page: MetricsPage, tally: Tally) -> None:
        self._page = page
        self._tally = tally
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._write_until_closed, name="penstock-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the remaining changes, and set the gauges to 0."""
        self._closed.set()
        self._tally.changed.set()
        self._thread.join()

    def _write_until_closed(self) -> None:
        try:
            while not self._closed.is_set():
                self._tally.changed.wait()
                self._closed.wait(_WRITE_INTERVAL_SECONDS)
                self._page.write(self._tally.take())
            # Write changes that were made while the page was being written.
            self._page.write(self._tally.take())
            self._page.clear()
        except Exception:
            logger.exception("no more metrics are written")
