"""`ssd_random_crop`: crops images to random windows that are chosen by their overlap with bounding boxes."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INT32, UINT8, dtype_name
from penstock.kernels.resize_shapes import round_half_away
from penstock.operators.random._box_cropping import BoxCroppingOperator, BoxWindow
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, find_schema, register_operator
from penstock.schema.example_data import boxes, fixed_arrays

_SEARCH = {
    "thresholds": [0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
    "scaling": [0.3, 1.0],
    "aspect_ratio": [0.5, 2.0],
}


@register_operator
class SSDRandomCrop(BoxCroppingOperator):
    """Draws a window like ``random_bbox_crop`` with the settings of SSD (Liu et al., 2016), and crops the image to it.

    >>> images, boxes, labels = fn.ssd_random_crop(images, boxes, labels)
    """

    schema = Schema(
        name="SSDRandomCrop",
        fn="ssd_random_crop",
        devices=("cpu",),
        inputs=(
            Input("input_0", doc="Images of uint8, of shape (H, W, C)."),
            Input(
                "input_1",
                doc="Boxes: FLOAT, of shape (n, 4): left, top, right, bottom in fractions of the image. Those beyond it are cut by a crop.",
                example=boxes,
            ),
            Input(
                "input_2",
                doc="Labels: INT32, of shape (n,) or (n, 1).",
                example=fixed_arrays([1, 2, 3], [4], [5, 6, 7, 8, 9], dtype=np.int32),
            ),
        ),
        arguments=(Argument("num_attempts", "int32", 1, "Windows drawn for one threshold."),),
        outputs=3,
        random=True,
        stateful=True,
        hidden=True,
        deprecated_since="0.30",
        deprecated_in_favor_of="RandomBBoxCrop",
    )

    first_counts = True
    refuses_outside = False

    def setup(self) -> None:
        defaults = {name: argument.default for name, argument in find_schema("RandomBBoxCrop").all_arguments.items()}
        self.args = defaults | self.args | _SEARCH
        super().setup()

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        images, boxes, labels = workspace.inputs
        if len(images) and images.ndim() < 2:
            raise RuntimeError(f"Images must have a height and a width, got {images.ndim()} dimensions")
        for batch, wanted in ((images, UINT8), (boxes, FLOAT), (labels, INT32)):
            if batch.dtype != wanted:
                raise RuntimeError(f"Expected a batch of {dtype_name(wanted)}, got {dtype_name(batch.dtype)}")
        specs = [OutputSpec(images.dtype, images.layout(), images.ndim()), OutputSpec(FLOAT, "", 2)]
        return [*specs, OutputSpec(INT32, "", labels.ndim())]

    def infer(self, sample: Sample[None, BoxWindow]) -> list[tuple[int, ...]]:
        height, width, *others = sample.shapes[0]
        window = self.windows(sample.workspace, [sample.index], [sample.inputs[1]])[0]
        rows, columns = _inside(window, height, width)
        sample.plan = window
        if _is_whole(window):
            return [*sample.shapes]
        boxes = len(window.indices)
        return [
            (rows.stop - rows.start, columns.stop - columns.start, *others),
            (boxes, 4),
            (boxes, *sample.shapes[2][1:]),
        ]

    def compute(self, sample: Sample[None, BoxWindow]) -> None:
        window, inside = sample.plan, _inside(sample.plan, *sample.shapes[0][:2])
        image, boxes, labels = sample.outputs
        np.copyto(image, sample.inputs[0][inside])
        if _is_whole(window):
            # Without a crop, boxes and labels are copied unchecked, whatever their values and number.
            boxes[...], labels[...] = sample.inputs[1:]
        else:
            boxes[...], labels[...] = window.boxes, sample.inputs[2][window.indices]


def _is_whole(window: BoxWindow) -> bool:
    """Return whether the window covers the whole image, so that nothing is cropped."""
    return not window.anchor.any() and bool((window.shape == 1).all())


def _inside(window: BoxWindow, height: int, width: int) -> tuple[slice, slice]:
    """Return the rows and columns of an image that a window covers."""
    extents = np.array([width, height], np.float32)
    left, top = (round_half_away(float(edge)) for edge in window.anchor * extents)
    right, bottom = (round_half_away(float(edge)) for edge in (window.anchor + window.shape) * extents)
    return slice(top, bottom), slice(left, right)
