"""`crop_boxes`: a sample of each box."""

from __future__ import annotations

import numpy as np

from penstock.kernels.windows import POLICIES, Region, fill_per_channel
from penstock.operators.parts._parts import cut_regions, mark_parts
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    Schema,
    Workspace,
    example_data,
    register_operator,
)
from penstock.tensors import TensorListGPU

_FORMS = ("xyXY", "xyWH")


@register_operator
class CropBoxes(Operator):
    """Cuts the boxes out of each image: each crop is a sample, of a batch that holds those of all images.

    Returns the crops, whose sizes differ as those of the boxes do, and for each image how many it has. Edges between
    pixels are rounded to the nearest one, halves to the even one, as `PIL.Image.crop` does. If a crop fails, its image
    fails.

    >>> crops, counts = fn.crop_boxes(images, boxes)
    >>> crops = fn.resize(crops, size=[224, 224])  # as any other batch
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
                'What pixels outside of the image are, with out_of_bounds_policy="pad": one value, or one for each channel.',
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
        regions: list[list[Region]] = []
        for index, (shape, own) in enumerate(zip(images.shapes, boxes.samples)):
            regions.append([])
            if index not in workspace.failures:
                try:
                    regions[-1] = self._regions(shape, own, layout)
                except ValueError as error:
                    workspace.fail(index, error)
        channels = images.shapes[0][layout.index("C")] if len(images) else None
        crops = cut_regions(workspace, regions, layout, fill_per_channel(self.args["fill_values"], channels))
        workspace.outputs = [crops, mark_parts(workspace, crops, [len(own) for own in regions])]

    def _regions(self, shape: tuple[int, ...], boxes: np.ndarray, layout: str) -> list[Region]:
        """Return the regions of the boxes in an image.

        Raises:
            ValueError: the input has another shape than boxes, or a box is empty or reaches outside the image.
        """
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            if boxes.size:
                raise ValueError(f"Boxes must have the shape (boxes, 4). Got: {list(boxes.shape)}")
            return []
        height, width = (shape[layout.index(axis)] for axis in "HW")
        edges = boxes.astype(np.float64)
        if not np.isfinite(edges).all():
            raise ValueError(f"Box {int(np.argmin(np.isfinite(edges).all(axis=1)))} has an edge that is not a number")
        if self.args["box_form"] == "xyWH":
            edges[:, 2:] += edges[:, :2]
        if self.args["normalized"]:
            edges *= (width, height, width, height)
        # Far beyond any image, where integers would overflow.
        whole = np.rint(edges.clip(-(2.0**31), 2.0**31)).astype(np.int64)
        return [self._region(number, row, (height, width), shape, layout) for number, row in enumerate(whole.tolist())]

    def _region(
        self, number: int, edges: list[int], extents: tuple[int, int], shape: tuple[int, ...], layout: str
    ) -> Region:
        left, top, right, bottom = edges
        height, width = extents
        policy = self.args["out_of_bounds_policy"]
        inside = left >= 0 and top >= 0 and right <= width and bottom <= height
        where = f"Box {number}, from ({left}, {top}) to ({right}, {bottom}),"
        if policy == "error" and not inside:
            raise ValueError(
                f"{where} reaches outside of its image of {width} x {height} pixels; `out_of_bounds_policy` may be 'pad' or "
                "'trim_to_shape'"
            )
        if policy == "trim_to_shape":
            left, right = (min(max(edge, 0), width) for edge in (left, right))
            top, bottom = (min(max(edge, 0), height) for edge in (top, bottom))
        if right <= left or bottom <= top:
            raise ValueError(f"{where} holds no pixel of its image of {width} x {height} pixels")
        if (right - left) * (bottom - top) > 16 * max(height * width, 1 << 16):
            raise ValueError(f"{where} is more than 16 times as large as its image of {width} x {height} pixels")
        anchors = {"H": top, "W": left, "C": 0}
        sizes = {"H": bottom - top, "W": right - left, "C": shape[layout.index("C")]}
        return Region(tuple(anchors[axis] for axis in layout), tuple(sizes[axis] for axis in layout))
