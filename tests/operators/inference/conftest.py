"""Networks that are small and exact, written as ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

Dims = Sequence[int | str]
Tensors = dict[str, tuple[int, Dims]]
WriteNetwork = Callable[..., Path]


@pytest.fixture
def write_network(tmp_path: Path) -> WriteNetwork:
    """Writes a network: nodes as (operation, inputs, outputs), inputs and outputs by name, constants by name."""
    from onnx import TensorProto, helper, numpy_helper

    def write(
        nodes: Sequence[tuple[str, Sequence[str], Sequence[str]]],
        inputs: dict[str, Dims],
        outputs: dict[str, Dims],
        constants: dict[str, np.ndarray] | None = None,
        types: dict[str, str] | None = None,
        name: str = "network.onnx",
        **attributes: Any,
    ) -> Path:
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
        path = tmp_path / name
        path.write_bytes(model.SerializeToString())
        return path

    return write
