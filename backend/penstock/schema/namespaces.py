"""The submodules of `fn` and `ops`, which are created from the registry rather than from files."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from penstock.errors import as_imported, nearest
from penstock.schema.registry import find_schema, load_offered, subscribe

if TYPE_CHECKING:
    from penstock.schema.declaration import Schema
    from penstock.schema.operator_index import Entry

T = TypeVar("T")
_written_out: dict[str, object] = {}


def written_out(path: str) -> Callable[[T], T]:
    """Return a decorator for a hand-written function or class that replaces the generated one, such as ``fn.python_function``.

    In ``ops``, ``path`` ends with the name of the operator's schema.
    """

    def register(function: T) -> T:
        _written_out[path] = function
        return function

    return register


def find_written_out(path: str) -> object:
    """Return the hand-written replacement for an operator, or None."""
    return _written_out.get(path)


class Namespace:
    """The functions in `fn`, or the classes in `ops`; each is created when it is first used.

    Args:
        root: the name of the module.
        path_of: function that returns the path of an operator in the namespace.
        make: function that creates the function or class of an operator.
    """

    def __init__(self, root: str, path_of: Callable[[Entry], str], make: Callable[[Schema], object]) -> None:
        self._root = root
        self._path_of = path_of
        self._make = make
        # The schema names of operators, by module, and by the member's name in that module.
        self._listed: dict[str, dict[str, str]] = defaultdict(dict)
        self._loaded: dict[str, object] = {}
        _namespaces[root] = self
        subscribe(self._list)

    def _list(self, entry: Entry) -> None:
        path, _, name = self._path_of(entry).rpartition(".")
        outdated = self._loaded.pop(entry.name, None)
        for listed in (path, f"{path}.hidden".removeprefix(".")) if entry.is_unlisted else (path,):
            module = submodule(self._root, listed)
            self._listed[module.__name__][name] = entry.name
            if outdated is not None:
                vars(module).pop(name, None)

    def find(self, module: str, name: str) -> Any:
        """Return the member of a module with a given name.

        Raises:
            AttributeError: there is no such member; the message suggests a similar name.
        """
        if name.startswith("__"):  # names that Python and its tools look up, not users
            raise AttributeError(f"module {as_imported(module)!r} has no attribute {name!r}")
        if name not in self._listed[module]:
            load_offered()  # the index may be older than an operator
        operator = self._listed[module].get(name)
        if operator is None:
            no_such_operator(module, name)
        # All modules and threads share one object.
        made = self._loaded.setdefault(operator, self._make(find_schema(operator)))
        setattr(sys.modules[module], name, made)
        return made

    def names(self, module: str) -> list[str]:
        """Return the names of the module's members, whether or not they have been created."""
        return sorted({*vars(sys.modules[module]), *self._listed[module]})


_namespaces: dict[str, Namespace] = {}


def _namespace_of(module: str) -> Namespace | None:
    return next((namespace for root, namespace in _namespaces.items() if module.startswith(root + ".")), None)


class _Family(ModuleType):
    """A module that contains the operators of a family."""

    def __getattr__(self, name: str) -> Any:
        namespace = _namespace_of(self.__name__)
        return no_such_operator(self.__name__, name) if namespace is None else namespace.find(self.__name__, name)

    def __dir__(self) -> list[str]:
        namespace = _namespace_of(self.__name__)
        return sorted(vars(self)) if namespace is None else namespace.names(self.__name__)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        # Pickle by name, like modules: functions that are sent to other processes may refer to families, such as `fn.decoders`.
        return importlib.import_module, (self.__name__,)


def no_such_operator(module: str, name: str) -> NoReturn:
    """Raise AttributeError with a suggestion: the closest operator of the module or its submodules."""
    text = f"module {as_imported(module)!r} has no attribute {name!r}"
    if name.startswith("__"):
        raise AttributeError(text)
    paths: dict[str, str] = {}
    # The shortest path comes last, so that `fn.image` suggests `decoders.image` rather than the experimental operator of that name.
    for path in sorted((path for path in list(sys.modules) if path.startswith(module)), key=len, reverse=True):
        family = sys.modules[path]
        inner = path[len(module) + 1 :]
        if path == module or (isinstance(family, _Family) and inner[0] != "_" and not inner.endswith("hidden")):
            paths |= {member: f"{inner}.{member}" if inner else member for member in dir(family) if member[0] != "_"}
    meant = nearest(name, paths)
    raise AttributeError(f"{text}. Did you mean '{paths[meant]}'?" if meant else text)


def submodule(root: str, path: str) -> ModuleType:
    """Return the module ``root.path``, which is created and made importable if it does not exist."""
    module = sys.modules[root]
    for part in path.split(".") if path else ():
        name = f"{module.__name__}.{part}"
        child = sys.modules.get(name)
        if child is None:
            child = _Family(name, f"Operators of the family `{part}`.")
            child.__path__ = []
            sys.modules[name] = child
        if not isinstance(vars(module).get(part), ModuleType):
            setattr(module, part, child)
        module = child
    return module
