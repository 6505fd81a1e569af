"""The module ``nvidia.dali.internal``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["get_submodule"]


def get_submodule(root: ModuleType | str, path: str | Sequence[str]) -> ModuleType:
    """Return the module at ``path`` below ``root``, which is a module or its name; create modules that are missing.

    Raises:
        RuntimeError: an attribute that is not a module has the name of a module in the path.
    """
    module = sys.modules[root] if isinstance(root, str) else root
    for part in (path.split(".") if isinstance(path, str) else path) if path else ():
        child = getattr(module, part, None)
        if child is None:
            name = f"{module.__name__}.{part}"
            try:
                child = importlib.import_module(name)
            except ModuleNotFoundError:
                child = sys.modules[name] = ModuleType(name)
            setattr(module, part, child)
        elif not isinstance(child, ModuleType):
            raise RuntimeError(
                f'The module {module} already contains an attribute "{part}", which is not a module, but {child}'
            )
        module = child
    return module
