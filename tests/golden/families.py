"""All families of cases, of which each module of the package `cases` defines one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import cases
from case import Family


def families() -> Iterator[Family]:
    """Import the modules of `cases`, in the order of their names, and yield their families."""
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda m: m.name):
        yield importlib.import_module(f"cases.{module.name}").FAMILY
