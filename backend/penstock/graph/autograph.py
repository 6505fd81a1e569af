"""Rewrites graph-defining functions so that `if`, `and`, `or`, `not` and ternaries work on nodes.

The source of a function is parsed, each such construct is replaced by a call of a function of :mod:`penstock.graph.branching`, and the
result is compiled with the original file name and line numbers, so that errors point to the user's lines.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar, cast

from penstock.errors import Frame
from penstock.graph import branching
from penstock.graph.origin import is_around
from penstock.graph.parsing import parse
from penstock.graph.rewriter import TOOLS, plain_arguments, rewritten

_FACTORY = "__penstock_factory__"
_EXEMPT = "_penstock_do_not_convert"
_T = TypeVar("_T", bound=Callable[..., Any])


class Tools:
    """The functions that rewritten code calls; the code finds this class under a name that no user's variable has."""

    if_statement = staticmethod(branching.if_statement)
    ternary = staticmethod(branching.ternary)
    negation = staticmethod(branching.negation)
    conjunction = staticmethod(branching.conjunction)
    disjunction = staticmethod(branching.disjunction)
    comparison_chain = staticmethod(branching.comparison_chain)
    refuse_return = staticmethod(branching.refuse_return)
    refuse_loop = staticmethod(branching.refuse_loop)
    undefined = staticmethod(branching.undefined)
    no_return = staticmethod(branching.no_return)
    returned = staticmethod(branching.returned)
    load = staticmethod(branching.load)
    probe = staticmethod(branching.probe)

    @staticmethod
    def callee(function: Any) -> Any:
        """Return a function that is about to be called, rewritten if it is the user's."""
        if isinstance(function, functools.partial):
            return functools.partial(Tools.callee(function.func), *function.args, **function.keywords)
        if not isinstance(function, (FunctionType, MethodType, type)):
            # The object is not a function, but its class defines `__call__`.
            call = getattr(function, "__call__")  # noqa: B004, B009  # the method itself is wanted
            return convert(call) if _is_users_function(call) else function
        return convert(function) if _is_users_function(function) else function

    @staticmethod
    def inner(function: Callable[..., object]) -> Callable[..., object]:
        """Return a function that was defined inside a rewritten one; it is rewritten, too, as a library's code may call it."""
        return convert(function)


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its conditionals rewritten, or unchanged if its source is not available."""
    if isinstance(function, MethodType):
        return MethodType(convert(function.__func__), function.__self__)
    if not isinstance(function, FunctionType) or is_exempt(function):
        return function
    if TOOLS in function.__code__.co_freevars:
        # The function was defined inside a rewritten function, and is rewritten already.
        return function
    code = _converted_code(function.__code__)
    if code is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    closure = tuple(cells.get(name, _TOOLS_CELL) for name in code.co_freevars)
    converted = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    converted.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(exempt(converted))


def exempt(function: _T) -> _T:
    """Mark a function whose conditionals are not rewritten."""
    setattr(function, _EXEMPT, True)
    return function


def is_exempt(function: object) -> bool:
    """Return whether a function was marked by :func:`exempt`."""
    return bool(getattr(function, _EXEMPT, False))


def is_converted(function: object) -> bool:
    """Return whether a function was defined inside a rewritten one."""
    return _FACTORY in getattr(function, "__qualname__", "")


def explain(error: Exception) -> None:
    """Add the user's lines that led to an error to its message, if the message is a plain string."""
    if type(error).__str__ not in (Exception.__str__, BaseException.__str__) or len(error.args) != 1:
        return
    levels = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not os.path.realpath(frame.f_code.co_filename).startswith(_LIBRARIES)
    ]
    inner = [code for code, _ in levels[1:]]
    lines = [
        str(Frame(code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip()))
        for (code, line), within in zip(levels, [*inner, None])
        if not is_around(code, within)
    ]
    error.args = ("\n".join(["in user code:\n", *lines, f"\n{type(error).__name__}: {error}"]),)


def _cell(value: object) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


_TOOLS_CELL = _cell(Tools)
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
)


def _is_users_function(function: object) -> bool:
    inner = getattr(function, "__func__", function)
    if not isinstance(inner, FunctionType) or is_exempt(inner):
        return False
    return not os.path.realpath(inner.__code__.co_filename).startswith(_LIBRARIES)


@functools.lru_cache(maxsize=4096)
def _converted_code(code: CodeType) -> CodeType | None:
    """Return the rewritten code of a function, or None if its source is not available or needs no rewriting."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    definition = _definition_of(code)
    if definition is None:
        return None
    definition = rewritten(definition)
    free = [*code.co_freevars, TOOLS]
    # The function is compiled inside a factory function, whose parameters become the variables of its closure.
    factory = ast.FunctionDef(
        name=_FACTORY,
        args=plain_arguments([ast.arg(arg=name) for name in free]),
        body=[definition, ast.Return(ast.Name(definition.name, ast.Load()))],
        decorator_list=[],
    )
    if sys.version_info >= (3, 12):
        factory.type_params = []
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = _find_code(compile(module, code.co_filename, "exec"), definition.name)
    return _renamed_code(compiled, code.co_name)


def _renamed_code(code: CodeType, name: str) -> CodeType:
    """Return the code with the names of functions that rewriting has inserted replaced by the name of the user's function."""
    constants = tuple(
        _renamed_code(inner, name if inner.co_name.startswith("__penstock_") else inner.co_name)
        if isinstance(inner, CodeType)
        else inner
        for inner in code.co_consts
    )
    return code.replace(co_name=name, co_consts=constants)


def _find_code(outer: CodeType, name: str) -> CodeType:
    factory = next(const for const in outer.co_consts if isinstance(const, CodeType))
    return next(const for const in factory.co_consts if isinstance(const, CodeType) and const.co_name == name)


def _definition_of(code: CodeType) -> ast.FunctionDef | None:
    """Return the syntax tree of a function, with the line numbers of its file; a lambda becomes a function with one statement."""
    try:
        tree = _parsed(code)
    except (OSError, TypeError, SyntaxError):
        return None
    if code.co_name == "<lambda>":
        return _as_function(tree, code)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _first_line(node) == code.co_firstlineno:
            node.decorator_list = []
            return node
    return None


def _parsed(code: CodeType) -> ast.Module:
    """Parse a function's lines, or its whole file if the lines alone are not valid Python.

    A lambda may be in the middle of a statement, and lines of a multi-line string may be indented less than the function.
    """
    lines, first = inspect.getsourcelines(code)
    try:
        return ast.increment_lineno(parse(textwrap.dedent("".join(lines))), first - 1)
    except SyntaxError:
        return parse("".join(inspect.findsource(code)[0]))


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _as_function(tree: ast.Module, code: CodeType) -> ast.FunctionDef | None:
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(lambdas) > 1:
        lambdas = _lambdas_like(code)
    if len(lambdas) != 1:
        return None
    body = ast.copy_location(ast.Return(lambdas[0].body), lambdas[0].body)
    definition = ast.FunctionDef(name="__penstock_lambda__", args=lambdas[0].args, body=[body], decorator_list=[])
    if sys.version_info >= (3, 12):
        definition.type_params = []
    return ast.copy_location(definition, lambdas[0])


def _lambdas_like(code: CodeType) -> list[ast.Lambda]:
    """Return the lambdas on the code's first line that have its parameters; if there are several, only those at its position."""
    tree = parse("".join(inspect.findsource(code)[0]))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    count = code.co_argcount + code.co_kwonlyargcount
    found = [node for node in found if [a.arg for a in _parameters_of(node)] == list(code.co_varnames[:count])]
    if len(found) > 1:
        positions = cast(Any, code).co_positions()  # since 3.11; mypy knows 3.10
        columns = {column for _, _, column, _ in positions if column}
        found = [node for node in found if node.body.col_offset in columns]
    return found


def _parameters_of(node: ast.Lambda) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
