"""`random_bbox_crop`: a random crop chosen by its overlap with bounding boxes."""

from __future__ import annotations

import numpy as np

from penstock.operators.random._box_cropping import BoxCroppingOperator
from penstock.schema import Argument, Deprecation, Equivalent, Input, Schema, register_operator
from penstock.schema.example_data import Example, boxes, fixed_arrays


@register_operator
class RandomBBoxCrop(BoxCroppingOperator):
    """Draws windows until one overlaps the boxes enough; returns the window and its boxes.

    Each round draws one of the thresholds (or, with ``allow_no_crop``, the whole image), then ``num_attempts`` windows,
    of which the last with enough overlap is used. Boxes centred outside the window are dropped, the others clipped. The
    method is SSD's (Liu et al., 2016).

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
                "ltrb", "bool", True, "Boxes end with corners; otherwise with extents.", deprecated=Deprecation("1.0")
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
                "total_num_attempts", "int32", -1, "Windows drawn in total before the best one is used.", example=7
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
