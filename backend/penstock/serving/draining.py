"""Drains a server: makes it refuse new requests, and waits until those in flight are answered."""

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
"""How many seconds a server on a busy machine may take to report that it has drained."""
_REFUSAL_SECONDS = 1.0
"""How many seconds to allow for sending refusals to clients whose requests were in flight too long."""
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
    """Makes a server report that it is not ready, by letting it load a model that cannot be loaded.

    Args:
        folder: the folder in which the model is prepared, and in which its repository is created.

    Attributes:
        repository: an additional repository for Triton; empty until the model is moved into it.
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
            # The prepared folder is moved, because writing one would fail on a full disk.
            self._model.rename(self.repository / _UNLOADABLE)
            control.load(_UNLOADABLE, patience=patience)
        except NoAnswer:
            raise
        except (ServerError, OSError):
            pass


class Drainable(Protocol):
    """The attributes of a running server that draining needs."""

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def lifeline(self) -> Lifeline:
        """The connection to the server."""

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""

    @property
    def readiness(self) -> ReadinessSwitch:
        """The switch that makes the server report that it is not ready."""

    def queued_requests(self) -> dict[str, int]:
        """Return the number of queued requests by model."""

    def waits_for_the_dead(self) -> bool:
        """Return whether the server waits for requests that can never finish, because the process of their model has died."""


def drain(server: Drainable, exit_timeout: float, hosted: Collection[str]) -> None:
    """Drain a server: report not ready, refuse new requests and answer those in flight.

    Triton itself would accept new requests on open connections until its exit timeout, and then cut off the requests in
    flight.

    Args:
        server: the server to drain.
        exit_timeout: how many seconds to wait for requests in flight.
        hosted: the backends whose models run in the server's process; these models refuse new requests themselves.
    """
    deadline = time.monotonic() + exit_timeout

    def remaining() -> float:
        return max(0.0, deadline - time.monotonic())

    def patient() -> bool:
        return server.running and not server.waits_for_the_dead() and time.monotonic() < deadline

    listens = server.lifeline.listens()
    # If HTTP does not answer, the error skips the remaining requests over HTTP, but not the lifeline below.
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
    """Unload models, ensembles before the models that they consist of, and wait for the requests in flight.

    Args:
        control: the server's model control interface.
        hosted: the backends whose models are not unloaded.
        patient: returns whether to continue waiting.
        patience: returns how many seconds to wait for the server's next answer.

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
