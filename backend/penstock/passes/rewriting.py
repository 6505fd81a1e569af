"""Replacing nodes in a graph, and telling what was replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.graph import DataNode, Graph, OpNode

Key = tuple[str, str]


@dataclass(frozen=True)
class Change:
    """One thing that a pass did.

    Attributes:
        what: in one word: ``pruned``, ``folded``, ``fused``.
        operators: those that are gone.
        into: what does their work now, or None.
    """

    what: str
    operators: tuple[OpNode, ...]
    into: OpNode | None = None


class Rewritten(NamedTuple):
    """A graph behind a pass, and what the pass changed."""

    graph: Graph
    changes: tuple[Change, ...] = ()


def key_of(node: DataNode) -> Key:
    """What identifies a node: its name and side."""
    return node.name, node.device


def with_replacements(graph: Graph, replacements: Mapping[Key, DataNode]) -> Graph:
    """The graph in which each use of a key of ``replacements`` is a use of its value instead.

    Operators that use none of them, even indirectly, stay the very same objects.
    """
    renewed: dict[OpNode, OpNode] = {}

    def current(node: DataNode) -> DataNode:
        node = replacements.get(key_of(node), node)
        source = node.source
        if source is None or source not in renewed or renewed[source] is source:
            return node
        output = renewed[source].outputs[node.index]
        return output if output.device == node.device else output._on(node.device)

    for op in Graph([replacements.get(key_of(n), n) for n in graph.outputs], graph.sinks).operators + graph.operators:
        if op in renewed:
            continue
        inputs = [current(node) for node in op.inputs]
        arguments = {name: current(node) for name, node in op.argument_inputs.items()}
        unchanged = all(a is b for a, b in zip(inputs, op.inputs)) and all(
            arguments[name] is node for name, node in op.argument_inputs.items()
        )
        renewed[op] = op if unchanged else replace(op, inputs=inputs, argument_inputs=arguments)
    return Graph([current(node) for node in graph.outputs], [current(node) for node in graph.sinks])
