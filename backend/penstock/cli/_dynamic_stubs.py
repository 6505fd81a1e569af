"""Type stubs of dynamic mode, whose functions and readers are generated from the operators' declarations."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from types import ModuleType

from penstock.cli._stub_texts import annotation, definition, handwritten_code, quoted
from penstock.dynamic._ops import documentation, schema_of  # private: not for users
from penstock.schema.declaration import Schema
from penstock.schema.documentation import shown_arguments
from penstock.schema.documentation import signature as usual_signature

_HEADER = '''# Made by `penstock stubs` from the operators' declarations.
# ruff: noqa
# fmt: off
"""{doc}"""

from builtins import bool as _bool
from collections.abc import Sequence as _Sequence
from typing import Any, overload as _overload

from numpy import ndarray as _ndarray

from penstock.data_types import DALIImageType, DALIInterpType
from penstock.dynamic._batch import Batch as _Batch
from penstock.dynamic._devices import DeviceLike as _DeviceLike
from penstock.dynamic._dtypes import DTypeLike as _DTypeLike
from penstock.dynamic._readers import Reader as _Reader
from penstock.dynamic._rngs import RNG as _RNG
from penstock.dynamic._tensor import Tensor as _Tensor
from penstock.graph.nodes import TensorLike as _TensorLike
'''
_BATCH_SIZE = "batch_size: int | None = None"
_CALL_PARAMETERS = {
    "batch_size": _BATCH_SIZE,
    "device": "device: _DeviceLike | None = None",
    "rng": "rng: _RNG | None = None",
}


# Names for the annotations of pipelines' functions in these stubs, where `bool` is the type of a tensor.
_WORDS = {"DataNode": "_Tensor | _Batch", "DALIDataType": "_DTypeLike", "bool": "_bool"}


def dynamic_stub_files() -> dict[Path, str]:
    """Return the text of each stub, by its path relative to the folder of the package."""
    dynamic = importlib.import_module("penstock.dynamic")
    modules: dict[tuple[str, ...], list[str]] = defaultdict(list, {(): []})
    for function in dynamic.ops.all_functions():
        schema = schema_of(vars(function)["_op_class"])
        _add(modules, tuple(schema.fn_path.split(".")), _function_text(schema, inspect.signature(function)))
    for made in dynamic.ops.all_operators():
        if issubclass(made, dynamic.ops.Reader):
            schema = schema_of(made)
            _add(modules, (*schema.module, made.__name__), _reader_text(made.__name__, schema))
    return {
        Path("dynamic", *path, "__init__.pyi"): _module_text(path, sorted(modules), entries)
        for path, entries in modules.items()
    }


def _add(modules: dict[tuple[str, ...], list[str]], path: tuple[str, ...], text: str) -> None:
    if any(part.startswith("_") for part in path):
        return
    for depth in range(1, len(path) - 1):
        modules[path[:depth]]
    modules[path[:-1]].append(text)


def _module_text(path: tuple[str, ...], modules: list[tuple[str, ...]], entries: list[str]) -> str:
    module = _module_of(path)
    doc = inspect.getdoc(module) if module is not None else f"Operators of the family `{path[-1]}`."
    header = _HEADER.format(doc=doc)
    header += "".join(
        f"from . import {other[-1]} as {other[-1]}\n" for other in modules if other and other[:-1] == path
    )
    imports, definitions = ([], []) if module is None else handwritten_code(module)
    blocks = [header + "".join(f"{line}\n" for line in imports), *definitions, *sorted(entries)]
    return "\n\n".join(block.rstrip() for block in blocks) + "\n"


def _module_of(path: tuple[str, ...]) -> ModuleType | None:
    """Return the module at this path if it is written by hand, otherwise None."""
    module = importlib.import_module(".".join(("penstock.dynamic", *path)))
    return module if getattr(module, "__file__", None) else None


def _function_text(schema: Schema, signature: inspect.Signature) -> str:
    """Return the overloads of a function: for batches, for calls without inputs that return a batch, and for tensors."""
    name = schema.fn_path.rpartition(".")[2]
    inputs = [parameter for parameter in signature.parameters.values() if parameter.kind is parameter.POSITIONAL_ONLY]
    keywords = _keywords(schema, signature)
    overloads = []
    if inputs or schema.variadic:
        overloads.append(([*_inputs(inputs, schema, "_Batch"), *keywords], "_Batch"))
    if not schema.min_input_count:
        of_batch = [_BATCH_SIZE.replace(" | None = None", "") if word == _BATCH_SIZE else word for word in keywords]
        keywords = [_BATCH_SIZE.replace("int | None", "None") if word == _BATCH_SIZE else word for word in keywords]
        overloads.append((["*", *of_batch], "_Batch"))
    first = _inputs(inputs, schema, "_Tensor") if inputs or schema.variadic else ["*"]
    overloads.append(([*first, *keywords], "_Tensor"))
    document = quoted(inspect.cleandoc(documentation(schema)))
    texts: list[str] = []
    for parameters, kind in overloads:
        texts.append(definition(name, parameters, _result(schema, kind), "" if texts else document))
    return "\n".join(f"@_overload\n{text}" for text in texts)


def _result(schema: Schema, kind: str) -> str:
    if schema.output_per_input or callable(schema.outputs):
        return "Any"
    return kind if schema.outputs == 1 else f"tuple[{', '.join([kind] * schema.outputs)}]"


def _inputs(inputs: list[inspect.Parameter], schema: Schema, kind: str) -> list[str]:
    parameters = []
    for number, input_parameter in enumerate(inputs):
        accepted = (
            "_Batch" if kind == "_Batch" and not number else f"_Tensor | {'_Batch | ' if number else ''}_TensorLike"
        )
        optional = input_parameter.default is not input_parameter.empty and accepted != "_Batch"
        parameters.append(f"{input_parameter.name}: {accepted}{' | None = None' if optional else ''}")
    if parameters:
        parameters.append("/")
    more = "_Batch" if kind == "_Batch" and not inputs else "_Tensor | _Batch | _TensorLike"
    parameters.append(f"*inputs: {more}" if schema.variadic else "*")
    return parameters


def _keywords(schema: Schema, signature: inspect.Signature) -> list[str]:
    # Without deprecated names, so that editors do not offer them.
    usual = usual_signature(schema).parameters
    keywords = [parameter for parameter in signature.parameters.values() if parameter.kind is parameter.KEYWORD_ONLY]
    shown = [parameter for parameter in keywords if parameter.name in _CALL_PARAMETERS or parameter.name in usual]
    defaults = ["" if parameter.default is parameter.empty else " = None" for parameter in shown]
    return [
        _CALL_PARAMETERS.get(one.name) or _keyword(schema, one.name, default) for one, default in zip(shown, defaults)
    ]


def _keyword(schema: Schema, name: str, default: str) -> str:
    """Return the parameter of an operator's argument, annotated as in the functions for pipelines."""
    argument = next(candidate for candidate in shown_arguments(schema) if candidate.name == name)
    kind = annotation(usual_signature(schema).parameters[name].annotation, argument)
    for word, own_word in _WORDS.items():
        kind = re.sub(rf"\b{word}\b", own_word, kind)
    return f"{name}: {kind}{default}"


def _reader_text(name: str, schema: Schema) -> str:
    usual = ["max_batch_size: int | None = None", "name: str | None = None", "device: _DeviceLike = 'cpu'"]
    usual.append("num_inputs: int | None = None")
    known = {argument.name for argument in shown_arguments(schema)} - {"name", "device"}
    input_parameter = [name for name in usual_signature(schema).parameters if name in known]
    keywords = [_keyword(schema, name, " = ...") for name in sorted(input_parameter)]
    body = [
        quoted(inspect.cleandoc(documentation(schema))),
        "",
        definition("__init__", ["self", *usual, "*", *keywords], "None", ""),
    ]
    return f"class {name}(_Reader):\n{textwrap.indent(chr(10).join(body), '    ')}"
