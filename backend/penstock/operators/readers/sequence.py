"""`readers.sequence`: reads sequences of frames that are stored as images in folders."""

from __future__ import annotations

from collections.abc import Sequence as Items

import numpy as np

from penstock.data_types import RGB, UINT8, YCbCr
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.image_codec import decode
from penstock.kernels.codecs.image_header import read_header
from penstock.operators.readers._reader import READER_ARGUMENTS, Reader
from penstock.schema import Alias, Argument, OutputSpec, Sample, Schema, register_operator
from penstock.storage import join


@register_operator
class Sequence(Reader):
    """Returns sequences of decoded frames (uint8, FHWC). Each folder in ``file_root`` must contain the frames of one stream, as images.

    >>> frames = fn.readers.sequence(file_root="streams", sequence_length=8, step=8)  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__Sequence",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            Argument(
                "file_root", "string", doc="The folder that holds the streams' folders.", required=True, path=True
            ),
            Argument("image_type", "DALIImageType", RGB, "Colour space of the frames."),
            Argument("sequence_length", "int32", doc="Frames in a sequence.", required=True),
            Argument("step", "int32", 1, "Distance between sequences, in frames."),
            Argument("stride", "int32", 1, "Distance between the frames of a sequence."),
        ),
        random=True,
        stateful=True,
        hidden=True,
        aliases=(Alias("SequenceReader", "1.0"),),
        deprecated_since="1.37",
    )

    def setup(self) -> None:
        for name in ("sequence_length", "step", "stride"):
            if self.args[name] < 1:
                raise ValueError(f"`{name}` must be positive, got {self.args[name]}")
        if self.args["image_type"] == YCbCr:
            raise RuntimeError("Only RGB, BGR, GRAY or ANY_DATA are supported on this operator, got YCbCr")
        super().setup()

    def list_items(self) -> Items[list[str]]:
        length, step, stride = (self.args[name] for name in ("sequence_length", "step", "stride"))
        root, span = self.args["file_root"], (length - 1) * stride
        sequences = []
        for folder in self.files.list_folder(root)[1]:
            frames = [join(join(root, folder), name) for name in self.files.list_folder(join(root, folder))[0]]
            sequences += [frames[i : i + span + 1 : stride] for i in range(0, len(frames) - span, step)]
        return sequences

    def output_specs(self) -> list[OutputSpec]:
        return [OutputSpec(UINT8, "FHWC", 4)]

    def read(self, item: list[str]) -> tuple[np.ndarray]:
        return self._read(item, FREELY)

    def read_sample(self, item: list[str], sample: Sample) -> tuple[np.ndarray]:
        return self._read(item, sample.workspace.decoding)

    def _read(self, item: list[str], decoding: Decoding) -> tuple[np.ndarray]:
        kind = self.args["image_type"]
        encoded = [self.files.read(path) for path in item]
        headers = [read_header(data, decoding) for data in encoded]
        shapes = [header.shape(kind) for header in headers]
        if len(set(shapes)) > 1:
            raise ValueError(f"The frames of a sequence must be of one shape, those from '{item[0]}' on are {shapes}")
        decoding.limits.check_video(len(item), shapes[0])
        frames = np.empty((len(item), *shapes[0]), np.uint8)
        for data, header, frame in zip(encoded, headers, frames):
            decode(data, header, frame, kind, decoding=decoding)
        return (frames,)
