"""Accounts for a model's executions: counts for metrics, and lines for the log."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    """The request attributes that log lines need."""

    @property
    def id(self) -> str:
        """The client's name for the request; an empty string if it has none."""


class ExecutionAccount:
    """The account of one execution, which begins when this object is created.

    Attributes:
        batches: the sizes of the batches that were run.
        operators: the seconds that each operator took, by the operator's name and device.
    """

    __slots__ = ("_began", "_fused", "batches", "operators")

    def __init__(self) -> None:
        self._began = perf_counter()
        self.batches: list[int] = []
        self.operators: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._fused: defaultdict[tuple[str, str], int] = defaultdict(int)

    @property
    def seconds(self) -> float:
        """The seconds since the execution began."""
        return perf_counter() - self._began

    def ran(self, samples: int) -> None:
        """Record a batch."""
        self.batches.append(samples)

    def operator_ran(self, step: Step, seconds: float) -> None:
        """Record an operator's run."""
        self.operators[step.node.display_name, step.node.device] += seconds
        if isinstance(step.operator, FusedOperator):
            for how, samples in step.operator.take_counts().items():
                self._fused[step.node.display_name, how] += samples

    def add_to(self, changes: Changes) -> None:
        """Add the account to a model's metrics."""
        counts = changes.counts
        counts[Metric.SAMPLES, ()] += sum(self.batches)
        counts[Metric.EXECUTION_SECONDS, ()] += self.seconds
        for batch in self.batches:
            changes.observed[Metric.BATCH_SIZE, batch] += 1
        for labels, operator_seconds in self.operators.items():
            counts[Metric.OPERATOR_SECONDS, labels] += operator_seconds
        for labels, samples in self._fused.items():
            counts[Metric.FUSED_SAMPLES, labels] += samples


class Accounts:
    """The accounts of one model.

    Args:
        model, version: the model and version whose executions are accounted for.
        settings: the logging settings.

    Attributes:
        model, version: as above.
        tally: the counts.
    """

    def __init__(self, model: str, version: str, settings: Settings) -> None:
        self.tally = Tally()
        self.model = model
        self.version = version
        self._level = _LEVELS.get(settings.log_failures)
        self._slow_from = settings.slow_execution_seconds
        self._totals: defaultdict[Metric, float] = defaultdict(float)

    def begin(self) -> ExecutionAccount:
        """Begin an execution, and return its account."""
        return ExecutionAccount()

    def end(
        self,
        execution: ExecutionAccount,
        requests: Sequence[Named],
        answers: Mapping[int, object],
        readings: Mapping[Metric, float],
    ) -> None:
        """End an execution.

        Args:
            execution: the account of the execution.
            requests: all requests of the execution.
            answers: the answers, by position of the request; a ``Refusal`` is a failure.
            readings: values that the pipeline counts itself: gauges, and the totals of counters since the pipeline was built.
        """
        seconds = execution.seconds
        failed = {position: answer for position, answer in answers.items() if isinstance(answer, Refusal)}
        with self.tally as changes:
            execution.add_to(changes)
            changes.counts[Metric.REQUESTS, ()] += len(requests)
            for refusal in failed.values():
                labels = refusal.fault.value, refusal.kind.value, refusal.operator
                changes.counts[Metric.FAILED_REQUESTS, labels] += 1
            self._note(changes, readings)
        for position, refusal in failed.items():
            self._log_failure(requests[position], refusal)
        if self._slow_from is not None and seconds >= self._slow_from:
            self._log_slowness(requests, execution, seconds)

    def _note(self, changes: Changes, readings: Mapping[Metric, float]) -> None:
        for metric, value in readings.items():
            if metric.value.kind == "GAUGE":
                changes.gauges[metric] = value
            elif value != self._totals[metric]:
                # If the value is not larger, the pipeline was rebuilt, and counts from 0 again.
                before = self._totals[metric] if value > self._totals[metric] else 0
                changes.counts[metric, ()] += value - before
                self._totals[metric] = value

    def _log_failure(self, request: Named, refusal: Refusal) -> None:
        if self._level is not None:
            logger.log(self._level, "%s", failed_request(self.model, self.version, request.id, refusal))
        if refusal.traceback:
            logger.error("a request failed because of an error that it did not cause: %s", refusal.traceback)

    def _log_slowness(self, requests: Sequence[Named], execution: ExecutionAccount, seconds: float) -> None:
        ids = [request.id for request in requests]
        operators: defaultdict[str, float] = defaultdict(float)
        for (name, _), operator_seconds in execution.operators.items():
            operators[name] += operator_seconds
        logger.warning("%s", slow_execution(self.model, self.version, ids, sum(execution.batches), seconds, operators))
