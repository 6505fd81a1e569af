"""`bb_flip`: mirrors bounding boxes."""

from __future__ import annotations

import math

import numpy as np

from penstock.data_types import FLOAT, dtype_name
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
from penstock.schema.example_data import boxes


@register_operator
class BbFlip(Operator[None, list[int]]):
    """Mirrors bounding boxes whose coordinates are fractions of the image's extents."""

    schema = Schema(
        name="BbFlip",
        inputs=(Input("input", doc="Boxes of float, four numbers each: x, y, width, height.", example=boxes),),
        arguments=(
            Argument("horizontal", "int32", 1, "Nonzero: mirror horizontally.", tensor=True, zero_dimensional=True),
            Argument("ltrb", "bool", False, "Boxes are given by left, top, right, bottom."),
            Argument("vertical", "int32", 0, "Nonzero: mirror vertically.", tensor=True, zero_dimensional=True),
        ),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.horizontal_flip_bounding_boxes",
                "In pixels; here in fractions of the image.",
            ),
        ),
    )

    def describe(self, workspace: Workspace[None, list[int]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be float, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "", batch.ndim())]

    def infer(self, sample: Sample[None, list[int]]) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if math.prod(shape) % 4:
            raise RuntimeError(
                f"Boxes must have four numbers each, got {math.prod(shape)} numbers in shape {list(shape)}"
            )
        sample.plan = [axis for axis, name in enumerate(("horizontal", "vertical")) if sample[name]]
        return shape

    def compute(self, sample: Sample[None, list[int]]) -> None:
        source = np.ascontiguousarray(sample.inputs[0]).reshape(-1, 4)
        target = sample.outputs[0].reshape(-1, 4)
        # As in DALI, extents are converted to edges and back, so that they are rounded twice, whether boxes are mirrored or not.
        starts, ends = source[:, :2], source[:, 2:]
        if not self.args["ltrb"]:
            ends = starts + ends
        starts, ends = starts.copy(), ends.copy()
        for axis in sample.plan:
            starts[:, axis], ends[:, axis] = 1 - ends[:, axis], 1 - starts[:, axis]
        target[:, :2] = starts
        target[:, 2:] = ends if self.args["ltrb"] else ends - starts

    def compute_batch(self, workspace: Workspace[None, list[int]]) -> None:
        from penstock.kernels.cuda.elementwise import evaluate_batch
        from penstock.kernels.cuda.launch import locate_all, upload

        samples = workspace.live
        masks = upload([np.array([sum(1 << axis for axis in sample.plan)], np.int32) for sample in samples])
        boxes, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        if self.args["ltrb"]:
            start, extent = "1.0f - (&a)[2]", "1.0f - (&a)[-2]"
            same = "a"
        else:
            start, extent = "1.0f - (a + (&a)[2])", "(1.0f - (&a)[-2]) - (1.0f - ((&a)[-2] + a))"
            same = "k < 2 ? a : ((&a)[-2] + a) - (&a)[-2]"
        body = f"int k = int(offsets[0] & 3); return b >> (k & 1) & 1 ? (k < 2 ? {start} : {extent}) : ({same});"
        jobs = [((box.flat(), mask), target.flat()) for box, mask, target in zip(boxes, masks, targets)]
        evaluate_batch(body, jobs, promoted=False)
