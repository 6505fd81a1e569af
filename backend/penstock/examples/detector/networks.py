"""Changes PP-PicoDet for serving: batches of any size, and the cells of all grids in one output."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_CLASSES, _LOGITS = 10, 8
_CELLS = 7600 + 1900 + 475 + 130  # of images of 800 x 608: strides of 8, 16, 32 and 64


def detector(content: bytes) -> tuple[bytes, list[str]]:
    """Return the changed network, and the names of its classes.

    The network's input is an image, FLOAT of shape (batch, 3, 800, 608). The outputs are the ``scores`` of the classes, of shape
    (batch, cells, 10), and the logits of the ``distances`` of the four edges, of shape (batch, cells, 32).
    """
    network = onnx.load_from_string(content)
    graph = network.graph
    (names,) = [entry.value for entry in network.metadata_props if entry.key == "character"]
    outputs = [output.name for output in graph.output]
    _free_batch(graph)
    del graph.output[:]
    for name, parts, extent in (("scores", outputs[:4], _CLASSES), ("distances", outputs[4:], 4 * _LOGITS)):
        graph.node.append(helper.make_node("Concat", parts, [name], axis=1))
        graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", _CELLS, extent]))
    onnx.checker.check_model(network)
    return network.SerializeToString(), names.split("\n")


def _free_batch(graph: onnx.GraphProto) -> None:
    """Make the batch size variable in the input and in the shapes of the last layers: in the file, it is 1."""
    graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for node in graph.node:
        if node.op_type == "Constant" and node.output[0] in shapes:
            (value,) = [attribute for attribute in node.attribute if attribute.name == "value"]
            shape = numpy_helper.to_array(value.t).copy()
            if len(shape) == 3 and shape[0] == 1:
                shape[0] = 0  # 0: the same extent as in the input of Reshape
                value.t.CopyFrom(numpy_helper.from_array(shape.astype(np.int64), value.t.name))
    del graph.value_info[:]
