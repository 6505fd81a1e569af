"""`clahe`: local contrast equalization."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.kernels.cuda.histogram import Tiling
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import on_photo
from penstock.schema.libraries import OPENCV


@register_operator
class Clahe(Operator):
    """Equalizes the histograms of tiles, limits the contrast this adds, and interpolates between tiles.

    Zuiderveld, "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.
    """

    schema = Schema(
        name="Clahe",
        needs=(OPENCV,),
        inputs=(Input("input", ("HWC",), doc="Images of uint8, grey or RGB."),),
        arguments=(
            Argument("bins", "int32", 256, "Accepted for compatibility: there is one bin for each value."),
            Argument(
                "clip_limit",
                "float",
                doc="The largest ratio of a histogram's bin to the mean; 0 or less: no limit.",
                required=True,
                example=2.0,
            ),
            Argument(
                "luma_only", "bool", True, "Equalize the lightness of RGB images (L of CIE L*a*b*), not each channel."
            ),
            Argument("tiles_x", "int32", doc="Number of tiles across the width.", required=True, example=2),
            Argument("tiles_y", "int32", doc="Number of tiles across the height.", required=True, example=3),
        ),
        shown=(on_photo(tiles_x=4, tiles_y=4, clip_limit=4.0),),
        equivalents=(
            Equivalent("cv2.createCLAHE", "One channel: apply it to the lightness of L*a*b*, as is done here."),
        ),
    )

    def setup(self) -> None:
        for name in ("tiles_x", "tiles_y"):
            if self.args[name] < 1:
                raise RuntimeError(f"`{name}` must be positive, got {self.args[name]}")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype != UINT8:
            raise ValueError(f"CLAHE currently supports only uint8 input, got {dtype_name(batch.dtype)}")
        return [OutputSpec(UINT8, layout, 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if shape[2] not in (1, 3):
            raise ValueError(f"CLAHE supports 1 or 3 channels, got {shape[2]} in shape {list(shape)}")
        return shape

    def compute(self, sample: Sample) -> None:
        source, target = sample.inputs[0], sample.outputs[0]
        if not target.size:
            return
        if self._only_lightness(source.shape):
            from penstock.kernels.cpu.opencv import keep, opencv

            cv2 = opencv()
            colours = cv2.cvtColor(np.ascontiguousarray(source), cv2.COLOR_RGB2LAB)
            self._equalize(colours[..., 0], colours[..., 0])
            keep(cv2.cvtColor(colours, cv2.COLOR_LAB2RGB, dst=target), target)
            return
        for channel in range(source.shape[2]):
            self._equalize(source[..., channel], target[..., channel])

    def _equalize(self, source: np.ndarray, target: np.ndarray) -> None:
        from penstock.kernels.cpu.histogram import equalize_tiles

        tiling = self._tiling(*source.shape)
        equalize_tiles(source, tiling.tiles, tiling.extents, tiling.limit, target)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.histogram import equalize_planes, planes_of
        from penstock.kernels.cuda.launch import locate_all, scratch
        from penstock.operators.image._lab_cuda import from_lab, to_lab

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        coloured = [(a, b) for a, b in zip(sources, targets) if self._only_lightness(a.shape)]
        colours = scratch([source.shape for source, _ in coloured], np.uint8)
        to_lab([(source, colour) for (source, _), colour in zip(coloured, colours)])
        # Equalize only L, the first of the three channels.
        planes = [replace(plane, channels=1) for colour in colours for plane in planes_of(colour, colour, 0)]
        for source, target in zip(sources, targets):
            if not self._only_lightness(source.shape):
                planes += planes_of(source, target, 0)
        equalize_planes((plane, self._tiling(plane.height, plane.width)) for plane in planes)
        from_lab([(colour, target) for colour, (_, target) in zip(colours, coloured)])

    def _only_lightness(self, shape: tuple[int, ...]) -> bool:
        return bool(shape[2] == 3 and self.args["luma_only"])

    def _tiling(self, height: int, width: int) -> Tiling:
        tiles = (self.args["tiles_y"], self.args["tiles_x"])
        if height % tiles[0] or width % tiles[1]:
            # Like OpenCV: if either extent isn't a multiple of the number of tiles, both are extended.
            height, width = (extent + count - extent % count for extent, count in zip((height, width), tiles))
        extents = (height // tiles[0], width // tiles[1])
        limit = self.args["clip_limit"] * extents[0] * extents[1] / 256
        return Tiling(tiles, extents, max(int(limit), 1) if self.args["clip_limit"] > 0 else 0)
