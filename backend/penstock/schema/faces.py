"""The modules below `fn` and `ops`, which no file spells out."""

from __future__ import annotations

import sys
from types import ModuleType


def submodule(root: str, path: str) -> ModuleType:
    """The module ``root.path``, made if need be, so that it can also be imported."""
    module = sys.modules[root]
    for part in path.split(".") if path else ():
        name = f"{module.__name__}.{part}"
        child = sys.modules.get(name)
        if child is None:
            child = ModuleType(name, f"Operators of the family `{part}`.")
            child.__path__ = []
            sys.modules[name] = child
        if not isinstance(getattr(module, part, None), ModuleType):
            setattr(module, part, child)
        module = child
    return module
