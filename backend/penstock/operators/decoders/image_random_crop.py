"""`decoders.image_random_crop`: a random window of each encoded image."""

from __future__ import annotations

from typing import Any

from penstock.kernels.random_crop import DEFAULT_AREA, DEFAULT_ASPECT_RATIO, RandomCrop
from penstock.kernels.random_streams import sample_stream, stream_from_state
from penstock.kernels.windows import Region
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import DECODER_ARGUMENTS, ENCODED_DOC, ImageDecoder
from penstock.schema import Alias, Argument, Input, Sample, Schema, Workspace, register_operator


@register_operator
class ImageRandomCrop(ImageDecoder):
    """Decodes a random window of each image, with an area and an aspect ratio drawn from ranges.

    >>> images = fn.decoders.image_random_crop(encoded, random_area=[0.1, 1.0])  # doctest: +SKIP
    """

    schema = Schema(
        name="decoders__ImageRandomCrop",
        devices=("cpu", "mixed"),
        inputs=(Input("input", device="cpu", doc=ENCODED_DOC, example=encoded_images),),
        arguments=(
            *DECODER_ARGUMENTS,
            Argument("num_attempts", "int32", 10, "Windows that are drawn at most until one fits into the image."),
            Argument("random_area", "float[]", DEFAULT_AREA, "Range of the window's area as a part of the image's."),
            Argument("random_aspect_ratio", "float[]", DEFAULT_ASPECT_RATIO, "Range of the window's width / height."),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("ImageDecoderRandomCrop", "1.0"), Alias("experimental__decoders__ImageRandomCrop", "2.2")),
    )

    def setup(self) -> None:
        super().setup()
        area, ratio = self.args["random_area"], self.args["random_aspect_ratio"]
        self._crop = RandomCrop(area, ratio, self.args["num_attempts"])
        self._produced = 0

    def window(self, sample: Sample, height: int, width: int) -> Region:
        state = sample.tensor_argument("_random_state")
        if state is None:
            stream = sample_stream(self.seed, self._produced, sample.index)
        else:
            stream = stream_from_state(state, sample.index)
        y, x, window_height, window_width = self._crop.window(stream, height, width)
        return Region((y, x), (window_height, window_width))

    def run(self, workspace: Workspace) -> None:
        super().run(workspace)
        self._produced += workspace.batch_size

    def state(self) -> Any:
        return self._produced

    def restore(self, state: Any) -> None:
        self._produced = int(state)
