"""`debayer`: RGB images from Bayer mosaics."""

from __future__ import annotations

from functools import partial

import numpy as np

from penstock.data_types import UINT8, UINT16, dtype_name
from penstock.schema import (
    Alias,
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
from penstock.schema.example_data import Example, mosaics, pictures
from penstock.schema.libraries import OPENCV

# Suffixes of OpenCV's conversion codes. OpenCV names a mosaic after the second and third pixels of the second row.
_METHODS = {
    "bilinear_ocv": "2RGB",
    "edgeaware_ocv": "2RGB_EA",
    "vng_ocv": "2RGB_VNG",
    "gray_ocv": "2GRAY",
    "default_npp": "2RGB",
}
_PATTERNS = {(0, 0): "BG", (0, 1): "GB", (1, 0): "GR", (1, 1): "RG"}


@register_operator
class Debayer(Operator[None, tuple[int, int]]):
    """Interpolates RGB images from raw images of a sensor with a Bayer colour filter array."""

    schema = Schema(
        name="Debayer",
        needs=(OPENCV,),
        inputs=(
            Input(
                "input",
                ("HW", "HWC", "FHW", "FHWC"),
                doc="Images of uint8 or uint16 with a single channel.",
                example=partial(pictures, C=(1,)),
            ),
        ),
        arguments=(
            Argument(
                "algorithm",
                "string",
                None,
                "The interpolation of colours. On CPU: `bilinear_ocv` (default), `edgeaware_ocv`, `vng_ocv` "
                "(uint8 only), or `gray_ocv` for grey images. On GPU: `default_npp`, which equals `bilinear_ocv`.",
                choices=("bilinear_ocv", "edgeaware_ocv", "vng_ocv"),
            ),
            Argument(
                "blue_position",
                "int32[]",
                doc="Row and column of blue in the 2x2 tile that begins in the second row and column of the image.",
                required=True,
                tensor=True,
                matrix=True,
                per_frame=True,
                example=[0, 1],
            ),
        ),
        sequences=True,
        aliases=(Alias("experimental__Debayer", deprecated_since="2.0"),),
        shown=(Example({"blue_position": [0, 0]}, (mosaics,)),),
        equivalents=(Equivalent("cv2.cvtColor", "It has a code for each pattern, such as `COLOR_BayerBG2RGB`."),),
    )

    def setup(self) -> None:
        self.algorithm = (self.args["algorithm"] or "").lower()
        if self.args["algorithm"] is None or self.algorithm == "default":
            self.algorithm = "bilinear_ocv" if self.device == "cpu" else "default_npp"
        if self.algorithm not in _METHODS:
            raise RuntimeError(
                f"Unsupported debayer algorithm was specified: `{self.algorithm}`. Use one of {', '.join(_METHODS)}."
            )
        if (self.algorithm == "default_npp") != (self.device != "cpu"):
            raise RuntimeError(f"{self.algorithm} algorithm is not supported on {self.device.upper()}.")

    def describe(self, workspace: Workspace[None, tuple[int, int]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        self.input_layout(workspace)
        if batch.dtype not in (UINT8, UINT16):
            raise RuntimeError(f"Images must be uint8 or uint16, got {dtype_name(batch.dtype)}")
        if self.algorithm == "vng_ocv" and batch.dtype != UINT8:
            raise RuntimeError(f"`vng_ocv` takes images of uint8, got {dtype_name(batch.dtype)}")
        return [OutputSpec(batch.dtype, "HWC", 3)]

    def infer(self, sample: Sample[None, tuple[int, int]]) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if len(shape) == 3 and shape[2] != 1:
            raise RuntimeError(
                f"The sample has shape {list(shape)}, of {shape[2]} channels. The debayer operator expects grayscale (i.e. single "
                "channel) images; sequences need the layout `FHW`."
            )
        height, width = shape[:2]
        if not height or not width:
            raise RuntimeError(f"The image to debayer is empty: {height} x {width}")
        if height % 2 or width % 2:
            raise RuntimeError(f"The height and width of the image to debayer must be even, got {height} x {width}")
        position = sample["blue_position"]
        # Only a constant may be a single value, which then is both the row and the column.
        accepted = (1, 2) if sample.tensor_argument("blue_position") is None else (2,)
        if len(position) not in accepted:
            raise RuntimeError(
                "The blue_position must be specified with exactly two values to describe a position within 2D tile. "
                f"Got {len(position)} values."
            )
        row, column = position * 2 if len(position) == 1 else position
        if (row, column) not in _PATTERNS:
            raise RuntimeError(f"The `blue_position` position must lie within 2x2 tile, got {row} x {column}")
        sample.plan = row, column
        return height, width, 1 if self.algorithm == "gray_ocv" else 3

    def compute(self, sample: Sample[None, tuple[int, int]]) -> None:
        from penstock.kernels.cpu.opencv import keep, opencv

        cv2, target = opencv(), sample.outputs[0]
        source = np.ascontiguousarray(sample.inputs[0]).reshape(sample.shapes[0][:2])
        code = getattr(cv2, f"COLOR_Bayer{_PATTERNS[sample.plan]}{_METHODS[self.algorithm]}")
        keep(cv2.cvtColor(source, code, dst=target), target)

    def compute_batch(self, workspace: Workspace[None, tuple[int, int]]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._debayer_cuda import debayer_images

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        # The argument counts from the image's second row and column, the kernel's position from the first ones.
        blues = [(row + 1, column + 1) for row, column in (sample.plan for sample in samples)]
        debayer_images(list(zip(sources, blues, targets)))
