"""Computes common subexpressions once."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum

import numpy as np

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.tensors import TensorCPU


def share_common(graph: Graph) -> Rewritten:
    """Return the graph with operators merged that have equal arguments and equal inputs.

    Operators of outputs are not merged: the user may write to an output.
    """
    firsts: dict[Hashable, OpNode] = {}
    shared: dict[str, DataNode] = {}
    changes: list[Change] = []
    outputs = {node.name for node in graph.outputs}
    for op in graph.operators:
        identity = _identity(op, shared)
        if identity is None:
            continue
        first = firsts.setdefault(identity, op)
        if first is op or any(node.name in outputs for node in op.outputs):
            continue
        shared |= {node.name: shared_output for node, shared_output in zip(op.outputs, first.outputs)}
        changes.append(Change("shared", (op,), first))
    return Rewritten(with_replacements(graph, shared), tuple(changes)) if shared else Rewritten(graph)


def _identity(op: OpNode, shared: dict[str, DataNode]) -> Hashable | None:
    """Return a key that is equal for operators with equal results; None if they must not be merged."""
    schema = op.schema
    if schema.random or schema.stateful or op.preserved:
        return None

    def origin(node: DataNode) -> Hashable:
        return shared.get(node.name, node).name, node.device

    try:
        return (
            schema.name,
            op.device,
            tuple(origin(node) for node in op.inputs),
            tuple((name, origin(node)) for name, node in sorted(op.argument_inputs.items())),
            tuple((name, _frozen(value)) for name, value in sorted(op.arguments.items())),
            None if op.payload is None else _frozen_payload(op),
        )
    except TypeError:
        return None


def _frozen_payload(op: OpNode) -> Hashable:
    """Return a key for the payload of a constant, its tensor; raise TypeError for payloads of other operators."""
    if not op.schema.constant or not isinstance(op.payload, TensorCPU):
        raise TypeError(f"the payload of {op.name} is not compared")
    return op.payload.dtype, op.payload.layout(), _frozen(np.asarray(op.payload))


def _frozen(value: object) -> Hashable:
    """Return a key for an argument's value, which equals only keys of equal values of the same type.

    Raises:
        TypeError: there is no key for values of this kind.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str, bytes, Enum, np.number, np.bool_)):
        # As text: 0.0 and -0.0, or 1 and True, compare as equal, but are different arguments.
        return type(value), repr(value)
    raise TypeError(f"a {type(value).__name__} is not compared")
