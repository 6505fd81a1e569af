"""Adds the calls of a captured loop to the pipeline that computes later steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.dynamic._calls import CallInterface, settled
from penstock.dynamic._capture_nodes import CallNode, Reference
from penstock.dynamic._invariants import unmarked
from penstock.dynamic._tensor import Tensor
from penstock.graph import DataNode, call_operator
from penstock.graph.calls import constant_node


def wire(
    calls: Iterable[CallNode], nodes: dict[Reference, DataNode], names: Mapping[Reference, str] | None = None
) -> set[Reference]:
    """Add calls to the pipeline that is being defined; return references to the results that other calls use.

    Args:
        calls: the calls, in the order in which they were made.
        nodes: the pipeline's nodes for the outputs of sources; the nodes for results of calls are added.
        names: the names to give to the nodes of some results.
    """
    used: set[Reference] = set()
    for node in calls:
        name = None if names is None or node.count is not None else names.get(Reference(node, 0))
        for index, made in enumerate(_wired(node, nodes, used, name)):
            nodes[Reference(node, index)] = made
    return used


def _wired(
    node: CallNode, nodes: Mapping[Reference, DataNode], used: set[Reference], name: str | None
) -> list[DataNode]:
    """Add a call to the pipeline that is being defined, and the results that the call uses to ``used``; return its nodes."""
    interface = node.interface
    backend = interface.backend(node.device, [nodes[item] for item in node.inputs if isinstance(item, Reference)])
    inputs = [_wired_input(interface, index, backend, item, nodes, used) for index, item in enumerate(node.inputs)]
    arguments = {name: _wired_argument(interface, name, value, nodes, used) for name, value in node.arguments.items()}
    if node.state is not None and node.state in nodes:
        arguments["_random_state"] = nodes[node.state]
    made = call_operator(interface.schema, inputs, arguments, backend, name, interface.display)
    return made if isinstance(made, list) else [made]


def _wired_input(
    interface: CallInterface,
    index: int,
    backend: str,
    item: object,
    nodes: Mapping[Reference, DataNode],
    used: set[Reference],
) -> DataNode:
    if isinstance(item, Reference):
        used.add(item)
        made = nodes[item]
    else:
        made = _constant(Tensor(unmarked(item)))
    required = interface.input_device(index, backend)
    return made if required is None else made.on_device(required)


def _wired_argument(
    interface: CallInterface, name: str, value: object, nodes: Mapping[Reference, DataNode], used: set[Reference]
) -> object:
    if isinstance(value, Reference):
        used.add(value)
        node, wanted = nodes[value].cpu(), interface.dtypes.get(name)
        return node if wanted is None else call_operator("Cast", (node,), {"dtype": wanted})
    constant = settled(interface, name, value)
    return _constant(constant) if isinstance(constant, Tensor) else constant


def _constant(value: Tensor) -> DataNode:
    host = value.cpu().storage
    return constant_node(host.array, host.dtype, layout=host.layout() or None)
