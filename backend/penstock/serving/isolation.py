"""Models that run in a process of their own, Triton's Python stub, beside those that Triton hosts itself.

The parameter ``isolation`` selects them. Triton decides by the name of the backend in a configuration, so there is a
second name for each of ours. (A single folder with both, and the field ``runtime``, doesn't work: Triton confuses the
two.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from penstock.serving.config_text import is_word, tokens_of

OWN_PROCESS = "process"
"""The value of the parameter that requests such a process."""


def stub_backend(backend: str) -> str:
    """The name under which a backend of ours always runs models in the stub."""
    return f"{backend}_stub"


class Isolation:
    """Decides which models run in processes of their own.

    Args:
        default: the server's setting ``isolation``, for models without the parameter.
        backends: the names of Penstock's backend in configurations.
    """

    def __init__(self, default: str, backends: Collection[str]) -> None:
        self._default = default
        self._backends = backends

    def isolated_models(self, repositories: Sequence[Path]) -> list[str]:
        """The names of such models in these repositories."""
        return sorted(
            {
                path.parent.name
                for repository in repositories
                for path in repository.glob("*/config.pbtxt")
                if self.applies_to(path.read_text(errors="replace"))
            }
        )

    def applies_to(self, config: str) -> bool:
        """Whether a configuration requests isolation: by its parameter, otherwise by default.

        >>> isolation = Isolation("none", ["penstock"])
        >>> isolation.applies_to('backend: "penstock" parameters { key: "isolation" value { string_value: "process" } }')
        True
        """
        words = [token for token in tokens_of(config) if is_word(token)]
        if next(_values(words, "backend"), None) not in self._backends:
            return False
        return next(_parameters(words, "isolation"), self._default) == OWN_PROCESS

    def amend(self, config: str) -> str:
        """A configuration with which Triton runs the model as requested.

        >>> isolation = Isolation("process", ["penstock"])
        >>> isolation.amend('backend: "penstock"')
        'backend: "penstock_stub"'
        """
        if not self.applies_to(config):
            return config
        tokens = tokens_of(config)
        words = (place for place, token in enumerate(tokens) if is_word(token))
        place = next(next(words) for name in words if tokens[name] == "backend")
        tokens[place] = f'"{stub_backend(_plain(tokens[place]))}"'
        return "".join(tokens)


def _values(words: Sequence[str], field: str) -> Iterator[str]:
    """The values of a field, wherever it occurs."""
    return (_plain(value) for name, value in pairwise(words) if name == field)


def _parameters(words: Sequence[str], key: str) -> Iterator[str]:
    """The values of a model's parameter. Fields in unusual order are not recognized; the backend then rejects the
    model."""
    for place in range(len(words) - 5):
        name, text, value, opening, kind, given = words[place : place + 6]
        if (name, _plain(text), value, kind) == ("key", key, "value", "string_value") and opening in "{<":
            yield _plain(given)


def _plain(text: str) -> str:
    return text.strip("\"'")
