"""`readers.caffe2`: images and labels from Caffe2's LMDB databases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import FLOAT, INT32, NO_TYPE, UINT8
from penstock.kernels.codecs.protobuf import Messages
from penstock.operators.readers._lmdb import Entry, LmdbReader
from penstock.operators.readers._reader import READER_ARGUMENTS
from penstock.schema import Alias, Argument, OutputSpec, Schema, register_operator
from penstock.schema.libraries import LMDB, PROTOBUF

if TYPE_CHECKING:
    from google.protobuf.message import Message

# The values of the argument `label_type`.
_SINGLE, _SPARSE, _DENSE, _WEIGHTED, _NONE = range(5)

# The label types whose records contain a list of numbers below `num_labels`. As in DALI, readers of these types have one more
# output, this list.
_LISTED = (_SPARSE, _WEIGHTED)

# The fields of the message TensorProtos in caffe2.proto that this reader uses.
_MESSAGES = Messages(
    "penstock.caffe2",
    {
        "TensorProtos": ((1, "protos", "repeated", "TensorProto"),),
        "TensorProto": (
            (1, "dims", "repeated", "int64"),
            (3, "float_data", "repeated", "float"),
            (4, "int32_data", "repeated", "int32"),
            (5, "byte_data", "optional", "bytes"),
            (6, "string_data", "repeated", "bytes"),
        ),
    },
)


def _count_outputs(arguments: dict[str, Any]) -> int:
    return (
        bool(arguments.get("image_available", True))
        + (arguments.get("label_type", _SINGLE) != _NONE)
        + arguments.get("additional_inputs", 0)
        + bool(arguments.get("bbox", False))
        + (arguments.get("label_type", _SINGLE) in _LISTED)
    )


@register_operator
class Caffe2(LmdbReader):
    """Returns the image of each record (an encoded file, or pixels), its labels, further tensors, and a box.

    The labels depend on ``label_type``. 0: a single number; 1: ``num_labels`` numbers, which are 1 for each class that the record
    lists, and otherwise 0; 2: the record's list; 3: ``num_labels`` numbers, which are the weights of the classes that the record
    lists, and otherwise 0; 4: no labels. For types 1 and 3, the last output is the list itself.

    >>> images, labels = fn.readers.caffe2(path="train_lmdb")  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__Caffe2",
        devices=("cpu",),
        needs=(LMDB, PROTOBUF),
        arguments=(
            *READER_ARGUMENTS,
            Argument("additional_inputs", "int32", 0, "Further tensors in each record."),
            Argument("bbox", "bool", False, "Records hold a box as their last tensor."),
            Argument("image_available", "bool", True, "Records hold images."),
            Argument("label_type", "int32", 0, "The kind of labels, from 0 to 4."),
            Argument("num_labels", "int32", 1, "The number of labels, if a record has several."),
            Argument("path", "string[]", doc="Paths of the databases' folders.", required=True, path=True),
        ),
        outputs=_count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("Caffe2Reader", "1.0"),),
    )

    def setup(self) -> None:
        if not _SINGLE <= self.args["label_type"] <= _NONE:
            raise ValueError(f"Unknown label_type {self.args['label_type']}: use a number from 0 to 4")
        super().setup()

    def output_specs(self) -> list[OutputSpec]:
        kind = self.args["label_type"]
        specs = [OutputSpec(UINT8)] if self.args["image_available"] else []
        if kind != _NONE:
            specs.append(OutputSpec(FLOAT if kind == _WEIGHTED else INT32, "", 1))
        specs += [OutputSpec(NO_TYPE)] * self.args["additional_inputs"]
        return specs + [OutputSpec(INT32, "", 1)] * (self.args["bbox"] + (kind in _LISTED))

    def read(self, item: Entry) -> list[np.ndarray]:
        tensors = map(_tensor, _MESSAGES.parse("TensorProtos", self.value(item)).protos)
        try:
            outputs = [next(tensors)] if self.args["image_available"] else []
            listed = [self._listed(next(tensors))] if self.args["label_type"] != _NONE else []
            outputs += [self._labels(labels, tensors) for labels in listed]
            outputs += [next(tensors) for _ in range(self.args["additional_inputs"] + self.args["bbox"])]
        except StopIteration:
            raise ValueError(f"The record at {self.entry_name(item)} has fewer tensors than requested") from None
        return outputs + listed if self.args["label_type"] in _LISTED else outputs

    def _listed(self, labels: np.ndarray) -> np.ndarray:
        if labels.dtype != np.int32:
            raise ValueError(f"Unsupported label data type: {labels.dtype}")
        return labels.reshape(-1)

    def _labels(self, listed: np.ndarray, tensors: Iterator[np.ndarray]) -> np.ndarray:
        kind, count = self.args["label_type"], self.args["num_labels"]
        if kind == _SINGLE:
            return listed[:1]
        if kind == _DENSE:
            return listed
        outside = listed[(listed < 0) | (listed >= count)]
        if outside.size:
            raise ValueError(f"Label index out of bounds: {outside[0]} (num_labels: {count})")
        labels = np.zeros(count, np.float32 if kind == _WEIGHTED else np.int32)
        labels[listed] = next(tensors) if kind == _WEIGHTED else 1
        return labels

    def source_info(self, item: Entry, output: int) -> str:
        return self.entry_name(item) if output == 0 and self.args["image_available"] else ""


def _tensor(message: Message) -> np.ndarray:
    """Return the values of a TensorProto as an array of uint8, int32 or float32, in the tensor's shape; a string as its bytes.

    Raises:
        ValueError: the tensor has no values, or their number does not match its shape.
    """
    if message.string_data:
        return np.frombuffer(message.string_data[0], np.uint8)
    if message.HasField("byte_data"):
        values = np.frombuffer(message.byte_data, np.uint8)
    elif message.int32_data:
        values = np.array(message.int32_data, np.int32)
    elif message.float_data:
        values = np.fromiter(message.float_data, np.float32, len(message.float_data))
    else:
        raise ValueError("A tensor of the record holds neither numbers nor bytes nor a string")
    extents = list(message.dims)
    if extents and math.prod(extents) != values.size:
        kind = "Image data" if values.dtype == np.uint8 else "Tensor"
        raise ValueError(
            f"{kind} size mismatch: {values.size} (expected: {math.prod(extents)}, of the shape {extents})"
        )
    return values.reshape(extents) if extents else values
