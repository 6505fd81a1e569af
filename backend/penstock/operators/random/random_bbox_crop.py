"""`random_bbox_crop`: a random crop chosen by its overlap with bounding boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.kernels.boxes import gathered_rows
from penstock.operators.random._box_cropping import BoxCroppingOperator, BoxWindow, BoxWindows
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, boxes, fixed_arrays
from penstock.schema.operator import Shape


@register_operator
class RandomBBoxCrop(BoxCroppingOperator):
    """Draws windows until one overlaps the boxes enough; returns the window and the boxes in it.

    Each round draws one of the thresholds (or, with ``allow_no_crop``, the whole image), then ``num_attempts`` windows;
    the last window with enough overlap is used. By default, boxes whose centre is outside of the window are dropped; the others are
    clipped to the window. This is the method of SSD (Liu et al., 2016).

    >>> anchor, shape, boxes, labels = fn.random_bbox_crop(boxes, labels, scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0])
    >>> images = fn.slice(images, anchor, shape)
    """

    schema = Schema(
        name="RandomBBoxCrop",
        fn="random_bbox_crop",
        devices=("cpu",),
        inputs=(
            Input(
                "boxes",
                doc="FLOAT, of shape (n, 4), or (n, 6) for volumes: corners in fractions of the image.",
                example=boxes,
            ),
            Input(
                "labels",
                doc="INT32, of shape (n,) or (n, 1).",
                example=fixed_arrays([1, 2, 3], [4], [5, 6, 7, 8, 9], dtype=np.int32),
            ),
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "all_boxes_above_threshold", "bool", True, "Every box must overlap enough; otherwise one suffices."
            ),
            Argument("allow_no_crop", "bool", True, "The whole image is a possible outcome."),
            Argument(
                "aspect_ratio",
                "float[]",
                [1.0, 1.0],
                "Minimum and maximum of width over height; for volumes one range for all, or ranges of x/y, x/z and y/z.",
                example=[0.7, 1.5],
            ),
            Argument(
                "bbox_layout",
                "layout",
                None,
                "The coordinates of a box: an order of xyXY or of xyWH.",
                example="xyXY",
            ),
            Argument(
                "bbox_prune_threshold",
                "float",
                None,
                "Keep boxes by the fraction inside the window, not by their centres.",
                example=0.5,
            ),
            Argument(
                "crop_shape", "int32[]", None, "Extents of the window in pixels; needs `input_shape`.", tensor=True
            ),
            Argument("input_shape", "int32[]", None, "Extents of the image in pixels.", tensor=True, matrix=True),
            Argument(
                "ltrb",
                "bool",
                True,
                "Boxes end with corners; otherwise with extents.",
                exempt="it cannot be given with `bbox_layout`, and the example's boxes end with corners",
            ),
            Argument("num_attempts", "int32", 1, "Windows drawn for one threshold."),
            Argument("output_bbox_indices", "bool", False, "One more output: the indices of the boxes kept."),
            Argument("quiet", "bool", False, "Do not warn if no window is good enough and the best one is used."),
            Argument(
                "scaling",
                "float[]",
                [1.0, 1.0],
                "Minimum and maximum extent of the window, as fractions of the image.",
                example=[0.4, 0.9],
            ),
            Argument("shape_layout", "layout", None, "Order of `crop_shape` and `input_shape`: of WH, or WHD."),
            Argument(
                "threshold_type",
                "string",
                "iou",
                "`iou`: intersection over union; `overlap`: over the box.",
                choices=("iou", "overlap"),
            ),
            Argument("thresholds", "float[]", [0.0], "Required overlaps, one of which is drawn."),
            Argument(
                "total_num_attempts",
                "int32",
                -1,
                "Windows drawn in total before the best one is used. Without it, ten million that do not meet the conditions are an error.",
                example=7,
            ),
        ),
        outputs=lambda arguments: 2 + bool(arguments.get("output_bbox_indices")),
        output_per_input=True,
        random=True,
        stateful=True,
        examples=(
            Example(inputs=(boxes,)),
            Example({"crop_shape": [20, 30], "input_shape": [60, 50]}, (boxes,)),
            Example({"crop_shape": [20, 30], "input_shape": [60, 50], "shape_layout": "WH"}, (boxes,)),
        ),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.RandomIoUCrop", "It crops the image as well, and draws other numbers."
            ),
        ),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        boxes, vector = workspace.inputs[0], OutputSpec(FLOAT, "", 1)
        if boxes.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be float, got {dtype_name(boxes.dtype)}")
        if len(boxes) and boxes.ndim() != 2:
            raise RuntimeError(f"Boxes must be given as a table of two dimensions, got {boxes.ndim()}")
        specs = [vector, vector, OutputSpec(FLOAT, "", 2)]
        if len(workspace.inputs) > 1:
            labels = workspace.inputs[1]
            if labels.dtype != INT32:
                raise RuntimeError(f"Labels must be int32, got {dtype_name(labels.dtype)}")
            specs.append(OutputSpec(INT32, "", labels.ndim()))
        return [*specs, OutputSpec(INT32, "", 1)] if self.args["output_bbox_indices"] else specs

    def infer_batch(self, samples: Samples[None, BoxWindow, BoxWindows]) -> tuple[Sequence[np.ndarray], BoxWindows]:
        shapes = samples.shapes()
        coordinates = int(shapes[0, 1])
        if coordinates not in (4, 6):
            raise RuntimeError(f"A box has 4 coordinates, or 6 in a volume, got {coordinates}")
        usual = samples.workspace.inputs[0].shapes[0][1]
        if (shapes[:, 1] != usual).any():
            raise RuntimeError(f"The boxes of the batch's first sample have {usual} coordinates, these {coordinates}")
        tables = samples.of(samples.workspace.inputs[0].samples)
        ndim = coordinates // 2
        crops, sizes = self._extents("crop_shape", samples, ndim), self._extents("input_shape", samples, ndim)
        windows = self.windows(samples.workspace, samples.indices, tables, crops, sizes)
        counts = windows.counts[:, None]
        vector, table = np.full((len(samples), 1), ndim), np.full((len(samples), 2), coordinates)
        table[:, :1] = counts
        outputs = [vector, vector, table]
        if len(samples.workspace.inputs) > 1:
            labels = samples.shapes(1)
            for row in np.flatnonzero(labels[:, 0] != shapes[:, 0]):
                raise RuntimeError(f"There are {shapes[row, 0]} boxes but {labels[row, 0]} labels")
            outputs.append(np.hstack([counts, labels[:, 1:]]))
        return [*outputs, counts] if self.args["output_bbox_indices"] else outputs, windows

    def _extents(self, name: str, samples: Samples, ndim: int) -> np.ndarray:
        """Return the argument ``name``, `crop_shape` or `input_shape`, in x, y, z order, with one row for each sample or for all."""
        if not samples.given(name):
            return np.zeros((1, 0), np.int64)
        values, columns = samples.values(name), self.columns_of(ndim)
        if values.shape[1] != ndim:
            raise RuntimeError(f"`{name}` must have {ndim} extents, got {values.shape[1]}")
        return values[:, columns].astype(np.int64)

    def compute_samples(self, workspace: Workspace[None, BoxWindow, BoxWindows], shapes: Sequence[Shape]) -> None:
        if workspace.failures or not workspace.batch_size:
            super().compute_samples(workspace, shapes)
            return
        plans, outputs = workspace.plans, [batch.contiguous_elements() for batch in workspace.outputs]
        outputs[0][:], outputs[1][:] = plans.anchors.reshape(-1), plans.shapes.reshape(-1)
        outputs[2][:] = self.written(plans.boxes).reshape(-1)
        if len(workspace.inputs) > 1:
            outputs[3][:] = gathered_rows(workspace.inputs[1].samples, plans.counts, plans.indices).reshape(-1)
        if self.args["output_bbox_indices"]:
            outputs[-1][:] = plans.indices

    def compute(self, sample: Sample[None, BoxWindow]) -> None:
        window, outputs = sample.plan, sample.outputs
        outputs[0][...], outputs[1][...], outputs[2][...] = window.anchor, window.shape, self.written(window.boxes)
        if len(sample.inputs) > 1:
            outputs[3][...] = sample.inputs[1][window.indices]
        if self.args["output_bbox_indices"]:
            outputs[-1][...] = window.indices
