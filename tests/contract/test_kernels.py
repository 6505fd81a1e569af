"""Functions that only compiled code may call are not called from Python, which would crash the process."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from penstock.graph.parsing import parse
from penstock.kernels.cpu import options

BACKEND = Path(options.__file__).parents[3]
FILES = sorted((BACKEND / "penstock").rglob("*.py"))
Function = tuple[str, str]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(BACKEND).with_suffix("").parts)


def decorators(node: ast.FunctionDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


@functools.cache  # computed in a test, as otherwise each worker process would do so at collection
def inner_functions() -> set[Function]:
    return {
        (module_of(path), node.name)
        for path in FILES
        if "@inner" in (text := path.read_text())
        for node in ast.walk(parse(text))
        if isinstance(node, ast.FunctionDef) and "inner" in decorators(node)
    }


def used_by_python(node: ast.AST) -> Iterator[str]:
    """Yield the names that a module uses outside of compiled functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and is_compiled(child):
            continue
        if isinstance(child, ast.Name):
            yield child.id
        yield from used_by_python(child)


def is_compiled(node: ast.FunctionDef) -> bool:
    return any(
        name.startswith(("kernel", "brief", "inner", "njit", "cfunc", "intrinsic", "overload"))
        for name in decorators(node)
    )


def test_there_are_some() -> None:
    assert ("penstock.kernels.cpu.axis_plans", "_fill_extents") in inner_functions()


def test_python_calls_none() -> None:
    inner = inner_functions()
    called = [
        f"{path}: {name}"
        for path in FILES
        if "kernels.cpu" in (text := path.read_text())
        for name in inner_called_by_python(parse(text), module_of(path), inner)
    ]
    assert not called, "\n".join(["Python calls what only compiled functions may:", *called])


def inner_called_by_python(tree: ast.Module, module: str, inner: set[tuple[str, str]]) -> Iterator[str]:
    """Return the names of functions decorated with `inner` that a module uses outside of compiled functions."""
    known = {name: (owner, name) for owner, name in inner if owner == module}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            known |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return (name for name in used_by_python(tree) if known.get(name) in inner)


def test_calls_are_seen() -> None:
    inner = {("own", "a"), ("other", "b")}
    source = "from other import b as c\n@kernel\ndef f():\n    a()\ndef g():\n    return a(), c()\n"
    assert sorted(inner_called_by_python(parse(source), "own", inner)) == ["a", "c"]
