"""Finds out why models could not be loaded, if Triton only writes the reason to its log."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.serving.mirrors import original_of

_SYNTAX = re.compile(r"Error parsing text-format inference\.ModelConfig: (\d+):(\d+): (.*)")
_REFUSED = re.compile(r"\"?(?:Poll failed for model directory|failed to load model) '([^']*)': (.*?)\"?$")
_UNREADABLE = re.compile(r"failed to read text proto from (.*)")


class LoadFailures:
    """Collects the reasons for failures from the lines of Triton's log.

    Args:
        mirrors: the environment variables with the original paths of mirrored files; see :mod:`penstock.serving.mirrors`.

    Attributes:
        reasons: the reason for the last failure of each model, by the model's name.
    """

    def __init__(self, mirrors: dict[str, str]) -> None:
        self.reasons: dict[str, str] = {}
        self._mirrors = mirrors
        self._syntax_error: tuple[str, str] | None = None

    def observe(self, line: str) -> None:
        """Process the next line of the log."""
        if syntax := _SYNTAX.search(line):
            row, column, explanation = syntax.groups()
            self._syntax_error = f"{row}:{column}", explanation.replace("inference.ModelConfig", "ModelConfig")
        elif refused := _REFUSED.search(line):
            model, reason = refused.groups()
            self.reasons[model] = self._located(reason)
            self._syntax_error = None

    def _located(self, reason: str) -> str:
        unreadable = _UNREADABLE.fullmatch(reason)
        if unreadable is None:
            return reason
        path = original_of(Path(unreadable[1]), self._mirrors)
        if self._syntax_error is None:
            return f"'{path}' cannot be read"
        location, explanation = self._syntax_error
        return f"{path}:{location}: {explanation}"
