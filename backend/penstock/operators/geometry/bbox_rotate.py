"""`bbox_rotate`: rotates bounding boxes along with their image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.kernels.geometry import rotated_canvases, rotation_2d
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import boxes

# The fraction kept of the difference between the enclosing box and the original size.
_EXPANSION = {"expand": 1.0, "halfway": 0.5, "fixed": 0.0}


@dataclass(frozen=True)
class BoxPlan:
    """The result for one sample.

    Attributes:
        boxes: those kept, in the output's format.
        kept: for each input box, whether it is kept.
    """

    boxes: np.ndarray
    kept: np.ndarray


@register_operator
class BBoxRotate(Operator[None, BoxPlan]):
    """Rotates bounding boxes as `rotate` rotates their image; boxes that leave the canvas are clipped or removed."""

    schema = Schema(
        name="BBoxRotate",
        fn="bbox_rotate",
        devices=("cpu",),
        inputs=(
            Input("bboxes", doc="Boxes of float, of shape (boxes, 4).", example=boxes),
            Input(
                "labels", doc="A label for each box, int32 of shape (boxes,) or (boxes, 1); removed along with its box."
            ),
        ),
        min_inputs=1,
        output_per_input=True,
        arguments=(
            Argument("angle", "float", doc="In degrees, counter-clockwise.", required=True, tensor=True, example=30.0),
            Argument(
                "bbox_layout",
                "layout",
                "xyXY",
                "`xyXY`: corners; `xyWH`: the upper left corner, width and height.",
                choices=("xyXY", "xyWH"),
            ),
            Argument("bbox_normalized", "bool", True, "Coordinates are fractions of the image's extents, not pixels."),
            Argument(
                "input_shape",
                "int32[]",
                doc="Shape of the image before its rotation, in the order of `shape_layout`.",
                required=True,
                tensor=True,
                matrix=True,
                example=[40, 60],
            ),
            Argument("keep_size", "bool", False, "The image keeps its size."),
            Argument(
                "mode",
                "string",
                "expand",
                "Size of the new boxes: `expand`: holds the rotated box; `fixed`: that of the old one; `halfway`.",
                choices=("expand", "fixed", "halfway"),
            ),
            Argument(
                "remove_threshold",
                "float",
                0.1,
                "Boxes with less than this fraction on the canvas are removed.",
            ),
            Argument("shape_layout", "layout", "HW", "Order of `input_shape`.", example="WH"),
            Argument(
                "size",
                "float[]",
                [],
                "Extents (height, width) of the rotated image.",
                tensor=True,
                example=[50.0, 70.0],
            ),
        ),
    )

    def setup(self) -> None:
        if self.args["mode"] not in _EXPANSION:
            raise RuntimeError(f"Unknown mode: {self.args['mode']}. Supported modes are: {', '.join(_EXPANSION)}.")
        if self.args["bbox_layout"] not in ("xyXY", "xyWH"):
            raise RuntimeError(f"Unknown bbox_layout: {self.args['bbox_layout']}. Supported layouts are: xyWH, xyXY.")
        if not 0 <= self.args["remove_threshold"] < 1:
            raise RuntimeError(f"`remove_threshold` must be in [0, 1), got {self.args['remove_threshold']:g}")
        missing = [letter for letter in "HW" if letter not in self.args["shape_layout"]]
        if missing:
            raise RuntimeError(f"`shape_layout` must name {missing[0]}, got '{self.args['shape_layout']}'")
        if self.args["keep_size"] and self.given("size"):
            raise RuntimeError("`keep_size` and `size` cannot be given together")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        boxes = workspace.inputs[0]
        if boxes.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be of float, got {dtype_name(boxes.dtype)}")
        specs = [OutputSpec(FLOAT, "", 2)]
        if len(workspace.inputs) > 1:
            labels = workspace.inputs[1]
            if labels.dtype != INT32:
                raise RuntimeError(f"Labels must be of int32, got {dtype_name(labels.dtype)}")
            specs.append(OutputSpec(INT32, "", labels.ndim()))
        return specs

    def infer(self, sample: Sample[None, BoxPlan]) -> list[tuple[int, ...]]:
        shape = sample.shapes[0]
        if len(shape) != 2 or shape[1] != 4:
            raise RuntimeError(f"Boxes must be of shape (boxes, 4), got {list(shape)}")
        if len(sample.shapes) > 1:
            labels = sample.shapes[1]
            if labels not in ((shape[0],), (shape[0], 1)):
                raise RuntimeError(f"Labels must be of shape ({shape[0]},) or ({shape[0]}, 1), got {list(labels)}")
        sample.plan = self._rotated(sample)
        count = len(sample.plan.boxes)
        return [(count, *shape[1:]) for shape in sample.shapes]

    def _rotated(self, sample: Sample[None, BoxPlan]) -> BoxPlan:
        extents = self._extents(sample)
        canvas = self._canvas(sample, extents)
        low, size = self._corners(sample.inputs[0], extents)
        rotation = rotation_2d(sample["angle"]).T
        centre = (low + size / 2 - extents / 2) @ rotation.T + canvas / 2
        enclosing = np.abs(size) @ np.abs(rotation).T
        size = _turned(size, sample["angle"])
        half = (size + (enclosing - size) * _EXPANSION[self.args["mode"]]) / 2
        low, high = centre - half, centre + half
        cut_low, cut_high = np.clip(low, 0, canvas), np.clip(high, 0, canvas)
        whole, rest = np.prod(high - low, axis=1), np.prod(cut_high - cut_low, axis=1)
        kept = rest >= self.args["remove_threshold"] * whole
        return BoxPlan(self._formatted(cut_low[kept], cut_high[kept], canvas), kept)

    def _extents(self, sample: Sample[None, BoxPlan]) -> np.ndarray:
        """Width and height of the image."""
        layout, shape = self.args["shape_layout"], self._input_shape(sample)
        if len(shape) < len(layout):
            raise RuntimeError(f"`input_shape` has {len(shape)} entries, but `shape_layout` is '{layout}'")
        return np.array([shape[layout.index("W")], shape[layout.index("H")]], np.float64)

    @staticmethod
    def _input_shape(sample: Sample[None, BoxPlan]) -> list[int]:
        """The image's shape, of any integer type, as operators that return shapes use int64."""
        computed = sample.tensor_argument("input_shape")
        if computed is None:
            return sample["input_shape"]
        if computed.dtype.kind not in "iu":
            raise TypeError(f"`input_shape` must be of integers, got {computed.dtype}")
        return computed.reshape(-1).tolist()

    def _canvas(self, sample: Sample[None, BoxPlan], extents: np.ndarray) -> np.ndarray:
        """Width and height of the rotated image."""
        if self.args["keep_size"]:
            return extents
        if sample.given("size"):
            given = self._size(sample)
            if len(given) != 2:
                raise RuntimeError(f"`size` list argument must be exactly two elements (HW), got {len(given)}")
            return np.trunc(np.array(given[::-1], np.float64))
        _, canvases = rotated_canvases(extents.astype(np.int64)[None], rotation_2d(sample["angle"])[None])
        return canvases[0].astype(np.float64)

    @staticmethod
    def _size(sample: Sample[None, BoxPlan]) -> list[float]:
        """The argument `size`, which may be integers if it is computed in the graph."""
        computed = sample.tensor_argument("size")
        if computed is None:
            return sample["size"]
        if computed.dtype not in (np.int32, np.int64, np.uint32, np.float32):
            raise TypeError(f"`size` must be int32, int64, uint32 or float, got {computed.dtype}")
        return computed.reshape(-1).tolist()

    def _corners(self, boxes: np.ndarray, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper left corners and sizes, in pixels."""
        boxes = boxes.astype(np.float64)
        if self.args["bbox_normalized"]:
            boxes = boxes * np.tile(extents, 2)
        low, second = boxes[:, :2], boxes[:, 2:]
        return low, second if self.args["bbox_layout"] == "xyWH" else second - low

    def _formatted(self, low: np.ndarray, high: np.ndarray, canvas: np.ndarray) -> np.ndarray:
        boxes = np.hstack([low, high - low if self.args["bbox_layout"] == "xyWH" else high])
        return boxes / np.tile(canvas, 2) if self.args["bbox_normalized"] else boxes

    def compute(self, sample: Sample[None, BoxPlan]) -> None:
        sample.outputs[0][...] = sample.plan.boxes
        if len(sample.inputs) > 1:
            sample.outputs[1][...] = sample.inputs[1][sample.plan.kept]


def _turned(size: np.ndarray, angle: float) -> np.ndarray:
    """Widths and heights, swapped if the rotation makes a wide box taller than wide.

    In single precision, which decides whether the box that holds the rotated one is a square.
    """
    radians = np.float32(angle) * np.float32(np.pi / 180)
    along, across = np.abs(np.cos(radians)), np.abs(np.sin(radians))
    width, height = size.astype(np.float32).T
    swapped = (width < height) != (along * width + across * height < across * width + along * height)
    return np.where(swapped[:, None], size[:, ::-1], size)
