"""`cut_tiles`: a sample of each tile."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32
from penstock.operators.parts._parts import mark_parts
from penstock.schema import Argument, Input, Operator, OutputSpec, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures
from penstock.tensors import TensorListCPU

_EDGES = ("pad", "shift", "drop")


@register_operator
class CutTiles(Operator):
    """Cuts images into tiles of one size, row by row: each tile is a sample, of a batch that holds those of all images.

    Returns the tiles, where each begins in its image (INT32: top, left), and for each image how many it has.

    >>> tiles, corners, counts = fn.cut_tiles(images, tile=[512, 512], stride=[384, 384], edge="shift")
    """

    schema = Schema(
        name="CutTiles",
        devices=("cpu",),
        inputs=(Input("images", ("HWC", "CHW"), doc="Images of any type.", example=pictures),),
        arguments=(
            Argument(
                "edge",
                "string",
                "pad",
                "Where tiles reach beyond the image's right or lower edge: `pad`: they are filled with `fill_value`; `shift`: "
                "they end there, and overlap those before (images that are smaller than a tile are filled); `drop`: there are "
                "none.",
                choices=_EDGES,
            ),
            Argument("fill_value", "float", 0.0, "What pixels outside of the image are."),
            Argument(
                "stride", "int32[]", None, "From one tile to the next: down, right; by default the tile's extents."
            ),
            Argument("tile", "int32[]", None, "Extents of a tile: height, width.", required=True, example=[8, 8]),
        ),
        outputs=3,
        unswept="its first two outputs are batches of another size",
    )

    def setup(self) -> None:
        tile = self.args["tile"]
        stride = self.args["stride"] or tile
        for name, values in (("tile", tile), ("stride", stride)):
            if len(values) != 2 or min(values) < 1:
                raise ValueError(f"`{name}` has two positive numbers, for height and width. Got: {list(values)}")
        if self.args["edge"] not in _EDGES:
            raise ValueError(f"`edge` is one of {', '.join(_EDGES)}. Got: {self.args['edge']!r}")

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        layout = self.input_layout(workspace)
        images = workspace.inputs[0]
        axes = layout.index("H"), layout.index("W")
        corners = [
            [] if index in workspace.failures else self._corners(tuple(shape[axis] for axis in axes))
            for index, shape in enumerate(images.shapes)
        ]
        flat = [(owner, corner) for owner, own in enumerate(corners) for corner in own]
        tiles = self._cut(workspace, images, flat, layout)
        places = TensorListCPU.of_samples([np.array(corner, np.int32) for _, corner in flat], "", INT32, 1)
        numbers = mark_parts(workspace, tiles, [len(own) for own in corners])
        places.positions = tiles.positions
        workspace.outputs = [tiles, places, numbers]

    def _corners(self, extents: tuple[int, ...]) -> list[tuple[int, int]]:
        tile = self.args["tile"]
        stride = self.args["stride"] or tile
        rows, columns = (self._starts(*of_axis) for of_axis in zip(extents, tile, stride))
        return [(row, column) for row in rows for column in columns]

    def _starts(self, extent: int, tile: int, stride: int) -> list[int]:
        """Where tiles begin along an axis."""
        if self.args["edge"] == "drop":
            return list(range(0, extent - tile + 1, stride))
        count = max(-(-(extent - tile) // stride), 0) + 1
        starts = range(0, count * stride, stride)
        return [min(start, max(extent - tile, 0)) for start in starts] if self.args["edge"] == "shift" else list(starts)

    def _cut(
        self, workspace: Workspace, images: TensorListCPU, flat: list[tuple[int, tuple[int, int]]], layout: str
    ) -> TensorListCPU:
        height, width = self.args["tile"]
        shapes = []
        for owner, _ in flat:
            sizes = {"H": height, "W": width, "C": images.shapes[owner][layout.index("C")]}
            shapes.append(tuple(sizes[axis] for axis in layout))
        tiles: TensorListCPU = workspace.allocate(shapes, OutputSpec(images.dtype, layout, images.ndim()))

        def cut(number: int) -> None:
            owner, (top, left) = flat[number]
            ranges = {"H": slice(top, top + height), "W": slice(left, left + width), "C": slice(None)}
            part = images.samples[owner][tuple(ranges[axis] for axis in layout)]
            tile = tiles.samples[number]
            if part.shape != tile.shape:
                tile[...] = self.args["fill_value"]
            tile[tuple(slice(extent) for extent in part.shape)] = part

        workspace.parallel(cut, len(flat), [int(np.prod(shape)) for shape in shapes])
        return tiles
