"""Known differences from DALI, deliberate or due to undocumented behaviour: patterns of test names, each with a reason."""

from __future__ import annotations

# Shell patterns of names such as "test_families.py::test_equals_dali[resizing: resize(...)]", in which "[" is an ordinary character.
KNOWN: dict[str, str] = {}
