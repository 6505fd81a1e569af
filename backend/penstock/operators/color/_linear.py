"""Base class of operators that transform colours linearly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.chains import StageKind, StageRecords
from penstock.data_types import FLOAT, FLOAT16, INT16, INT32, RGB, UINT8, DALIDataType, dtype_name, numpy_dtype
from penstock.schema import Argument, Input, OutputSpec, PlanColumns, Sample, Samples, Workspace
from penstock.schema.outputs import Shape
from penstock.schema.pointwise import PointwiseOperator

_INPUTS = (UINT8, INT16, INT32, FLOAT)
_MATRIX_TYPES = (*_INPUTS, FLOAT16)

THREE_CHANNELS = Input("input", ("HWC", "FHWC", "DHWC"), doc="Images of three channels.")
BRIGHTNESS = Argument("brightness", "float", 1.0, "Factor; 1 changes nothing.", tensor=True, per_frame=True)
HUE = Argument("hue", "float", 0.0, "Change of hue, in degrees.", tensor=True, per_frame=True)
SATURATION = Argument("saturation", "float", 1.0, "Factor of saturation; 0 yields grey.", tensor=True, per_frame=True)
IMAGE_TYPE = Argument("image_type", "DALIImageType", RGB, "Colour space of the input.")
DTYPE = Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input.")


LinearMap = tuple[np.ndarray, np.ndarray]
"""A matrix and an offset, both float64; a 1x1 matrix is a factor for all channels."""


@dataclass(eq=False)
class LinearMaps(PlanColumns[LinearMap]):
    """The linear maps of many samples.

    Attributes:
        matrices: float64 of shape (samples, n, n).
        offsets: float64 of shape (samples, n).
    """

    matrices: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.matrices)

    def row(self, number: int) -> LinearMap:
        return self.matrices[number], self.offsets[number]


class LinearColourOperator(PointwiseOperator[None, LinearMap, LinearMaps]):
    """Base class of operators whose output pixels are a matrix times the input pixels, plus an offset."""

    described_by_kind = True
    launches = True
    shares_plans_in_chains = True
    repeats_plans = True
    input_types: tuple[DALIDataType, ...] = _INPUTS
    output_types: tuple[DALIDataType, ...] = _INPUTS

    def describe(self, workspace: Workspace[None, LinearMap, LinearMaps]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        for what, kind, supported in (("input", batch.dtype, self.input_types), ("output", dtype, self.output_types)):
            if kind not in supported:
                names = ", ".join(map(dtype_name, supported))
                raise RuntimeError(f"Unsupported {what} type: {dtype_name(kind)}. Supported are: {names}")
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer_batch(self, samples: Samples[None, LinearMap, LinearMaps]) -> tuple[list[list[Shape]], LinearMaps]:
        # Infinite factors give infinite values or NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            matrices, offsets = self.linear_maps(samples)
        count = len(samples)
        # A single row applies to all samples.
        maps = LinearMaps(
            matrices if len(matrices) == count else matrices.repeat(count, axis=0),
            offsets if len(offsets) == count else offsets.repeat(count, axis=0),
        )
        return [samples.shape_list()], maps

    def linear_maps(self, samples: Samples[None, LinearMap, LinearMaps]) -> tuple[np.ndarray, np.ndarray]:
        """Return matrices, float64 of shape (samples, n, n), and offsets, (samples, n); one row if all samples share them."""
        raise NotImplementedError

    def stage_records(self, workspace: Workspace[None, LinearMap, LinearMaps]) -> StageRecords | None:
        from penstock.kernels.cpu.colour import linear_records

        batch, maps = workspace.inputs[0], workspace.plans
        source, target = numpy_dtype(batch.dtype), numpy_dtype(workspace.outputs[0].dtype)
        if np.float16 in (source, target):
            return None
        records, kernel = linear_records(maps.matrices, maps.offsets, source, target)
        group = maps.matrices.shape[1]
        return StageRecords(
            StageKind.POINTWISE, records, batch.shape_array(), target.itemsize, compute=kernel, group=group
        )

    def compute(self, sample: Sample[None, LinearMap]) -> None:
        self.compute_elements(sample, np.ascontiguousarray(sample.inputs[0]), sample.outputs[0])

    def compute_elements(self, sample: Sample[None, LinearMap], source: np.ndarray, target: np.ndarray) -> None:
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

    def compute_batch(self, workspace: Workspace[None, LinearMap, LinearMaps]) -> None:
        from penstock.kernels.cuda.colour import transform_colours
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        transform_colours([(source, *s.plan, target) for s, source, target in zip(samples, sources, targets)])


class ColourMatrixOperator(LinearColourOperator):
    """Base class of operators that mix the three channels."""

    input_types = output_types = _MATRIX_TYPES
    group = 3

    def infer_batch(self, samples: Samples[None, LinearMap, LinearMaps]) -> tuple[list[list[Shape]], LinearMaps]:
        shapes = samples.shapes()
        # Empty images may have any number of channels.
        wrong = (shapes[:, -1] != 3) & shapes[:, :-1].all(axis=1)
        if wrong.any():
            shape = shapes[wrong][0].tolist()
            raise RuntimeError(f"Images must have 3 channels, got {shape[-1]} in shape {shape}")
        return super().infer_batch(samples)
