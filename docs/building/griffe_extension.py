"""Griffe extension with which mkdocstrings reads the docstrings of this project."""

from __future__ import annotations

import griffe
from docstrings import as_markdown


class MarkdownDocstrings(griffe.Extension):
    """Convert docstrings before mkdocstrings renders them."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Rewrite the docstring of each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
