"""Prevents models that cannot answer from being reported ready: unloads them until they can answer.

In Triton 2.51, a backend cannot report that a loaded model is not ready. So models report it in a metric (see `self_check`), and
reloading a model begins with a trial run, which shows whether the model can answer.
"""

from __future__ import annotations

import functools
import http.client
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from penstock.serving.control import Control, ServerError, readable
from penstock.serving.metrics import Metric

READ_SECONDS = 2.0
"""The number of seconds between two readings of the metrics."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause between attempts to load a model, in seconds; each pause is twice as long as the one before."""

_FAILING = re.compile(rf'^{Metric.CANNOT_ANSWER.value.name}\{{.*\bmodel="((?:[^"\\]|\\.)*)".*\}} 1$', re.M)


class Watched(Protocol):
    """The server interface that this module needs."""

    repositories: list[Path]

    @property
    def control(self) -> Control:
        """The server's model control interface."""

    @property
    def clients_load(self) -> bool:
        """Whether clients may load models, with uploaded files and configurations."""

    @property
    def metrics_url(self) -> str:
        """The URL of the server's metrics."""


class Readiness:
    """Unloads the models of a server that cannot answer, and reloads them when they can.

    Args:
        server: the server that is supervised.
        report: called with a line of text on what is done with a model, and why.
        ending: an event that is set when the supervision ends.
    """

    def __init__(self, server: Watched, report: Callable[[str], None], ending: threading.Event) -> None:
        self._server = server
        self._report = report
        self._ending = ending
        self._next = 0.0
        self._known = set[str]()

    def unready(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """If a check is due, yield each model that has become unable to answer, with a function that repairs it."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + READ_SECONDS
        failing = failing_models(self._server.metrics_url)
        new, self._known = failing - self._known, failing
        for model in sorted(new):
            yield model, functools.partial(self._repair, model)

    def _repair(self, model: str) -> None:
        if not any((folder / model).is_dir() for folder in self._server.repositories):
            self._report(
                f"{model} cannot answer requests (its log has the reason); as a client brought its files, it stays loaded"
            )
            return
        try:
            self._unload_until_it_answers(model)
        except ServerError as error:
            self._report(f"{model} cannot answer requests, and could not be unloaded: {error}")

    def _unload_until_it_answers(self, model: str) -> None:
        control, began = self._server.control, time.monotonic()
        parameters = self._own_parameters(model)
        self._report(f"{model} cannot answer requests (its log has the reason); it is unloaded until it can")
        control.unload(model)
        # The first attempt is immediate. If a model failed to load, Triton counts as not ready; with an unloaded model, it counts as ready.
        pause, reported = 0.0, ""
        while not self._ending.wait(pause):
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS) or FIRST_PAUSE_SECONDS
            try:
                # Someone else may have loaded the model in the meantime, or restarted the server.
                if not any(entry.ready for entry in control.models() if entry.name == model):
                    control.load(model, parameters)
                self._report(f"{model} serves again, after {time.monotonic() - began:.1f} s")
                return
            except ServerError as error:
                if str(error) != reported:
                    reported = str(error)
                    self._report(f"{model} cannot answer yet: {readable(reported).rstrip('; ')}")

    def _own_parameters(self, model: str) -> dict[str, str]:
        """Return the parameters with which a client may have loaded the model, for reloading it."""
        config = self._server.control.configuration(model) if self._server.clients_load else None
        return {} if config is None else {"config": json.dumps(config)}


def failing_models(metrics_url: str) -> set[str]:
    """Return the models with an instance that cannot answer; an empty set if the metrics cannot be read."""
    try:
        with urllib.request.urlopen(metrics_url, timeout=5) as answer:
            page = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return set()
    return set(_FAILING.findall(page))
