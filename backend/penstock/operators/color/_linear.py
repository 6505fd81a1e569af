"""The base of operators that transform colours linearly."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, FLOAT16, INT16, INT32, RGB, UINT8, DALIDataType, dtype_name
from penstock.schema import Argument, Input, OutputSpec, Sample, Workspace
from penstock.schema.pointwise import PointwiseOperator

_INPUTS = (UINT8, INT16, INT32, FLOAT)
_MATRIX_TYPES = (*_INPUTS, FLOAT16)

THREE_CHANNELS = Input("input", ("HWC", "FHWC", "DHWC"), doc="Images of three channels.")
BRIGHTNESS = Argument("brightness", "float", 1.0, "Factor; 1 changes nothing.", tensor=True, per_frame=True)
HUE = Argument("hue", "float", 0.0, "Change of hue, in degrees.", tensor=True, per_frame=True)
SATURATION = Argument("saturation", "float", 1.0, "Factor of saturation; 0 yields grey.", tensor=True, per_frame=True)
IMAGE_TYPE = Argument("image_type", "DALIImageType", RGB, "Colour space of the input.")
DTYPE = Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input.")


class LinearColourOperator(PointwiseOperator[None, tuple[np.ndarray, np.ndarray]]):
    """The base of operators whose output pixels are linear in the input pixels."""

    plans_by_shape = True
    input_types: tuple[DALIDataType, ...] = _INPUTS
    output_types: tuple[DALIDataType, ...] = _INPUTS

    def describe(self, workspace: Workspace[None, tuple[np.ndarray, np.ndarray]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        for what, kind, supported in (("input", batch.dtype, self.input_types), ("output", dtype, self.output_types)):
            if kind not in supported:
                names = ", ".join(map(dtype_name, supported))
                raise RuntimeError(f"Unsupported {what} type: {dtype_name(kind)}. Supported are: {names}")
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> tuple[int, ...]:
        sample.plan = self.plan(sample)
        return sample.shapes[0]

    def plan(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """The matrix and the offset; a 1x1 matrix is a factor for all channels."""
        raise NotImplementedError

    def compute(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> None:
        self.compute_elements(sample, np.ascontiguousarray(sample.inputs[0]), sample.outputs[0])

    def compute_elements(
        self, sample: Sample[None, tuple[np.ndarray, np.ndarray]], source: np.ndarray, target: np.ndarray
    ) -> None:
        from penstock.kernels.cpu.colour import scale_add, transform
        from penstock.kernels.cpu.halves import round_to_halves

        matrix, offset = sample.plan
        if source.dtype == np.float16:
            source = source.astype(np.float32)
        if matrix.size == 1:
            scale_add(source, float(matrix[0, 0]), float(offset[0]), target)
        elif target.dtype != np.float16:
            transform(source, matrix, offset, target)
        else:
            wide = np.empty(target.shape, np.float32)
            transform(source, matrix, offset, wide)
            round_to_halves(wide, target)

    def compute_batch(self, workspace: Workspace[None, tuple[np.ndarray, np.ndarray]]) -> None:
        from penstock.kernels.cuda.colour import transform_colours
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        transform_colours([(source, *s.plan, target) for s, source, target in zip(samples, sources, targets)])


class ColourMatrixOperator(LinearColourOperator):
    """The base of operators that mix the three channels."""

    input_types = output_types = _MATRIX_TYPES
    group = 3

    def infer(self, sample: Sample[None, tuple[np.ndarray, np.ndarray]]) -> tuple[int, ...]:
        # Empty images are not looked at.
        if sample.shapes[0][-1] != 3 and all(sample.shapes[0][:-1]):
            raise RuntimeError(
                f"Images must have 3 channels, got {sample.shapes[0][-1]} in shape {list(sample.shapes[0])}"
            )
        return super().infer(sample)
