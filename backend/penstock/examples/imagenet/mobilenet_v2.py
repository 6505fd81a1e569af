"""MobileNetV2 as an ONNX graph, from the weights of torchvision's network.

Each batch normalization is folded into the convolution before it. The output is probabilities, not logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGE, PROBABILITIES = "image", "probabilities"
SIDE, CLASSES = 224, 1000

# All ONNX Runtimes from 1.14 on support these.
_OPSET, _IR_VERSION = 17, 8
_EPSILON = 1e-5  # of batch normalization in PyTorch
# Table 2 of Sandler et al. (2018): expansion, channels, blocks, stride of the first block.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_FIRST_CHANNELS = 32


def mobilenet_v2(weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return the network: input ``image``, float32 (batch, 3, 224, 224), output ``probabilities``, float32 (batch, 1000).

    Args:
        weights: the weights by torchvision's names. There must be no others, and each must have the expected shape.

    Raises:
        ValueError: a weight is missing, or is not part of the network.
    """
    graph = _Graph(weights)
    data = graph.convolve(IMAGE, "features.0.0", "features.0.1", stride=2)
    channels, number = _FIRST_CHANNELS, 1
    for expansion, out_channels, blocks, first_stride in _STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            made = graph.inverted_residual(data, f"features.{number}.conv", channels, expansion, stride)
            data = graph.node("Add", data, made) if stride == 1 and channels == out_channels else made
            channels, number = out_channels, number + 1
    data = graph.convolve(data, f"features.{number}.0", f"features.{number}.1")
    data = graph.node("Flatten", graph.node("GlobalAveragePool", data))
    data = graph.node("Gemm", data, graph.weight("classifier.1.weight"), graph.weight("classifier.1.bias"), transB=1)
    graph.node("Softmax", data, output=PROBABILITIES)
    return graph.model()


@dataclass
class _Graph:
    """A graph that grows node by node; values are named by numbers."""

    weights: Mapping[str, np.ndarray]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def convolve(self, data: str, conv: str, norm: str, stride: int = 1, groups: int = 1, bounded: bool = True) -> str:
        """Append a convolution with its batch normalization and, if ``bounded``, ReLU6."""
        kernel, bias = self._folded(conv, norm)
        side = kernel.shape[-1]
        names = (self._constant(f"{conv}.weight", kernel), self._constant(f"{conv}.bias", bias))
        strides, pads = [stride] * 2, [side // 2] * 4
        data = self.node("Conv", data, *names, kernel_shape=[side] * 2, strides=strides, pads=pads, group=groups)
        return self.node("Clip", data, self._limit(0), self._limit(6)) if bounded else data

    def inverted_residual(self, data: str, name: str, channels: int, expansion: int, stride: int) -> str:
        """Append the convolutions of a block: expanding, depthwise, projecting. The expanding one is missing in the first block."""
        if expansion > 1:
            data = self.convolve(data, f"{name}.0.0", f"{name}.0.1")
        depthwise = int(expansion > 1)
        layer = f"{name}.{depthwise}"
        data = self.convolve(data, f"{layer}.0", f"{layer}.1", stride=stride, groups=channels * expansion)
        return self.convolve(data, f"{name}.{depthwise + 1}", f"{name}.{depthwise + 2}", bounded=False)

    def weight(self, name: str) -> str:
        """Add a weight to the graph as a constant, unchanged."""
        return self._constant(name, self._take(name))

    def model(self) -> onnx.ModelProto:
        """Check and return the model; raise ValueError if a weight was not used."""
        counters = {name for name in self.weights if name.endswith(".num_batches_tracked")}
        unused = sorted(set(self.weights) - self.used - counters)
        if unused:
            raise ValueError(f"these are not the weights of MobileNetV2: {unused[0]} is not part of it")
        image = helper.make_tensor_value_info(IMAGE, TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])
        probabilities = helper.make_tensor_value_info(PROBABILITIES, TensorProto.FLOAT, ["batch", CLASSES])
        graph = helper.make_graph(self.nodes, "mobilenet_v2", [image], [probabilities], self.initializers)
        model = helper.make_model(
            graph,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            producer_name="penstock",
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def _take(self, name: str) -> np.ndarray:
        if name not in self.weights:
            raise ValueError(f"these are not the weights of MobileNetV2: there is no {name}")
        self.used.add(name)
        return self.weights[name]

    def _folded(self, conv: str, norm: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel and bias of a convolution with its batch normalization folded in."""
        kernel = self._take(f"{conv}.weight").astype(np.float64)
        scale, shift, mean, variance = (
            self._take(f"{norm}.{name}").astype(np.float64)
            for name in ("weight", "bias", "running_mean", "running_var")
        )
        factor = scale / np.sqrt(variance + _EPSILON)
        return (kernel * factor[:, None, None, None]).astype(np.float32), (shift - mean * factor).astype(np.float32)

    def _constant(self, name: str, values: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _limit(self, value: int) -> str:
        name = f"limit_{value}"
        if name not in {constant.name for constant in self.initializers}:
            self._constant(name, np.array(value, np.float32))
        return name
