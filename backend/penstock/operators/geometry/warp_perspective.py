"""`experimental.warp_perspective`: perspective warping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import FLOAT, INT16, INTERP_CUBIC, INTERP_LINEAR, INTERP_NN, UINT8, UINT16, dtype_name
from penstock.kernels.borders import check_border
from penstock.kernels.resize_shapes import round_half_away
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
from penstock.schema.example_data import Example, fixed_arrays, on_photo, pictures
from penstock.schema.references import follows_opencv, opencv_reference

_TAPS = {INTERP_NN: 1, INTERP_LINEAR: 2, INTERP_CUBIC: 4}
_TYPES = (UINT8, INT16, UINT16, FLOAT)
# OpenCV reflects a position repeatedly until it lies in the image, once per image extent; far positions take long.
_MAX_REFLECTIONS = 100


@dataclass(frozen=True)
class PerspectivePlan:
    """How to warp one image.

    Attributes:
        matrix: a 3x3 matrix that maps the centres of output pixels to input coordinates relative to the first pixel's
            centre; None if it is on the GPU. With ``reference='opencv'``: the matrix that is passed to OpenCV.
        taps: number of taps along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: whether to round subpixel positions to multiples of 1/32.
        fill: the value of each channel outside the image.
    """

    matrix: np.ndarray | None
    taps: int
    coarse: bool
    fill: np.ndarray


@register_operator
class WarpPerspective(Operator[str, PerspectivePlan]):
    """Warps images by a homography, which maps output to input coordinates unless ``inverse_map=False``."""

    schema = Schema(
        name="experimental__WarpPerspective",
        inputs=(
            Input(
                "input",
                ("HW", "HWC", "FHWC", "CHW", "FCHW"),
                doc="Images of uint8, int16, uint16 or float, of up to 4 channels.",
            ),
            Input("matrix_input", doc="The 3x3 matrix of float, unless it is an argument."),
        ),
        min_inputs=1,
        arguments=(
            Argument(
                "border_mode",
                "string",
                "constant",
                "Beyond the border: `constant`, `replicate` (aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc) or "
                "`wrap` (bc|abc).",
                choices=("constant", "replicate", "reflect", "reflect_101", "wrap"),
            ),
            Argument(
                "fill_value",
                "float[]",
                [],
                "Value beyond a constant border: one value, or one per channel.",
                example=[7.0],
            ),
            Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "INTERP_NN, INTERP_LINEAR or INTERP_CUBIC."),
            Argument(
                "inverse_map", "bool", True, "The matrix maps output to input coordinates; False: input to output."
            ),
            Argument(
                "matrix",
                "float[]",
                [],
                "3x3 matrix in x, y, row by row.",
                tensor=True,
                matrix=True,
                per_frame=True,
                tensor_example=[[0.9, 0.2, 3.0], [-0.1, 1.1, 2.0], [0.001, 0.002, 1.0]],
            ),
            Argument(
                "pixel_origin",
                "string",
                "corner",
                "The origin of pixel (0, 0): `corner`, or `center` as in OpenCV; with `reference='opencv'`, always `center`.",
                choices=("corner", "center"),
            ),
            opencv_reference(
                "`cv2.warpPerspective`. Where borders are reflected, the output must not reach farther beyond the image than 100 times "
                "its extents, because OpenCV would take long."
            ),
            Argument(
                "size",
                "float[]",
                [],
                "Output extents (height, width); default: the input's.",
                tensor=True,
                example=[20.0, 30.0],
            ),
        ),
        sequences=True,
        examples=(
            Example({"matrix": [0.9, 0.2, 3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0]}),
            Example(inputs=(pictures, fixed_arrays([[0.9, 0.2, 3], [-0.1, 1.1, 2], [0.001, 0.002, 1]]))),
        ),
        shown=(on_photo(matrix=[1.2, 0.2, -30.0, 0.1, 1.2, -20.0, 0.0005, 0.0015, 1.0]),),
        equivalents=(
            Equivalent(
                "cv2.warpPerspective",
                'Equal with `reference="opencv"`, and with `WARP_INVERSE_MAP` unless `inverse_map=False`; with just '
                '`pixel_origin="center"`, values differ by at most 1.',
            ),
            Equivalent("torchvision.transforms.v2.functional.perspective", "It takes corners instead of a matrix."),
        ),
    )

    def setup(self) -> None:
        check_border(self.args["border_mode"])
        if self.args["interp_type"] not in _TAPS:
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use NN, LINEAR or CUBIC")
        if self.args["pixel_origin"] not in ("corner", "center"):
            raise RuntimeError(f"Unknown pixel_origin '{self.args['pixel_origin']}': use `corner` or `center`")
        self._follows_opencv = follows_opencv(self)
        if self._follows_opencv and self.given("pixel_origin") and self._from_corner():
            raise ValueError("With `reference='opencv'`, `pixel_origin` must be `center`")
        # If matrices are an input, plans depend on them, not only on shapes.
        self.plans_by_shape = self.given("matrix")

    def describe(self, workspace: Workspace[str, PerspectivePlan]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        workspace.state = self.input_layout(workspace)
        if batch.dtype not in _TYPES:
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if len(workspace.inputs) > 1:
            matrices = workspace.inputs[1]
            if self.given("matrix"):
                raise RuntimeError("Matrix input and `matrix` argument should not be provided at the same time.")
            if matrices.dtype != FLOAT:
                raise RuntimeError(f"Matrices must be float, got {dtype_name(matrices.dtype)}")
        return [OutputSpec(batch.dtype, workspace.state, batch.ndim())]

    def infer(self, sample: Sample[str, PerspectivePlan]) -> tuple[int, ...]:
        layout, shape = sample.workspace.state, list(sample.shapes[0])
        channels = shape[layout.index("C")] if "C" in layout else 1
        if layout.endswith("C") and channels > 4:
            raise RuntimeError(f"Images of more than 4 channels are not supported, got {channels}")
        if len(sample.shapes) > 1 and sample.shapes[1] != (3, 3):
            raise RuntimeError(f"The matrix must be of shape (3, 3), got {list(sample.shapes[1])}")
        if 0 in shape:
            raise RuntimeError(f"Cannot warp an empty image of shape {shape}")
        taps = _TAPS[self.args["interp_type"]]
        # Results must equal OpenCV's, which rounds positions in these cases, and interpolates exactly in all others.
        coarse = taps == 2 and (sample.workspace.inputs[0].dtype == INT16 or (layout.endswith("C") and channels == 2))
        sample.plan = PerspectivePlan(self._matrix(sample), taps, coarse, self._fill(layout, channels))
        self._set_size(sample, layout, shape)
        matrix = sample.plan.matrix
        if self._follows_opencv and self.args["border_mode"].startswith("reflect") and matrix is not None:
            axes = [layout.index(letter) for letter in "WH"]
            self._check_reflections(matrix, [sample.shapes[0][axis] for axis in axes], [shape[axis] for axis in axes])
        return tuple(shape)

    @staticmethod
    def _set_size(sample: Sample[str, PerspectivePlan], layout: str, shape: list[int]) -> None:
        """Change ``shape`` from the input's shape to the output's."""
        computed = sample.tensor_argument("size")
        if sample["size"] or computed is not None:
            size = sample["size"]
            if len(size) not in (1, 2) or (len(size) == 1 and computed is not None and computed.ndim):
                raise RuntimeError(f"`size` must have 2 entries (height, width), got {len(size)}")
            for letter, extent in zip("HW", size * 2 if len(size) == 1 else size):
                shape[layout.index(letter)] = max(round_half_away(extent), 1)

    def _check_reflections(self, matrix: np.ndarray, size_in: list[int], size_out: list[int]) -> None:
        """Raise ValueError if a corner of the output maps too far beyond the input's border, or the horizon crosses the output."""
        if not self.args["inverse_map"]:
            matrix = np.linalg.inv(matrix) if np.linalg.det(matrix) else np.zeros((3, 3))
        corners = np.array([(x, y, 1) for x in (0, size_out[0] - 1) for y in (0, size_out[1] - 1)]) @ matrix.T
        depths = corners[:, 2:]
        if not matrix.any():
            return
        if not (depths > 0).all() and not (depths < 0).all():
            raise ValueError("With `reference='opencv'` and a reflected border, the horizon must not cross the output")
        if not (abs(corners[:, :2]) <= abs(depths) * size_in * _MAX_REFLECTIONS).all():
            raise ValueError(
                "With `reference='opencv'` and a reflected border, the output must not reach farther beyond the image than "
                f"{_MAX_REFLECTIONS} times its extents"
            )

    def _matrix(self, sample: Sample[str, PerspectivePlan]) -> np.ndarray | None:
        """Return the matrix for the plan (see :class:`PerspectivePlan`); None if it is on the GPU."""
        matrix_argument = self._given_matrix(sample)
        if matrix_argument is None:
            return None
        matrix = matrix_argument.reshape(3, 3).astype(np.float32)
        if self._follows_opencv:
            return matrix
        if self._from_corner():
            # Single precision and this order decide which of two equally near pixels is chosen.
            half = np.float32(0.5)
            matrix[:, 2] += matrix[:, 0] * half + matrix[:, 1] * half
            matrix[:2] -= matrix[2] * half
        matrix = matrix.astype(np.float64)
        if self.args["inverse_map"]:
            return matrix
        # If the homography is singular, use a matrix that maps all pixels outside the image.
        return np.linalg.inv(matrix) if np.linalg.det(matrix) else np.zeros((3, 3))

    def _from_corner(self) -> bool:
        return bool(self.args["pixel_origin"] == "corner")

    @staticmethod
    def _given_matrix(sample: Sample[str, PerspectivePlan]) -> np.ndarray | None:
        if len(sample.shapes) > 1:
            return None if sample.workspace.inputs[1].device_type == "gpu" else sample.inputs[1]
        values = sample.tensor_argument("matrix")
        if values is not None and values.shape != (3, 3):
            raise RuntimeError(f"`matrix` must be of shape (3, 3), got {list(values.shape)}")
        matrix = np.asarray(sample["matrix"], np.float32)
        if matrix.size != 9:
            raise RuntimeError(f"`matrix` must have 9 elements (3x3), got {matrix.size}")
        return matrix

    def _fill(self, layout: str, channels: int) -> np.ndarray:
        values = self.args["fill_value"] or [0.0]
        if len(values) > 1 and layout.startswith("C"):
            raise RuntimeError("Only scalar fill_value can be provided when processing data in planar layout.")
        if len(values) not in (1, channels):
            raise RuntimeError(f"`fill_value` has {len(values)} entries, but the images have {channels} channels")
        return np.broadcast_to(np.asarray(values, np.float32), (channels,))

    def compute(self, sample: Sample[str, PerspectivePlan]) -> None:
        from penstock.operators.geometry._perspective_cpu import warp_perspective

        source, target, plan = np.ascontiguousarray(sample.inputs[0]), sample.outputs[0], sample.plan
        border, matrix = self.args["border_mode"], plan.matrix
        assert matrix is not None
        if self._follows_opencv:
            self._compute_by_opencv(source, plan, matrix, sample.workspace.state, target)
            return
        if sample.workspace.state.startswith("C"):
            for plane, out, fill in zip(source[..., None], target[..., None], plan.fill):
                warp_perspective(plane, matrix, plan.taps, plan.coarse, border, fill[None], out)
            return
        # An image without a channel dimension has one channel.
        shape = (*target.shape[:2], len(plan.fill))
        image = source.reshape(*source.shape[:2], len(plan.fill))
        warp_perspective(image, matrix, plan.taps, plan.coarse, border, plan.fill, target.reshape(shape))

    def _compute_by_opencv(
        self, source: np.ndarray, plan: PerspectivePlan, matrix: np.ndarray, layout: str, target: np.ndarray
    ) -> None:
        from penstock.kernels.cpu.opencv import images, warp

        kind, border = self.args["interp_type"], self.args["border_mode"]
        fill = plan.fill.tolist()
        for number, (image, out) in enumerate(zip(images(source, layout), images(target, layout))):
            values = fill[number : number + 1] if layout.startswith("C") else fill
            warp(image, matrix, self.args["inverse_map"], kind, border, values, out)

    def compute_batch(self, workspace: Workspace[str, PerspectivePlan]) -> None:
        if self._follows_opencv:
            Operator.compute_batch(self, workspace)
            return
        from penstock.kernels.cuda.launch import Located, locate_all
        from penstock.operators.geometry._perspective_cuda import Perspective, prepared_matrices, warp_images

        samples, layout = workspace.live, workspace.state
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        matrices: Sequence[np.ndarray | Located] = [m for s in samples if (m := s.plan.matrix) is not None]
        if len(workspace.inputs) > 1:
            matrices_on_gpu = locate_all(workspace.inputs[1], samples)
            matrices = prepared_matrices(matrices_on_gpu, self._from_corner(), not self.args["inverse_map"])
        axis = layout.index("H")
        jobs = []
        for sample, source, target, matrix in zip(samples, sources, targets, matrices):
            plan = sample.plan
            # With channels first, the kernel warps planes, which all have the same fill value.
            fill = plan.fill[:1] if axis else plan.fill
            jobs.append(Perspective(source, target, axis, matrix, plan.taps, plan.coarse, fill))
        warp_images(jobs, self.args["border_mode"])
