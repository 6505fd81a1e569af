"""Moves graphs from the GPU to the CPU."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from penstock.errors import DeviceError
from penstock.graph.graph import Graph
from penstock.graph.nodes import DataNode, OpNode
from penstock.tensors.cuda import DEVICE_VARIABLE


def all_on_cpu() -> bool:
    """Return whether all pipelines of this process must run on the CPU, whatever device they ask for.

    Raises:
        ValueError: the environment variable ``PENSTOCK_DEVICE`` is neither empty nor ``cpu``.
    """
    wanted = os.environ.get(DEVICE_VARIABLE, "")
    if wanted not in ("", "cpu"):
        raise ValueError(f"{DEVICE_VARIABLE} must be 'cpu' or not set, got {wanted!r}")
    return bool(wanted)


def on_cpu(graph: Graph) -> Graph:
    """Return the graph with all operators on the CPU, including ``mixed`` ones.

    Raises:
        DeviceError: an operator runs only on GPUs.
    """
    _check_runs_on_cpu(graph.operators)
    moved: dict[OpNode, OpNode] = {}

    def current(node: DataNode) -> DataNode:
        assert node.source is not None  # as in every graph
        return moved[node.source].outputs[node.index]

    for op in graph.operators:
        arguments = {name: current(node) for name, node in op.argument_inputs.items()}
        moved[op] = replace(
            op, device="cpu", inputs=[current(node) for node in op.inputs], argument_inputs=arguments, outputs=[]
        )
        for old, new in zip(op.outputs, moved[op].outputs):
            new.name, new.ndim, new.dtype, new.layout = old.name, old.ndim, old.dtype, old.layout
    return Graph([current(node) for node in graph.outputs], [current(node) for node in graph.sinks])


def move_to_cpu(op: OpNode) -> None:
    """Move an operator that was just called, and its outputs, to the CPU.

    Raises:
        DeviceError: the operator runs only on GPUs.
    """
    _check_runs_on_cpu([op])
    op.device = "cpu"
    for output in op.outputs:
        output.device = "cpu"


def _check_runs_on_cpu(operators: Iterable[OpNode]) -> None:
    stuck = [op for op in operators if "cpu" not in op.schema.devices]
    if stuck:
        listed = ", ".join(f"`{op.display_name}` ('{op.name}')" for op in stuck)
        raise DeviceError(f"The pipeline cannot be moved to the CPU, for these operators run on a GPU only: {listed}.")
