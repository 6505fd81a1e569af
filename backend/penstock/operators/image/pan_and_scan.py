"""`pan_and_scan`: the parts of long images that a model sees in addition to the whole."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32
from penstock.kernels.pan_and_scan import PanAndScan as Choice
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example


@register_operator
class PanAndScan(Operator):
    """Finds the parts of an image that Gemma 3 sees in addition to the whole, from the image's shape alone.

    Returns boxes, INT32 of shape (boxes, 4): left, top, right, bottom, as :func:`crop_boxes` accepts them. The first box is
    the whole image; for an elongated image, it is followed by boxes that divide the longer side.

    >>> pictures, counts = fn.crop_boxes(images, fn.pan_and_scan(images))
    """

    schema = Schema(
        name="PanAndScan",
        devices=("cpu",),
        inputs=(
            Input(
                "images",
                ("HWC",),
                device="any",
                doc="Images of any type, on CPU or GPU; only their shapes are used.",
            ),
        ),
        arguments=(
            Argument("max_crops", "int32", 4, "Largest number of parts.", example=3),
            Argument("min_crop", "int32", 256, "Smallest side of a part, in pixels.", example=4),
            Argument(
                "min_ratio", "float", 1.2, "Only images whose sides have at least this ratio are cut.", example=1.1
            ),
        ),
        exempt={"sequences": "the parts of a video's frames are boxes of one image"},
        examples=(Example({"min_crop": 4}),),
    )

    plans_by_shape = True

    def setup(self) -> None:
        # Restore the decimal that the user wrote, which single precision has changed: an image may have exactly this ratio.
        ratio = float(str(np.float32(self.args["min_ratio"])))
        self._choice = Choice(ratio, self.args["max_crops"], self.args["min_crop"])
        if min(self._choice.max_crops, self._choice.min_crop) < 1:
            raise ValueError(
                f"`max_crops` and `min_crop` must be positive. Got: {self._choice[1]} and {self._choice[2]}"
            )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [OutputSpec(INT32, "", 2)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        height, width, _ = sample.shapes[0]
        sample.plan = self._choice.boxes(height, width)
        return len(sample.plan), 4

    def compute(self, sample: Sample) -> None:
        sample.outputs[0][...] = np.array(sample.plan, np.int32)
