"""Imports the Python files of models, which can import modules in their own folder, but not those of other models.

A model's folder is treated as a package with a name that only the importer knows. Imports of plain names in its files search this folder
first, as in a script. So two models in one process can both have a module `helper`, and imports inside functions, which run much later,
still find the right one.
"""

from __future__ import annotations

import builtins
import contextvars
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import itertools
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from penstock.errors import SerializationError

_PREFIX = "penstock_model_"
_loads = itertools.count()
# Concurrent calls of `importlib.invalidate_caches()` delete the same entries, and one of them fails.
_invalidating = threading.Lock()
_noting: contextvars.ContextVar[Imports | None] = contextvars.ContextVar("penstock_noting", default=None)


class Imports:
    """Records which files of models are imported in this context, so that they can be unloaded with their model.

    >>> with Imports() as imports:
    ...     module = import_file(Path("model_repository/preprocess/1/pipeline.py"))
    >>> imports.forget()
    """

    def __init__(self) -> None:
        self._packages: list[str] = []

    def __enter__(self) -> Imports:
        self._token = _noting.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _noting.reset(self._token)
        if error is not None:
            self.forget()

    def note(self, package: str) -> None:
        """Record the package of a model's folder."""
        self._packages.append(package)

    def forget(self) -> None:
        """Unload the recorded modules."""
        for package in self._packages:
            for name in [name for name in list(sys.modules) if name.partition(".")[0] == package]:
                sys.modules.pop(name, None)
        self._packages.clear()


def import_file(path: Path) -> ModuleType:
    """Load a model's Python file, and the modules in its folder that it imports, anew; return the module.

    Raises:
        SerializationError: the file, or a module that it imports, raises an error; the message names the line.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    package = ModuleType(f"{_PREFIX}{next(_loads)}")
    package.__path__ = [str(path.parent)]
    sys.modules[package.__name__] = package
    noting = _noting.get()
    if noting is not None:
        noting.note(package.__name__)
    _find_new_files()
    loader = _Loader(f"{package.__name__}.{path.stem}", str(path))
    spec = importlib.machinery.ModuleSpec(loader.name, loader, origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        loader.exec_module(module)
    except Exception as error:
        line = next((frame.lineno for frame in reversed(inspect.trace()) if frame.filename == str(path)), "?")
        raise SerializationError(f"'{path}', line {line}, raised {type(error).__name__}: {error}") from error
    return module


def _find_new_files() -> None:
    """Invalidate Python's import caches, because folders may have new files."""
    with _invalidating:
        while True:
            try:
                importlib.invalidate_caches()
            except RuntimeError:
                continue  # another thread is importing something: try again
            return


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a model's file, whose imports search its own folder first."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": self._import}
        super().exec_module(module)

    def get_code(self, fullname: str) -> Any:
        # Compiled from the source, without cached bytecode: a repository may be read-only, and a file may change twice within a second.
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        """Import like the built-in function, except that the plain name of a module in the model's folder means that module."""
        package = self.name.partition(".")[0]
        if level or not _is_beside(package, name.partition(".")[0]):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(f"{package}.{name}", globals, locals, fromlist or (), 0)
        return module if fromlist else getattr(module, name.partition(".")[0])


def _is_beside(package: str, name: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(f"{package}.{name}", sys.modules[package].__path__) is not None


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules in the folders of models."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
