"""`readers.caffe`: images and labels from Caffe's LMDB databases."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32, UINT8
from penstock.kernels.codecs.protobuf import Messages
from penstock.operators.readers._lmdb import Entry, LmdbReader
from penstock.operators.readers._reader import READER_ARGUMENTS, Sources
from penstock.schema import Alias, Argument, OutputSpec, Schema, Workspace, register_operator
from penstock.schema.libraries import LMDB, PROTOBUF
from penstock.tensors import TensorListCPU

# The fields of the message Datum in caffe.proto that this reader uses.
_MESSAGES = Messages("penstock.caffe", {"Datum": ((4, "data", "optional", "bytes"), (5, "label", "optional", "int32"))})


def _count_outputs(arguments: dict[str, object]) -> int:
    return bool(arguments.get("image_available", True)) + bool(arguments.get("label_available", True))


@register_operator
class Caffe(LmdbReader):
    """Returns the image of each record (an encoded file, or the stored pixels plane by plane) and its label.

    >>> images, labels = fn.readers.caffe(path="train_lmdb")  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__Caffe",
        devices=("cpu",),
        needs=(LMDB, PROTOBUF),
        arguments=(
            *READER_ARGUMENTS,
            Argument("image_available", "bool", True, "Records hold images."),
            Argument("label_available", "bool", True, "Records hold labels."),
            Argument("path", "string[]", doc="Paths of the databases' folders.", required=True, path=True),
        ),
        outputs=_count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("CaffeReader", "1.0"),),
    )

    def setup(self) -> None:
        if not self.args["image_available"] and not self.args["label_available"]:
            raise ValueError("Neither images nor labels are available: there is nothing to read")
        super().setup()

    def output_specs(self) -> list[OutputSpec]:
        image = [OutputSpec(UINT8, "", 1)] if self.args["image_available"] else []
        return image + ([OutputSpec(INT32, "", 1)] if self.args["label_available"] else [])

    def read(self, item: Entry) -> list[np.ndarray]:
        datum = _MESSAGES.parse("Datum", self.value(item))
        outputs = []
        if self.args["image_available"]:
            outputs.append(np.frombuffer(datum.data, np.uint8))
        if self.args["label_available"]:
            outputs.append(np.array([datum.label] if datum.HasField("label") else [], np.int32))
        return outputs

    def read_batch(self, indices: np.ndarray, workspace: Workspace) -> list[TensorListCPU] | None:
        from penstock.operators.readers._records_cpu import take_datum

        if not self.args["image_available"] or not self.args["label_available"]:
            return None
        with self.values(indices) as values:
            sizes = list(map(len, values))
            block = TensorListCPU.allocate([(sum(sizes),)], UINT8, pool=workspace.pool).elements
            place, shapes, labels = 0, [], np.empty(len(indices), np.int32)
            for number, value in enumerate(values):
                size, label = take_datum(value, block, place)
                if size < 0:
                    return None
                place += size
                shapes.append((size,))
                labels[number] = label
        if len(shapes) < len(indices):
            return None
        images = TensorListCPU.of_elements(block[:place], shapes)
        images.source_infos = Sources(self.items, indices, self.entry_name)
        return [images, TensorListCPU.of_elements(labels, [(1,)] * len(labels))]

    def source_info(self, item: Entry, output: int) -> str:
        return self.entry_name(item) if output == 0 and self.args["image_available"] else ""
