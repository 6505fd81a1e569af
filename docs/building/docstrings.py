"""Convert docstrings to Markdown: examples become code blocks, and Sphinx roles become inline code."""

from __future__ import annotations

import re

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_PROMPTS = (">>> ", "... ")
_OPENING = {"prose": (), "code": ("", "```python"), "output": ("", "```text"), "table": ("", "```text")}
_CLOSING = {"prose": (), "code": ("```", ""), "output": ("```", ""), "table": ("```", "")}
# Doctest's directives are not shown.
_DIRECTIVE = "  # doctest: +SKIP"


def as_markdown(text: str) -> str:
    """Convert a docstring to Markdown."""
    lines: list[str] = []
    kind = "prose"
    for line in _ROLE.sub(r"`\1`", text).splitlines():
        now = _kind(line.strip(), kind)
        if now != kind:
            lines += [*_CLOSING[kind], *_OPENING[now]]
            kind = now
        lines.append(line.strip()[4:].replace(_DIRECTIVE, "") if kind == "code" else line)
    return "\n".join([*lines, *_CLOSING[kind]])


def _kind(line: str, before: str) -> str:
    """Return the kind of a line: prose, code, printed output, or part of a table, which begins and ends with a line of
    `=`.
    """
    if line.startswith(_PROMPTS) or (before == "code" and line in (">>>", "...")):
        return "code"
    if before in ("code", "output"):
        return "output" if line else "prose"
    if line.startswith("==="):
        return "table"
    return "table" if before == "table" and line else "prose"
