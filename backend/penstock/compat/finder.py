"""Finds modules of ``nvidia.dali`` in Penstock."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from penstock.compat.environment import warn_of_variables
from penstock.errors import import_as

_ROOT = "nvidia.dali"
# In Penstock, the members of DALI's experimental package lie beside the others.
_EXPERIMENTAL = f"{_ROOT}.experimental"
# Modules whose path in Penstock differs; all others have the same path below `penstock`.
_REDIRECTS = {
    _ROOT: "penstock.compat.dali",
    f"{_ROOT}.auto_aug.core.decorator": "penstock.auto_aug.core._augmentation",
    f"{_ROOT}.auto_aug.core._utils": "penstock.compat.auto_aug_utils",
    f"{_ROOT}._autograph": "penstock.compat.conditionals",
    f"{_ROOT}._conditionals": "penstock.compat.conditionals",
    f"{_ROOT}._multiproc": "penstock.compat.multiproc",
    f"{_ROOT}._typing": "penstock.compat.type_aliases",
    f"{_ROOT}._utils": "penstock.compat.private",
    f"{_ROOT}.backend": "penstock.compat.backend",
    f"{_ROOT}.backend_impl": "penstock.compat.backend",
    f"{_ROOT}.data_node": "penstock.compat.data_node",
    f"{_ROOT}.experimental": "penstock.compat.experimental",
    f"{_ROOT}.experimental.dynamic._device": "penstock.dynamic._devices",
    f"{_ROOT}.experimental.torchvision": "penstock.compat.torchvision",
    f"{_ROOT}.internal": "penstock.compat.internal",
    f"{_ROOT}.ops._registry": "penstock.ops",
    f"{_ROOT}.pickling": "penstock.compat.pickling",
    f"{_ROOT}.plugin_manager": "penstock.compat.plugin_manager",
    f"{_ROOT}.python_function_plugin": "penstock.compat.python_function_plugin",
    f"{_ROOT}.reducers": "penstock.compat.reducers",
    f"{_ROOT}.sysconfig": "penstock.compat.sysconfig",
    f"{_ROOT}.plugin.jax.iterator": "penstock.plugin.jax.iterators",
    f"{_ROOT}.plugin.pytorch.loader_evaluator.loader": "penstock.plugin.pytorch.loader_evaluator",
    f"{_ROOT}.plugin.pytorch.torch_utils": "penstock.plugin.pytorch.tensors",
}


def counterpart(name: str) -> str:
    """Return the name of the module in Penstock that corresponds to ``name``, which is ``nvidia.dali`` or a module below it."""
    parent, _, last = name.rpartition(".")
    if name in _REDIRECTS:
        return _REDIRECTS[name]
    if parent in (_EXPERIMENTAL, _ROOT):
        return f"penstock.{last}"
    return f"{counterpart(parent)}.{last}"


class _Loader(importlib.abc.Loader):
    """Replaces a module of DALI by its counterpart in Penstock."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def exec_module(self, module: ModuleType) -> None:
        # Afterwards, the import system takes the module from `sys.modules`, so it does not change attributes of the counterpart.
        sys.modules[module.__name__] = self._module
        # Submodules of the counterpart that are imported already are registered under DALI's names, too.
        prefix = self._module.__name__ + "."
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            spelled = f"{module.__name__}.{name.removeprefix(prefix)}"
            if counterpart(spelled) == name and sys.modules[name] is not None:
                sys.modules.setdefault(spelled, sys.modules[name])


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != _ROOT and not fullname.startswith(_ROOT + "."):
            return None
        name = counterpart(fullname)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
                return None
            raise
        return ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))


class _NamespaceFinder(importlib.abc.MetaPathFinder):
    """Finds the package ``nvidia`` if no package with that name is installed."""

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, None, is_package=True) if fullname == "nvidia" else None


_FINDERS: Sequence[importlib.abc.MetaPathFinder] = (_Finder(), _NamespaceFinder())


def install() -> None:
    """Make ``import nvidia.dali`` import Penstock in this process. Repeated calls are harmless.

    Raises:
        RuntimeError: DALI itself is already imported.
    """
    if _FINDERS[0] in sys.meta_path:
        return
    if _ROOT in sys.modules:
        raise RuntimeError("DALI itself is already imported: call `install` before the first import of DALI")
    warn_of_variables()
    import_as(_ROOT)
    sys.meta_path.insert(0, _FINDERS[0])
    sys.meta_path.append(_FINDERS[1])


def uninstall() -> None:
    """Undo :func:`install`; programs keep the modules that they have imported."""
    import_as()
    for finder in _FINDERS:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    for name in [name for name in list(sys.modules) if name == _ROOT or name.startswith(_ROOT + ".")]:
        del sys.modules[name]
    namespace = sys.modules.get("nvidia")
    if namespace is not None and hasattr(namespace, "dali"):
        del namespace.dali
