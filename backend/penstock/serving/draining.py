"""Draining a server: it accepts no new requests, and answers those in flight."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from penstock.serving.control import Control, NoAnswer, ServerError
from penstock.serving.lifeline import Lifeline

_ANSWER_SECONDS = 3.0
"""Seconds that a server on a busy machine may take to report that it has drained."""
_REFUSAL_SECONDS = 1.0
"""The seconds for sending refusals to the clients of requests that were in flight too long."""
_POLL_SECONDS = 0.05
_METRICS_SECONDS = 2.0

_QUEUED = re.compile(r'^nv_inference_pending_request_count\{model="([^"]*)".*?\} ([\d.e+]+)$', re.MULTILINE)

_UNLOADABLE = "penstock_is_stopping"
_UNLOADABLE_CONFIG = f"""backend: "{_UNLOADABLE}"
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }} ]
"""
_ALIVE = ("READY", "LOADING", "UNLOADING")


class ReadinessSwitch:
    """Makes a server report that it is not ready, by loading a model that cannot be loaded.

    Args:
        folder: the folder for a repository with that model, which holds the model until it is needed.

    Attributes:
        repository: one more repository for Triton, which is empty until then.
    """

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "unloadable"
        self.repository.mkdir()
        self._model = folder / "unloadable-model"
        (self._model / "1").mkdir(parents=True)
        (self._model / "config.pbtxt").write_text(_UNLOADABLE_CONFIG)

    def switch_off(self, control: Control, patience: float) -> None:
        """Make the server report not ready; wait at most ``patience`` seconds for its answer.

        Raises:
            NoAnswer: the server does not answer.
        """
        try:
            # Move the prepared folder rather than write one: this works on a full disk, too.
            self._model.rename(self.repository / _UNLOADABLE)
            control.load(_UNLOADABLE, patience=patience)
        except NoAnswer:
            raise
        except (ServerError, OSError):
            pass


class Drainable(Protocol):
    """A running server, in the form that draining needs."""

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def lifeline(self) -> Lifeline:
        """The connection to it."""

    @property
    def running(self) -> bool:
        """Whether its process is alive."""

    @property
    def readiness(self) -> ReadinessSwitch:
        """The switch that ends the server's readiness."""

    def queued_requests(self) -> dict[str, int]:
        """Return the number of queued requests by model."""

    def waits_for_the_dead(self) -> bool:
        """Return whether the server waits for requests that can never finish, as their model's process has died."""


def drain(server: Drainable, exit_timeout: float, hosted: Collection[str]) -> None:
    """Drain a server: report not ready, refuse new requests and answer those in flight.

    Triton itself would first accept new requests on open connections until its exit timeout, and then cut off those in
    flight.

    Args:
        server: the server to drain.
        exit_timeout: seconds to wait for requests in flight.
        hosted: the backends whose models the server hosts in its process; these refuse new requests themselves.
    """
    deadline = time.monotonic() + exit_timeout

    def remaining() -> float:
        return max(0.0, deadline - time.monotonic())

    def patient() -> bool:
        return server.running and not server.waits_for_the_dead() and time.monotonic() < deadline

    listens = server.lifeline.listens()
    # If HTTP does not answer, nothing else is requested over it.
    with contextlib.suppress(ServerError):
        server.readiness.switch_off(server.control, remaining() + _ANSWER_SECONDS)
        _unload(server.control, hosted if listens else (), patient, lambda: remaining() + _ANSWER_SECONDS)
    if listens:
        seconds = remaining()
        request = json.dumps({"queued": server.queued_requests(), "seconds": seconds})
        answer = server.lifeline.ask(request, seconds + _ANSWER_SECONDS, lambda: server.running)
        if answer == "expired":
            time.sleep(_REFUSAL_SECONDS)


def _unload(
    control: Control, hosted: Collection[str], patient: Callable[[], bool], patience: Callable[[], float]
) -> None:
    """Unload models, ensembles before those that they consist of, and wait for their requests in flight.

    Args:
        control: the server's control.
        hosted: backends whose models do not count.
        patient: whether to wait further.
        patience: seconds to wait for an answer of the server, from now.

    Raises:
        NoAnswer: the server does not answer.
    """
    configurations = {name: control.configuration(name) or {} for name in control.loaded()}
    ensembles = {name for name, config in configurations.items() if "ensemble_scheduling" in config}
    others = {name for name, config in configurations.items() if config.get("backend") not in hosted}
    for group in (ensembles, others - ensembles):
        for name in group:
            try:
                control.unload(name, patience())
            except NoAnswer:
                raise
            except ServerError:
                pass
        while group and patient() and any(model.name in group and model.state in _ALIVE for model in control.models()):
            time.sleep(_POLL_SECONDS)


def queued_requests(metrics_url: str) -> dict[str, int]:
    """Return the number of requests queued for each model, from Triton's metrics; empty without metrics."""
    queued: dict[str, int] = {}
    with (
        contextlib.suppress(OSError, http.client.HTTPException),
        urllib.request.urlopen(metrics_url, timeout=_METRICS_SECONDS) as page,
    ):
        for model, count in _QUEUED.findall(page.read().decode(errors="replace")):
            queued[model] = queued.get(model, 0) + int(float(count))
    return queued
