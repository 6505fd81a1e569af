"""All families of cases: the modules of `cases`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import cases
from case import Family


def families() -> Iterator[Family]:
    """Yield the families, in order of name, from the folder."""
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda m: m.name):
        yield importlib.import_module(f"cases.{module.name}").FAMILY
