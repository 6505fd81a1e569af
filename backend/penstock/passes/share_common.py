"""Computes once what several operators would compute alike."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum

import numpy as np

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.tensors import TensorCPU


def share_common(graph: Graph) -> Rewritten:
    """The graph in which operators that are equal, with equal arguments and inputs, are one.

    Outputs stay apart: the user may write into one of them.
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
        shared |= {node.name: kept for node, kept in zip(op.outputs, first.outputs)}
        changes.append(Change("shared", (op,), first))
    return Rewritten(with_replacements(graph, shared), tuple(changes)) if shared else Rewritten(graph)


def _identity(op: OpNode, shared: dict[str, DataNode]) -> Hashable | None:
    """What is equal for operators that give equal results; None where two of them must not become one."""
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
    """A constant's tensor; raises TypeError for what an operator calls or reads."""
    if not op.schema.constant or not isinstance(op.payload, TensorCPU):
        raise TypeError(f"the payload of {op.name} is not compared")
    return op.payload.dtype, op.payload.layout(), _frozen(np.asarray(op.payload))


def _frozen(value: object) -> Hashable:
    """A value of an argument as something that only an equal value of the same type equals.

    Raises:
        TypeError: it is of a kind of which that is not known.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str, bytes, Enum, np.number, np.bool_)):
        # As text: 0.0 and -0.0, 1 and True are equal values and different arguments.
        return type(value), repr(value)
    raise TypeError(f"a {type(value).__name__} is not compared")
