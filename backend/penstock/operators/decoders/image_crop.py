"""`decoders.image_crop`: decodes a window of each image."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import ROUNDINGS
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import DECODER_ARGUMENTS, ENCODED_DOC, ImageDecoder
from penstock.operators.image._windows import Regions, check_crop_arguments, crop_regions
from penstock.schema import Alias, Argument, Input, Samples, Schema, register_operator
from penstock.schema.example_data import Example, photo_files


@register_operator
class ImageCrop(ImageDecoder):
    """Decodes a window of each image: the same pixels as ``crop`` of the whole image, for less work.

    >>> images = fn.decoders.image_crop(encoded, crop=(224, 224))  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__ImageCrop",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=(
            *DECODER_ARGUMENTS,
            Argument(
                "crop", "float[]", None, "Extents of the window: (height, width).", tensor=True, example=[10.0, 12.0]
            ),
            Argument("crop_d", "float", 0.0, "Accepted for compatibility; images have no depth.", tensor=True),
            Argument("crop_h", "float", 0.0, "Height of the window; 0: all.", tensor=True),
            Argument(
                "crop_pos_x",
                "float",
                0.5,
                "Horizontal position of the window, from 0 (left) to 1 (right).",
                tensor=True,
            ),
            Argument(
                "crop_pos_y", "float", 0.5, "Vertical position of the window, from 0 (top) to 1 (bottom).", tensor=True
            ),
            Argument("crop_pos_z", "float", 0.5, "Accepted for compatibility; images have no depth.", tensor=True),
            Argument("crop_w", "float", 0.0, "Width of the window; 0: all.", tensor=True),
            Argument(
                "rounding",
                "string",
                "round",
                "How the window's start is rounded: `round`, `truncate`, `floor`, or as by `torchvision`: half to even.",
                choices=ROUNDINGS,
            ),
        ),
        aliases=(Alias("ImageDecoderCrop", "1.0"), Alias("experimental__decoders__ImageCrop", "2.2")),
        examples=(Example({"crop": [10.0, 12.0]}), Example({"crop_d": 1.0, "crop_h": 10.0, "crop_w": 12.0})),
        shown=(Example({"crop": [100, 100]}, (photo_files,)),),
    )

    def setup(self) -> None:
        super().setup()
        check_crop_arguments(self)

    def windows(self, samples: Samples, extents: np.ndarray) -> Regions:
        for name in ("crop_d", "crop_pos_z"):
            samples.scalars(name)  # The values have no effect, but must be numbers.
        return crop_regions(samples, extents, "HW")
