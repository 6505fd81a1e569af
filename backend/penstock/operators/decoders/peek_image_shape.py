"""`peek_image_shape`: reads the shapes of encoded images from their headers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import ANY_DATA, FLOAT, FLOAT64, INT32, INT64, RGB, UINT8, UINT32, UINT64, dtype_name
from penstock.kernels.codecs.decoding import Decoding
from penstock.kernels.codecs.image_description import EncodedFiles, JpegHeaders, output_channels
from penstock.kernels.codecs.image_header import read_header, read_jpeg_headers, read_png_sizes
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import ENCODED_DOC, bytes_of, check_encoded, encoded_bytes
from penstock.schema import (
    Alias,
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, photo_files
from penstock.schema.operator import Shape
from penstock.schema.tolerance import ON_ERROR

_TYPES = (INT32, UINT32, INT64, UINT64, FLOAT, FLOAT64)


@register_operator
class PeekImageShape(Operator):
    """Reads the shape (height, width, channels) that an image has when decoded from its header, without decoding it.

    >>> shapes = fn.peek_image_shape(encoded)  # doctest: +SKIP
    """

    schema = Schema(
        name="PeekImageShape",
        devices=("cpu",),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=(
            Argument("adjust_orientation", "bool", True, "Return the shape after rotating the image upright."),
            Argument("dtype", "DALIDataType", INT64, "Type of the output."),
            ON_ERROR,
            Argument("image_type", "DALIImageType", RGB, "Colour space that the image would be decoded to."),
        ),
        aliases=(Alias("experimental__PeekImageShape", "2.2"),),
        shown=(Example({}, (photo_files,)),),
        equivalents=(Equivalent("PIL.Image.open", "Its `size` is (width, height)."),),
    )

    plans_by_shape = True

    def setup(self) -> None:
        if self.args["dtype"] not in _TYPES:
            names = ", ".join(map(dtype_name, _TYPES))
            raise ValueError(
                f"Shapes can be given as one of the following: {names}; requested: {dtype_name(self.args['dtype'])}"
            )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        check_encoded(workspace, (UINT8,))
        batch = workspace.inputs[0]
        if len(batch) and batch.ndim() != 1:
            raise ValueError(
                "The input must be a raw, undecoded file stored as a flat uint8 array, got samples of "
                f"{batch.ndim()} dimensions"
            )
        return [OutputSpec(self.args["dtype"], "", 1)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        return (3,)

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        files = EncodedFiles([bytes_of(sample) for sample in workspace.inputs[0].samples])
        found = None if workspace.failures or not len(files) else self._read_together(files, workspace.decoding)
        if found is None:
            super().compute_samples(workspace, shapes)
            return
        if self.args["image_type"] != ANY_DATA:
            found[:, 2] = output_channels(self.args["image_type"], 0)
        workspace.outputs[0].contiguous_elements()[:] = found.reshape(-1)

    def _read_together(self, files: EncodedFiles, decoding: Decoding) -> np.ndarray | None:
        """Return the images' shapes in rows if one call can read all of them, otherwise None. One call can read baseline JPEGs, or PNGs if
        the number of channels follows from ``image_type``; it returns 0 channels for PNGs.
        """
        headers = read_jpeg_headers(files, decoding)
        if isinstance(headers, JpegHeaders):
            found = headers.shapes.copy()
            if self.args["adjust_orientation"]:
                turned = headers.transposed
                found[turned, :2] = found[turned, 1::-1]
            return found
        sizes = None if self.args["image_type"] == ANY_DATA else read_png_sizes(files, decoding)
        return None if sizes is None else np.column_stack([sizes, np.zeros(len(sizes), np.int64)])

    def compute(self, sample: Sample) -> None:
        header = read_header(encoded_bytes(sample), sample.workspace.decoding)
        sample.outputs[0][:] = header.shape(self.args["image_type"], self.args["adjust_orientation"])
