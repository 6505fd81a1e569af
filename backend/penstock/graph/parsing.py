"""A parser of Python source that works around an error in CPython 3.11."""

from __future__ import annotations

import ast

_MAX_ATTEMPTS = 20


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a source, like ``ast.parse``.

    CPython 3.11 may miscount the nesting depth if another thread, or a finalizer, parses at the same time. The ``SystemError`` that it then
    raises says nothing about the source.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)
