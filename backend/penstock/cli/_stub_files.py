"""Files generated from the operators' declarations when the package is built: type stubs and the index of operators.

Editors and type checkers read the stubs of `fn`, `ops` and dynamic mode in place of the functions generated when they are used.
The stubs are packages, ``fn/__init__.pyi`` and so on, beside the modules ``fn.py`` and ``ops.py``. Python ignores them,
as a module takes precedence over a folder without ``__init__.py``; editors and mypy prefer them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.cli._dynamic_stubs import dynamic_stub_files
from penstock.cli._stub_texts import annotation, definition, handwritten_code, quoted
from penstock.ops import OperatorWrapper
from penstock.schema.declaration import Schema
from penstock.schema.documentation import (
    MemberDefault,
    call_signature,
    constructor_signature,
    docstring,
    shown_arguments,
    signature,
)
from penstock.schema.operator_index import FILE_NAME, entry_of, index_text
from penstock.schema.registry import all_schemas, operator_class

_NAMESPACES = ("penstock.fn", "penstock.ops")
_FOLDERS = ("fn", "ops", "dynamic")
_OPERATORS = "penstock.operators"
_INDEX = Path("operators", FILE_NAME)
_HEADER = '''# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""{doc}"""

from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.graph.nodes import DataNode, TensorLike as _TensorLike
from penstock.data_types import DALIDataType, DALIImageType, DALIInterpType
'''


def stub_files() -> dict[Path, str]:
    """Return the text of every stub, by its path below the folder of the package."""
    files: dict[Path, str] = {}
    for name in _NAMESPACES:
        namespace = importlib.import_module(name)
        for path, entries in _entries(namespace).items():
            folder = Path(name.rpartition(".")[2], *path)
            files[folder / "__init__.pyi"] = _module_text(namespace, path, entries)
    return files | dynamic_stub_files()


def made_files() -> dict[Path, str]:
    """Return the stubs and the index."""
    return stub_files() | {_INDEX: operator_index()}


def stale_stubs(package: Path) -> list[Path]:
    """Return the stubs in the package's folder that are missing, outdated or orphaned, and the index if it is."""
    wanted = {package / path: text for path, text in made_files().items()}
    found = {path for folder in _FOLDERS for path in (package / folder).rglob("*.pyi")}
    found.update(path for path in wanted if path.exists())
    return sorted(
        path
        for path in found | set(wanted)
        if path not in wanted or path not in found or path.read_text(encoding="utf-8") != wanted[path]
    )


def write_stubs(package: Path) -> list[Path]:
    """Update the stubs and the index in the package's folder; return those that changed."""
    files = made_files()
    stale = stale_stubs(package)
    for path in stale:
        text = files.get(path.relative_to(package))
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return stale


def operator_index() -> str:
    """Return the text of the index."""
    entries = [entry_of(schema, operator_class(schema.name).__module__) for schema in all_schemas()]
    folder = Path(importlib.import_module(_OPERATORS).__path__[0])
    return index_text(folder, [entry for entry in entries if entry.module.startswith(f"{_OPERATORS}.")])


def _entries(namespace: ModuleType) -> dict[tuple[str, ...], dict[str, tuple[Schema, object]]]:
    """Return the operators in a namespace by submodule and name, each with its declaration and the object of that name."""
    modules: dict[tuple[str, ...], dict[str, tuple[Schema, object]]] = defaultdict(dict)
    modules[()] = {}
    for schema in all_schemas():
        classes = namespace.__name__ == "penstock.ops"
        path = (*schema.module, schema.class_name) if classes else tuple(schema.fn_path.split("."))
        if any(part.startswith("_") for part in path):
            continue
        target: Any = namespace
        for part in path:
            target = getattr(target, part)
        for depth in range(1, len(path)):
            modules.setdefault(path[:depth], {})
        modules[path[:-1]][path[-1]] = (schema, target)
    return modules


def _module_text(namespace: ModuleType, path: tuple[str, ...], entries: dict[str, tuple[Schema, object]]) -> str:
    doc = inspect.getdoc(namespace) if not path else f"Operators of the family `{path[-1]}`."
    header = _HEADER.format(doc=doc)
    header += "".join(f"from . import {part} as {part}\n" for part in _submodules(namespace, path))
    if path and namespace.__name__ == "penstock.ops":
        header += "from penstock.ops import OperatorWrapper\n"
    imports, definitions = handwritten_code(namespace) if not path else ([], [])
    blocks = [header + "".join(f"{line}\n" for line in imports)]
    blocks += definitions
    blocks += [_entry_text(name, *entry) for name, entry in sorted(entries.items())]
    return "\n\n".join(block.rstrip() for block in blocks) + "\n"


def _submodules(namespace: ModuleType, path: tuple[str, ...]) -> list[str]:
    return sorted(other[-1] for other in _entries(namespace) if other and other[:-1] == path)


def _entry_text(name: str, schema: Schema, target: Any) -> str:
    if inspect.isclass(target) and issubclass(target, OperatorWrapper):
        return _class_text(name, schema)
    if target.__module__.partition(".fn")[0] == "penstock" and "__signature__" in vars(target):
        return _function_text(name, schema)
    target_name = target.__name__
    if target_name == name:
        return f"from {target.__module__} import {name} as {name}"
    return f"from {target.__module__} import {target_name} as _{target_name}\n\n{name} = _{target_name}"


def _function_text(name: str, schema: Schema) -> str:
    return _overloads(name, schema, signature(schema), [], quoted(docstring(schema)))


def _overloads(name: str, schema: Schema, call: inspect.Signature, first: list[str], document: str) -> str:
    """Return the function; with inputs it has two overloads, the second for several input sets."""
    one, several = _result_types(schema)
    single = definition(name, first + _parameters(schema, call, sets=False), one, document)
    if not schema.inputs or one == several:
        return single
    multiple = definition(name, first + _parameters(schema, call, sets=True), several, "")
    return f"@_overload\n{single}\n@_overload\n{multiple}"


def _result_types(schema: Schema) -> tuple[str, str]:
    """Return the return types for one input set, and for several."""
    if schema.output_per_input or callable(schema.outputs):
        return "Any", "Any"
    if schema.outputs == 1:
        return "DataNode", "list[DataNode]"
    return "list[DataNode]", "list[list[DataNode]]"


def _class_text(name: str, schema: Schema) -> str:
    constructor = ["self", "*", *_keywords(schema, constructor_signature(schema))]
    parts = [
        quoted(docstring(schema)),
        "",
        definition("__init__", constructor, "None", ""),
        _overloads("__call__", schema, call_signature(schema), ["self"], ""),
    ]
    return f"class {name}(OperatorWrapper):\n{textwrap.indent(chr(10).join(parts), '    ')}"


def _parameters(schema: Schema, call: inspect.Signature, sets: bool) -> list[str]:
    """Return the parameters of the function; with ``sets`` the first input is a list of nodes, and the others may be lists,
    too."""
    accepted = "list[DataNode] | DataNode | _TensorLike" if sets else "DataNode | _TensorLike"
    parameters: list[str] = []
    for parameter in call.parameters.values():
        if parameter.kind is not parameter.POSITIONAL_ONLY:
            continue
        if sets and not parameters:
            parameters.append(f"{parameter.name}: list[DataNode]")
        else:
            optional = parameter.default is not parameter.empty
            parameters.append(f"{parameter.name}: {accepted}{' | None = ...' if optional else ''}")
    if parameters:
        parameters.append("/")
    parameters.append(f"*inputs: {accepted}" if schema.variadic else "*")
    return [*parameters, *_keywords(schema, call)]


def _keywords(schema: Schema, call: inspect.Signature) -> Iterator[str]:
    shown = {argument.name: argument for argument in shown_arguments(schema)}
    for parameter in call.parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        argument = shown.get(parameter.name)
        text = f"{parameter.name}: {annotation(parameter.annotation, argument)}"
        if parameter.default is parameter.empty:
            yield text
        else:
            yield f"{text} = {'...' if argument and argument.required else _default(parameter.default)}"


def _default(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if isinstance(value, (bool, int, float, MemberDefault, type(None))) else "..."
