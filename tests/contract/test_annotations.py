"""Annotations with `Any`, and ignored type errors, stay below limits."""

from __future__ import annotations

import re
from pathlib import Path

import penstock

SOURCES = [path.read_text() for path in Path(penstock.__file__).parent.rglob("*.py")]


def occurrences(pattern: str) -> int:
    return sum(len(re.findall(pattern, source)) for source in SOURCES)


def test_any_is_rare() -> None:
    assert occurrences(r"\bAny\b") < 900


def test_ignored_type_errors_are_rare() -> None:
    assert occurrences("type: ignore") < 60
