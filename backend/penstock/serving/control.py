"""Control of a running Triton over HTTP: checks its health; lists, loads and unloads models."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError

_LOAD_SECONDS = 600.0
_UNLOAD_SECONDS = 60.0

Configuration = dict[str, Any]
"""A model's configuration, as Triton writes it in JSON."""


class ServerError(PenstockError):
    """The server cannot start, has died or refuses a request. The message says why, quoting the server's log if possible."""


class NoAnswer(ServerError):
    """The server did not answer, so its state is unknown."""


@dataclass(frozen=True)
class ModelState:
    """A model's state in the server.

    Attributes:
        name: the model's name.
        version: the model's version; an empty string if unknown.
        state: ``READY``, ``UNAVAILABLE``, ``LOADING`` or ``UNLOADING``.
        reason: why the model is not ready; an empty string if it was not requested to be.
    """

    name: str
    version: str
    state: str
    reason: str

    @property
    def ready(self) -> bool:
        """Whether the model answers requests."""
        return self.state == "READY"

    @property
    def failed(self) -> bool:
        """Whether the model failed to load."""
        return self.state == "UNAVAILABLE" and self.reason not in ("", "unloaded")


class Control:
    """Triton's HTTP interface for managing models.

    Args:
        address: ``host:port`` of the server's HTTP interface.
        headers: the headers that Triton requires if its interfaces are restricted.
    """

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self._address = address
        self._headers = dict(headers)

    def live(self) -> bool:
        """Return whether the server answers."""
        try:
            self._ask("GET", "/v2/health/live", patience=10)
        except ServerError:
            return False
        return True

    def models(self) -> list[ModelState]:
        """Return the states of all models in the repositories, one for each version that the server knows.

        Raises:
            ServerError: the server does not answer.
        """
        return [
            ModelState(
                item["name"], item.get("version", ""), item.get("state") or "UNAVAILABLE", item.get("reason", "")
            )
            for item in self._ask("POST", "/v2/repository/index", patience=10)
        ]

    def loaded(self) -> list[str]:
        """Return the names of all models that are ready, including those that clients loaded with uploaded files.

        Raises:
            ServerError: the server does not answer.
        """
        answer = self._ask("GET", "/v2/models/stats", patience=10)
        return sorted({item["name"] for item in answer["model_stats"]})

    def configuration(self, model: str) -> Configuration | None:
        """Return the complete configuration of a loaded model; None if the model is not loaded.

        Raises:
            NoAnswer: the server does not answer.
        """
        try:
            configuration: Configuration = self._ask("GET", f"/v2/models/{_quoted(model)}/config", patience=10)
        except NoAnswer:
            raise
        except ServerError:
            return None
        return configuration

    def load(self, model: str, parameters: Mapping[str, object] | None = None, patience: float = _LOAD_SECONDS) -> None:
        """Load a model, or load it again if its files have changed; return when it is ready.

        Args:
            model: the name of the model.
            parameters: a configuration and files that replace those in the repository.
            patience: how many seconds to wait for the answer.

        Raises:
            ServerError: the model cannot be loaded. A version that was loaded before remains loaded.
        """
        body = json.dumps({"parameters": dict(parameters or {})})
        self._ask("POST", f"/v2/repository/models/{_quoted(model)}/load", body, patience)

    def unload(self, model: str, patience: float = _UNLOAD_SECONDS) -> None:
        """Unload a model; requests in flight are still answered.

        Args:
            model: the name of the model.
            patience: how many seconds to wait for the answer.

        Raises:
            ServerError: the server refuses this, or does not know the model.
        """
        self._ask("POST", f"/v2/repository/models/{_quoted(model)}/unload", "{}", patience)

    def _ask(self, method: str, path: str, body: str | None = None, patience: float = 10) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=patience)
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            if response.status != 200:
                raise ServerError(_error_of(text) or f"the server answered {path} with status {response.status}")
            return json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"the server does not answer: {error}") from error
        finally:
            connection.close()


# Advice to append to some of Triton's error messages, by a pattern that the message matches.
_ADVICE = {
    "has kind KIND_GPU but no GPUs|specifies invalid or unsupported gpu id": "`penstock serve --device cpu` runs it on the CPU",
    "unable to find backend library for backend 'dali'": "`penstock serve --as dali` takes such models",
}


def readable(text: str) -> str:
    """Return an error message of Triton without log prefixes, repeated causes and tracebacks.

    >>> readable("Internal: ValueError: no file\\n\\nAt:\\n  backend.py(3): initialize\\n")
    'ValueError: no file'
    """
    text = re.sub(r"^[EWI]\d{4} [\d:.]+ \d+ \S+:\d+\] ", "", text).strip().strip('"')
    text = re.split(r"(?:\\n|\n)+At:(?:\\n|\n)", text)[0]
    text = re.sub(r"^(?:(?:Internal|Unavailable): )+(?=\S)", "", text)
    text = re.sub(r"^(?:\w+Error: )?Invalid argument: ", "", text).replace("\\n", "\n").strip()
    return next(
        (f"{text.rstrip(' :')} ({advice})" for cause, advice in _ADVICE.items() if re.search(cause, text)), text
    )


def _error_of(text: str) -> str:
    try:
        message = json.loads(text)["error"]
    except (ValueError, TypeError, KeyError):
        return text
    # "load failed for model 'x': version 1 is at UNAVAILABLE state: <the reason>;"
    return readable(re.sub(r"^load failed for model '[^']*': (?:version \d+ is at UNAVAILABLE state: )?", "", message))


def _quoted(model: str) -> str:
    return urllib.parse.quote(model, safe="")
