"""Triton's metrics page, as model instances write to it.

Changing a metric in Triton takes 20 to 150 microseconds, so the model accumulates changes, and a thread sends them now
and then.
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
    """A series on the page; its kind decides which of these it accepts."""

    def increment(self, value: float) -> None:
        """Increment a counter."""

    def set(self, value: float) -> None:
        """Set a gauge."""

    def observe(self, value: float) -> None:
        """Add an observation to a histogram."""


MakeSeries = Callable[[Family, Mapping[str, str]], SeriesOnPage]
"""Creates a series of a family with these labels, or returns the existing one."""


class MetricsPage:
    """Triton's metrics page, as one model instance writes to it.

    Series with the same labels are one, so the counts of a model's instances add up. They outlive the model: a counter
    continues when the model is reloaded.

    Args:
        make: creates series.
        model, version: the labels of all series.
        instance: the label of gauges, which each instance has separately.
    """

    def __init__(self, make: MakeSeries, model: str, version: str, instance: str) -> None:
        self._make = make
        self._common = {"model": model, "version": version}
        self._series: dict[Series, SeriesOnPage] = {}
        self._instance = instance
        self._gauges: set[Metric] = set()

    def write(self, changes: Changes) -> None:
        """Update the page.

        Requests are counted last, so that a reader of their number also finds everything else about them.
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
    """Writes a model's counts to the page, a quarter of a second after they change.

    Args:
        page: the page to write to.
        tally: the counts.
    """

    def __init__(self, page: MetricsPage, tally: Tally) -> None:
        self._page = page
        self._tally = tally
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._write_until_closed, name="penstock-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the remaining changes, and reset the gauges."""
        self._closed.set()
        self._tally.changed.set()
        self._thread.join()

    def _write_until_closed(self) -> None:
        try:
            while not self._closed.is_set():
                self._tally.changed.wait()
                self._closed.wait(_WRITE_INTERVAL_SECONDS)
                self._page.write(self._tally.take())
            # Changes made while the page was being written.
            self._page.write(self._tally.take())
            self._page.clear()
        except Exception:
            logger.exception("no more metrics are written")
