"""Parts of type stubs: definitions, annotations and documentation as text."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Sequence
from types import ModuleType

from penstock.graph.parsing import parse
from penstock.schema.arguments import Argument

_MAX_LINE_CHARACTERS = 120


def handwritten_code(namespace: ModuleType) -> tuple[list[str], list[str]]:
    """Return the hand-written part of a module: the imports that it needs, and its functions and classes without bodies."""
    tree = parse(inspect.getsource(namespace))
    definitions = [
        _BodyStripper().visit(node)
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
    ]
    needed = {node.id for definition in definitions for node in ast.walk(definition) if isinstance(node, ast.Name)}
    public = set(namespace.__all__)
    imports = []
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in needed | public]
            renamed = {alias.asname: alias.name for alias in node.names if alias.asname in public}
            for alias in node.names:
                alias.asname = alias.name if alias.name in public else None if alias.asname in renamed else alias.asname
            if node.names:
                imports.append(ast.unparse(node))
            # A stub exports an imported name only if it is imported under that same name, so renamed ones are assigned.
            imports += [f"{name} = {original}" for name, original in renamed.items()]
    return imports, [ast.unparse(definition) for definition in definitions]


class _BodyStripper(ast.NodeTransformer):
    """Reduces the body of each function to its docstring."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        has_doc = ast.get_docstring(node) is not None
        node.body = [*(node.body[:1] if has_doc else []), ast.Expr(ast.Constant(...))]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        return node


def annotation(text: str, argument: Argument | None) -> str:
    """Return an annotation with the names that stubs import; ``argument`` is the operator's argument that it annotates."""
    text = re.sub(r"\bSequence\b", "_Sequence", text)
    text = re.sub(r"\b(dict\[.*\]|tfrecord\.\w+)", "Any", text)
    if argument is None:
        return text
    if argument.tensor or argument.is_list:
        text += " | _ndarray"
    return text if argument.required else f"{text} | None"


def definition(name: str, parameters: Sequence[str], result: str, document: str) -> str:
    """Return the definition of a function without a body."""
    line = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) > _MAX_LINE_CHARACTERS:
        inner = "".join(f"    {parameter},\n" for parameter in parameters)
        line = f"def {name}(\n{inner}) -> {result}:"
    return f"{line}\n{textwrap.indent(document, '    ')}\n    ..." if document else f"{line} ..."


def quoted(document: str) -> str:
    """Return a text as a docstring, with quotes."""
    lines = "\n".join(line.rstrip() for line in document.splitlines())
    prefix = "r" if "\\" in lines else ""
    return f'{prefix}"""{lines}\n"""' if "\n" in lines else f'{prefix}"""{lines}"""'
