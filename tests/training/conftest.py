"""Collects the tests of training in JAX only where JAX is installed, e.g. by `penstock-triton[jax]`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("jax") else ["test_train_digits_jax.py"]
