"""`experimental.remap`: reads each pixel at the position that two maps contain."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INT16, INTERP_LINEAR, INTERP_NN, UINT8, UINT16, dtype_name
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
from penstock.schema.example_data import Example, MakeSamples, fixed_arrays, photos, random_arrays


def _waves(axis: int) -> MakeSamples:
    """Return the map for one axis, of a photograph's size; the maps of both axes displace pixels in waves."""
    places = np.indices((160, 240), np.float32)
    return fixed_arrays(places[axis] + 6 * np.sin(places[1 - axis] / 12), layout="HW")


_MAP_LAYOUTS = ("HWC", "HW", "FHWC", "FHW", "F***", "F**")


@register_operator
class Remap(Operator):
    """``output(x, y) = input(mapx(x, y), mapy(x, y))``; 0 beyond the border."""

    schema = Schema(
        name="experimental__Remap",
        inputs=(
            Input("input", ("HWC", "FHWC"), doc="Images of uint8, int16, uint16 or float."),
            Input(
                "mapx",
                _MAP_LAYOUTS,
                doc="The x coordinate of each output pixel, float of shape (H, W) or (H, W, 1).",
                example=random_arrays((31, 47), (9, 8), (20, 20), low=-3, high=20, layout="HW"),
            ),
            Input(
                "mapy",
                _MAP_LAYOUTS,
                doc="The y coordinates, of the same shape.",
                example=random_arrays((31, 47), (9, 8), (20, 20), low=-5, high=30, layout="HW"),
            ),
        ),
        arguments=(
            Argument("interp", "DALIInterpType", INTERP_LINEAR, "INTERP_NN or INTERP_LINEAR."),
            Argument(
                "pixel_origin",
                "string",
                "corner",
                "The origin of pixel (0, 0): `corner`, or `center` as in OpenCV.",
                choices=("corner", "center"),
            ),
        ),
        sequences=True,
        shown=(Example({}, (photos, _waves(1), _waves(0))),),
        equivalents=(Equivalent("cv2.remap", 'Equal with `pixel_origin="center"`.'),),
    )

    def setup(self) -> None:
        if self.args["interp"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp']}: use INTERP_NN or INTERP_LINEAR")
        if self.args["pixel_origin"] not in ("corner", "center"):
            raise RuntimeError(f"Unknown pixel_origin '{self.args['pixel_origin']}': use `corner` or `center`")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, UINT16, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        for maps in workspace.inputs[1:]:
            if maps.dtype != FLOAT:
                raise RuntimeError(f"Maps must be of float, got {dtype_name(maps.dtype)}")
        return [OutputSpec(batch.dtype, layout, 3)]

    def infer(self, sample: Sample) -> tuple[int, ...]:
        image, mapx, mapy = sample.shapes
        if mapx != mapy:
            raise RuntimeError(f"The maps must be of one shape, got {list(mapx)} and {list(mapy)}")
        if len(mapx) not in (2, 3) or (len(mapx) == 3 and mapx[2] != 1):
            raise RuntimeError(f"The maps must be of shape (H, W) or (H, W, 1), got {list(mapx)}")
        return (*mapx[:2], image[2])

    def _shift(self) -> float:
        """Return what to add to the maps' coordinates to make them relative to the centre of the first pixel."""
        return -0.5 if self.args["pixel_origin"] == "corner" else 0.0

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu.remap import remap

        target = sample.outputs[0]
        if not target.size:
            return
        source, *maps = (np.ascontiguousarray(data) for data in sample.inputs)
        mapx, mapy = (data.reshape(target.shape[:2]) for data in maps)
        remap(source, mapx, mapy, self._shift(), self.args["interp"] == INTERP_LINEAR, target)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.displacement import Displacement, displace_images
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, mapx, mapy = (locate_all(batch, samples) for batch in workspace.inputs)
        targets = locate_all(workspace.outputs[0], samples)
        displacements = [
            Displacement(source, target, maps=maps) for source, target, maps in zip(sources, targets, zip(mapx, mapy))
        ]
        displace_images("Given", displacements, self.args["interp"] == INTERP_LINEAR, self._shift())
