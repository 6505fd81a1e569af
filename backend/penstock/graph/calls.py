"""Calls of operators while a pipeline is being defined: arguments are checked, and nodes are created."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType
from penstock.errors import as_imported
from penstock.graph.nodes import DataNode, OpNode
from penstock.graph.origin import CallSite, capture
from penstock.graph.scope import current_scope
from penstock.graph.values import constant_arguments, is_constant
from penstock.schema import Argument, Schema, find_schema

DEVICES = ("cpu", "gpu", "mixed")


def call_operator(
    operator: str | Schema,
    inputs: Iterable[Any],
    arguments: dict[str, Any],
    device: str | None = None,
    name: str | None = None,
    display: str | None = None,
    payload: object = None,
    sites: tuple[CallSite, ...] | None = None,
    unnamed: str | None = None,
) -> Any:
    """Add an operator to the graph being defined.

    Args:
        operator: the operator's schema, or the schema's name.
        inputs: nodes, values that become constants, or lists of nodes (multiple input sets).
        arguments: the arguments by name; None counts as absent.
        device: the device; by default ``gpu`` if an input is on the GPU, otherwise ``cpu``. Also ``cpu`` if only the CPU can compute, from
            inputs on either device.
        name: the name of this instance.
        display: the operator's name in messages.
        payload: see :class:`~penstock.graph.nodes.OpNode`.
        sites: the user's lines, for messages; by default, those of the current call.
        unnamed: the prefix, followed by a number, of the names of instances that the user did not name; by default, derived from the
            operator's class.

    Returns:
        The output, or a list of outputs if there are several; with multiple input sets, each output is a list with one item for each set.
    """
    schema = find_schema(operator) if isinstance(operator, str) else operator
    display = as_imported(display or f"penstock.fn.{schema.fn_path}")
    scope = current_scope()
    inputs = list(inputs) if scope.debug is None else scope.debug.adopt(list(inputs))
    _check_name(name)
    _warn_if_deprecated(schema, display)
    nodes, constants = split_arguments(schema, arguments, display)
    device = _choose_device(device, inputs, schema)
    _check_input_count(schema, len(inputs), display)
    sets = _input_sets(inputs, device, schema, display)
    argument_inputs = {key: scope.enter_branch(node) for key, node in nodes.items()}
    branch_batch = scope.branch_batch() if "_scope" in schema.all_arguments else None
    if branch_batch is not None:
        argument_inputs["_scope"] = branch_batch
    if sites is None:
        sites = capture(scope.tracer)
    group = object()
    results = []
    for number, one_set in enumerate(sets):
        one_set = [scope.enter_branch(node) for node in one_set]
        _check_input_devices(schema, device, one_set, display)
        # A private operator in a module, such as `readers._TFRecord`, implements the public one, and has the same name.
        class_name = schema.class_name.lstrip("_") if schema.module else schema.class_name
        op_name = name or scope.next_name(unnamed or class_name)
        if name and len(sets) > 1:
            op_name = f"{name}_{number}" if number else name
        op = OpNode(
            schema,
            op_name,
            device,
            one_set,
            dict(argument_inputs),
            dict(constants),
            display,
            bool(name),
            group,
            sites,
            payload,
            scope.detached,
        )
        scope.register(op)
        outputs = op.outputs if scope.debug is None else scope.debug.evaluate(op)
        results.append(outputs[0] if len(outputs) == 1 else outputs)
    if len(results) == 1:
        return results[0]
    return [list(column) for column in zip(*results)] if isinstance(results[0], list) else results


def constant_node(
    value: object,
    dtype: DALIDataType | None = None,
    shape: Sequence[int] | int | None = None,
    layout: str | None = None,
    device: str = "cpu",
    name: str | None = None,
    **arguments: object,
) -> DataNode:
    """Return a node that has the same tensor for every sample.

    Args:
        value: a number, or an array or flat sequence of them; values out of the type's range are clamped.
        dtype: the result's dtype; by default the value's, where 64-bit types of Python and NumPy become 32-bit types.
        shape: the result's shape; a single value is repeated.
        name: the operator's name.
    """
    merged = arguments | constant_arguments(value, dtype, shape, layout)
    node: DataNode = call_operator("Constant", (), merged, device=device, name=name)
    return node


def to_node(value: object, device: str = "cpu") -> DataNode:
    """Return ``value`` as a node: unchanged if it is one, otherwise as a constant."""
    return value if isinstance(value, DataNode) else constant_node(value, device=device)


def _check_name(name: object) -> None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"The name of an operator must be a string, got {name!r}")


def _choose_device(device: str | None, inputs: Sequence[object], schema: Schema) -> str:
    if device is not None:
        if not isinstance(device, str):
            raise RuntimeError(f'Invalid type of argument "device": expected a string, got {device!r}')
        if device not in DEVICES:
            if not inputs:
                raise RuntimeError(f'Invalid device argument "{device}". Valid options are "cpu", "gpu" or "mixed".')
            raise ValueError(f'Unsupported device type: "{device}". Use one of {", ".join(DEVICES)}.')
        return device
    if "gpu" not in schema.devices and schema.inputs and all(each.device == "any" for each in schema.inputs):
        return "cpu"
    flat = (node for item in inputs for node in (item if isinstance(item, list) else [item]))
    return "gpu" if any(isinstance(node, DataNode) and node.device == "gpu" for node in flat) else "cpu"


def _warn_if_deprecated(schema: Schema, display: str) -> None:
    if schema.deprecated_since:
        text = f"WARNING: `{display}` is now deprecated."
        if schema.deprecated_in_favor_of:
            path = find_schema(schema.deprecated_in_favor_of).fn_path
            text += f" Use `{as_imported(f'penstock.fn.{path}')}` instead.{_migration_note(schema.fn_path, path)}"
        if schema.deprecation_note:
            text += f"\n{schema.deprecation_note}"
        warnings.warn(text, DeprecationWarning, stacklevel=4)


def _migration_note(old: str, new: str) -> str:
    """Return a note on why an operator was renamed."""
    if old.startswith("experimental."):
        return "\nIt was moved out of the experimental phase and is a regular operator now."
    family = new.partition(".")[0]
    if family in ("readers", "decoders"):
        return f"\nIn DALI 1.0 all {family} were moved into the submodule `{family}`."
    return ""


def _check_input_count(schema: Schema, count: int, display: str) -> None:
    if not schema.min_input_count <= count <= schema.max_input_count:
        raise ValueError(
            f"Operator {display} expects from {schema.min_input_count} to {schema.max_input_count} inputs, but received {count}."
        )


def _input_sets(inputs: list[Any], device: str, schema: Schema, display: str) -> list[list[DataNode]]:
    """Return the positional inputs of each instance: a single set, or one set for each item of the lists among the inputs."""
    lengths = {len(item) for item in inputs if _is_input_set(item)}
    if len(lengths) > 1:
        raise ValueError(
            f"All argument lists for Multiple Input Sets used with operator `{display}` must have the same length, "
            f"got lists of {', '.join(map(str, sorted(lengths)))}"
        )
    count = lengths.pop() if lengths else 1
    columns = []
    for index, item in enumerate(inputs):
        if _is_input_set(item):
            columns.append(item)
        else:
            columns.append([_promoted(item, index, device, schema, display)] * count)
    return [list(row) for row in zip(*columns)] if columns else [[]]


def _is_input_set(item: object) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(node, DataNode) for node in item)


def _promoted(item: object, index: int, device: str, schema: Schema, display: str) -> DataNode:
    if isinstance(item, DataNode):
        return item
    # An input that may be on either device stays on the CPU, where its values are available without a copy from the GPU.
    on_gpu = device == "gpu" and schema.input(index).device in ("", "any")
    try:
        if is_constant(item):
            return constant_node(item, device="gpu" if on_gpu else "cpu")
        reason: OverflowError | None = None
    except OverflowError as error:
        reason = error
    raise TypeError(
        f"when calling operator `{display}`: expected inputs of type 'DataNode', list of 'DataNode' or convertible to "
        f"constant nodes. Received input `{index}` of type '{type(item).__name__}'.{f' {reason}.' if reason else ''}"
    ) from reason


def _check_input_devices(schema: Schema, device: str, inputs: Sequence[DataNode], display: str) -> None:
    for index, node in enumerate(inputs):
        accepted = {
            "": ("gpu",) if device == "gpu" else ("cpu",),
            "cpu": ("cpu",),
            "gpu": ("gpu",),
            "any": ("cpu", "gpu"),
            "match_or_cpu": ("cpu", "gpu") if device == "gpu" else ("cpu",),
        }[schema.input(index).device]
        if node.device not in accepted:
            raise RuntimeError(
                f"The input {index} for {device} operator `{display}` is stored on incompatible device "
                f'"{node.device}". Valid device is "{accepted[0]}".'
            )


def split_arguments(
    schema: Schema, arguments: dict[str, object], display: str
) -> tuple[dict[str, DataNode], dict[str, Any]]:
    """Split arguments that are set into nodes, which are computed in the graph, and converted constants."""
    nodes: dict[str, DataNode] = {}
    constants: dict[str, Any] = {}
    for argument, value in current_arguments(schema, arguments, display):
        if isinstance(value, np.ndarray) and (value.size != 1 or value.ndim > 1) and argument.type != "object":
            # An array is data of a fixed type, like data from the graph; an array with a single element counts as a number.
            try:
                value = constant_node(value)
            except OverflowError as error:
                raise TypeError(
                    f"when calling operator `{display}`: expected inputs of type 'DataNode' or convertible to constant nodes. "
                    f"Received input `{argument.name}` of type 'ndarray'. {error}."
                ) from error
        if isinstance(value, DataNode):
            if not argument.tensor:
                raise TypeError(
                    f"The argument `{argument.name}` for operator `{display}` should not be a 'DataNode' but a "
                    f"'{argument.python_type()}'."
                )
            if value.device != "cpu":
                raise ValueError(
                    f"Invalid device \"{value.device}\" for argument '{argument.name}' of operator '{display}'. "
                    "Named arguments must be on CPU."
                )
            nodes[argument.name] = value
        else:
            constants[argument.name] = argument.convert(value)
    return nodes, constants


def current_arguments(
    schema: Schema, arguments: dict[str, object], display: str, stacklevel: int = 5
) -> Iterable[tuple[Argument, object]]:
    """Return the arguments, with deprecated names replaced; warnings refer to the user's line, ``stacklevel`` calls up the stack."""
    for key, value in arguments.items():
        if value is None:
            continue
        argument = schema.all_arguments.get(key)
        if argument is None:
            raise schema.unknown_argument(key)
        deprecation = argument.deprecated
        if deprecation is None:
            yield argument, value
            continue
        if deprecation.removed:
            warnings.warn(argument.deprecation_text(), DeprecationWarning, stacklevel=stacklevel)
        elif deprecation.renamed_to:
            new = deprecation.renamed_to
            if arguments.get(new) is not None:
                raise TypeError(
                    f"Operator `{display}` got an unexpected '{key}' deprecated argument when '{new}' was already provided"
                )
            warnings.warn(argument.deprecation_text(), DeprecationWarning, stacklevel=stacklevel)
            yield schema.all_arguments[new], value
        else:
            advice = f": use `{deprecation.instead}` instead" if deprecation.instead else ""
            text = f"The argument `{key}` of operator `{display}` is deprecated{advice}."
            warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
            yield argument, value
