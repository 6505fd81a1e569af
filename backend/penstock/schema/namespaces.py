"""The submodules of `fn` and `ops`, created from the registry rather than from files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from penstock.errors import as_imported, nearest

T = TypeVar("T")
_written_out: dict[str, object] = {}


def written_out(path: str) -> Callable[[T], T]:
    """Decorator for a hand-written function or class that replaces the generated one: ``fn.python_function``.

    A path in ``ops`` ends with the name of the operator's schema.
    """

    def keep(own: T) -> T:
        _written_out[path] = own
        return own

    return keep


def find_written_out(path: str) -> object:
    """The hand-written replacement for an operator, or None."""
    return _written_out.get(path)


class _Family(ModuleType):
    """A module of operators."""

    def __getattr__(self, name: str) -> Any:
        no_such_operator(self.__name__, name)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        # By name, as modules are: functions that are sent to other processes name families, such as `fn.decoders`.
        return importlib.import_module, (self.__name__,)


def no_such_operator(module: str, name: str) -> NoReturn:
    """Raises AttributeError, suggesting the closest operator of the module or its submodules."""
    text = f"module {as_imported(module)!r} has no attribute {name!r}"
    if name.startswith("__"):  # looked up by Python and its tools, not by users
        raise AttributeError(text)
    paths: dict[str, str] = {}
    # The shortest path last, so that `fn.image` means `decoders.image`, not its experimental namesake.
    for path in sorted((path for path in list(sys.modules) if path.startswith(module)), key=len, reverse=True):
        family = sys.modules[path]
        inner = path[len(module) + 1 :]
        if path == module or (isinstance(family, _Family) and inner[0] != "_" and not inner.endswith("hidden")):
            paths |= {member: f"{inner}.{member}" if inner else member for member in vars(family) if member[0] != "_"}
    meant = nearest(name, paths)
    raise AttributeError(f"{text}. Did you mean '{paths[meant]}'?" if meant else text)


def submodule(root: str, path: str) -> ModuleType:
    """The module ``root.path``, created if it does not exist, and importable."""
    module = sys.modules[root]
    for part in path.split(".") if path else ():
        name = f"{module.__name__}.{part}"
        child = sys.modules.get(name)
        if child is None:
            child = _Family(name, f"Operators of the family `{part}`.")
            child.__path__ = []
            sys.modules[name] = child
        if not isinstance(getattr(module, part, None), ModuleType):
            setattr(module, part, child)
        module = child
    return module
