"""The graph of a pipeline: its operators, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from penstock.data_types import BFLOAT16, DALIDataType
from penstock.graph.drawing import to_svg
from penstock.graph.listing import listing
from penstock.graph.nodes import DataNode, OpNode
from penstock.schema.declaration import NO_BFLOAT16


class Graph:
    """The operators that a set of outputs needs.

    Args:
        outputs: the pipeline's outputs.
        sinks: further nodes, which are computed for the operators' side effects.

    Attributes:
        operators: the operators in topological order.
    """

    def __init__(self, outputs: Sequence[DataNode], sinks: Sequence[DataNode] = ()) -> None:
        self.outputs = list(outputs)
        self.sinks = list(sinks)
        self.operators: list[OpNode] = in_order([*outputs, *sinks])

    def __repr__(self) -> str:
        return listing(self.operators, self.outputs)

    def _repr_svg_(self) -> str:
        return to_svg(self.operators, self.outputs)

    def logical_ids(self) -> dict[OpNode, int]:
        """Return a number for each operator; all instances of one call with multiple input sets have the same number."""
        numbers: dict[object, int] = {}
        return {op: numbers.setdefault(op.group, len(numbers)) for op in self.operators}

    def uses_gpu(self) -> bool:
        """Return whether any operator runs on a GPU, or any output must be on one."""
        nodes = [*self.outputs, *(node for op in self.operators for node in op.all_inputs())]
        return any(op.device != "cpu" for op in self.operators) or any(node.device == "gpu" for node in nodes)

    def verify(self) -> None:
        """Raise RuntimeError for errors that can be found before the graph runs."""
        self._check_names()
        for op in self.operators:
            verify_operator(op)
        self._check_bfloat16()

    def _check_bfloat16(self) -> None:
        """Raise RuntimeError if an operator would compute with bfloat16."""
        found: set[OpNode] = set()
        for op in self.operators:
            takes = any(node.source in found for node in op.all_inputs())
            if takes and not op.schema.moves_elements:
                raise RuntimeError(f"The operator `{op.display_name}` is given bfloat16. {NO_BFLOAT16}")
            passes_on = takes and not any(isinstance(value, DALIDataType) for value in op.arguments.values())
            if passes_on or any(value is BFLOAT16 for value in op.arguments.values()):
                found.add(op)

    def _check_names(self) -> None:
        seen: dict[str, OpNode] = {}
        for op in self.operators:
            other = seen.setdefault(op.name, op)
            if other is not op:
                raise RuntimeError(
                    f"The pipeline is invalid because it contains operators with non-unique names: '{op.name}' names "
                    f"a `{other.display_name}` and a `{op.display_name}`."
                )


def _itself(node: DataNode) -> DataNode:
    return node


def in_order(wanted: Iterable[DataNode], instead: Callable[[DataNode], DataNode] = _itself) -> list[OpNode]:
    """Return the operators that some nodes need, depth first, so that inputs precede their users.

    Args:
        wanted: the nodes.
        instead: function that returns the node to use in place of a given one.
    """
    order: list[OpNode] = []
    done: set[OpNode] = set()
    # The search is iterative, since graphs may be deep.
    for node in map(instead, wanted):
        if node.source is None:
            raise RuntimeError(f"{node} belongs to no operator")
        stack = [(node.source, iter(list(node.source.all_inputs())))]
        pending = {node.source}
        if node.source in done:
            continue
        while stack:
            op, inputs = stack[-1]
            for node_in in inputs:
                source = instead(node_in).source
                if source is not None and source not in done and source not in pending:
                    pending.add(source)
                    stack.append((source, iter(list(source.all_inputs()))))
                    break
            else:
                stack.pop()
                done.add(op)
                order.append(op)
    return order


def verify_operator(op: OpNode) -> None:
    """Raise RuntimeError if a required argument is missing, or the operator does not run on its device."""
    _check_required(op)
    if op.schema.absent:
        raise RuntimeError(f"The operator `{op.display_name}` is not available: {op.schema.absent}.")
    if op.device not in op.schema.devices:
        raise RuntimeError(
            f"The operator `{op.display_name}` does not run on device '{op.device}'. It runs on: "
            f"{', '.join(op.schema.devices)}."
        )


def _check_required(op: OpNode) -> None:
    passed = op.arguments.keys() | op.argument_inputs.keys()
    missing = [a.name for a in op.schema.all_arguments.values() if a.required and not a.apart and a.name not in passed]
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise RuntimeError(
            f'Not all required arguments were specified for op "{op.schema.name}". Please specify values for arguments: {names}'
        )
