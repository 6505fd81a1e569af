"""Where Penstock differs from DALI on purpose or by what neither documents: patterns of tests, each with its reason."""

from __future__ import annotations

# Patterns as in a shell, of names like "test_families.py::test_equals_dali[resizing: resize(...)]"; "[" matches itself.
KNOWN: dict[str, str] = {}
