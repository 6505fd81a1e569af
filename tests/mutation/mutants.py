"""Small changes to the code of one function, each of which should make a test fail.

A mutant is identified by the name of its function and a number; for the same source, the same number means the same change.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

REACHED = "__mutant_reached__"
"""The name of a built-in function that each mutated function calls first."""
MARKS = "__function_marks__"
"""The name of a built-in byte array; a function changed by :func:`note` first sets the byte of its number to 1."""

# Functions with these decorators are compiled ahead of time from the unchanged source, so a changed body would not run.
_COMPILED = {
    "brief",
    "cfunc",
    "inner",
    "intrinsic",
    "kernel",
    "literal_intrinsic",
    "njit",
    "type_callable",
    "written_out",
}
_LEFT_OUT = {"abstractmethod", "overload"}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change of a function's code.

    Attributes:
        line: the line number of the change in the source.
        before, after: the changed code, before and after the change.
    """

    line: int
    before: str
    after: str


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Return the qualified names and the definitions of a module's functions and methods, except for compiled and abstract
    functions.
    """

    def within(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, Function) and not _decorators(node) & (_COMPILED | _LEFT_OUT):
                yield prefix + node.name, node
            elif isinstance(node, (ast.If, ast.Try)):
                yield from within(node.body, prefix)

    return within(tree.body, "")


def count_mutants(function: Function) -> int:
    """Return the number of mutants of a function."""
    return sum(1 for _ in _changes(function))


def describe(function: Function, number: int) -> Mutant:
    """Return one change of a function, without changing the function."""
    node, change = list(_changes(copy.deepcopy(function)))[number]
    line, before = getattr(node, "lineno", function.lineno), ast.unparse(node)
    return Mutant(line, before, ast.unparse(change()))


def mutate(tree: ast.Module, name: str, number: int) -> ast.Module:
    """Make one change to a function of a module; the function also calls :data:`REACHED` first."""
    function = dict(functions(tree))[name]
    list(_changes(function))[number][1]()
    _begin_with(function, ast.Expr(ast.Call(ast.Name(REACHED, ast.Load()), [], [])))
    return ast.fix_missing_locations(tree)


def note(tree: ast.Module, name: str, number: int) -> ast.Module:
    """Make one function of a module set byte ``number`` of :data:`MARKS` first."""
    byte = ast.Subscript(ast.Name(MARKS, ast.Load()), ast.Constant(number), ast.Store())
    _begin_with(dict(functions(tree))[name], ast.Assign([byte], ast.Constant(1)))
    return ast.fix_missing_locations(tree)


def code_of(tree: ast.Module, path: Path, name: str) -> CodeType:
    """Return the code of one function of a module, compiled together with the module."""
    (*_, code) = _codes(compile(tree, str(path), "exec", dont_inherit=True), name)
    return code


def _codes(code: CodeType, name: str) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == name:
                yield constant
            yield from _codes(constant, name)


def _begin_with(function: Function, statement: ast.stmt) -> None:
    function.body.insert(1 if ast.get_docstring(function, clean=False) is not None else 0, statement)


def _decorators(function: Function) -> set[str]:
    names = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return {ast.unparse(name).rpartition(".")[2] for name in names}


def _changes(function: Function) -> Iterator[tuple[ast.AST, Callable[[], ast.AST]]]:
    """Yield each node that can be changed, with a function that changes the node and returns what it became."""
    for node in _of_body(function):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            yield node, _setter(node, "ops", [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]])
        elif isinstance(node, ast.BoolOp):
            yield node, _setter(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _ARITHMETIC:
            yield node, _setter(node, "op", _ARITHMETIC[type(node.op)]())
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            yield node, _setter(node, "value", not node.value if isinstance(node.value, bool) else node.value + 1)
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield node.test, _setter(node, "test", ast.UnaryOp(ast.Not(), node.test))
        elif _is_effective(node):
            yield node, _setter(node, "value", ast.Constant(None))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            yield node, _setter(node, "func", ast.Name(_CALLS[node.func.id], ast.Load()))


def _is_effective(node: ast.AST) -> bool:
    """Return whether a statement returns a value, or is a call whose result is not used."""
    if isinstance(node, ast.Return):
        return node.value is not None and ast.unparse(node.value) != "None"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _setter(node: ast.AST, field: str, value: Any) -> Callable[[], ast.AST]:
    def change() -> ast.AST:
        setattr(node, field, value)
        changed: ast.AST = value if field == "test" else node
        return changed

    return change


def _of_body(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, except annotations, defaults, decorators, `raise`, `assert` and f-strings."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, (ast.Raise, ast.Assert, ast.JoinedStr)):
                yield child
                yield from _of_body(child)
