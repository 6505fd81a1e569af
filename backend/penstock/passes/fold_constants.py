"""Computes what depends only on constants once, when a pipeline is built."""

from __future__ import annotations

from penstock.graph import DataNode, Graph, OpNode
from penstock.passes.rewriting import Change, Rewritten, with_replacements
from penstock.schema import Workspace, find_schema, operator_class
from penstock.tensors import TensorListCPU


def fold_constants(graph: Graph) -> Rewritten:
    """Return the graph with CPU operators of constants replaced by constants."""
    values: dict[str, TensorListCPU] = {}
    folded: dict[str, DataNode] = {}
    changes: list[Change] = []
    for op in graph.operators:
        if not _foldable(op, values):
            continue
        try:
            outputs = _evaluate(op, values)
        except Exception:
            # The error is raised again when the pipeline runs, and is then reported with the line of the user's program.
            continue
        if any(len(batch) != 1 for batch in outputs):
            # The output belongs to a branch of a conditional, so its number of samples is not constant.
            continue
        for node, batch in zip(op.outputs, outputs):
            values[node.name] = batch
            if op.schema is not find_schema("Constant"):
                folded[node.name] = constant = _constant(node, batch)
                changes.append(Change("folded", (op,), constant.source))
    return Rewritten(with_replacements(graph, folded), tuple(changes)) if folded else Rewritten(graph)


def _foldable(op: OpNode, values: dict[str, TensorListCPU]) -> bool:
    schema = op.schema
    if op.device != "cpu" or schema.random or schema.stateful or schema.batchwise or schema.merges or op.preserved:
        return False
    if schema.touches_files:
        return False
    if op.payload is not None:
        return schema.constant
    inputs = list(op.all_inputs())
    return all(node.device == "cpu" and node.name in values for node in inputs) if inputs else schema.constant


def _evaluate(op: OpNode, values: dict[str, TensorListCPU]) -> list[TensorListCPU]:
    operator = operator_class(op.schema.name)(op.arguments, op.device, op.argument_inputs, -1, op.schema)
    operator.bind(op.payload)
    workspace = Workspace(
        inputs=[values[node.name] for node in op.inputs],
        arguments={name: values[node.name] for name, node in op.argument_inputs.items()},
        batch_size=1,
        max_batch_size=1,
    )
    operator.run(workspace)
    return workspace.outputs


def _constant(node: DataNode, batch: TensorListCPU) -> DataNode:
    source = node.source
    assert source is not None
    constant = OpNode(
        find_schema("Constant"), node.name, "cpu", [], {}, {}, source.display_name, sites=source.sites, payload=batch[0]
    )
    return constant.outputs[0]
