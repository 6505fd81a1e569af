"""Models that run in a process of their own, Triton's Python stub, beside those that Triton hosts itself.

Which they are, their parameter ``isolation`` tells. Triton goes by the name of the backend in their configuration, so there
is one more for each of ours. (One folder with both, and the field ``runtime``, will not do: Triton takes either for the other.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from penstock.serving.config_text import is_word, tokens_of

OWN_PROCESS = "process"
"""The value of the parameter that asks for one."""


def stub_backend(backend: str) -> str:
    """The name of a backend of ours where it runs models in the stub whatever the others do."""
    return f"{backend}_stub"


class Isolation:
    """Which models are to run in processes of their own.

    Args:
        default: the server's setting ``isolation``, for models without the parameter.
        backends: the names of Penstock's backend in configurations.
    """

    def __init__(self, default: str, backends: Collection[str]) -> None:
        self._default = default
        self._backends = backends

    def isolated_models(self, repositories: Sequence[Path]) -> list[str]:
        """The names of those in these repositories."""
        return sorted(
            {
                path.parent.name
                for repository in repositories
                for path in repository.glob("*/config.pbtxt")
                if self.applies_to(path.read_text(errors="replace"))
            }
        )

    def applies_to(self, config: str) -> bool:
        """Whether a configuration asks for it: by its parameter, otherwise by default.

        >>> isolation = Isolation("none", ["penstock"])
        >>> isolation.applies_to('backend: "penstock" parameters { key: "isolation" value { string_value: "process" } }')
        True
        """
        words = [token for token in tokens_of(config) if is_word(token)]
        if next(_values(words, "backend"), None) not in self._backends:
            return False
        return next(_parameters(words, "isolation"), self._default) == OWN_PROCESS

    def amend(self, config: str) -> str:
        """A configuration by which Triton runs the model as it asks.

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
    """The texts that a field has, wherever it stands."""
    return (_plain(value) for name, value in pairwise(words) if name == field)


def _parameters(words: Sequence[str], key: str) -> Iterator[str]:
    """The texts of a model's parameter. One in unusual order is not found; the backend then refuses the model."""
    for place in range(len(words) - 5):
        name, text, value, opening, kind, given = words[place : place + 6]
        if (name, _plain(text), value, kind) == ("key", key, "value", "string_value") and opening in "{<":
            yield _plain(given)


def _plain(text: str) -> str:
    return text.strip("\"'")
