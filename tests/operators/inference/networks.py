"""Writes small networks with exact results as ONNX files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Dims = Sequence[int | str]


def write_network(
    nodes: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    inputs: dict[str, Dims],
    outputs: dict[str, Dims],
    constants: dict[str, np.ndarray] | None = None,
    types: dict[str, str] | None = None,
    name: str = "network.onnx",
    *,
    folder: Path,
    **attributes: Any,
) -> Path:
    """Write a network and return its file.

    Args:
        nodes: tuples of (operation, inputs, outputs).
        inputs, outputs: the dimensions of inputs and outputs, by name.
        constants: the constants by name.
        types: the types of inputs and outputs that are not FLOAT, by name.
        name: the file's name.
        folder: the folder to write it to.
        attributes: the attributes of all nodes.
    """
    from onnx import TensorProto, helper, numpy_helper

    kinds = types or {}

    def infos(tensors: dict[str, Dims]) -> list[Any]:
        return [
            helper.make_tensor_value_info(own, getattr(TensorProto, kinds.get(own, "FLOAT")), dims)
            for own, dims in tensors.items()
        ]

    graph = helper.make_graph(
        [helper.make_node(kind, takes, gives, **attributes) for kind, takes, gives in nodes],
        "network",
        infos(inputs),
        infos(outputs),
        [numpy_helper.from_array(value, own) for own, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path
