"""`cut_tiles`: cuts images into tiles; each tile is a sample."""

from __future__ import annotations

import numpy as np

from penstock.data_types import INT32
from penstock.kernels.windows import Region
from penstock.operators.parts._parts import cut_regions, mark_parts
from penstock.schema import Argument, Input, Operator, Schema, Workspace, register_operator
from penstock.schema.example_data import pictures
from penstock.tensors import TensorListCPU

_EDGES = ("pad", "shift", "drop")


@register_operator
class CutTiles(Operator):
    """Cuts images into tiles of one size, row by row. Each tile is a sample, and the tiles of all images form one batch.

    Returns the tiles, the position of each tile in its image (INT32: top, left), and the number of tiles of each image.

    >>> tiles, corners, counts = fn.cut_tiles(images, tile=[512, 512], stride=[384, 384], edge="shift")
    """

    schema = Schema(
        name="CutTiles",
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
            Argument("fill_value", "float", 0.0, "Value of pixels outside the image."),
            Argument(
                "stride", "int32[]", None, "Distance to the next tile: down, right; by default the tile's extents."
            ),
            Argument("tile", "int32[]", None, "Extents of a tile: height, width.", required=True, example=[8, 8]),
        ),
        outputs=3,
        host_outputs=(1, 2),
        unswept="its first two outputs are batches of another size",
    )

    def setup(self) -> None:
        tile = self.args["tile"]
        stride = self.args["stride"] or tile
        for name, values in (("tile", tile), ("stride", stride)):
            if len(values) != 2 or min(values) < 1:
                raise ValueError(f"`{name}` must have two positive numbers, for height and width. Got: {list(values)}")
        if self.args["edge"] not in _EDGES:
            raise ValueError(f"`edge` must be one of {', '.join(_EDGES)}. Got: {self.args['edge']!r}")

    def run(self, workspace: Workspace) -> None:
        self.check_inputs(workspace)
        layout = self.input_layout(workspace)
        images = workspace.inputs[0]
        axes = layout.index("H"), layout.index("W")
        corners = [
            [] if index in workspace.failures else self._corners(tuple(shape[axis] for axis in axes))
            for index, shape in enumerate(images.shapes)
        ]
        regions: dict[tuple[int, int, int], Region] = {}
        channels = [shape[layout.index("C")] for shape in images.shapes]
        # Tiles at the same position of several images share one Region object, so that comparing object identities suffices to group them.
        tiled = [
            [regions.setdefault((*corner, depth), self._region(corner, depth, layout)) for corner in own]
            for own, depth in zip(corners, channels)
        ]
        tiles = cut_regions(workspace, tiled, layout, [self.args["fill_value"]])
        flat = [np.array(corner, np.int32) for own in corners for corner in own]
        places = TensorListCPU.of_samples(flat, "", INT32, 1)
        numbers = mark_parts(workspace, tiles, [len(own) for own in corners])
        places.positions = tiles.positions
        workspace.outputs = [tiles, places, numbers]

    def _corners(self, extents: tuple[int, ...]) -> list[tuple[int, int]]:
        tile = self.args["tile"]
        stride = self.args["stride"] or tile
        rows, columns = (self._starts(*of_axis) for of_axis in zip(extents, tile, stride))
        return [(row, column) for row in rows for column in columns]

    def _starts(self, extent: int, tile: int, stride: int) -> list[int]:
        """Return the positions at which tiles start along an axis of length ``extent``."""
        if self.args["edge"] == "drop":
            return list(range(0, extent - tile + 1, stride))
        count = max(-(-(extent - tile) // stride), 0) + 1
        starts = range(0, count * stride, stride)
        return [min(start, max(extent - tile, 0)) for start in starts] if self.args["edge"] == "shift" else list(starts)

    def _region(self, corner: tuple[int, int], channels: int, layout: str) -> Region:
        anchor = {"H": corner[0], "W": corner[1], "C": 0}
        height, width = self.args["tile"]
        extents = {"H": height, "W": width, "C": channels}
        return Region(tuple(anchor[axis] for axis in layout), tuple(extents[axis] for axis in layout))
