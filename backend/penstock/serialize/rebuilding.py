"""Rebuilds the operators of a graph from a saved pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from penstock.errors import SerializationError, as_imported
from penstock.graph import DataNode, OpNode
from penstock.schema import Schema, find_schema


class ToDefine(Protocol):
    """A pipeline without a graph, whose graph comes from a file."""

    def add_sink(self, edge: DataNode) -> None:
        """Compute ``edge`` in each run, even if it is not an output."""

    def set_outputs(self, *output_data_nodes: object) -> None:
        """Set the outputs of each run."""


Defined = TypeVar("Defined", bound=ToDefine)


@dataclass
class SavedOperator:
    """One operator as described in a file.

    Attributes:
        schema: name of the schema.
        name: the name of the operator's instance; empty: a name is chosen.
        device: ``cpu``, ``gpu`` or ``mixed``.
        inputs: name and device of each positional input.
        argument_inputs: name and device of each argument computed in the graph.
        arguments: the values of the constant arguments, as saved.
        outputs: names of the outputs; empty: the default names.
        group: a number that the instances of one call share; None: the only instance of its call.
        payload: see :class:`~penstock.graph.OpNode`.
    """

    schema: str
    name: str
    device: str
    inputs: list[tuple[str, str]]
    argument_inputs: dict[str, tuple[str, str]] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    group: int | None = None
    payload: Any = None


class Rebuilder:
    """Makes operators in the order of the file; each operator may only refer to earlier ones."""

    def __init__(self) -> None:
        self.nodes: dict[str, DataNode] = {}
        self.operators: list[OpNode] = []
        self._names: set[str] = set()
        self._groups: dict[int, OpNode] = {}

    def add(self, saved: SavedOperator) -> OpNode:
        """Return the operator's node; raise SerializationError for an invalid description."""
        where = f"operator {len(self.operators)} ('{saved.name}', {saved.schema})"
        schema = _schema_of(saved.schema, where)
        name = saved.name or f"__{schema.class_name}_{len(self.operators)}"
        if name in self._names:
            raise SerializationError(f"{where}: another operator has the same name")
        self._names.add(name)
        if saved.device not in schema.devices:
            raise SerializationError(
                f"{where}: it does not run on '{saved.device}', only on {', '.join(schema.devices)}"
            )
        if not schema.min_input_count <= len(saved.inputs) <= schema.max_input_count:
            raise SerializationError(
                f"{where}: it takes from {schema.min_input_count} to {schema.max_input_count} inputs, the file gives {len(saved.inputs)}"
            )
        inputs = [self.node(reference, where) for reference in saved.inputs]
        argument_inputs = {
            key: self.node(reference, where) for key, reference in self._checked(schema, saved.argument_inputs, where)
        }
        arguments = _converted(schema, saved.arguments, where)
        site = as_imported(f"penstock.fn.{schema.fn_path}")
        try:
            op = OpNode(
                schema, name, saved.device, inputs, argument_inputs, arguments, site, named=True, payload=saved.payload
            )
        except KeyError as error:
            # The number of outputs depends on this argument.
            raise SerializationError(f"{where}: the file gives no argument {error}") from error
        if saved.group is not None:
            first = self._groups.setdefault(saved.group, op)
            if first.schema is not schema:
                raise SerializationError(
                    f"{where}: it shares its logical id with an operator of another kind, '{first.name}'"
                )
            op.group = first.group
        self._name_outputs(op, saved.outputs, where)
        self.operators.append(op)
        return op

    def node(self, reference: tuple[str, str], where: str) -> DataNode:
        """Return the node with that name on that device."""
        name, device = reference
        found = self.nodes.get(name)
        if found is None:
            raise SerializationError(f"{where}: '{name}' is made by no operator before it")
        if device not in ("cpu", "gpu"):
            raise SerializationError(f"{where}: '{device}' is not a device for data, use cpu or gpu")
        return found if device == found.device else found.on_device(device)

    @staticmethod
    def _checked(schema: Schema, references: Mapping[str, object], where: str) -> Iterable[tuple[str, Any]]:
        for key, reference in references.items():
            argument = schema.all_arguments.get(key)
            if argument is None or not argument.tensor:
                raise SerializationError(f"{where}: argument '{key}' cannot be computed in the graph")
            yield key, reference

    def _name_outputs(self, op: OpNode, names: list[str], where: str) -> None:
        if names and len(names) != len(op.outputs):
            raise SerializationError(f"{where}: it has {len(op.outputs)} outputs, the file names {len(names)}")
        for output, name in zip(op.outputs, names):
            output.name = name
        for output in op.outputs:
            if output.name in self.nodes:
                raise SerializationError(f"{where}: another operator makes '{output.name}' too")
            self.nodes[output.name] = output


def _schema_of(name: str, where: str) -> Schema:
    try:
        return find_schema(name)
    except KeyError as error:
        raise SerializationError(f"{where}: {error.args[0]}") from None


def _converted(schema: Schema, values: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the arguments as the schema declares them: rename renamed ones, and drop unknown and removed ones."""
    converted: dict[str, object] = {}
    for key, value in values.items():
        argument = schema.all_arguments.get(key)
        if argument is not None and argument.deprecated is not None and argument.deprecated.renamed_to:
            argument = schema.all_arguments[argument.deprecated.renamed_to]
        if argument is None or (argument.deprecated is not None and argument.deprecated.removed):
            continue
        try:
            if argument.type in ("string", "layout") and not isinstance(value, str):
                # A call converts anything to a string; in a file, a value of another type is a mistake.
                raise TypeError(f"expected {argument.describe_type()}, got {value!r}")
            converted[argument.name] = argument.convert(value)
        except (TypeError, ValueError) as error:
            raise SerializationError(f"{where}: argument '{key}': {error}") from error
    return converted
