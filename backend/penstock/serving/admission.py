"""Admission of requests while a server drains: only requests accepted before draining are answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

_IDLE_SECONDS = 0.3
"""The seconds without an execution after which the queue counts as empty: queued requests may have been cancelled."""


class AdmittedExecution:
    """An execution that was admitted, until it ends; as a context, it yields :attr:`requests`.

    Args:
        admission: counts it.
        requests: see below.

    Attributes:
        requests: the number of its requests that are admitted: always the first ones.
    """

    __slots__ = ("_admission", "requests")

    def __init__(self, admission: Admission, requests: int) -> None:
        self._admission, self.requests = admission, requests

    def __enter__(self) -> int:
        return self.requests

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the execution."""
        self._admission.ended(self.requests)


class Admission:
    """Admits requests to executions; all of them until draining begins.

    Triton does not report when a request arrived, but runs a model's requests in the order of their arrival. So if n requests
    were queued when draining began, the first n executed after that are admitted.

    Attributes:
        expired: set when draining takes too long; admitted requests are no longer wanted.
    """

    def __init__(self) -> None:
        self.expired = threading.Event()
        self._changed = threading.Condition()
        self._executions = 0
        self._last_execution = 0.0
        self._queued: dict[str, int] | None = None

    def execution(self, model: str, requests: int) -> AdmittedExecution:
        """Begin an execution of a model with this many requests."""
        with self._changed:
            admitted = self._admit(model, requests)
            self._executions += 1
        return AdmittedExecution(self, admitted)

    def ended(self, admitted: int) -> None:
        """Note the end of an execution, of which this many requests were admitted."""
        with self._changed:
            self._executions -= 1
            if self._queued is not None:
                if admitted:
                    self._last_execution = time.monotonic()
                self._changed.notify_all()

    def _admit(self, model: str, requests: int) -> int:
        if self._queued is None:
            return requests
        admitted = min(self._queued.get(model, 0), requests)
        if admitted:
            self._queued[model] -= admitted
        return admitted

    def drain(self, queued: Mapping[str, int], timeout: float) -> bool:
        """Admit only the requests already queued from now on, and wait until they are answered.

        Args:
            queued: the number of requests queued for each model.
            timeout: seconds after which no further requests are admitted, and :attr:`expired` is set.

        Returns:
            Whether all were answered in time.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._queued = dict(queued)
            self._last_execution = time.monotonic()
            while not self._is_idle() and time.monotonic() < deadline:
                self._changed.wait(min(_IDLE_SECONDS, max(0.0, deadline - time.monotonic())))
            drained = self._is_idle()
            self._queued = {}
        if not drained:
            self.expired.set()
        return drained

    def _is_idle(self) -> bool:
        assert self._queued is not None
        waited = time.monotonic() - self._last_execution >= _IDLE_SECONDS
        return not self._executions and (waited or not any(self._queued.values()))
