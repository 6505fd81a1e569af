"""Admission of requests while a server drains: only requests accepted before draining are answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

_IDLE_SECONDS = 0.3
"""After this many seconds without an execution, the queue counts as empty: queued requests may have been cancelled."""


class AdmittedExecution:
    """An execution, from its admission to its end; as a context manager, it yields :attr:`requests`.

    Args:
        admission: the admission that counts the execution.
        requests: see the attribute.

    Attributes:
        requests: how many of the execution's requests are admitted; these are its first requests.
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
    """Admits requests to executions. Until draining begins, all requests are admitted.

    Triton does not report when a request arrived, but executes the requests of a model in the order of their arrival. So if n requests
    of a model were queued when draining began, the first n requests that are executed afterwards are admitted.

    Attributes:
        expired: an event that is set when draining has taken too long; admitted requests are then cancelled, too.
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
        """Note the end of an execution; ``admitted``: how many of its requests were admitted."""
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
        """From now on, admit only requests that are queued already, and wait until these are answered.

        Args:
            queued: the number of requests queued for each model.
            timeout: the number of seconds after which no further requests are admitted, and :attr:`expired` is set.

        Returns:
            Whether all queued requests were answered in time.
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
