"""Self-checks: regularly test whether models can answer, by running a stored sample through pipelines that answer no requests.

A server must not call a model ready that answers each request with an error because a disk is full, memory is short, or a GPU is
lost. A model is checked while its requests fail for such reasons, and while it has no requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from penstock.errors import OperatorError
from penstock.pipeline import Pipeline
from penstock.schema import operator_class
from penstock.serving.faults import Fault, fault_of
from penstock.serving.metrics import Metric, Tally
from penstock.serving.probing import run_sample
from penstock.serving.refusals import Refusal
from penstock.tensors import TensorList, TensorListCPU

logger = logging.getLogger(__name__)

MAX_SAMPLE_BYTES = 1 << 20
"""The largest size in bytes of a request's sample that is stored."""

RETRY_SECONDS = 5.0
"""The number of seconds between checks of a model that fails."""

MAX_CHECKING_SHARE = 0.02
"""The largest fraction of time that checks may take."""

_TICK_SECONDS = 0.5


class SelfCheck:
    """The self-check of one instance of a model.

    Args:
        model: the name of the model, for the log.
        pipeline: a pipeline of the model that answers no requests; closed except during checks.
        sample: the inputs of one sample that the pipeline accepts, by name; None: use the first sample that is answered.
        every: the number of seconds between checks of a model without requests; None: the model is not checked.
        tally: the tally for the metric that says whether the model can answer.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        model: str,
        pipeline: Pipeline,
        sample: Mapping[str, TensorList] | None,
        every: float | None,
        tally: Tally,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._pipeline = pipeline
        self._sample = sample
        self._every = every
        self._tally = tally
        self._clock = clock
        # The user's functions may have side effects, such as counting calls, so they are only called if requests fail.
        self._calls_users_code = any(operator_class(op.schema.name).lends_inputs for op in pipeline.graph.operators)
        self._lock = threading.Lock()
        self._closed = False
        self._requests_fail = False
        self._problem = ""
        self._answered = self._checked = self._clock()
        self._seconds = 0.0
        self._publish()

    @property
    def wants_sample(self) -> bool:
        """Whether the first sample of an answered batch should be stored with :meth:`keep`."""
        return self._sample is None and self._every is not None

    def keep(self, batches: Mapping[str, TensorList]) -> None:
        """Store a copy of the first sample of answered batches, unless it is large or on a GPU."""
        samples = {name: batch.samples[0] for name, batch in batches.items()}
        if not all(isinstance(sample, np.ndarray) for sample in samples.values()):
            return
        if sum(sample.nbytes for sample in samples.values()) <= MAX_SAMPLE_BYTES:
            self._sample = {
                name: TensorListCPU.of_samples([np.array(sample)], batches[name].layout())
                for name, sample in samples.items()
            }

    def note(self, answers: Iterable[object]) -> None:
        """Record the outcome of the requests of an execution."""
        faults = {answer.fault if isinstance(answer, Refusal) else None for answer in answers}
        if None in faults:
            self._answered = self._clock()
            self._requests_fail = False
        elif faults == {Fault.SERVER}:
            self._requests_fail = True

    def is_due(self) -> bool:
        """Return whether to check the model now."""
        if self._sample is None or self._every is None:
            return False
        now = self._clock()
        waited = now - self._checked
        if waited < self._seconds / MAX_CHECKING_SHARE:
            return False
        if self._requests_fail or self._problem:
            return waited >= min(RETRY_SECONDS, self._every)
        return not self._calls_users_code and waited >= self._every and now - self._answered >= self._every

    def run(self) -> None:
        """Check the model; if the result has changed, log and publish it."""
        with self._lock:
            if self._closed:
                return
            began = self._clock()
            before, self._problem = self._problem, self._found_problem()
            self._checked = self._clock()
            self._seconds = self._checked - began
        if self._problem and not before:
            logger.error("the self-check of '%s' fails, so it cannot answer requests: %s", self._model, self._problem)
        elif before and not self._problem:
            logger.info("the self-check of '%s' succeeds again", self._model)
        if bool(before) != bool(self._problem):
            self._publish()

    def close(self) -> None:
        """End the checks, after a check that is under way."""
        with self._lock:
            self._closed = True

    def _found_problem(self) -> str:
        """Return why the server cannot run the model; an empty string if it can, or if the server is not at fault."""
        assert self._sample is not None
        try:
            run_sample(self._pipeline, self._sample)
        except Exception as error:
            if fault_of(error) is not Fault.SERVER:
                return ""
            text = (
                f"{error.operator}: {error.reason}"
                if isinstance(error, OperatorError)
                else f"{type(error).__name__}: {error}"
            )
            return " ".join(text.split())
        finally:
            self._pipeline.close()
        return ""

    def _publish(self) -> None:
        with self._tally as changes:
            changes.gauges[Metric.CANNOT_ANSWER] = float(bool(self._problem))


class SelfChecks:
    """Runs the self-checks of all instances in this process, one at a time, in a separate thread."""

    def __init__(self) -> None:
        self._checks = set[SelfCheck]()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, check: SelfCheck) -> None:
        """Run this check from now on, whenever it is due."""
        with self._lock:
            self._checks.add(check)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="penstock-self-checks", daemon=True)
                self._thread.start()

    def remove(self, check: SelfCheck) -> None:
        """Stop running this check; if it is running, wait until it is done."""
        with self._lock:
            self._checks.discard(check)
        check.close()

    def _run(self) -> None:
        while True:
            time.sleep(_TICK_SECONDS)
            with self._lock:
                checks = [check for check in self._checks if check.is_due()]
            for check in checks:
                try:
                    check.run()
                except Exception:
                    logger.exception("a self-check failed with an unexpected error")
