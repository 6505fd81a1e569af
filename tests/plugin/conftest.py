"""These tests are about other people's frameworks, and collected where those are installed (`penstock[pytorch]`, `penstock[jax]`)."""

from __future__ import annotations

import importlib.util

_NEEDS = {"test_pytorch.py": "torch", "test_jax.py": "jax"}
collect_ignore = [name for name, module in _NEEDS.items() if importlib.util.find_spec(module) is None]
