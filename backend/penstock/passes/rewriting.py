"""Replaces nodes in a graph, and describes the changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.graph import DataNode, Graph, OpNode, in_order


@dataclass(frozen=True)
class Change:
    """One change made by a pass.

    Attributes:
        what: what was done: ``pruned``, ``folded``, ``shared`` or ``fused``.
        operators: the operators that were removed.
        into: the operator that replaces them, or None.
        exceptions: descriptions of the data for which fused operators still run step by step.
    """

    what: str
    operators: tuple[OpNode, ...]
    into: OpNode | None = None
    exceptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        into = "" if self.into is None else f" into {_called(self.into)}"
        return f"{self.what} {' + '.join(map(_called, self.operators))}{into}"


def _called(op: OpNode) -> str:
    return f"{op.schema.name} '{op.name}'"


class Rewritten(NamedTuple):
    """A rewritten graph, and the changes."""

    graph: Graph
    changes: tuple[Change, ...] = ()


def with_replacements(graph: Graph, replacements: Mapping[str, DataNode]) -> Graph:
    """Return the graph with nodes replaced: a node, on either device, whose name is a key of ``replacements``, by the value.

    Replacements may depend on nodes that are replaced, too. Operators that depend on no replaced node remain the same objects.
    """
    renewed: dict[OpNode, OpNode] = {}

    def replaced(node: DataNode) -> DataNode:
        found = replacements.get(node.name, node)
        return found if found.device == node.device else found.on_device(node.device)

    def current(node: DataNode) -> DataNode:
        node = replaced(node)
        source = node.source
        if source is None or source not in renewed or renewed[source] is source:
            return node
        output = renewed[source].outputs[node.index]
        return output if output.device == node.device else output.on_device(node.device)

    for op in in_order([*graph.outputs, *graph.sinks], replaced):
        inputs = [current(node) for node in op.inputs]
        arguments = {name: current(node) for name, node in op.argument_inputs.items()}
        unchanged = all(a is b for a, b in zip(inputs, op.inputs)) and all(
            arguments[name] is node for name, node in op.argument_inputs.items()
        )
        renewed[op] = op if unchanged else replace(op, inputs=inputs, argument_inputs=arguments)
    return Graph([current(node) for node in graph.outputs], [current(node) for node in graph.sinks])
