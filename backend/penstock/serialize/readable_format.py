"""The readable format: versioned JSON that can be read, compared and edited, and in which nothing is executable."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from penstock.data_types import DALIDataType, DALIImageType, DALIInterpType
from penstock.errors import SerializationError, UnsupportedVersionError, did_you_mean
from penstock.graph import DataNode, Graph, OpNode
from penstock.runtime.settings import PipelineSettings
from penstock.runtime.sources import Source
from penstock.schema import Argument, Schema, all_schemas
from penstock.serialize.rebuilding import Defined, Rebuilder, SavedOperator

FORMAT = "penstock-pipeline"
VERSION = 1
_ENUMS = {kind.__name__: kind.__members__ for kind in (DALIDataType, DALIImageType, DALIInterpType)}
_SETTINGS = ("batch_size", "num_threads", "device_id", "seed", "prefetch_queue_depth", "exec_async", "exec_pipelined")
# Saved only if set: not all pipelines have limits, and earlier versions do not know these settings.
_LIMITS = ("max_pixels", "max_bytes", "max_frames")


def to_text(graph: Graph, settings: PipelineSettings) -> str:
    """Return a pipeline, as defined, in the readable format.

    Raises:
        SerializationError: an operator calls a function that has no import path, such as a lambda or a nested function.
        RuntimeError: the graph is invalid.
    """
    graph.verify()
    logical_ids = graph.logical_ids()
    shared = _shared(list(logical_ids.values()))
    count = len(graph.outputs)
    declared = zip(settings.output_dtypes(count), settings.output_ndims(count), settings.output_layouts(count))
    document = {
        "format": FORMAT,
        "version": VERSION,
        "settings": _settings(settings),
        "operators": [_to_entry(op, logical_ids[op] if logical_ids[op] in shared else None) for op in graph.operators],
        "outputs": [_output_entry(node, *declaration) for node, declaration in zip(graph.outputs, declared)],
    }
    return _layout_lines(document) + "\n"


def _settings(settings: PipelineSettings) -> dict[str, object]:
    saved = {name: getattr(settings, name) for name in _SETTINGS}
    limits = {name: getattr(settings.limits, name.removeprefix("max_")) for name in _LIMITS}
    return saved | {name: limit for name, limit in limits.items() if limit is not None}


def _shared(numbers: list[int]) -> set[int]:
    return {number for number in numbers if numbers.count(number) > 1}


def _layout_lines(document: dict[str, object]) -> str:
    """Return JSON with one operator, and one output, per line, for readable diffs."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join("    " + json.dumps(item) for item in value)
            parts.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}"


def _to_entry(op: OpNode, group: int | None) -> dict[str, object]:
    entry: dict[str, object] = {"operator": _public_name(op.schema), "name": op.name}
    if op.device != "cpu":
        entry["device"] = op.device
    if op.inputs:
        entry["inputs"] = [_reference(node) for node in op.inputs]
    arguments: dict[str, Any] = {}
    for name, value in op.arguments.items():
        arguments[name] = _to_json(op.schema.all_arguments[name], value)
    for name, node in sorted(op.argument_inputs.items()):
        arguments[name] = {"node": node.name}
    if arguments:
        entry["arguments"] = arguments
    if op.payload is not None and not isinstance(op.payload, Source):
        entry["python"] = import_path(op.payload)
    if group is not None:
        entry["call"] = group
    default = [op.name] if len(op.outputs) == 1 else [f"{op.name}[{i}]" for i in range(len(op.outputs))]
    names = [node.name for node in op.outputs]
    if names != default:
        entry["outputs"] = names
    return entry


def _public_name(schema: Schema) -> str:
    return schema.fn_path if _by_public_name().get(schema.fn_path) is schema else schema.name


def _by_public_name() -> dict[str, Schema]:
    names: dict[str, Schema] = {}
    for schema in all_schemas():
        names.setdefault(schema.fn_path, schema)
    return names


def _reference(node: DataNode) -> object:
    return {"node": node.name, "device": node.device} if node.is_moved else node.name


def _to_json(argument: Argument, value: Any) -> object:
    if argument.type.removesuffix("[]") in _ENUMS:
        return [item.name for item in value] if argument.is_list else value.name
    return value


def _output_entry(
    node: DataNode, dtype: DALIDataType | None, ndim: int | None, layout: str | None
) -> dict[str, object]:
    entry: dict[str, object] = {"node": node.name, "device": node.device}
    if dtype is not None:
        entry["dtype"] = dtype.name
    if ndim is not None:
        entry["ndim"] = ndim
    if layout:
        entry["layout"] = layout
    return entry


def import_path(function: object) -> str:
    """Return ``package.module:name`` of a function or class; raise SerializationError if it has none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or "<" in name or module == "__main__":
        raise SerializationError(
            f"{function!r} cannot be saved: only functions at the top level of an importable module can be named by import path"
        )
    return f"{module}:{name}"


def from_text(
    text: str,
    kind: Callable[..., Defined],
    allowed_modules: Sequence[str] = (),
    overrides: dict[str, object] | None = None,
) -> Defined:
    """Return the pipeline in ``text``, made by calling ``kind`` and not built yet; ``overrides`` replace saved settings.

    Raises:
        UnsupportedVersionError: the text was written by a later version of Penstock.
        SerializationError: the text is not a valid pipeline, or names a module that is not allowed.
    """
    document = _parsed(text)
    settings = _known_settings(document) | _declarations(document)
    settings |= {key: value for key, value in (overrides or {}).items() if value is not None}
    pipeline = kind(**settings)
    rebuilder = Rebuilder()
    names = _by_public_name()
    for index, entry in enumerate(_list_of(document, "operators")):
        op = rebuilder.add(_from_entry(entry, index, names, rebuilder, allowed_modules))
        if op.preserved and op.outputs:
            pipeline.add_sink(op.outputs[0])
    outputs = [
        rebuilder.node(_node_and_device(entry, rebuilder, "the outputs"), "the outputs") for entry in _outputs(document)
    ]
    pipeline.set_outputs(*outputs)
    return pipeline


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SerializationError(f"This is not a pipeline in the readable format: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SerializationError(f'This is not a pipeline in the readable format: it lacks "format": "{FORMAT}"')
    version = document.get("version")
    if not isinstance(version, int) or version < 1:
        raise SerializationError(f"The format version {version!r} is not a version")
    if version > VERSION:
        raise UnsupportedVersionError(
            f"This pipeline is in version {version} of the readable format, but this Penstock reads versions up to {VERSION}: "
            "upgrade Penstock, or save the pipeline again with this version."
        )
    return document


def _known_settings(document: dict[str, object]) -> dict[str, object]:
    settings = document.get("settings", {})
    if not isinstance(settings, dict):
        raise SerializationError('"settings" must be an object')
    known = (*_SETTINGS, *_LIMITS)
    unknown = sorted(settings.keys() - set(known))
    if unknown:
        raise SerializationError(f"Unknown settings {unknown}: a pipeline has {', '.join(known)}")
    return {key: value for key, value in settings.items() if value is not None}


def _list_of(document: dict[str, object], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise SerializationError(f'"{key}" must be a list of objects')
    return value


def _outputs(document: dict[str, object]) -> list[Any]:
    return _list_of(document, "outputs")


def _declarations(document: dict[str, object]) -> dict[str, Any]:
    outputs = _outputs(document)
    dtypes = [
        None if "dtype" not in entry else _enum("DALIDataType", entry["dtype"], "the outputs") for entry in outputs
    ]
    return {
        "output_dtype": dtypes,
        "output_ndim": [entry.get("ndim") for entry in outputs],
        "output_layout": [entry.get("layout") for entry in outputs],
    }


def _enum(kind: str, name: Any, where: str) -> Any:
    try:
        return _ENUMS[kind][name]
    except KeyError:
        raise SerializationError(f"{where}: {name!r} is no {kind}; use one of {', '.join(_ENUMS[kind])}") from None


def _from_entry(
    entry: dict[str, Any], index: int, names: dict[str, Schema], rebuilder: Rebuilder, allowed_modules: Sequence[str]
) -> SavedOperator:
    where = f"operator {index} ({entry.get('name')!r})"
    public = entry.get("operator")
    if not isinstance(public, str):
        raise SerializationError(f'{where}: "operator" must be the name of an operator')
    schema = names.get(public)
    saved = SavedOperator(
        schema=public if schema is None else schema.name,
        name=entry.get("name", ""),
        device=entry.get("device", "cpu"),
        inputs=[_node_and_device(item, rebuilder, where) for item in entry.get("inputs", [])],
        outputs=entry.get("outputs", []),
        group=entry.get("call"),
    )
    for key, value in entry.get("arguments", {}).items():
        if isinstance(value, dict):
            saved.argument_inputs[key] = _node_and_device(value, rebuilder, where)
        else:
            saved.arguments[key] = _from_json(schema, key, value, where)
    if "python" in entry:
        saved.payload = imported(entry["python"], allowed_modules, where)
    return saved


def _from_json(schema: Schema | None, key: str, value: Any, where: str) -> object:
    argument = None if schema is None else schema.all_arguments.get(key)
    if argument is None:
        known = () if schema is None else schema.all_arguments
        raise SerializationError(f"{where}: the operator has no argument '{key}'.{did_you_mean(key, known)}")
    kind = argument.type.removesuffix("[]")
    if kind not in _ENUMS:
        return value
    return [_enum(kind, item, where) for item in value] if argument.is_list else _enum(kind, value, where)


def _node_and_device(item: object, rebuilder: Rebuilder, where: str) -> tuple[str, str]:
    name = item.get("node") if isinstance(item, dict) else item
    if not isinstance(name, str):
        raise SerializationError(f"{where}: {item!r} is not the name of a node")
    made = rebuilder.nodes.get(name)
    default = "cpu" if made is None else made.device
    return name, item.get("device", default) if isinstance(item, dict) else default


def imported(path: object, allowed_modules: Sequence[str], where: str) -> Callable[..., Any]:
    """Return the function at ``package.module:name``, if that module is allowed and defines it.

    Names that the module has only imported (``os.system``, another module) are refused.
    """
    module_name, _, name = path.partition(":") if isinstance(path, str) else ("", "", "")
    if not module_name or not name:
        raise SerializationError(f"{where}: {path!r} is not an import path; write package.module:function")
    if not is_within(module_name, allowed_modules):
        raise SerializationError(
            f"{where}: the module '{module_name}' is not among those from which Python operators may be loaded "
            f"({', '.join(allowed_modules) or 'none is allowed'})"
        )
    try:
        target: Any = importlib.import_module(module_name)
        for part in name.split("."):
            target = getattr(target, part)
            defined_in = target.__name__ if isinstance(target, ModuleType) else getattr(target, "__module__", None)
            if isinstance(target, ModuleType) or not is_within(defined_in or "", allowed_modules):
                raise SerializationError(
                    f"{where}: '{path}' is not defined in a module from which Python operators may be loaded, but in {defined_in}"
                )
    except (ImportError, AttributeError) as error:
        raise SerializationError(f"{where}: '{path}' cannot be loaded: {error}") from error
    loaded: Callable[..., Any] = target
    return loaded


def is_within(name: str, modules: Sequence[str]) -> bool:
    """Return whether a module is one of ``modules``, or a submodule of one."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)
