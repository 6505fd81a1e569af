"""Isolated models: they run in a separate process, Triton's Python stub, while Triton hosts the others itself.

The parameter ``isolation`` selects them. Triton decides by the name of the backend in a model's configuration, so each of our
backends has a second name for isolated models. (A single folder with both implementations, selected by the field ``runtime``, does
not work: Triton confuses the two.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from penstock.serving.config_text import is_word, parameter_values, plain, tokens_of, values

OWN_PROCESS = "process"
"""The value of the parameter that requests a separate process."""


def stub_backend(backend: str) -> str:
    """Return the second name of one of our backends, under which it always runs models in the stub."""
    return f"{backend}_stub"


class Isolation:
    """Decides which models run in separate processes.

    Args:
        default: the server's setting ``isolation``, which applies to models without the parameter.
        backends: the names of Penstock's backend in configurations.
    """

    def __init__(self, default: str, backends: Collection[str]) -> None:
        self._default = default
        self._backends = backends

    def isolated_models(self, repositories: Sequence[Path]) -> list[str]:
        """Return the names of the models in these repositories that run in separate processes."""
        return sorted(
            {
                path.parent.name
                for repository in repositories
                for path in repository.glob("*/config.pbtxt")
                if self.applies_to(path.read_text(errors="replace"))
            }
        )

    def applies_to(self, config: str) -> bool:
        """Return whether a configuration requests isolation by its parameter, or, without the parameter, by default.

        >>> isolation = Isolation("none", ["penstock"])
        >>> isolation.applies_to('backend: "penstock" parameters { key: "isolation" value { string_value: "process" } }')
        True
        """
        if next(values(config, "backend"), None) not in self._backends:
            return False
        return next(parameter_values(config, "isolation"), self._default) == OWN_PROCESS

    def amend(self, config: str) -> str:
        """Return the configuration, changed so that Triton runs the model as it requests.

        >>> isolation = Isolation("process", ["penstock"])
        >>> isolation.amend('backend: "penstock"')
        'backend: "penstock_stub"'
        """
        if not self.applies_to(config):
            return config
        tokens = tokens_of(config)
        words = (position for position, token in enumerate(tokens) if is_word(token))
        position = next(next(words) for name in words if tokens[name] == "backend")
        tokens[position] = f'"{stub_backend(plain(tokens[position]))}"'
        return "".join(tokens)
