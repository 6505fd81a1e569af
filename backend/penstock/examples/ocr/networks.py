"""Changes PP-OCR's recognizer for serving: it returns the best character of each step, not the probabilities of all."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper


def recognizer(content: bytes) -> tuple[bytes, list[str]]:
    """Return the changed network, and the characters that it knows.

    The network's input is a line, FLOAT of shape (batch, 3, 48, width). The outputs are ``characters``, the number of the most probable
    character at each step, and ``scores``, its probability. Character 0 is the blank, which separates repeated characters.
    """
    network = onnx.load_from_string(content)
    graph = network.graph
    (names,) = [entry.value for entry in network.metadata_props if entry.key == "character"]
    probabilities = graph.output[0].name
    graph.node.append(helper.make_node("ArgMax", [probabilities], ["characters"], axis=2, keepdims=0))
    graph.node.append(helper.make_node("ReduceMax", [probabilities], ["scores"], axes=[2], keepdims=0))
    for name, kind in (("characters", TensorProto.INT64), ("scores", TensorProto.FLOAT)):
        graph.output.append(helper.make_tensor_value_info(name, kind, ["batch", "steps"]))
    onnx.checker.check_model(network)
    # The network's classes: CTC's blank, the listed characters, and the space.
    return network.SerializeToString(), ["", *names.split("\n"), " "]
