"""`grid_mask`: squares of a rotated grid are erased."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.types import FLOAT, INT16, INT32, UINT8, UINT16, UINT32, dtype_name


@register_operator
class GridMask(Operator):
    """Sets squares on a regular grid to zero; Chen et al., "GridMask data augmentation", 2020.

    A pixel (x, y) is erased where both ``x * cos(angle) - y * sin(angle) - shift_x`` and
    ``x * sin(angle) + y * cos(angle) - shift_y`` lie in the first ``ratio`` of a tile.

    >>> images = fn.grid_mask(images, tile=100, ratio=0.4, angle=0.3)  # doctest: +SKIP
    """

    schema = Schema(
        name="GridMask",
        inputs=(Input("input", doc="Images of three dimensions: height, width and channels."),),
        arguments=(
            Argument("angle", "float", 0.0, "Of the grid, in radians.", tensor=True),
            Argument("ratio", "float", 0.5, "Side of the erased squares, as a part of the tile.", tensor=True),
            Argument("shift_x", "float", 0.0, "Where the grid begins along its x axis, in pixels.", tensor=True),
            Argument("shift_y", "float", 0.0, "Where the grid begins along its y axis, in pixels.", tensor=True),
            Argument("tile", "int32", 100, "Side of a tile, in pixels.", tensor=True),
        ),
    )

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in (UINT8, UINT16, UINT32, INT16, INT32, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if batch.ndim() != 3 and len(batch):
            raise RuntimeError(f"`grid_mask` takes images of three dimensions, got {batch.ndim()}")
        return [OutputSpec(batch.dtype, batch.layout(), 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        if sample["tile"] <= 0:
            raise RuntimeError(f"Tile argument must be positive, got {sample['tile']}")
        return sample.shapes[0]

    def compute(self, sample: Sample) -> None:
        self._mask(np, sample)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.tensors.cuda import require_cupy

        for sample in workspace.live:
            self._mask(require_cupy(), sample)

    @staticmethod
    def _mask(library: Any, sample: Sample) -> None:
        """In arrays of ``library``: numpy or CuPy."""
        source = sample.inputs[0]
        tile = sample["tile"]
        cos, sin = math.cos(sample["angle"]) / tile, math.sin(sample["angle"]) / tile
        x = library.arange(source.shape[1], dtype=np.float32)
        y = library.arange(source.shape[0], dtype=np.float32)[:, None]
        along_x = x * np.float32(cos) - y * np.float32(sin) - np.float32(sample["shift_x"] / tile)
        along_y = x * np.float32(sin) + y * np.float32(cos) - np.float32(sample["shift_y"] / tile)
        along_x -= library.floor(along_x)
        along_y -= library.floor(along_y)
        ratio = np.float32(sample["ratio"])
        library.multiply(source, ((along_x >= ratio) | (along_y >= ratio))[..., None], out=sample.outputs[0])
