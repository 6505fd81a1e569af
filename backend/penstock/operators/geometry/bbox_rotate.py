"""`bbox_rotate`: rotates bounding boxes along with their image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.kernels.boxes import gathered_rows
from penstock.kernels.geometry import rotated_canvases, rotations_2d
from penstock.schema import (
    Argument,
    Input,
    Operator,
    OutputSpec,
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import boxes
from penstock.schema.operator import Shape

# How much boxes grow, from 0 (the size of the original box) to 1 (the size of the box that encloses the rotated box).
_EXPANSION = {"expand": 1.0, "halfway": 0.5, "fixed": 0.0}


@dataclass(frozen=True)
class BoxPlan:
    """The result for one sample.

    Attributes:
        boxes: the remaining boxes, in the output's format.
        indices: the index of each remaining box among the boxes of the input.
    """

    boxes: np.ndarray
    indices: np.ndarray


@dataclass(eq=False)
class BoxPlans(PlanColumns[BoxPlan]):
    """The results for many samples.

    Attributes:
        boxes, indices: as in :class:`BoxPlan`, for all samples, one after the other.
        counts: the number of remaining boxes of each sample.
    """

    boxes: np.ndarray
    indices: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def row(self, number: int) -> BoxPlan:
        first = int(self.counts[:number].sum())
        own = slice(first, first + int(self.counts[number]))
        return BoxPlan(self.boxes[own], self.indices[own])


@register_operator
class BBoxRotate(Operator[None, BoxPlan, BoxPlans]):
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
            raise RuntimeError(f"Boxes must be float, got {dtype_name(boxes.dtype)}")
        specs = [OutputSpec(FLOAT, "", 2)]
        if len(workspace.inputs) > 1:
            labels = workspace.inputs[1]
            if labels.dtype != INT32:
                raise RuntimeError(f"Labels must be int32, got {dtype_name(labels.dtype)}")
            specs.append(OutputSpec(INT32, "", labels.ndim()))
        return specs

    def infer_batch(self, samples: Samples[None, BoxPlan, BoxPlans]) -> tuple[Sequence[np.ndarray], BoxPlans]:
        from penstock.operators.geometry._rotated_boxes_cpu import rotate_boxes

        shapes = samples.shapes()
        if shapes.shape[1] != 2 or (shapes[:, 1] != 4).any():
            bad = next(shape for shape in shapes.tolist() if len(shape) != 2 or shape[1] != 4)
            raise RuntimeError(f"Boxes must be of shape (boxes, 4), got {bad}")
        count = len(samples)
        boxes = np.concatenate(samples.of(samples.workspace.inputs[0].samples))
        firsts = np.zeros(count + 1, np.int64)
        np.cumsum(shapes[:, 0], out=firsts[1:])
        names = frozenset({"angle", "input_shape", "size"})
        geometry = samples.derived(names, ("geometry", count), lambda: self._geometry(samples))
        rotated, indices, counts = np.empty_like(boxes), np.empty(len(boxes), np.int32), np.empty(count, np.int64)
        found = rotate_boxes(
            boxes,
            firsts,
            *geometry,
            self.args["bbox_normalized"],
            self.args["bbox_layout"] == "xyWH",
            np.float32(_EXPANSION[self.args["mode"]]),
            np.float32(self.args["remove_threshold"]),
            rotated,
            indices,
            counts,
        )
        outputs = [np.stack([counts, np.full(count, 4)], axis=1)]
        if len(samples.workspace.inputs) > 1:
            outputs.append(_label_shapes(shapes, samples.shapes(1), counts))
        return outputs, BoxPlans(rotated[:found], indices[:found], counts)

    def _geometry(self, samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return width and height of each image, those of each rotated image, and angles in radians, all float32."""
        count = len(samples)
        angles, layout = samples.scalars("angle"), self.args["shape_layout"]
        shapes = _given(
            samples, "input_shape", ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
        )
        if shapes.shape[1] < len(layout):
            raise RuntimeError(f"`input_shape` has {shapes.shape[1]} entries, but `shape_layout` is '{layout}'")
        extents = np.empty((count, 2))
        extents[:] = shapes[:, [layout.index("W"), layout.index("H")]]
        canvases = self._canvases(samples, extents, rotations_2d(angles, count))
        radians = np.broadcast_to(angles.astype(np.float32) * np.float32(np.pi / 180), count)
        return extents.astype(np.float32), canvases.astype(np.float32), np.ascontiguousarray(radians)

    def _canvases(self, samples: Samples, extents: np.ndarray, rotations: np.ndarray) -> np.ndarray:
        """Return width and height of each rotated image."""
        if self.args["keep_size"]:
            return extents
        if not samples.given("size"):
            _, canvases = rotated_canvases(extents.astype(np.int64), rotations)
            return canvases.astype(np.float64)
        sizes = _given(samples, "size", ("int32", "int64", "uint32", "float32"))
        if sizes.shape[1] != 2:
            raise RuntimeError(f"`size` list argument must be exactly two elements (HW), got {sizes.shape[1]}")
        return np.broadcast_to(np.trunc(sizes[:, ::-1]), extents.shape).copy()

    def compute_samples(self, workspace: Workspace[None, BoxPlan, BoxPlans], shapes: Sequence[Shape]) -> None:
        if workspace.failures or not workspace.batch_size:
            super().compute_samples(workspace, shapes)
            return
        plans, outputs = workspace.plans, [batch.contiguous_elements() for batch in workspace.outputs]
        outputs[0][:] = plans.boxes.reshape(-1)
        if len(workspace.inputs) > 1:
            outputs[1][:] = gathered_rows(workspace.inputs[1].samples, plans.counts, plans.indices).reshape(-1)

    def compute(self, sample: Sample[None, BoxPlan]) -> None:
        sample.outputs[0][...] = sample.plan.boxes
        if len(sample.inputs) > 1:
            sample.outputs[1][...] = sample.inputs[1][sample.plan.indices]


def _given(samples: Samples, name: str, types: Sequence[str]) -> np.ndarray:
    """Return an argument's values in rows: one for each sample, or one for all; raise TypeError if a tensor is not of ``types``."""
    computed = samples.tensors(name)
    if computed is None:
        return samples.values(name)
    if computed.dtype.name not in types:
        raise TypeError(f"`{name}` must be {', '.join(types)}, got {computed.dtype}")
    return computed.reshape(len(samples), -1).astype(np.float64)


def _label_shapes(boxes: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the shapes of the remaining labels; raise RuntimeError unless the input has a label for each box."""
    for (count, _), shape in zip(boxes.tolist(), labels.tolist()):
        if shape not in ([count], [count, 1]):
            raise RuntimeError(f"Labels must be of shape ({count},) or ({count}, 1), got {shape}")
    return np.column_stack([counts, labels[:, 1:]])
