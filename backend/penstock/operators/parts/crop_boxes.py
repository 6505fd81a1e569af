"""`crop_boxes`: cuts boxes out of images; each crop is a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.kernels.windows import POLICIES, Region, cut_off, fill_per_channel
from penstock.operators.parts._parts import cut_regions, mark_parts
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Schema,
    Workspace,
    example_data,
    register_operator,
)
from penstock.tensors import TensorList, TensorListGPU

_FORMS = ("xyXY", "xyWH")
_NO_BOXES = np.zeros((0, 4), np.int64)


@register_operator
class CropBoxes(Operator):
    """Cuts boxes out of each image. Each crop is a sample, and the crops of all images form one batch.

    Returns the crops, each with the size of its box, and the number of crops of each image. Edges are rounded to whole pixels,
    halves to even, as `PIL.Image.crop` does. If a crop fails in a later operator, its image fails.

    >>> crops, counts = fn.crop_boxes(images, boxes)
    >>> crops = fn.resize(crops, size=[224, 224])  # like any other batch
    """

    schema = Schema(
        name="CropBoxes",
        inputs=(
            Input("images", ("HWC", "CHW"), doc="Images of any type."),
            Input(
                "boxes",
                device="match_or_cpu",
                doc="Numbers of shape (boxes, 4), in pixels; best on the CPU, where they are needed.",
                example=example_data.boxes,
            ),
        ),
        arguments=(
            Argument(
                "box_form",
                "string",
                "xyXY",
                "`xyXY`: left, top, right, bottom; `xyWH`: left, top, width, height.",
                choices=_FORMS,
            ),
            Argument(
                "fill_values",
                "float[]",
                [0.0],
                'Value of pixels outside the image, with out_of_bounds_policy="pad": one, or one for each channel.',
            ),
            Argument("normalized", "bool", False, "Boxes are in fractions of the image's width and height."),
            Argument(
                "out_of_bounds_policy",
                "string",
                "trim_to_shape",
                "A box that reaches outside of its image: `error`, `pad` or `trim_to_shape`.",
                choices=POLICIES,
            ),
        ),
        outputs=2,
        host_outputs=(1,),
        unswept="its first output is a batch of another size",
        equivalents=(Equivalent("PIL.Image.Image.crop", "For one box, with `out_of_bounds_policy='pad'`."),),
    )

    def setup(self) -> None:
        for name, known in (("box_form", _FORMS), ("out_of_bounds_policy", POLICIES)):
            if self.args[name] not in known:
                raise ValueError(f"`{name}` must be one of {', '.join(known)}. Got: {self.args[name]!r}")

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        layout = self.input_layout(workspace)
        images, given = workspace.inputs
        boxes = given.as_cpu() if isinstance(given, TensorListGPU) else given
        edges: list[np.ndarray] = []
        for index, (shape, own) in enumerate(zip(images.shapes, boxes.samples)):
            edges.append(_NO_BOXES)
            if index not in workspace.failures:
                try:
                    edges[-1] = self._edges(shape, own, layout)
                except ValueError as error:
                    workspace.fail(index, error)
        channels = images.shapes[0][layout.index("C")] if len(images) else None
        fill = fill_per_channel(self.args["fill_values"], channels)
        if isinstance(images, TensorListGPU):
            crops: TensorList = self._cut_on_gpu(workspace, images, edges, layout, fill)
        else:
            depths = [shape[layout.index("C")] for shape in images.shapes]
            regions = [[_region(row, depth, layout) for row in own.tolist()] for own, depth in zip(edges, depths)]
            crops = cut_regions(workspace, regions, layout, fill)
        workspace.outputs = [crops, mark_parts(workspace, crops, [len(own) for own in edges])]

    def _cut_on_gpu(
        self, workspace: Workspace, images: TensorListGPU, edges: Sequence[np.ndarray], layout: str, fill: np.ndarray
    ) -> TensorListGPU:
        from penstock.kernels.cuda.launch import places_of
        from penstock.operators.parts._crop_boxes_cuda import Crops, cut_boxes

        boxes, owners = np.concatenate([_NO_BOXES, *edges]), np.repeat(np.arange(len(edges)), list(map(len, edges)))
        sources = images.shape_array()[owners]
        shapes = sources.copy()
        shapes[:, layout.index("H")], shapes[:, layout.index("W")] = (boxes[:, 2:] - boxes[:, :2]).T[::-1]
        spec = OutputSpec(images.dtype, layout, images.ndim())
        crops: TensorListGPU = workspace.allocate(list(map(tuple, shapes.tolist())), spec)
        if len(owners):
            cut = Crops(places_of(images)[0][owners], places_of(crops)[0], sources, shapes, boxes[:, :2])
            cut_boxes(cut, layout, cut_off(fill, numpy_dtype(images.dtype)))
        return crops

    def _edges(self, shape: tuple[int, ...], boxes: np.ndarray, layout: str) -> np.ndarray:
        """Return the left, top, right and bottom edges of the boxes of an image, in pixels: int64 of shape (boxes, 4).

        Raises:
            ValueError: ``boxes`` has another shape than (boxes, 4); or a box has an edge that is not finite, is empty, is too large, or
                reaches outside of the image against the policy.
        """
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            if boxes.size:
                raise ValueError(f"Boxes must have the shape (boxes, 4). Got: {list(boxes.shape)}")
            return _NO_BOXES
        extents = np.array([shape[layout.index(axis)] for axis in "WH"])
        edges = boxes.astype(np.float64)
        if not np.isfinite(edges).all():
            raise ValueError(
                f"Box {int(np.argmin(np.isfinite(edges).all(axis=1)))} has an edge that is infinite or not a number"
            )
        if self.args["box_form"] == "xyWH":
            edges[:, 2:] += edges[:, :2]
        if self.args["normalized"]:
            edges *= np.tile(extents, 2)
        # Clip edges to positions far outside of any image, as larger numbers would overflow int64.
        whole = np.rint(edges.clip(-(2.0**31), 2.0**31)).astype(np.int64)
        policy = self.args["out_of_bounds_policy"]
        cut = whole.reshape(-1, 2, 2).clip(0, extents).reshape(-1, 4) if policy == "trim_to_shape" else whole
        sides = cut[:, 2:] - cut[:, :2]
        is_outside = np.full(len(cut), policy == "error") & ((whole[:, :2] < 0) | (whole[:, 2:] > extents)).any(axis=1)
        is_empty = (sides <= 0).any(axis=1)
        is_large = sides.astype(np.float64).prod(axis=1) > 16 * max(int(extents.prod()), 1 << 16)
        is_faulty = is_outside | is_empty | is_large
        if is_faulty.any():
            number = int(np.argmax(is_faulty))
            left, top, right, bottom = whole[number].tolist()
            image = f"its image of {extents[0]} x {extents[1]} pixels"
            if is_outside[number]:
                fault = f"reaches outside of {image}; `out_of_bounds_policy` may be 'pad' or 'trim_to_shape'"
            else:
                fault = (
                    f"holds no pixel of {image}" if is_empty[number] else f"is more than 16 times as large as {image}"
                )
            raise ValueError(f"Box {number}, from ({left}, {top}) to ({right}, {bottom}), {fault}")
        return cut


def _region(edges: Sequence[int], channels: int, layout: str) -> Region:
    left, top, right, bottom = edges
    anchors = {"H": top, "W": left, "C": 0}
    sizes = {"H": bottom - top, "W": right - left, "C": channels}
    return Region(tuple(anchors[axis] for axis in layout), tuple(sizes[axis] for axis in layout))
