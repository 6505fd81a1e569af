"""`decoders.image_slice`: decodes a box of each image, by anchor and shape or by start and end."""

from __future__ import annotations

import numpy as np

from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import DECODER_ARGUMENTS, ENCODED_DOC, ImageDecoder
from penstock.operators.image._boxes import box_regions, check_box_arguments, check_box_inputs
from penstock.operators.image._windows import Regions
from penstock.schema import Alias, Argument, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, fixed_arrays, photo_files


@register_operator
class ImageSlice(ImageDecoder):
    """Decodes a box of each image: the same pixels as ``slice`` of the whole image, for less work.

    The arguments describe the box as those of ``slice`` do; the box must lie within the image.

    >>> images = fn.decoders.image_slice(encoded, rel_start=[0.1, 0.2], rel_shape=[0.5, 0.5])  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__ImageSlice",
        devices=("cpu", "mixed"),
        inputs=(
            Input("data", device="cpu", doc=ENCODED_DOC, example=encoded_images),
            Input("anchor", device="cpu", doc="Start of the box: 1-D, numeric."),
            Input("shape_input", device="cpu", doc="Extents of the box: 1-D, numeric."),
        ),
        min_inputs=1,
        arguments=(
            *DECODER_ARGUMENTS,
            Argument("axes", "int32[]", [1, 0], "Indices (of H, W) of the box's dimensions.", tensor=True),
            Argument("axis_names", "layout", "WH", "Letters of the box's dimensions."),
            Argument("end", "int32[]", None, "End of the box in pixels.", tensor=True),
            Argument("normalized_anchor", "bool", True, "The positional anchor is a fraction of the image's extent."),
            Argument("normalized_shape", "bool", True, "The positional shape is a fraction of the image's extent."),
            Argument("rel_end", "float[]", None, "End of the box as a fraction of the image's extent.", tensor=True),
            Argument("rel_shape", "float[]", None, "Extents as fractions of the image's.", tensor=True),
            Argument("rel_start", "float[]", None, "Start of the box as a fraction of the image's.", tensor=True),
            Argument("shape", "int32[]", None, "Extents of the box in pixels.", tensor=True),
            Argument("start", "int32[]", None, "Start of the box in pixels.", tensor=True),
        ),
        aliases=(Alias("ImageDecoderSlice", "1.0"), Alias("experimental__decoders__ImageSlice", "2.2")),
        examples=(
            Example({"start": [2, 3], "end": [9, 12]}),
            Example({"start": [2, 3], "shape": [5, 6], "axes": [0, 1]}),
            Example({"rel_start": [0.1, 0.2], "rel_end": [0.7, 0.8], "axis_names": "HW"}),
            Example({"rel_start": [0.1, 0.2], "rel_shape": [0.4, 0.5]}),
            Example(inputs=(encoded_images, fixed_arrays([0.1, 0.2]), fixed_arrays([0.5, 0.6]))),
            Example(
                {"normalized_anchor": False, "normalized_shape": False},
                (encoded_images, fixed_arrays([3, 2]), fixed_arrays([9, 12])),
            ),
        ),
        shown=(Example({"rel_start": [0.1, 0.4], "rel_end": [0.7, 0.9]}, (photo_files,)),),
    )

    def setup(self) -> None:
        super().setup()
        check_box_arguments(self)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        check_box_inputs(self, workspace)
        return super().describe(workspace)

    def windows(self, samples: Samples, extents: np.ndarray) -> Regions:
        regions = box_regions(samples, extents, "HW")
        if not regions.extents.all():
            raise ValueError(
                "The box is empty: its extents are "
                + " and ".join(str(list(row)) for row in regions.extents.tolist() if 0 in row)
            )
        return regions
