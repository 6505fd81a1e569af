"""Docstrings as Markdown: their examples become blocks of code, and Sphinx' roles become code."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_PROMPTS = (">>> ", "... ")
# Doctest's own notes are no part of what is shown.
_DIRECTIVE = "  # doctest: +SKIP"


def as_markdown(text: str) -> str:
    """The text of a docstring with what Markdown does not know put in its terms."""
    lines: list[str] = []
    inside = False
    for line in _ROLE.sub(r"`\1`", text).splitlines():
        stripped = line.lstrip()
        is_code = stripped.startswith(_PROMPTS) or (inside and stripped in (">>>", "..."))
        if is_code != inside:
            lines += ["", "```python"] if is_code else ["```", ""]
            inside = is_code
        lines.append(stripped[4:].replace(_DIRECTIVE, "") if is_code else line)
    return "\n".join([*lines, *(["```"] if inside else [])])


class MarkdownDocstrings(griffe.Extension):
    """Lets mkdocstrings read docstrings of this project."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rewrites the docstring of each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
