"""`draw_boxes`: outlines of boxes on images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import INT32, UINT8, dtype_name
from penstock.operators.postprocessing._drawing import (
    check_channels,
    check_colours,
    colours_of,
    edges_of,
    nan_coordinate,
)
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
from penstock.schema.operator import Shape
from penstock.schema.sharing import share
from penstock.tensors.places import places_of_samples


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

    The edges of a box lie between pixels: coordinates are rounded to integers, halves to even. Lines are drawn inside the box.
    With `labels`, the label selects the colour, cyclically. A sample fails if a coordinate is NaN.

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
            Argument("thickness", "int32", 2, "Thickness of the lines, in pixels."),
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

    # Launches cannot be replayed, because the host waits for the kernel to report coordinates that are NaN.
    repeatable = False

    def setup(self) -> None:
        check_colours("colors", self.args["colors"])
        if self.args["thickness"] < 1:
            raise ValueError(f"`thickness` must be 1 or more. Got: {self.args['thickness']}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if len(batch) and batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8, got {dtype_name(batch.dtype)}")
        if len(workspace.inputs) > 2:
            check_type(workspace, 2, "labels", INT32)
        return [OutputSpec(UINT8, self.input_layout(workspace), 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        image, boxes, *labels = sample.shapes
        if len(boxes) != 2 or boxes[1] != 4:
            raise ValueError(f"Boxes must have the shape (boxes, 4). Got: {list(boxes)}")
        if labels and labels[0] != boxes[:1]:
            raise ValueError(f"Labels must have the shape (boxes,). Got: {list(labels[0])} for {boxes[0]} boxes")
        check_channels("colors", self.args["colors"], image[2])
        return image

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        if not self._draw_together(workspace):
            super().compute_samples(workspace, shapes)

    def _draw_together(self, workspace: Workspace) -> bool:
        """Draw the boxes of all samples in one call; return False, drawing nothing, if this is not supported."""
        from penstock.operators.postprocessing._draw_boxes_cpu import draw_outlines_of_batch

        pictures, boxes, *labels = workspace.inputs
        if workspace.failures or not workspace.batch_size:
            return False
        channels = {shape[2] for shape in pictures.shapes}
        sources, targets = places_of_samples(pictures), places_of_samples(workspace.outputs[0])
        coordinates = np.concatenate(boxes.samples)
        if len(channels) > 1 or sources is None or targets is None or np.isnan(coordinates).any():
            return False
        ends = np.fromiter((shape[0] for shape in boxes.shapes), np.int64, len(boxes)).cumsum()
        chosen = np.concatenate(labels[0].samples) if labels else np.zeros(len(coordinates), np.int64)
        table = np.empty((len(targets), 7), np.int64)
        table[:, 0], table[:, 1], table[:, 2:5] = sources, targets, pictures.shapes
        table[0, 5], table[1:, 5], table[:, 6] = 0, ends[:-1], ends
        colours = colours_of(self.args["colors"], channels.pop(), chosen)
        edges, thickness = edges_of(coordinates, "Box"), self.args["thickness"]
        share(
            workspace,
            lambda begin, end: draw_outlines_of_batch(table, edges, colours, thickness, begin, end),
            pictures.sample_volumes(),
        )
        return True

    def compute(self, sample: Sample) -> None:
        from penstock.operators.postprocessing._draw_boxes_cpu import draw_outlines

        image, boxes, *labels = sample.inputs
        edges = edges_of(boxes, "Box")
        chosen = labels[0] if labels else np.zeros(len(edges), np.int64)
        colours = colours_of(self.args["colors"], image.shape[2], chosen)
        target = sample.outputs[0]
        np.copyto(target, image)
        draw_outlines(edges, colours, self.args["thickness"], target)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import places_of
        from penstock.operators.postprocessing._drawing_cuda import draw_outlines, pictures_of

        images, boxes, *labels = workspace.inputs
        live = workspace.live_indices
        counts = boxes.shape_array()[live, 0]
        for channels, group in pictures_of(images, workspace.outputs[0], live, counts):
            chosen = places_of(labels[0])[0][group.indices] if labels else None
            colours = np.array(self.args["colors"], np.uint8).reshape(-1, channels)
            places = places_of(boxes)[0][group.indices]
            faults = draw_outlines(group, places, boxes.dtype, chosen, colours, self.args["thickness"])
            for index, box in zip(group.indices.tolist(), faults.tolist()):
                if box >= 0:
                    workspace.fail(index, nan_coordinate("Box", box))
