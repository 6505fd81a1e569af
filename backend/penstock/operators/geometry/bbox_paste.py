"""`bbox_paste`: moves the boxes of an image that is pasted onto a larger canvas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, dtype_name
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import boxes
from penstock.schema.operator import Shape


@register_operator
class BBoxPaste(Operator):
    """Moves and scales boxes as ``paste`` moves and scales their image.

    >>> images = fn.paste(images, fill_value=0, ratio=2.0, paste_x=x, paste_y=y)
    >>> boxes = fn.bbox_paste(boxes, ratio=2.0, paste_x=x, paste_y=y)
    """

    schema = Schema(
        name="BBoxPaste",
        fn="bbox_paste",
        devices=("cpu",),
        inputs=(
            Input(
                "input",
                doc="Boxes of shape (n, 4) in fractions of the image: x, y, width, height. FLOAT.",
                example=boxes,
            ),
        ),
        arguments=(
            Argument("ltrb", "bool", False, "Boxes are given as left, top, right, bottom."),
            Argument("paste_x", "float", 0.5, "Position of the image on the canvas: 0 left, 1 right.", tensor=True),
            Argument("paste_y", "float", 0.5, "Position of the image on the canvas: 0 top, 1 bottom.", tensor=True),
            Argument(
                "ratio",
                "float",
                None,
                "Extents of the canvas over those of the image.",
                required=True,
                tensor=True,
                example=1.5,
            ),
        ),
    )

    plans_by_shape = True

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be float, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "", batch.ndim())]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        size = math.prod(sample.shapes[0])
        if size % 4:
            raise RuntimeError(f"Bounding box tensor size must be a multiple of 4 (coordinates). Got: {size}")
        return sample.shapes[0]

    def compute_samples(self, workspace: Workspace, shapes: Sequence[Shape]) -> None:
        first = workspace.samples[0] if workspace.batch_size else None
        if first is None or workspace.failures or workspace.arguments:
            super().compute_samples(workspace, shapes)
            return
        # Arguments are constant, so all boxes of the batch are moved at once.
        boxes = np.concatenate([boxes.reshape(-1) for boxes in workspace.inputs[0].samples])
        self._move(first, boxes.reshape(-1, 4), workspace.outputs[0].contiguous_elements().reshape(-1, 4))

    def compute(self, sample: Sample) -> None:
        self._move(sample, sample.inputs[0].reshape(-1, 4), sample.outputs[0].reshape(-1, 4))

    def _move(self, sample: Sample, boxes: np.ndarray, moved: np.ndarray) -> None:
        """Write ``boxes``, moved and scaled by a sample's arguments, to ``moved``."""
        ratio = np.float32(sample["ratio"])
        scale = 1 / ratio
        margin = np.array([sample["paste_x"], sample["paste_y"]], np.float32) * ((ratio - 1) / ratio)
        # Rounding must not move the end of a box of the whole image beyond 1.
        margin[scale + margin > 1] = 1 - scale
        while (scale + margin > 1).any():
            margin = np.where(scale + margin > 1, np.nextafter(margin, np.float32(-1)), margin)
        moved[:, :2] = boxes[:, :2] * scale + margin
        moved[:, 2:] = boxes[:, 2:] * scale + (margin if self.args["ltrb"] else 0)
