"""Silero's speech detector (VAD) as an ONNX graph that takes a whole recording, with the weights of Silero's ONNX file.

Silero's network takes one frame at a time and returns its state, so a client would call it for each of the 31 frames in a
second. Here, one call does the same arithmetic: frames go through the convolutions in blocks, so that long recordings need
little memory, and the results of all frames go through one LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAMES, PROBABILITIES = "frames", "probabilities"
# In samples, at 16 kHz: the step between frames, and how many samples at the end of a frame begin the next one.
FRAME_STEP, CONTEXT = 512, 64
FRAME_LENGTH = CONTEXT + FRAME_STEP

# All ONNX Runtimes from 1.14 on support these.
_OPSET, _IR_VERSION = 17, 8
_WIDTH = 128  # the number of the LSTM's units
_WINDOW_STEP, _REFLECTED = 128, 64  # step and padding of the Fourier transform, which is a convolution
_ENCODER_STRIDES = (1, 2, 2, 1)
_FRAMES_PER_BLOCK = 32


def read_weights_of_network(content: bytes) -> dict[str, np.ndarray]:
    """Return the weights in an ONNX file, by name; the network is not run."""
    graph = onnx.load_from_string(content).graph
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


def silero_vad(weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return the network.

    The input is ``frames``, float32 of shape (batch, count, 576): each frame consists of 512 samples at 16 kHz and the 64 samples before
    them. The output is ``probabilities``, float32 of shape (batch, count).

    Args:
        weights: the weights by the names of Silero's file for 16 kHz. There must be no others, and each must have the expected shape.

    Raises:
        ValueError: a weight is missing, or is not part of the network.
    """
    graph = _Graph(weights)
    batch_and_count = graph.node("Slice", graph.node("Shape", FRAMES), graph.integers(0), graph.integers(2))
    total = graph.node("ReduceProd", batch_and_count, axes=[0])
    size = graph.integers(_FRAMES_PER_BLOCK)
    # Pad to whole blocks: as Mod's result has the divisor's sign, it is the number of missing frames.
    missing = graph.node("Mod", graph.node("Neg", total), size)
    data = graph.node("Reshape", FRAMES, graph.integers(-1, FRAME_LENGTH))
    data = graph.node("Pad", data, graph.node("Concat", graph.integers(0, 0), missing, graph.integers(0), axis=0))
    blocks = graph.node("Reshape", data, graph.integers(-1, _FRAMES_PER_BLOCK, 1, FRAME_LENGTH))
    data = graph.node("Scan", blocks, body=_convolutions(graph), num_scan_inputs=1)
    data = graph.node("Slice", graph.node("Reshape", data, graph.integers(-1, _WIDTH)), graph.integers(0), total)
    extents = graph.node("Concat", batch_and_count, graph.integers(_WIDTH), axis=0)
    # The LSTM's dimensions are steps, then samples.
    data = graph.node("Transpose", graph.node("Reshape", data, extents), perm=[1, 0, 2])
    data = graph.node("LSTM", data, *graph.lstm_weights("model.decoder.rnn"), hidden_size=_WIDTH)
    data = graph.node("Relu", graph.node("Squeeze", data, graph.integers(1)))
    name = "model.decoder.decoder.2"
    kernel = graph.constant(f"{name}.weight", graph.take(f"{name}.weight").reshape(_WIDTH, 1))
    logits = graph.node("Add", graph.node("MatMul", data, kernel), graph.weight(f"{name}.bias"))
    logits = graph.node("Transpose", graph.node("Squeeze", logits, graph.integers(2)), perm=[1, 0])
    graph.node("Sigmoid", logits, output=PROBABILITIES)
    return graph.model()


def _convolutions(outer: _Graph) -> onnx.GraphProto:
    """Return the graph from a block of frames, of shape (block, 1, 576), to the LSTM's inputs, of shape (block, 128)."""
    graph = _Graph(outer.weights, [], outer.initializers, outer.used, "block_")
    data = graph.node("Pad", "block", graph.integers(0, 0, 0, 0, 0, _REFLECTED), mode="reflect")
    waves = graph.weight("model.stft.forward_basis_buffer")
    data = graph.node("Conv", data, waves, strides=[_WINDOW_STEP])
    # The first half are cosine coefficients, the second half sines; an amplitude is the length of the vector of both.
    data = graph.node("Mul", data, data)
    bins = graph.shape("model.stft.forward_basis_buffer")[0] // 2
    cosines, sines = graph.outputs("Split", [data, graph.integers(bins, bins)], 2, axis=1)
    data = graph.node("Sqrt", graph.node("Add", cosines, sines))
    for layer, stride in enumerate(_ENCODER_STRIDES):
        names = (f"model.encoder.{layer}.reparam_conv.{part}" for part in ("weight", "bias"))
        data = graph.node("Relu", graph.node("Conv", data, *map(graph.weight, names), strides=[stride], pads=[1, 1]))
    data = graph.node("Squeeze", data, graph.integers(2))
    block = helper.make_tensor_value_info("block", TensorProto.FLOAT, [_FRAMES_PER_BLOCK, 1, FRAME_LENGTH])
    result = helper.make_tensor_value_info(data, TensorProto.FLOAT, [_FRAMES_PER_BLOCK, _WIDTH])
    return helper.make_graph(graph.nodes, "convolutions", [block], [result])


@dataclass
class _Graph:
    """A graph that grows node by node; values are named by numbers."""

    weights: Mapping[str, np.ndarray]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    prefix: str = ""

    def outputs(self, kind: str, inputs: list[str], count: int, **attributes: Any) -> list[str]:
        """Append a node and return the names of its outputs."""
        names = [f"{self.prefix}{kind}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        output = output or f"{self.prefix}{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def take(self, name: str) -> np.ndarray:
        """Return a weight, and mark it as used."""
        if name not in self.weights:
            raise ValueError(f"these are not the weights of Silero's VAD: there is no {name}")
        self.used.add(name)
        return self.weights[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a weight."""
        return self.take(name).shape

    def weight(self, name: str) -> str:
        """Add a weight to the graph as a constant, unchanged."""
        return self.constant(name, self.take(name))

    def lstm_weights(self, name: str) -> tuple[str, str, str]:
        """Add the weights of an LSTM as constants, with PyTorch's gates reordered for ONNX."""

        def ordered(part: str) -> np.ndarray:
            enter, forget, cell, leave = np.split(self.take(f"{name}.{part}"), 4)
            return np.concatenate([enter, leave, forget, cell])[None]

        biases = np.concatenate([ordered("bias_ih"), ordered("bias_hh")], axis=1)
        return (
            self.constant(f"{name}.weight_ih", ordered("weight_ih")),
            self.constant(f"{name}.weight_hh", ordered("weight_hh")),
            self.constant(f"{name}.bias", biases),
        )

    def integers(self, *values: int) -> str:
        """Add a list of integers to the graph as a constant."""
        return self.constant(f"integers_{len(self.initializers)}", np.array(values, np.int64))

    def constant(self, name: str, values: np.ndarray) -> str:
        """Add an array to the graph as a constant."""
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def model(self) -> onnx.ModelProto:
        """Check and return the model; raise ValueError if a weight was not used."""
        unused = sorted(set(self.weights) - self.used)
        if unused:
            raise ValueError(f"these are not the weights of Silero's VAD: {unused[0]} is not part of it")
        frames = helper.make_tensor_value_info(FRAMES, TensorProto.FLOAT, ["batch", "count", FRAME_LENGTH])
        probabilities = helper.make_tensor_value_info(PROBABILITIES, TensorProto.FLOAT, ["batch", "count"])
        graph = helper.make_graph(self.nodes, "silero_vad", [frames], [probabilities], self.initializers)
        model = helper.make_model(
            graph,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            producer_name="penstock",
        )
        onnx.checker.check_model(model, full_check=True)
        return model
