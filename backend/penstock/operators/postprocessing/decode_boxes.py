"""`decode_boxes`: the boxes that a detector predicts, in the coordinates of the original image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import FLOAT
from penstock.operators.postprocessing._rows import Rows, RowsOperator, Tables, check_real, elements_of, firsts_of
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, fixed_arrays, random_arrays

if TYPE_CHECKING:
    from penstock.operators.postprocessing._decode_boxes_cuda import PlacementColumns

_FORMS = ("centers", "anchors", "grid", "distances")
_ON_GRIDS = ("grid", "distances")
_ANCHORS = [0.0, 0.0, 0.5, 0.5, 0.2, 0.1, 0.9, 0.8, 0.5, 0.5, 1.0, 1.0]


@register_operator
class DecodeBoxes(RowsOperator):
    """Converts a detector's predictions of boxes to left, top, right, bottom, in the coordinates of the original image.

    The argument `form` says what the detector predicts:

    - `centers`: x and y of the centre, width and height, as DETR (in fractions of the image) and exported YOLO networks do;
    - `anchors`: offsets of the centre from that of an anchor, and logarithms of width and height relative to the anchor's, as SSD,
      RetinaNet and Faster R-CNN do; the inverse of :func:`box_encoder`;
    - `grid`: offsets of the centre from a cell of a grid, and logarithms of width and height, in units of cells, as YOLOX does; there
      is a grid for each of the `strides`, in their order, and the cells of a grid are in order row by row;
    - `distances`: the distances from the centre of such a cell to the four edges, in units of cells, as FCOS and RTMDet do; or, for
      each edge, the logits of the distances 0, 1, 2, ..., whose mean is taken, as NanoDet, PicoDet and YOLOv8 before its last layers
      do.

    Then `shift` is subtracted, and the result is multiplied by `scale` and limited to `clip`: if an image was reduced to half its size
    and padded by 10 pixels on its left, `shift=[10, 0]` and `scale=[2, 2]` undo this. Arithmetic is in single precision.

    >>> boxes = fn.decode_boxes(predictions[:, :4], scale=fn.cat(width, height))  # of DETR
    """

    schema = Schema(
        name="DecodeBoxes",
        inputs=(
            Input(
                "predictions",
                doc="FLOAT or FLOAT16, of shape (boxes, 4); logits of `distances`, of shape (boxes, 4 * logits).",
                example=random_arrays((3, 4), (3, 4), (3, 4), low=0.1, high=0.9),
            ),
            Input(
                "anchors_input",
                doc="FLOAT or FLOAT16, of shape (boxes, 4): left, top, right, bottom, where they are not an argument.",
                example=fixed_arrays(np.reshape(_ANCHORS, (3, 4))),
            ),
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "anchors",
                "float[]",
                None,
                "Left, top, right, bottom of each anchor, in one list.",
                example=_ANCHORS,
            ),
            Argument(
                "clip",
                "float[]",
                None,
                "Width and height of the original image, to which boxes are limited.",
                tensor=True,
                example=[0.5, 0.75],
            ),
            Argument(
                "form",
                "string",
                "centers",
                "What is predicted: `centers`, `anchors`, `grid` or `distances`.",
                choices=_FORMS,
                exempt="each form has inputs and arguments of its own",
            ),
            Argument(
                "max_log_scale",
                "float",
                4.135166556742356,
                "Of `anchors`: the greatest logarithm of a box's extent relative to its anchor's; by default that of 62.5.",
            ),
            Argument("means", "float[]", [0.0] * 4, "Of `anchors`: added to the offsets of x, y, width, height."),
            Argument(
                "scale", "float[]", [1.0], "Factor of the boxes: one number, or one each for x and y.", tensor=True
            ),
            Argument(
                "shift",
                "float[]",
                [0.0],
                "Subtracted before `scale` is applied: one number, or one each for x and y.",
                tensor=True,
            ),
            Argument(
                "size",
                "int32[]",
                None,
                "Of `grid` and `distances`: height and width of the network's input.",
                tensor=True,
                example=[16, 32],
                exempt="only grids have it",
            ),
            Argument("stds", "float[]", [1.0] * 4, "Of `anchors`: what multiplies the offsets of x, y, width, height."),
            Argument(
                "strides",
                "int32[]",
                [8, 16, 32],
                "Of `grid` and `distances`: the extents of cells, in pixels of the network's input.",
            ),
        ),
        examples=(
            Example(),
            Example({"form": "anchors", "anchors": _ANCHORS, "stds": [0.1, 0.1, 0.2, 0.2]}),
            Example(
                {"form": "anchors"},
                (random_arrays((3, 4)), fixed_arrays(np.reshape(_ANCHORS, (3, 4)))),
            ),
            Example({"form": "grid", "size": [16, 32], "strides": [8, 16]}, (random_arrays((10, 4)),)),
            Example({"form": "distances", "size": [16, 32], "strides": [8, 16]}, (random_arrays((10, 12)),)),
        ),
        equivalents=(Equivalent("torchvision.ops.box_convert", 'With `in_fmt="cxcywh"` and `out_fmt="xyxy"`.'),),
    )

    def setup(self) -> None:
        if self.args["form"] not in _FORMS:
            raise ValueError(f"`form` must be one of {', '.join(_FORMS)}. Got: {self.args['form']!r}")
        for name in ("means", "stds"):
            if len(self.args[name]) != 4:
                raise ValueError(f"`{name}` must have 4 values. Got: {len(self.args[name])}")
        strides = self.args["strides"]
        if not strides or min(strides) < 1:
            raise ValueError(f"`strides` must be 1 or more. Got: {strides}")
        if self.args["form"] in _ON_GRIDS and not self.given("size"):
            raise ValueError(f'`form="{self.args["form"]}"` needs `size`, the size of the network\'s input')
        anchors = self.args["anchors"]
        if anchors is not None and (not anchors or len(anchors) % 4):
            raise ValueError(f"`anchors` must have four numbers for each anchor. Got: {len(anchors)} numbers")
        self._means, self._stds = (np.array(self.args[name], np.float32) for name in ("means", "stds"))
        self._anchors = None if anchors is None else np.array(anchors, np.float32).reshape(-1, 4)

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        names = ("predictions", "anchors")
        for number in range(len(workspace.inputs)):
            check_real(workspace, number, names[number])
        ways = (len(workspace.inputs) > 1) + (self._anchors is not None)
        if ways != (self.args["form"] == "anchors"):
            raise ValueError(
                'Pass anchors exactly once, as an argument or an input, with `form="anchors"`, and not at all with other forms'
            )
        return [OutputSpec(FLOAT, "", 2)]

    def run_batch(self, workspace: Workspace[None, Tables, Rows]) -> None:
        # Unlike in other `RowsOperator`s, the shapes of results follow from those of inputs, so inputs can stay on the GPU.
        Operator.run_batch(self, workspace)

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Any]:
        if samples.workspace.device != "cpu":
            return self._infer_on_gpu(samples)
        from penstock.operators.postprocessing._decode_boxes_cpu import (
            decode_cells,
            decode_centres,
            decode_distances,
            decode_offsets,
        )

        shapes, form = samples.shapes(0), self.args["form"]
        width = self._width(shapes)
        counts = np.ascontiguousarray(shapes[:, 0])
        predicted, firsts = elements_of(samples, 0, np.float32).reshape(-1, width), firsts_of(counts)
        geometry, boxes = self._geometry(samples), np.empty((firsts[-1], 4), np.float32)
        if form == "centers":
            decode_centres(predicted, firsts, geometry, boxes)
        elif form in _ON_GRIDS:
            strides = np.array(self.args["strides"], np.int64)
            decode = decode_cells if form == "grid" else decode_distances
            # Round up, as convolutions pad inputs whose extents are not multiples of the stride.
            cells = -(-self._extents(samples, counts)[:, :, None] // strides)
            decode(predicted, firsts, geometry, cells, strides, boxes)
        else:
            self._check_anchors(samples, counts)
            step, anchors = 0, self._anchors
            if anchors is None:
                step, anchors = 1, elements_of(samples, 1, np.float32).reshape(-1, 4)
            offsets = self._means, self._stds, self.args["max_log_scale"]
            decode_offsets(predicted, firsts, geometry, anchors, step, *offsets, boxes)
        plans = Rows([boxes], counts[:, None])
        return plans.shapes(), plans

    def _geometry(self, samples: Samples[None, Tables, Rows]) -> np.ndarray:
        """Return how corners are moved, scaled and limited, in the form that :func:`decode_centres` accepts."""
        geometry = np.empty((len(samples), 8), np.float32)
        geometry[:, 4:6], geometry[:, 6:] = -np.inf, np.inf
        geometry[:, :2], geometry[:, 2:4] = _pairs(samples, "shift"), _pairs(samples, "scale")
        if samples.given("clip"):
            limits = samples.values("clip")
            if limits.shape[1] != 2 or not (limits >= 0).all():
                raise ValueError(f"`clip` must be a width and a height. Got: {limits[0].tolist()}")
            geometry[:, 4:6], geometry[:, 6:] = 0, limits
        return geometry

    def _width(self, shapes: np.ndarray) -> int:
        """Return the number of values predicted for a box.

        Raises:
            ValueError: the values do not divide evenly among the boxes, or their number does not match the form.
        """
        width = int(shapes[0, 1]) if shapes.shape[1] == 2 else 0
        if self.args["form"] == "distances":
            if not width or width % 4 or (shapes[:, 1] != width).any():
                raise ValueError(
                    f"Distances must have the shape (boxes, 4) or (boxes, 4 * logits). Got: {shapes[0].tolist()}"
                )
        elif width != 4 or (shapes[:, 1] != 4).any():
            raise ValueError(f"Predictions must have the shape (boxes, 4). Got: {shapes[0].tolist()}")
        return width

    def _extents(self, samples: Samples[None, Tables, Rows], counts: np.ndarray) -> np.ndarray:
        """Return height and width of each network's input, int64 of shape (samples, 2); raise ValueError unless each cell has
        a box."""
        extents = np.empty((len(samples), 2), np.int64)
        extents[:] = samples.per_axis("size", 2)
        totals = (-(-extents[:, :, None] // np.array(self.args["strides"]))).prod(axis=1).sum(axis=1)
        if (extents < 0).any() or (totals != counts).any():
            raise ValueError(
                f"Grids for a `size` of {extents[0].tolist()} have {totals[0]} cells, but there are {counts[0]} boxes"
            )
        return extents

    def _check_anchors(self, samples: Samples[None, Tables, Rows], counts: np.ndarray) -> None:
        """Raise ValueError unless there is an anchor for each box."""
        if self._anchors is not None:
            if (counts != len(self._anchors)).any():
                raise ValueError(f"There are {len(self._anchors)} anchors, but {counts[0]} boxes")
            return
        shapes = samples.shapes(1)
        if shapes.shape[1] != 2 or (shapes[:, 1] != 4).any() or (shapes[:, 0] != counts).any():
            raise ValueError(f"Anchors must have the shape (boxes, 4). Got: {shapes[0].tolist()} for {counts[0]} boxes")

    def _infer_on_gpu(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], PlacementColumns]:
        from penstock.operators.postprocessing._decode_boxes_cuda import PlacementColumns

        shapes = samples.shapes(0)
        self._width(shapes)
        counts = shapes[:, 0]
        extents = np.zeros((len(samples), 2), np.int64)
        if self.args["form"] in _ON_GRIDS:
            extents = self._extents(samples, counts)
        elif self.args["form"] == "anchors":
            self._check_anchors(samples, counts)
        return [np.column_stack([counts, np.full(len(counts), 4)])], PlacementColumns(self._geometry(samples), extents)

    def compute_batch(self, workspace: Workspace[None, Any, Any]) -> None:
        from penstock.kernels.cuda.launch import places_of
        from penstock.operators.postprocessing._decode_boxes_cuda import (
            Boxes,
            decode_cells,
            decode_centres,
            decode_distances,
            decode_offsets,
        )

        given, *anchors = workspace.inputs
        live, form = workspace.live_indices, self.args["form"]
        sources, targets = (places_of(batch)[0][live] for batch in (given, workspace.outputs[0]))
        shapes = given.shape_array()[live]
        boxes = Boxes(sources, targets, shapes[:, 0], workspace.plans, given.dtype)
        strides = np.array(self.args["strides"], np.int64)
        if form == "centers":
            decode_centres(boxes)
        elif form == "grid":
            decode_cells(boxes, strides)
        elif form == "distances":
            decode_distances(boxes, strides, int(shapes[0, 1]) // 4)
        else:
            base = places_of(anchors[0])[0][live] if self._anchors is None else self._anchors
            dtype = anchors[0].dtype if anchors else FLOAT
            decode_offsets(boxes, base, dtype, self._means, self._stds, self.args["max_log_scale"])


def _pairs(samples: Samples, name: str) -> np.ndarray:
    """Return an argument's values for x and y, or one value for both, in rows: one for each sample, or one for all samples."""
    values = samples.values(name)
    if values.shape[1] not in (1, 2):
        raise ValueError(f"`{name}` must be one number, or one for x and one for y. Got: {values[0].tolist()}")
    return values
