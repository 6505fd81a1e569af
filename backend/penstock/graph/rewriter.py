"""Rewrites the syntax tree of a function: each conditional becomes a call of a function of :mod:`penstock.graph.branching`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence

from penstock.graph import branching
from penstock.graph.parsing import parse

TOOLS = "__penstock__"
"""The name under which rewritten code finds the functions of :mod:`penstock.graph.branching`."""

_RESULT = branching.RESULT


def plain_arguments(args: list[ast.arg]) -> ast.arguments:
    """Return the syntax of positional parameters without defaults."""
    return ast.arguments(posonlyargs=[], args=args, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def rewritten(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Modify a function's definition and return it: conditionals become calls, defaults become None, and annotations and type parameters
    are removed.

    The rewritten function finds type parameters that it uses in its closure, where Python has stored them.
    """
    global_names = _declared(definition, ast.Global)
    parameters = {arg.arg for arg in ast.walk(definition.args) if isinstance(arg, ast.arg)}
    body = definition.body
    returns_once = _returns_inside_if(body)
    if returns_once:
        body = _return_once(body)
    assigned = _assigned_in_ifs(body)
    maybe_unset = assigned - parameters - global_names - _declared(definition, ast.Nonlocal)
    rewriter = _Rewriter(assigned, maybe_unset, global_names)
    statements = rewriter.rewrite_all(body)
    if returns_once:
        statements.append(ast.Return(_tool("returned", _name(_RESULT))))
    docstring = statements[:1] if ast.get_docstring(definition, clean=False) is not None else []
    begin = [_assign(name, _tool("undefined", ast.Constant(name))) for name in sorted(maybe_unset)]
    definition.body = [*docstring, *begin, *statements[len(docstring) :]]
    for node in begin:
        ast.copy_location(node, definition)
    definition.args.defaults = [ast.Constant(None) for _ in definition.args.defaults]
    definition.args.kw_defaults = [default and ast.Constant(None) for default in definition.args.kw_defaults]
    definition.returns = None
    if sys.version_info >= (3, 12):
        definition.type_params = []
    for arg in ast.walk(definition.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return definition


def _declared(definition: ast.FunctionDef, kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """Return the names that the function declares `global` or `nonlocal`."""
    return {name for node in _walk_statements(definition.body) if isinstance(node, kind) for name in node.names}


def _name(name: str, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([_name(name, store=True)], value)


def _tool(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(TOOLS), name, ast.Load()), list(arguments), [])


def _lambda(body: ast.expr, *arguments: str) -> ast.Lambda:
    return ast.Lambda(plain_arguments([ast.arg(arg=name) for name in arguments]), body)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def _walk_statements(statements: Iterable[ast.AST], stop: tuple[type, ...] = _SCOPES) -> Iterable[ast.AST]:
    """Return statements and all syntax nodes below them, except nodes below those of the types ``stop``: by default, inner scopes."""
    for statement in statements:
        yield statement
        if not isinstance(statement, stop):
            yield from _walk_statements(ast.iter_child_nodes(statement), stop)


def _has_return(statements: Iterable[ast.AST]) -> bool:
    """Return whether there is a `return` among the statements or inside their ifs; those in loops do not count, as loops cannot be
    rewritten.
    """
    return any(isinstance(node, ast.Return) for node in _walk_statements(statements, _SCOPES + _LOOPS))


def _returns_inside_if(body: Iterable[ast.AST]) -> bool:
    """Return whether an `if` returns early, so that the statements after it have to be moved into its branches."""
    return any(isinstance(node, ast.If) and _has_return([node]) for node in body)


def _return_once(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return equivalent statements that assign a result variable once on each path, rather than return early."""
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(None)
            return [*body[:index], ast.copy_location(_assign(_RESULT, value), statement)]
        if isinstance(statement, ast.If) and _has_return([statement]):
            rest = body[index + 1 :]
            branches = [_return_once([*branch, *rest]) for branch in (statement.body, statement.orelse)]
            renewed = ast.copy_location(ast.If(statement.test, branches[0], branches[1]), statement)
            return [*body[:index], renewed]
    return [*body, _assign(_RESULT, _tool("no_return"))]


def _cannot_be_function(statement: ast.If) -> bool:
    """Return whether an `if` contains statements that cannot be moved into a function: `return`, `break`, `continue`, `yield` and so on."""
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)) for n in _walk_statements([statement])):
        return True
    return any(isinstance(n, (ast.Break, ast.Continue)) for n in _walk_statements([statement], _SCOPES + _LOOPS))


def _targets(statements: Iterable[ast.AST]) -> Iterable[ast.expr]:
    for node in _walk_statements(statements):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield node


def _bound_names(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names of the variables that statements bind, except in comprehensions."""
    names: set[str] = set()
    inside: set[int] = set()
    for node in _walk_statements(statements):
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            inside |= {id(n) for generator in node.generators for n in ast.walk(generator.target)}
    for node in _walk_statements(statements):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in inside:
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def _assigned_in_ifs(body: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in _walk_statements(body):
        if isinstance(node, ast.If) and not _cannot_be_function(node):
            names |= _bound_names([*node.body, *node.orelse])
    return names


def _is_simple_index(index: ast.expr) -> bool:
    return isinstance(index.operand if isinstance(index, ast.UnaryOp) else index, (ast.Constant, ast.Name))


def _assignment_targets(statements: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return the attributes that statements assign, and the items whose index is a constant or a variable, by their source text."""
    targets: dict[str, ast.expr] = {}
    for target in _targets(statements):
        if isinstance(target, ast.Attribute) or (isinstance(target, ast.Subscript) and _is_simple_index(target.slice)):
            targets.setdefault(ast.unparse(target), target)
    return targets


class _Rewriter(ast.NodeTransformer):
    """Replaces the conditionals inside one function.

    Args:
        assigned: the variables that are assigned in ifs; the function shares them with the functions for its branches.
        maybe_unset: those of these variables that may not be set when they are read.
        global_names: the variables that the function declares `global`.
    """

    def __init__(self, assigned: set[str], maybe_unset: set[str], global_names: set[str]) -> None:
        self._global_names = global_names
        self._assigned = assigned
        self._maybe_unset = maybe_unset
        self._count = 0

    def rewrite_all(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Return the rewritten statements; one statement may become several."""
        result: list[ast.stmt] = []
        for statement in statements:
            rewritten = self.visit(statement)
            result.extend(rewritten if isinstance(rewritten, list) else [rewritten])
        return result

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        position = node.decorator_list[0] if node.decorator_list else node
        rewrite = ast.Attribute(_name(TOOLS), "inner", ast.Load())
        for part in ast.walk(rewrite):
            ast.copy_location(part, position)
        node.decorator_list.append(rewrite)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # The methods of a class are rewritten when they are called.
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self.visit(node.body)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._maybe_unset:
            return ast.copy_location(_tool("load", node), node)
        return node

    def visit_Delete(self, node: ast.Delete) -> Sequence[ast.stmt]:
        # A variable that branches share must continue to exist: deleting it only removes its value.
        emptied = [target for target in node.targets if isinstance(target, ast.Name) and target.id in self._maybe_unset]
        node.targets = [target for target in node.targets if target not in emptied]
        made = [_assign(target.id, _tool("undefined", ast.Constant(target.id))) for target in emptied]
        for statement in made:
            ast.copy_location(statement, node)
        return [*made, node] if node.targets else made

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_tool("ternary", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_tool("negation", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        tool = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        result = node.values[0]
        for value in node.values[1:]:
            result = _tool(tool, result, _lambda(value))
        return ast.copy_location(result, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        pair = "__penstock_left__", "__penstock_right__"
        comparisons: list[ast.expr] = [
            _lambda(ast.Compare(_name(pair[0]), [op], [_name(pair[1])]), *pair) for op in node.ops
        ]
        operands: list[ast.expr] = [_lambda(operand) for operand in node.comparators]
        chain = _tool("comparison_chain", node.left, ast.List(comparisons, ast.Load()), ast.List(operands, ast.Load()))
        return ast.copy_location(chain, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "vars"):
            return node
        node.func = ast.copy_location(_tool("callee", node.func), node.func)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        # A variable that several functions share cannot have an annotation.
        if node.value is not None:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        return ast.copy_location(ast.Pass(), node) if node.target.id in self._assigned else node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.copy_location(_tool("refuse_loop", node.test), node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        if _cannot_be_function(node):
            self.generic_visit(node)
            tool = (
                "refuse_return" if any(isinstance(n, ast.Return) for n in _walk_statements([node])) else "refuse_loop"
            )
            node.test = ast.copy_location(_tool(tool, node.test), node.test)
            return node
        number = self._count
        self._count += 1
        variables = sorted(_bound_names([*node.body, *node.orelse]) & self._assigned)
        elements = {text: p for text, p in _assignment_targets([*node.body, *node.orelse]).items()}
        test = self.visit(node.test)
        made: list[ast.stmt] = [
            self._branch(f"__penstock_if_{number}", node.body, variables),
            self._branch(f"__penstock_else_{number}", node.orelse, variables),
            self._get_state(f"__penstock_get_{number}", variables, elements),
            self._set_state(f"__penstock_set_{number}", variables, elements),
        ]
        names = ast.Tuple([ast.Constant(name) for name in [*variables, *elements]], ast.Load())
        functions = [_name(f"__penstock_{kind}_{number}") for kind in ("if", "else", "get", "set")]
        call = ast.Expr(_tool("if_statement", test, *functions, names))
        result: list[ast.AST] = [*made, call]
        # The replacement gets only the line of `if`: otherwise, an error in a call over several lines would be reported for the last line.
        position = ast.Pass(
            lineno=node.lineno, col_offset=node.col_offset, end_lineno=node.lineno, end_col_offset=node.col_offset
        )
        for statement in result:
            ast.copy_location(statement, position)
            for child in ast.walk(statement):
                if not hasattr(child, "lineno") and "lineno" in getattr(child, "_attributes", ()):
                    ast.copy_location(child, position)
        return result

    def _function(
        self, name: str, body: list[ast.stmt], shared: list[str], argument: str | None = None
    ) -> ast.FunctionDef:
        outer = [name for name in shared if name not in self._global_names]
        nonlocals: list[ast.stmt] = [ast.Nonlocal(outer)] if outer else []
        if len(outer) < len(shared):
            nonlocals.append(ast.Global([name for name in shared if name in self._global_names]))
        args = plain_arguments([ast.arg(arg=argument)] if argument else [])
        definition = ast.FunctionDef(name=name, args=args, body=[*nonlocals, *body], decorator_list=[])
        if sys.version_info >= (3, 12):
            definition.type_params = []
        return definition

    def _branch(self, name: str, statements: list[ast.stmt], variables: list[str]) -> ast.FunctionDef:
        body = self.rewrite_all(statements) or [ast.Pass()]
        return self._function(name, body, variables)

    def _get_state(self, name: str, variables: list[str], elements: dict[str, ast.expr]) -> ast.FunctionDef:
        values: list[ast.expr] = [
            _tool("probe", _lambda(_name(variable)), ast.Constant(variable))
            if variable in self._global_names
            else _name(variable)
            for variable in variables
        ]
        for text in elements:
            (read,) = parse(text).body
            assert isinstance(read, ast.Expr)
            values.append(_tool("probe", _lambda(read.value), ast.Constant(text)))
        return self._function(name, [ast.Return(ast.Tuple(values, ast.Load()))], [])

    def _set_state(self, name: str, variables: list[str], elements: dict[str, ast.expr]) -> ast.FunctionDef:
        values = "__penstock_values__"
        body: list[ast.stmt] = []
        for index, variable in enumerate(variables):
            body.append(_assign(variable, ast.Subscript(_name(values), ast.Constant(index), ast.Load())))
        for index, text in enumerate(elements, len(variables)):
            (store,) = parse(f"{text} = 0").body
            assert isinstance(store, ast.Assign)
            store.value = ast.Subscript(_name(values), ast.Constant(index), ast.Load())
            body.append(store)
        return self._function(name, body or [ast.Pass()], variables, values)
