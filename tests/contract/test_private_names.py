"""Names with a leading underscore are used only in the module that defines them.

Other modules neither access such a name as an attribute nor import it. A class's private attributes are shared with its subclasses, which
use them as ``self._name``. A private module may be imported only within its part of the package, the folder below `penstock`. If there is
no public alternative, as for some functions of libraries, the line gives the reason in a comment: ``# private: ...``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.graph.parsing import parse

PACKAGE = Path(__file__).parents[2] / "backend" / "penstock"
# These names are public, although they begin with an underscore: attributes of named tuples and of syntax trees.
PUBLIC = {"_asdict", "_attributes", "_fields", "_make", "_replace"}
OWN = {"self", "cls", "super()"}
BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}


def is_private(name: str) -> bool:
    if name.startswith("_repr_") and name.endswith("_"):
        return False  # methods that notebooks call
    return name.startswith("_") and name != "_" and not name.startswith("__") and name not in PUBLIC


def defined_in(tree: ast.Module) -> set[str]:
    """Return the names that a module defines: functions, classes, variables, and attributes set on `self` or `cls`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in OWN:
            names.add(node.attr)
    return names


def attribute_of(node: ast.AST) -> tuple[ast.expr, str] | None:
    """Return the object and the attribute's name if a node is ``object.name`` or ``getattr(object, "name")``, otherwise None."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if isinstance(node, ast.Call) and ast.unparse(node.func) in BY_NAME and isinstance(node.args[1], ast.Constant):
        return node.args[0], str(node.args[1].value)
    return None


def imported_from_elsewhere(node: ast.ImportFrom, module: str) -> Iterator[str]:
    """Yield the private names that a statement imports, except for private modules of the same part."""
    part = module.split(".")[:2]
    for alias in node.names:
        parts = [*(node.module or "").split("."), alias.name]
        path = PACKAGE.parent.joinpath(*parts)
        is_module = path.is_dir() or path.with_suffix(".py").exists()
        modules = parts if is_module else parts[:-1]
        if (any(map(is_private, modules)) and parts[:2] != part) or (not is_module and is_private(alias.name)):
            yield ".".join(parts)


def foreign_names(source: str, module: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the code of each use of another module's private name without a stated reason."""
    tree, lines = parse(source), source.splitlines()
    own = defined_in(tree)
    for node in ast.walk(tree):
        found: list[str] = []
        if (attribute := attribute_of(node)) is not None:
            value, name = attribute
            if is_private(name) and name not in own and ast.unparse(value) not in OWN:
                found = [ast.unparse(node)]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = list(imported_from_elsewhere(node, module))
        for name in found:
            line = getattr(node, "lineno", 0)
            if "# private: " not in lines[line - 1]:
                yield line, name


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_private_names_stay_private() -> None:
    found = [
        f"{path}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in foreign_names(path.read_text(encoding="utf-8"), module_name(path))
    ]
    assert not found, "\n".join(["private names of other modules:", *found])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("batch._elements", ["batch._elements"]),
        ("batch._elements = None", ["batch._elements"]),
        ('getattr(batch, "_elements", None)', ["getattr(batch, '_elements', None)"]),
        ("from penstock.runtime.sources import _accept", ["penstock.runtime.sources._accept"]),
        ("from penstock.operators.image._boxes import clip", ["penstock.operators.image._boxes.clip"]),
        ("os._exit(1)  # private: documented", []),
        ("class A:\n    def f(self, other):\n        self._x = other._x", []),
        ("class A(B):\n    def f(self):\n        return self._inherited + super()._inherited", []),
        ("from penstock.auto_aug.core import _args", []),
        ("point._replace(x=1)", []),
    ],
)
def test_uses_are_seen(source: str, found: list[str]) -> None:
    assert [name for _, name in foreign_names(source, "penstock.auto_aug.rand_augment")] == found
