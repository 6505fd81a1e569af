"""PP-OCR's networks as they are served: with names of tensors, and with the best character of each step instead of all."""

from __future__ import annotations

from collections.abc import MutableSequence

import onnx
from onnx import TensorProto, helper

LINE_HEIGHT = 48


def detector(content: bytes) -> onnx.ModelProto:
    """Return the detector: from ``image`` to ``text``, how probably each pixel belongs to a line."""
    network = onnx.load_from_string(content)
    graph = network.graph
    _rename(graph, {graph.input[0].name: "image", graph.output[0].name: "text"})
    _declare(graph.input, _floats("image", 3, "height", "width"))
    _declare(graph.output, _floats("text", 1, "height", "width"))
    onnx.checker.check_model(network)
    return network


def recognizer(content: bytes) -> tuple[onnx.ModelProto, list[str]]:
    """Return the recognizer and the characters that it knows.

    From ``line`` to ``characters``, the number of the most probable character at each step, and ``scores``, its probability.
    Character 0 is none; it lies between two of the same.
    """
    network = onnx.load_from_string(content)
    graph = network.graph
    (names,) = [entry.value for entry in network.metadata_props if entry.key == "character"]
    probabilities = graph.output[0].name
    _rename(graph, {graph.input[0].name: "line"})
    graph.node.append(helper.make_node("ArgMax", [probabilities], ["characters"], axis=2, keepdims=0))
    graph.node.append(helper.make_node("ReduceMax", [probabilities], ["scores"], axes=[2], keepdims=0))
    _declare(graph.input, _floats("line", 3, LINE_HEIGHT, "width"))
    _declare(
        graph.output,
        helper.make_tensor_value_info("characters", TensorProto.INT64, ["batch", "steps"]),
        _floats("scores", "steps"),
    )
    onnx.checker.check_model(network)
    # The network's classes: none, the listed characters, and a blank.
    return network, ["", *names.split("\n"), " "]


def _floats(name: str, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *dims])


def _declare(declared: MutableSequence[onnx.ValueInfoProto], *values: onnx.ValueInfoProto) -> None:
    del declared[:]
    declared.extend(values)


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Rename values wherever nodes read or write them."""
    for node in graph.node:
        for tensors in (node.input, node.output):
            tensors[:] = [names.get(name, name) for name in tensors]
