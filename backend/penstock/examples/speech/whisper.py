"""Whisper as an ONNX graph that returns the most probable tokens, with the weights of a CTranslate2 model.

The graph consists of the encoder and a loop around the decoder, which takes one token at a time and stores the keys and values of earlier
tokens. In the file, weights have half precision; ONNX Runtime converts them to single precision once, when it loads the file.

References:
    Radford et al. (2022), Robust Speech Recognition via Large-Scale Weak Supervision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES, TOKENS, SCORES = "features", "tokens", "scores"
BANDS, FRAMES = 80, 3000  # the mel spectrogram of 30 seconds
MAX_TOKENS = 224  # the most tokens of a text: half the number of the decoder's positions

# This opset introduces `Gelu`. All ONNX Runtimes from 1.17 on support these.
_OPSET, _IR_VERSION = 20, 9
_EPSILON = 1e-5  # of layer normalization in PyTorch
# The values of settings in CTranslate2's file that the graph below requires: activation 3 is GELU.
_EXPECTED = {"decoder/activation": 3, "decoder/pre_norm": 1, "decoder/scale_embeddings": 0, "decoder/alibi": 0}
# Settings that are not needed to run the network.
_UNUSED = {"decoder/alignment_heads", "decoder/alignment_layer", "decoder/start_from_zero_embedding"}
_END = np.iinfo(np.int64).max
# A value's name, its type and its shape; None: any extent.
_Value = tuple[str, int, list[Any]]


class Decoding(NamedTuple):
    """The tokens that control the decoder.

    Attributes:
        start: begins each text.
        no_timestamps: follows ``start``, and requests a text without timestamps.
        end: ends each text.
        suppressed: the tokens that are never produced.
        suppressed_first: the tokens that are not produced first in a text.
    """

    start: int
    no_timestamps: int
    end: int
    suppressed: Sequence[int]
    suppressed_first: Sequence[int]


def whisper(weights: Mapping[str, np.ndarray], decoding: Decoding) -> onnx.ModelProto:
    """Return the network.

    The input is ``features``, float32 of shape (batch, 80, 3000). The outputs are ``tokens``, int64 of shape (batch, steps),
    each row padded with the end token, and ``scores``, float32 of shape (batch, 1): the geometric mean of the tokens'
    probabilities, including the end token's. Probabilities are relative to the tokens that are not suppressed.

    Args:
        weights: the weights by CTranslate2's names. There must be no others, and each must have the expected shape.
        decoding: the tokens that control the decoder.

    Raises:
        ValueError: a weight is missing, or is not part of the network.
    """
    store = _Store(weights)
    for name, expected in _EXPECTED.items():
        if store.number(name) != expected:
            raise ValueError(f"these are not the weights of Whisper: {name} is {store.number(name)}, not {expected}")
    graph = _Graph(store, store.nodes)
    steps, logarithms = _decode(graph, _encode(graph), decoding)
    # In a loop's outputs, the first dimension is the steps. The first step is not part of the text.
    first, last, axis = store.integers(1), store.integers(_END), store.integers(0)
    steps, logarithms = (graph.node("Slice", own, first, last, axis) for own in (steps, logarithms))
    graph.node("Transpose", steps, output=TOKENS, perm=[1, 0])
    # Positive values instead of logarithms mark the steps after the end.
    is_text = graph.node("LessOrEqual", logarithms, store.constant(np.float32(0)))
    count = graph.node("ReduceSum", graph.node("Cast", is_text, to=TensorProto.FLOAT), axis, keepdims=0)
    total = graph.node("ReduceSum", graph.node("Min", logarithms, store.constant(np.float32(0))), axis, keepdims=0)
    mean = graph.node("Exp", graph.node("Div", total, count))
    graph.node("Unsqueeze", mean, store.integers(1), output=SCORES)
    return store.model()


def _encode(graph: _Graph) -> str:
    """Append the encoder; return the name of its result, of shape (batch, frames / 2, width)."""
    store, data = graph.store, FEATURES
    for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
        kernel = store.weight(f"{name}/weight"), store.weight(f"{name}/bias")
        data = graph.node("Gelu", graph.node("Conv", data, *kernel, strides=[stride], pads=[1, 1]))
    data = graph.node("Transpose", data, perm=[0, 2, 1])
    data = graph.node("Add", data, store.weight("encoder/position_encodings/encodings"))
    heads = store.number("encoder/num_heads")
    for layer in store.layers("encoder"):
        attention = f"{layer}/self_attention"
        query, key, value = graph.heads(graph.normalize(data, attention), f"{attention}/linear_0", 3, heads)
        data = graph.node("Add", data, graph.attend(query, key, value, f"{attention}/linear_1"))
        data = graph.feed_forward(data, f"{layer}/ffn")
    return graph.normalize(data, "encoder")


def _decode(graph: _Graph, encoded: str, decoding: Decoding) -> tuple[str, str]:
    """Append the decoder's loop.

    Returns:
        The names of two values of shape (steps, batch): the tokens, and the logarithms of their probabilities, 1 after the end of a text.
    """
    store = graph.store
    heads, width = store.number("decoder/num_heads"), store.shape("decoder/embeddings/weight")[1]
    states = {layer: (f"{layer}/keys", f"{layer}/values") for layer in store.layers("decoder")}
    # Computed once, outside the loop, since they are the same in each step.
    encoded_heads = {layer: graph.heads(encoded, f"{layer}/attention/linear_1", 2, heads) for layer in states}
    body = _Graph(store, [], "step_")
    logits, grown = _step(body, states, encoded_heads)
    token, logarithm, ended, is_unfinished = _choose(body, logits, decoding)
    collected = body.node("Identity", token)

    carried: list[_Value] = [("token", TensorProto.INT64, ["batch"]), ("has_ended", TensorProto.BOOL, ["batch"])]
    for names in states.values():
        carried += [(name, TensorProto.FLOAT, ["batch", heads, None, width // heads]) for name in names]
    inputs: list[_Value] = [("step", TensorProto.INT64, []), ("goes_on", TensorProto.BOOL, []), *carried]
    outputs: list[_Value] = [(is_unfinished, TensorProto.BOOL, [])]
    outputs += [(name, kind, shape) for name, (_, kind, shape) in zip([token, ended, *grown], carried)]
    outputs += [(collected, TensorProto.INT64, ["batch"]), (logarithm, TensorProto.FLOAT, ["batch"])]
    step_inputs, step_outputs = ([helper.make_tensor_value_info(*value) for value in own] for own in (inputs, outputs))
    step = helper.make_graph(body.nodes, "step", step_inputs, step_outputs)

    batch = graph.node("Slice", graph.node("Shape", FEATURES), store.integers(0), store.integers(1))
    no_steps = graph.node("Concat", batch, store.integers(heads, 0, width // heads), axis=0)
    empty = graph.node("ConstantOfShape", no_steps)
    start, has_ended = (
        graph.node("Expand", store.constant(np.array(value)), batch) for value in (decoding.start, False)
    )
    limit, goes_on = store.constant(np.array(MAX_TOKENS + 1)), store.constant(np.array(True))
    initial = [limit, goes_on, start, has_ended, *[empty] * len(grown)]
    *_, tokens, logarithms = graph.outputs("Loop", initial, len(carried) + 2, body=step)
    return tokens, logarithms


def _step(
    body: _Graph, states: Mapping[str, tuple[str, str]], encoded_heads: Mapping[str, list[str]]
) -> tuple[str, list[str]]:
    """Append a step of the decoder.

    Args:
        body: the loop's body, with the inputs ``token`` and ``step``.
        states: the names of each layer's states, the keys and values of earlier steps.
        encoded_heads: the names of each layer's keys and values of the encoder's output.

    Returns:
        The names of the next token's logits, and of the states including this step's keys and values.
    """
    store = body.store
    heads = store.number("decoder/num_heads")
    embeddings = store.weight("decoder/embeddings/weight")
    positions = store.weight("decoder/position_encodings/encodings")
    data = body.node("Add", body.node("Gather", embeddings, "token"), body.node("Gather", positions, "step"))
    data = body.node("Unsqueeze", data, store.integers(1))
    grown: list[str] = []
    for layer, before in states.items():
        attention = f"{layer}/self_attention"
        query, *new = body.heads(body.normalize(data, attention), f"{attention}/linear_0", 3, heads)
        key, value = (body.node("Concat", *pair, axis=2) for pair in zip(before, new))
        grown += [key, value]
        data = body.node("Add", data, body.attend(query, key, value, f"{attention}/linear_1"))
        attention = f"{layer}/attention"
        (query,) = body.heads(body.normalize(data, attention), f"{attention}/linear_0", 1, heads)
        key, value = encoded_heads[layer]
        data = body.node("Add", data, body.attend(query, key, value, f"{attention}/linear_2"))
        data = body.feed_forward(data, f"{layer}/ffn")
    data = body.node("Squeeze", body.normalize(data, "decoder"), store.integers(1))
    return body.node("Gemm", data, embeddings, transB=1), grown


def _choose(body: _Graph, logits: str, decoding: Decoding) -> tuple[str, str, str, str]:
    """Append the choice of each sample's next token.

    Returns:
        The names of the tokens, of the logarithms of their probabilities, of which texts have ended, and of whether any text has not.
    """
    store = body.store
    barred = np.zeros((2, store.shape("decoder/embeddings/weight")[0]), np.float32)
    barred[:, list(decoding.suppressed)] = -np.inf
    barred[1, list(decoding.suppressed_first)] = -np.inf
    # Step 0 sees the start token, whose successor is fixed; step 1 chooses the first token of the text.
    is_start, is_first = (body.node("Equal", "step", store.constant(np.array(number))) for number in (0, 1))
    which = body.node("Cast", is_first, to=TensorProto.INT64)
    logits = body.node("Add", logits, body.node("Gather", store.constant(barred), which))
    best = body.node("ArgMax", logits, axis=1, keepdims=0)
    highest, total = (
        body.node(kind, logits, store.integers(1), keepdims=0) for kind in ("ReduceMax", "ReduceLogSumExp")
    )
    logarithm = body.node(
        "Where",
        "has_ended",
        store.constant(np.float32(1)),
        body.node("Min", body.node("Sub", highest, total), store.constant(np.float32(0))),
    )
    end = store.constant(np.array(decoding.end))
    token = body.node("Where", "has_ended", end, best)
    token = body.node("Where", is_start, store.constant(np.array(decoding.no_timestamps)), token)
    ended = body.node("Equal", token, end)
    unfinished = body.node("ReduceMax", body.node("Cast", body.node("Not", ended), to=TensorProto.INT64), keepdims=0)
    return token, logarithm, ended, body.node("Cast", unfinished, to=TensorProto.BOOL)


@dataclass
class _Store:
    """The network's weights and constants, which the decoder's loop can use, too, and the nodes outside the loop."""

    weights: Mapping[str, np.ndarray]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def take(self, name: str) -> np.ndarray:
        """Return a weight, and mark it as used."""
        if name not in self.weights:
            raise ValueError(f"these are not the weights of Whisper: there is no {name}")
        self.used.add(name)
        return self.weights[name]

    def number(self, name: str) -> int:
        """Return the value of a weight that is a single integer."""
        value = self.take(name)
        if value.shape or value.dtype.kind not in "iu":
            raise ValueError(f"these are not the weights of Whisper: {name} is not a whole number")
        return int(value)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a weight."""
        return self.take(name).shape

    def layers(self, part: str) -> list[str]:
        """Return the names of a part's layers, in order."""
        names = {name.split("/")[1] for name in self.weights if name.startswith(f"{part}/layer_")} - {"layer_norm"}
        return [f"{part}/layer_{number}" for number in range(len(names))]

    def weight(self, name: str, transposed: bool = False) -> str:
        """Add a weight as a constant, stored in half precision, and return its name in single precision."""
        values = self.take(name)
        if values.dtype != np.float16:
            raise ValueError(f"these are not the weights of Whisper: {name} is of {values.dtype}")
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(
                np.ascontiguousarray(values.T if transposed else values), name
            )
            self.nodes.append(helper.make_node("Cast", [name], [f"{name}/single"], to=TensorProto.FLOAT))
        return f"{name}/single"

    def constant(self, value: np.ndarray | np.generic) -> str:
        """Add an array to the graph as a constant."""
        name = f"constant_{len(self.initializers)}"
        self.initializers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        """Add a list of integers to the graph as a constant."""
        return self.constant(np.array(values, np.int64))

    def model(self) -> onnx.ModelProto:
        """Check and return the model; raise ValueError if a weight was not used."""
        unused = sorted(set(self.weights) - self.used - _UNUSED)
        if unused:
            raise ValueError(f"these are not the weights of Whisper: {unused[0]} is not part of it")
        features = helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, ["batch", BANDS, FRAMES])
        tokens = helper.make_tensor_value_info(TOKENS, TensorProto.INT64, ["batch", "steps"])
        scores = helper.make_tensor_value_info(SCORES, TensorProto.FLOAT, ["batch", 1])
        graph = helper.make_graph(self.nodes, "whisper", [features], [tokens, scores], list(self.initializers.values()))
        model = helper.make_model(
            graph,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            producer_name="penstock",
        )
        onnx.checker.check_model(model, full_check=True)
        return model


@dataclass
class _Graph:
    """A graph, the network's or the loop's, that grows node by node; values are named by numbers."""

    store: _Store
    nodes: list[onnx.NodeProto]
    prefix: str = ""

    def outputs(self, kind: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Append a node with several outputs and return their names."""
        outputs = [f"{self.prefix}{kind}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        output = output or f"{self.prefix}{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def linear(self, data: str, name: str) -> str:
        """Append a linear layer."""
        product = self.node("MatMul", data, self.store.weight(f"{name}/weight", transposed=True))
        return self.node("Add", product, self.store.weight(f"{name}/bias"))

    def normalize(self, data: str, name: str) -> str:
        """Append a layer normalization."""
        scale, shift = (self.store.weight(f"{name}/layer_norm/{own}") for own in ("gamma", "beta"))
        return self.node("LayerNormalization", data, scale, shift, epsilon=_EPSILON)

    def feed_forward(self, data: str, name: str) -> str:
        """Append the two linear layers at the end of a block."""
        hidden = self.node("Gelu", self.linear(self.normalize(data, name), f"{name}/linear_0"))
        return self.node("Add", data, self.linear(hidden, f"{name}/linear_1"))

    def heads(self, data: str, name: str, count: int, heads: int) -> list[str]:
        """Append a linear layer whose result is ``count`` arrays, each of shape (batch, heads, steps, width)."""
        joined = self.linear(data, name)
        parts = self.outputs("Split", [joined], count, axis=2, num_outputs=count) if count > 1 else [joined]
        split = self.store.integers(0, 0, heads, -1)
        return [self.node("Transpose", self.node("Reshape", part, split), perm=[0, 2, 1, 3]) for part in parts]

    def attend(self, query: str, key: str, value: str, name: str) -> str:
        """Append attention, without a mask, and the linear layer after it."""
        width = self.store.shape(f"{name}/weight")[1] // self.store.number(f"{name.split('/')[0]}/num_heads")
        scaled = self.node("Mul", query, self.store.constant(np.float32(width**-0.5)))
        likeness = self.node("MatMul", scaled, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        seen = self.node("MatMul", self.node("Softmax", likeness, axis=-1), value)
        joined = self.node("Reshape", self.node("Transpose", seen, perm=[0, 2, 1, 3]), self.store.integers(0, 0, -1))
        return self.linear(joined, name)
