"""Finds the pipeline that a module marks for serving."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from penstock.pipeline.definition import is_autoserialize


def invoke_autoserialize(head_module: ModuleType, filename: str) -> None:
    """Save the pipeline that is marked with `@autoserialize`, in a module or one that it imports, in DALI's wire format.

    Raises:
        RuntimeError: no pipeline is marked, or several are.
    """
    found = list(_marked(head_module, set()))
    if len(found) != 1:
        raise RuntimeError(
            f"Precisely one autoserialize function must exist in the module. Found {f'{len(found)}: {found}' if found else 'none'}."
        )
    found[0]().serialize(filename=filename)


def _marked(module: ModuleType, visited: set[str]) -> Iterator[Callable[..., Any]]:
    """Yield the marked functions in a module and in the modules that it imports."""
    visited.add(module.__name__)
    for value in list(vars(module).values()):
        if inspect.ismodule(value):
            if value.__name__ not in visited:
                yield from _marked(value, visited)
        elif callable(value) and is_autoserialize(value):
            yield value
