"""Triton's command line: parses the user's flags, and translates them for Triton.

Triton reloads a model only in the mode "explicit", so it is always started in this mode. For users, the modes "none" and
"poll" work as documented: all models are loaded at the start, and clients cannot load or unload models, because Triton's
interface for that requires a key that only the server's owner has.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.serving.control import ServerError

ALL_MODELS = "*"

_MODE = "--model-control-mode"
_POLL_INTERVAL_FLAG = "--repository-poll-secs"
_LOAD = "--load-model"
_EXIT_TIMEOUT = "--exit-timeout-secs"
DEFAULT_EXIT_TIMEOUT = "10"
"""Triton's default exit timeout, in seconds."""
_BACKEND = "--backend-config"
_REPOSITORIES = ("--model-repository", "--model-store")
_HTTP_RESTRICTED = "--http-restricted-api"
_GRPC_RESTRICTED = "--grpc-restricted-protocol"
_MODEL_CONTROL = "model-repository"
_CACHE = "--cache-config"
_REPEATED = {*_REPOSITORIES, _BACKEND, _HTTP_RESTRICTED, _GRPC_RESTRICTED, _CACHE, "--load-model"}
"""Flags whose values accumulate when repeated."""


@dataclass(frozen=True)
class Flags:
    """A user's flags for Triton, parsed.

    Attributes:
        given: the user's flags, as ``--name=value`` or ``--name``.
    """

    given: tuple[str, ...]
    _key: str = field(default_factory=lambda: secrets.token_hex(16))

    @classmethod
    def parse(cls, words: Sequence[str]) -> Flags:
        """Parse the words of a command line, where ``--name value`` is equivalent to ``--name=value``.

        Raises:
            ServerError: a flag is invalid, or not supported here.
        """
        joined: list[str] = []
        for word in words:
            if not word.startswith("-") and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        flags = cls(tuple(joined))
        if flags.mode not in ("none", "poll", "explicit"):
            raise ServerError(f"{_MODE} must be none, poll or explicit, not '{flags.mode}'")
        if not flags._last(_POLL_INTERVAL_FLAG, "15").isdigit():
            raise ServerError(
                f"{_POLL_INTERVAL_FLAG} must be a number of seconds, not '{flags._last(_POLL_INTERVAL_FLAG, '')}'"
            )
        if not flags._last(_EXIT_TIMEOUT, DEFAULT_EXIT_TIMEOUT).isdigit():
            raise ServerError(f"{_EXIT_TIMEOUT} must be a number of seconds, not '{flags._last(_EXIT_TIMEOUT, '')}'")
        if flags._last("--allow-http", "true").lower() in ("false", "0"):
            raise ServerError(
                "the server is monitored over HTTP, so --allow-http=false is not supported; use --host to hide it"
            )
        return flags

    @property
    def mode(self) -> str:
        """When models are loaded and unloaded: ``none``, ``poll`` or ``explicit``."""
        return self._last(_MODE, "none")

    @property
    def poll_interval(self) -> int:
        """The number of seconds between two scans of the repositories in the mode ``poll``."""
        return int(self._last(_POLL_INTERVAL_FLAG, "15"))

    @property
    def exit_timeout(self) -> float:
        """How many seconds a stopping server waits for requests in flight."""
        return float(self._last(_EXIT_TIMEOUT, DEFAULT_EXIT_TIMEOUT))

    @property
    def models(self) -> tuple[str, ...]:
        """The models to load at the start; :data:`ALL_MODELS`: all models in the repositories."""
        return tuple(self._values(_LOAD)) if self.mode == "explicit" else (ALL_MODELS,)

    @property
    def repositories(self) -> tuple[Path, ...]:
        """The repositories that the flags name."""
        return tuple(Path(value) for name in _REPOSITORIES for value in self._values(name))

    @property
    def caches_responses(self) -> bool:
        """Whether Triton has a response cache."""
        return bool(self._values(_CACHE))

    @property
    def headers(self) -> dict[str, str]:
        """The headers that Triton requires for interfaces that these flags restrict."""
        rules = self._values(_HTTP_RESTRICTED)
        wanted = dict(value.split(":", 1)[1].split("=", 1) for value in rules if "=" in value)
        return wanted | ({} if self._open else {_KEY_HEADER: self._key})

    def backend_settings(self) -> dict[str, dict[str, str]]:
        """Return the settings in ``--backend-config``, by backend."""
        found: dict[str, dict[str, str]] = {}
        for value in self._values(_BACKEND):
            backend, comma, setting = value.partition(",")
            name, equals, text = setting.partition("=")
            if comma and equals:
                found.setdefault(backend, {})[name] = text
        return found

    def command_line(self, defaults: Mapping[str, str | Sequence[str]], models: Sequence[str]) -> list[str]:
        """Return the complete command line for Triton.

        Args:
            defaults: default flags; the user's flags override them, or are added to them if values accumulate.
            models: the models to load at the start.
        """
        control: dict[str, str | Sequence[str]] = {_MODE: "explicit", _LOAD: models}
        if not self._open:
            control |= {
                flag: f"{_MODEL_CONTROL}:{_KEY_HEADER}={self._key}"
                for flag in (_HTTP_RESTRICTED, _GRPC_RESTRICTED)
                if not self._restricts_control(flag)
            }
        replaced = {_name_of(flag) for flag in self.given} - _REPEATED
        user_flags = [flag for flag in self.given if _name_of(flag) not in (_MODE, _POLL_INTERVAL_FLAG, _LOAD)]
        penstock_flags = {name: value for name, value in defaults.items() if name not in replaced} | control
        return [
            f"{name}={value}"
            for name, values in penstock_flags.items()
            for value in ([values] if isinstance(values, str) else values)
        ] + user_flags

    @property
    def _open(self) -> bool:
        """Whether clients may load and unload models."""
        return self.mode == "explicit"

    def _restricts_control(self, flag: str) -> bool:
        return any(_MODEL_CONTROL in value.split(":")[0].split(",") for value in self._values(flag))

    def _values(self, name: str) -> list[str]:
        return [flag.partition("=")[2] for flag in self.given if _name_of(flag) == name]

    def _last(self, name: str, default: str) -> str:
        return next(reversed(self._values(name)), default)


_KEY_HEADER = "penstock-key"


def _name_of(flag: str) -> str:
    return flag.split("=", 1)[0]
