"""The public interface of DALI, or of Penstock in its place: functions' parameters, and the members of classes."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

MODULES = (
    "auto_aug.augmentations",
    "auto_aug.auto_augment",
    "auto_aug.core",
    "auto_aug.rand_augment",
    "auto_aug.trivial_augment",
    "experimental.dynamic",
    "external_source",
    "fn",
    "math",
    "ops",
    "pipeline",
    "plugin_manager",
    "sysconfig",
    "tensors",
    "tfrecord",
    "types",
)
"""The modules and packages below `nvidia.dali` to describe, each package with its modules."""


def interface() -> dict[str, Any]:
    """Return functions' parameters (name, kind, default as text) and classes' public members, by dotted path.

    For classes of `ops`, parameters of `__init__` and `__call__` are included.
    """
    found: dict[str, Any] = {}
    for name in MODULES:
        _visit(name, importlib.import_module(f"nvidia.dali.{name}"), found)
    return found


def _visit(path: str, module: ModuleType, found: dict[str, Any]) -> None:
    for name in sorted({*vars(module), *dir(module)}):  # some functions exist only once they are requested
        inner = f"{path}.{name}"
        if name.startswith("_") or inner in found:
            continue
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            if value.__name__ == f"{module.__name__}.{name}":
                _visit(inner, value, found)
        elif inspect.isclass(value):
            if _is_own(value):
                found[inner] = {"members": sorted(member for member in dir(value) if not member.startswith("_"))}
                found[inner] |= {
                    word: _parameters(getattr(value, word)) for word in ("__init__", "__call__") if path[:3] == "ops"
                }
        elif callable(value) and _is_own(value):
            found[inner] = _parameters(value)


def _is_own(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.startswith(("nvidia.dali", "penstock"))


def _parameters(function: Any) -> list[list[str | None]] | None:
    """Return name, kind, and default as text of each public parameter; None if Python cannot determine the parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (AttributeError, TypeError, ValueError):  # AttributeError: from comparing types of DALI's dynamic mode
        return None
    return [
        [own.name, own.kind.name, None if own.default is own.empty else repr(own.default)]
        for own in parameters
        if not own.name.startswith("_")
    ]
