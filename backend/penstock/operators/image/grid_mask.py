"""`grid_mask`: erases the squares of a rotated grid."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INT16, INT32, UINT8, dtype_name
from penstock.operators.image._grids import Grid, grid_of
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class GridMask(Operator[None, Grid]):
    """Sets squares on a regular grid to zero; Chen et al., "GridMask data augmentation", 2020.

    Pixel (x, y) is erased if both ``x * cos(angle) - y * sin(angle) - shift_x`` and
    ``x * sin(angle) + y * cos(angle) - shift_y``, modulo ``tile``, are less than ``ratio * tile``.

    >>> images = fn.grid_mask(images, tile=100, ratio=0.4, angle=0.3)  # doctest: +SKIP
    """

    schema = Schema(
        name="GridMask",
        inputs=(Input("input", doc="Images of three dimensions: height, width and channels."),),
        arguments=(
            Argument("angle", "float", 0.0, "Angle of the grid, in radians.", tensor=True),
            Argument("ratio", "float", 0.5, "Side of the erased squares, as a fraction of the tile.", tensor=True),
            Argument("shift_x", "float", 0.0, "Start of the grid along its x axis, in pixels.", tensor=True),
            Argument("shift_y", "float", 0.0, "Start of the grid along its y axis, in pixels.", tensor=True),
            Argument("tile", "int32", 100, "Side of a tile, in pixels.", tensor=True),
        ),
        shown=(on_photo(tile=40, ratio=0.5, angle=0.3),),
    )

    def describe(self, workspace: Workspace[None, Grid]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in (UINT8, INT16, INT32, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if batch.ndim() != 3 and len(batch):
            raise RuntimeError(f"`grid_mask` takes images of three dimensions, got {batch.ndim()}")
        return [OutputSpec(batch.dtype, batch.layout(), 3)]

    def infer(self, sample: Sample[None, Grid]) -> tuple[int, ...]:
        tile = sample["tile"]
        if tile <= 0:
            raise RuntimeError(f"Tile argument must be positive, got {tile}")
        sample.plan = grid_of(sample["angle"], tile, sample["shift_x"], sample["shift_y"], sample["ratio"])
        return sample.shapes[0]

    def compute(self, sample: Sample[None, Grid]) -> None:
        from penstock.operators.image._grid_mask_cpu import mask_grid

        mask_grid(np.ascontiguousarray(sample.inputs[0]), sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[None, Grid]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._grid_mask_cuda import mask_grids

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        mask_grids([(source, s.plan, target) for s, source, target in zip(samples, sources, targets)])
