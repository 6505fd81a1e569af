"""These tests are about other people's frameworks, and collected where those are installed, e.g. by `penstock[pytorch]`."""

from __future__ import annotations

import importlib.util

_NEEDS = {"test_pytorch*.py": "torch", "test_jax*.py": "jax", "test_paddle*.py": "paddle", "test_ray*.py": "ray"}
collect_ignore_glob = [names for names, module in _NEEDS.items() if importlib.util.find_spec(module) is None]
