"""What is noted of a model's executions: counted for its metrics, and told in the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Protocol

from penstock.runtime.plan import Step
from penstock.serving.metrics import Metric, Tally
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
        self._samples = 0
        self._operators: Counter[tuple[str, str]] = Counter()

    def begin(self) -> None:
        """An execution begins."""
        self._began = perf_counter()
        self._samples = 0
        self._operators.clear()

    def ran(self, samples: int) -> None:
        """A batch was run."""
        self._samples += samples
        self.tally.observe(Metric.BATCH_SIZE, samples)

    def operator_ran(self, step: Step, seconds: float) -> None:
        """An operator was run: to be told by the executor."""
        self._operators[step.node.display_name, step.node.device] += seconds  # type: ignore[assignment]

    def end(self, requests: Sequence[Named], answers: Mapping[int, object], held: Mapping[Metric, float]) -> None:
        """The execution is over.

        Args:
            requests: all that it was to answer.
            answers: by their places; a ``Refusal`` is a failure.
            held: the model's gauges.
        """
        seconds = perf_counter() - self._began
        self.tally.add(Metric.REQUESTS, len(requests))
        self.tally.add(Metric.SAMPLES, self._samples)
        self.tally.add(Metric.EXECUTION_SECONDS, seconds)
        for metric, value in held.items():
            self.tally.set(metric, value)
        for labels, taken in self._operators.items():
            self.tally.add(Metric.OPERATOR_SECONDS, taken, *labels)
        for place, answer in answers.items():
            if isinstance(answer, Refusal):
                self._failed(requests[place], answer)
        if self._slow_from is not None and seconds >= self._slow_from:
            self._was_slow(requests, seconds)

    def _failed(self, request: Named, refusal: Refusal) -> None:
        self.tally.add(Metric.FAILED_REQUESTS, 1, refusal.fault.value, refusal.operator)
        if self._level is not None:
            logger.log(self._level, "%s", failed_request(self._model, self._version, request.id, refusal))

    def _was_slow(self, requests: Sequence[Named], seconds: float) -> None:
        operators: Counter[str] = Counter()
        for (name, _), taken in self._operators.items():
            operators[name] += taken
        ids = [request.id for request in requests]
        logger.warning("%s", slow_execution(self._model, self._version, ids, self._samples, seconds, operators))
