"""`draw_boxes`: outlines of boxes on images."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32, UINT8, dtype_name
from penstock.operators.postprocessing._drawing import check_channels, check_colours, colours_of, edges_of
from penstock.operators.postprocessing._rows import check_type
from penstock.schema import (
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
from penstock.schema.example_data import Example, ExampleSamples, fixed_arrays, photos


def _boxes(layout: str = "") -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        count = (2, 1, 3)[index % 3]
        corners = np.random.default_rng([index, 9]).uniform(0, 8, (count, 2))
        return np.hstack([corners, corners + np.array([8, 6])]).astype(np.float32)

    return ExampleSamples(make, bad=np.zeros((2, 3), np.float32))


def _labels(layout: str = "") -> ExampleSamples:
    return ExampleSamples(lambda index: np.arange((2, 1, 3)[index % 3], dtype=np.int32))


@register_operator
class DrawBoxes(Operator):
    """Draws the outlines of boxes; later boxes cover earlier ones.

    Lines are inside of the box, whose edges are rounded to the nearest ones between pixels, halves to the even one. With `labels`, the
    colours are taken by label, over and over again. A sample with a coordinate that is NaN fails.

    >>> shown = fn.draw_boxes(images, boxes, labels, colors=[255, 0, 0, 0, 160, 255])
    """

    schema = Schema(
        name="DrawBoxes",
        inputs=(
            Input("images", ("HWC",), doc="Images of uint8."),
            Input("boxes", doc="Numbers of shape (boxes, 4): left, top, right, bottom, in pixels.", example=_boxes),
            Input("labels", doc="INT32, of shape (boxes,).", example=_labels),
        ),
        min_inputs=2,
        arguments=(
            Argument(
                "colors",
                "int32[]",
                [255, 0, 0],
                "A colour, or several in one list: a value from 0 to 255 for each channel.",
                example=[255, 0, 0, 0, 160, 255],
            ),
            Argument("thickness", "int32", 2, "Of lines, in pixels."),
        ),
        examples=(Example(), Example({"thickness": 1})),
        shown=(
            Example(
                {"colors": [255, 0, 0, 0, 160, 255], "thickness": 4},
                (photos, fixed_arrays([[20, 30, 120, 140], [100, 20, 220, 90]]), fixed_arrays([0, 1], dtype=np.int32)),
            ),
        ),
        equivalents=(
            Equivalent(
                "torchvision.utils.draw_bounding_boxes", "Draws labels as text as well, which `draw_text` does."
            ),
        ),
    )

    def setup(self) -> None:
        check_colours("colors", self.args["colors"])
        if self.args["thickness"] < 1:
            raise ValueError(f"`thickness` is 1 or more. Got: {self.args['thickness']}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise RuntimeError(f"Images are of uint8, got {dtype_name(batch.dtype)}")
        if len(workspace.inputs) > 2:
            check_type(workspace, 2, "labels", INT32)
        return [OutputSpec(UINT8, self.input_layout(workspace), 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        image, boxes, *labels = sample.shapes
        if len(boxes) != 2 or boxes[1] != 4:
            raise ValueError(f"Boxes have the shape (boxes, 4). Got: {list(boxes)}")
        if labels and labels[0] != boxes[:1]:
            raise ValueError(f"Labels have the shape (boxes,). Got: {list(labels[0])} for {boxes[0]} boxes")
        check_channels("colors", self.args["colors"], image[2])
        return image

    def compute(self, sample: Sample) -> None:
        from penstock.operators.postprocessing._draw_boxes_cpu import draw_outlines

        image, boxes, *labels = sample.inputs
        edges = edges_of(boxes, "Box")
        chosen = labels[0] if labels else np.zeros(len(edges), np.int64)
        colours = colours_of(self.args["colors"], image.shape[2], chosen)
        target = sample.outputs[0]
        np.copyto(target, image)
        draw_outlines(edges, colours, self.args["thickness"], target)
