"""Known differences from DALI, deliberate or undocumented: patterns of test names, each with a reason."""

from __future__ import annotations

# Patterns as in a shell, of names like "test_families.py::test_equals_dali[resizing: resize(...)]"; "[" matches itself.
KNOWN: dict[str, str] = {}
