"""`decoders.image_random_crop`: decodes a random window of each image."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.random_crop import DEFAULT_AREA, DEFAULT_ASPECT_RATIO, RandomCrop
from penstock.kernels.random_streams import SAMPLE_STRIDE, sample_stream, stream_from_state
from penstock.operators.decoders._examples import encoded_images
from penstock.operators.decoders._images import DECODER_ARGUMENTS, ENCODED_DOC, ImageDecoder
from penstock.operators.image._windows import Regions
from penstock.schema import Alias, Argument, Input, Samples, Schema, Workspace, register_operator
from penstock.schema.early_start import EarlyStart
from penstock.schema.example_data import Example, photo_files


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
            Argument("num_attempts", "int32", 10, "The largest number of windows to draw until one fits the image."),
            Argument(
                "random_area", "float[]", DEFAULT_AREA, "Range of the window's area as a fraction of the image's."
            ),
            Argument("random_aspect_ratio", "float[]", DEFAULT_ASPECT_RATIO, "Range of the window's width / height."),
        ),
        random=True,
        stateful=True,
        aliases=(Alias("ImageDecoderRandomCrop", "1.0"), Alias("experimental__decoders__ImageRandomCrop", "2.2")),
        shown=(Example({}, (photo_files,)),),
    )

    def setup(self) -> None:
        super().setup()
        area, ratio = self.args["random_area"], self.args["random_aspect_ratio"]
        self._crop = RandomCrop(area, ratio, self.args["num_attempts"])
        self._produced = 0

    def windows(self, samples: Samples, extents: np.ndarray) -> Regions:
        states = samples.workspace.arguments.get("_random_state")
        # The random state of the batch's first sample; the other samples' streams are derived from it.
        first = (
            sample_stream(self.seed, self._produced, 0) if states is None else stream_from_state(states.samples[0], 0)
        )
        streams = first.stream + np.uint64(SAMPLE_STRIDE) * np.array(samples.indices, np.uint64)
        windows = self._crop.windows(first.key, streams, first.start, extents)
        return Regions(windows[:, :2], windows[:, 2:])

    def begin(self, workspace: Workspace) -> EarlyStart:
        started = super().begin(workspace)
        self._produced += workspace.batch_size
        return started

    def run(self, workspace: Workspace) -> None:
        super().run(workspace)
        if workspace.device == "cpu":
            self._produced += workspace.batch_size

    def state(self) -> Any:
        return self._produced

    def restore(self, state: Any) -> None:
        self._produced = int(state)
