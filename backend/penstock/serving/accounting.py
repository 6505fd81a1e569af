"""What is noted of a model's executions: counted for its metrics, and told in the log."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Protocol

from penstock.runtime.plan import Step
from penstock.schema.fused import FusedOperator
from penstock.serving.metrics import Changes, Metric, Tally
from penstock.serving.refusals import Refusal
from penstock.serving.request_log import failed_request, slow_execution
from penstock.serving.settings import Settings

logger = logging.getLogger(__name__)

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Named(Protocol):
    """A request, as far as the log knows it."""

    @property
    def id(self) -> str:
        """The client's name for the request, or empty."""


class Accounts:
    """The accounts of one model.

    Args:
        model, version: whose they are.
        settings: what is to be logged.

    Attributes:
        tally: the counts.
    """

    def __init__(self, model: str, version: str, settings: Settings) -> None:
        self.tally = Tally()
        self._model = model
        self._version = version
        self._level = _LEVELS.get(settings.log_failures)
        self._slow_from = settings.slow_execution_seconds
        self._began = 0.0
        self._batches: list[int] = []
        self._operators: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._fused: Counter[tuple[str, str]] = Counter()
        self._totals: defaultdict[Metric, float] = defaultdict(float)

    def begin(self) -> None:
        """An execution begins."""
        self._began = perf_counter()
        self._batches.clear()
        self._operators.clear()
        self._fused.clear()

    def ran(self, samples: int) -> None:
        """A batch is run."""
        self._batches.append(samples)

    def operator_ran(self, step: Step, seconds: float) -> None:
        """An operator of it was run."""
        self._operators[step.node.display_name, step.node.device] += seconds
        if isinstance(step.operator, FusedOperator):
            for how, samples in step.operator.take_counts().items():
                self._fused[step.node.display_name, how] += samples

    def end(self, requests: Sequence[Named], answers: Mapping[int, object], readings: Mapping[Metric, float]) -> None:
        """The execution is over.

        Args:
            requests: all that it was to answer.
            answers: by their places; a ``Refusal`` is a failure.
            readings: what the pipeline itself counts: gauges, and counters' totals since it was built.
        """
        seconds = perf_counter() - self._began
        failed = {place: answer for place, answer in answers.items() if isinstance(answer, Refusal)}
        with self.tally as changes:
            self._count(changes, len(requests), failed.values(), seconds)
            self._note(changes, readings)
        for place, refusal in failed.items():
            self._log_failure(requests[place], refusal)
        if self._slow_from is not None and seconds >= self._slow_from:
            self._log_slowness(requests, seconds)

    def _count(self, changes: Changes, requests: int, failed: Iterable[Refusal], seconds: float) -> None:
        counts = changes.counts
        counts[Metric.REQUESTS, ()] += requests
        counts[Metric.SAMPLES, ()] += sum(self._batches)
        counts[Metric.EXECUTION_SECONDS, ()] += seconds
        for batch in self._batches:
            changes.observed[Metric.BATCH_SIZE, batch] += 1
        for labels, taken in self._operators.items():
            counts[Metric.OPERATOR_SECONDS, labels] += taken
        for labels, samples in self._fused.items():
            counts[Metric.FUSED_SAMPLES, labels] += samples
        for refusal in failed:
            counts[Metric.FAILED_REQUESTS, (refusal.fault.value, refusal.operator)] += 1

    def _note(self, changes: Changes, readings: Mapping[Metric, float]) -> None:
        for metric, value in readings.items():
            if metric.value.kind == "GAUGE":
                changes.gauges[metric] = value
            elif value != self._totals[metric]:
                # A pipeline that was built anew counts from 0.
                before = self._totals[metric] if value > self._totals[metric] else 0
                changes.counts[metric, ()] += value - before
                self._totals[metric] = value

    def _log_failure(self, request: Named, refusal: Refusal) -> None:
        if self._level is not None:
            logger.log(self._level, "%s", failed_request(self._model, self._version, request.id, refusal))
        if refusal.traceback:
            logger.error("a request failed for an error that is not its own: %s", refusal.traceback)

    def _log_slowness(self, requests: Sequence[Named], seconds: float) -> None:
        ids = [request.id for request in requests]
        operators = {name: taken for (name, _), taken in self._operators.items()}
        logger.warning("%s", slow_execution(self._model, self._version, ids, sum(self._batches), seconds, operators))
