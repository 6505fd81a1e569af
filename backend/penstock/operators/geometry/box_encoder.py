"""`box_encoder`: training targets for a single-shot detector's anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.kernels.boxes import to_centres
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import boxes, fixed_arrays


@register_operator
class BoxEncoder(Operator):
    """Matches boxes to anchors (default boxes) and returns each anchor's target box and label.

    An anchor is matched to the box that it overlaps most, if the intersection over union is above ``criteria``; in addition,
    each box is matched to the anchor that it overlaps most. Target boxes are returned as x and y of the centre, width,
    height; for an unmatched anchor, the anchor itself and label 0 (background) are returned. With ``offset``, offsets from
    the anchor are returned instead of boxes, and zeros for unmatched anchors. The method is that of SSD (Liu et al., 2016).

    >>> boxes, labels = fn.box_encoder(boxes, labels, anchors=anchors, offset=True, scale=300.0)
    """

    schema = Schema(
        name="BoxEncoder",
        inputs=(
            Input(
                "input_0",
                doc="Boxes: FLOAT, of shape (n, 4): left, top, right, bottom in fractions of the image.",
                example=boxes,
            ),
            Input(
                "input_1",
                doc="Labels: INT32, n of them, from 1.",
                example=fixed_arrays([1, 2, 3], [4], [5, 6, 7, 8, 9], dtype=np.int32),
            ),
        ),
        arguments=(
            Argument(
                "anchors",
                "float[]",
                None,
                "Left, top, right, bottom of each anchor, in one list.",
                required=True,
                example=[0.0, 0.0, 0.5, 0.5, 0.2, 0.1, 0.9, 0.8, 0.5, 0.5, 1.0, 1.0],
            ),
            Argument("criteria", "float", 0.5, "The intersection over union above which an anchor is matched, 0 to 1."),
            Argument("means", "float[]", [0.0] * 4, "Subtracted from the offsets: x, y, width, height."),
            Argument("offset", "bool", False, "Return normalized offsets from the anchor."),
            Argument("scale", "float", 1.0, "Multiplies boxes and anchors before offsets are computed."),
            Argument("stds", "float[]", [1.0] * 4, "Divides the offsets: x, y, width, height."),
        ),
        outputs=2,
    )

    def setup(self) -> None:
        anchors, means, stds = self.args["anchors"], self.args["means"], self.args["stds"]
        if not anchors or len(anchors) % 4:
            raise RuntimeError(f"Anchors size must be divisible by 4 and not 0, actual value = {len(anchors)}")
        if not 0 <= self.args["criteria"] <= 1:
            raise RuntimeError(f"`criteria` must be from 0 to 1, got {self.args['criteria']}")
        for name, values in (("means", means), ("stds", stds)):
            if len(values) != 4:
                raise RuntimeError(f"{name} size must be a list of 4 values, got {len(values)}")
        if 0 in stds:
            raise RuntimeError("`stds` must not be 0")
        self.anchors = np.array(anchors, np.float32).reshape(-1, 4)
        self.columns, self.centres = np.ascontiguousarray(self.anchors.T), to_centres(self.anchors)
        self.means, self.stds = np.array(means, np.float32), np.array(stds, np.float32)
        # The anchors on the GPU; they are uploaded when they are first needed.
        self.uploaded: Any = None

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        for batch, wanted in zip(workspace.inputs, (FLOAT, INT32)):
            if batch.dtype != wanted:
                raise RuntimeError(f"Expected a batch of {dtype_name(wanted)}, got {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, "", 2), OutputSpec(INT32, "", 1)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        boxes, labels = (int(np.prod(shape, dtype=np.int64)) for shape in sample.shapes)
        if boxes != 4 * labels:
            raise RuntimeError(
                f"There must be a box of 4 coordinates for each label. Got: {boxes} coordinates, {labels} labels"
            )
        return [(len(self.anchors), 4), (len(self.anchors),)]

    def compute(self, sample: Sample) -> None:
        from penstock.operators.geometry._anchors_cpu import encode_boxes, match_boxes, subtract_anchors

        boxes, labels = sample.inputs[0].reshape(-1, 4), sample.inputs[1].reshape(-1)
        encoded, classes = sample.outputs
        owners = np.empty(len(self.anchors), np.int32)
        match_boxes(boxes, self.columns, np.float32(self.args["criteria"]), owners)
        encode_boxes(boxes, labels, owners, self.centres, encoded, classes)
        if self.args["offset"]:
            subtract_anchors(owners, self.centres, np.float32(self.args["scale"]), self.means, self.stds, encoded)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all, upload
        from penstock.operators.geometry._anchors_cuda import Matching, encode_boxes

        if self.uploaded is None:
            self.uploaded = upload([self.anchors])[0]
        samples = workspace.live
        batches = (locate_all(batch, samples) for batch in (*workspace.inputs, *workspace.outputs))
        offset = (self.args["means"], self.args["stds"]) if self.args["offset"] else None
        encode_boxes(
            [Matching(*arrays) for arrays in zip(*batches)],
            self.uploaded,
            self.args["criteria"],
            self.args["scale"],
            offset,
        )
