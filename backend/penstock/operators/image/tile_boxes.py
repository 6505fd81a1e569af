"""`tile_boxes`: the tiles of an image, as boxes."""

from __future__ import annotations

import itertools

import numpy as np

from penstock.data_types import INT32
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example


@register_operator
class TileBoxes(Operator):
    """Finds the tiles of an image, row by row, from the image's shape alone; unlike with :func:`cut_tiles`, the size of
    tiles may vary by image.

    Returns boxes, INT32 of shape (boxes, 4): left, top, right, bottom, as :func:`crop_boxes` accepts them. If the image
    cannot be divided into whole tiles, the last tiles end at its edge or, with `spread`, tiles overlap.

    >>> tiles, counts = fn.crop_boxes(images, fn.tile_boxes(images, tile=extents))
    """

    schema = Schema(
        name="TileBoxes",
        devices=("cpu",),
        inputs=(
            Input(
                "images",
                ("HWC",),
                device="any",
                doc="Images of any type, on CPU or GPU; only their shapes are used.",
            ),
        ),
        arguments=(
            Argument(
                "spread",
                "bool",
                False,
                "Give all tiles the whole size, and spread them evenly: overlaps are equal, with starts rounded down.",
            ),
            Argument(
                "tile",
                "int32[]",
                None,
                "Height and width of a tile.",
                required=True,
                tensor=True,
                example=[8, 8],
            ),
        ),
        exempt={"sequences": "the tiles of a video's frames are boxes of one image"},
        examples=(Example({"tile": [8, 4]}), Example({"tile": [8, 4], "spread": True})),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [OutputSpec(INT32, "", 2)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        height, width, _ = sample.shapes[0]
        tile = [int(extent) for extent in sample["tile"]]
        if len(tile) != 2 or min(tile) < 1:
            raise ValueError(f"`tile` must be a positive height and width. Got: {tile}")
        high, wide = tile
        starts = _spread if self.args["spread"] else lambda extent, side: range(0, extent, side)
        corners = itertools.product(starts(height, high), starts(width, wide))
        sample.plan = [(left, top, min(left + wide, width), min(top + high, height)) for top, left in corners]
        return len(sample.plan), 4

    def compute(self, sample: Sample) -> None:
        sample.outputs[0][...] = np.array(sample.plan, np.int32)


def _spread(extent: int, side: int) -> list[int]:
    """Return the starts of overlapping tiles that cover an extent; the last tile ends where the extent ends."""
    count = -(-extent // side)
    overlap = (count * side - extent) / (count - 1) if count > 1 else 0.0
    return [int(number * (side - overlap)) for number in range(count)]
