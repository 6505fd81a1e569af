"""Models that run in a separate process, Triton's Python stub, beside those that Triton hosts itself.

The parameter ``isolation`` selects them. Triton decides by the name of the backend in a configuration, so there is a
second name for each of ours. (A single folder with both, and the field ``runtime``, doesn't work: Triton confuses the
two.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from penstock.serving.config_text import is_word, parameter_values, plain, tokens_of, values

OWN_PROCESS = "process"
"""The value of the parameter that requests such a process."""


def stub_backend(backend: str) -> str:
    """Return the name under which a backend of ours always runs models in the stub."""
    return f"{backend}_stub"


class Isolation:
    """Decides which models run in separate processes.

    Args:
        default: the server's setting ``isolation``, for models without the parameter.
        backends: the names of Penstock's backend in configurations.
    """

    def __init__(self, default: str, backends: Collection[str]) -> None:
        self._default = default
        self._backends = backends

    def isolated_models(self, repositories: Sequence[Path]) -> list[str]:
        """Return the names of such models in these repositories."""
        return sorted(
            {
                path.parent.name
                for repository in repositories
                for path in repository.glob("*/config.pbtxt")
                if self.applies_to(path.read_text(errors="replace"))
            }
        )

    def applies_to(self, config: str) -> bool:
        """Return whether a configuration requests isolation: by its parameter, otherwise by default.

        >>> isolation = Isolation("none", ["penstock"])
        >>> isolation.applies_to('backend: "penstock" parameters { key: "isolation" value { string_value: "process" } }')
        True
        """
        if next(values(config, "backend"), None) not in self._backends:
            return False
        return next(parameter_values(config, "isolation"), self._default) == OWN_PROCESS

    def amend(self, config: str) -> str:
        """Return a configuration with which Triton runs the model as requested.

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
