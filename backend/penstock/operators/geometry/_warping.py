"""Base class of operators that warp images: types, layouts, sizes, and running the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.chains import StageKind, StageRecords
from penstock.data_types import FLOAT, INT16, INT32, INTERP_LINEAR, INTERP_NN, UINT8, dtype_name, numpy_dtype
from penstock.kernels.windows import Region
from penstock.schema import Argument, Deprecation, OutputSpec, PlanColumns, Sample, Samples, Workspace
from penstock.schema.image_chain import ChainOperator, NotFusable, Pixels, Sampling
from penstock.schema.operator import Operator, Shape
from penstock.schema.references import check_opencv_types, follows_opencv, opencv_reference

DTYPE = Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input.")
FILL_VALUE = Argument(
    "fill_value",
    "float",
    None,
    "Value of pixels outside the input; by default the nearest pixel of the border.",
    example=7.0,
)
INTERP_TYPE = Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking.")
OUTPUT_DTYPE = Argument(
    "output_dtype",
    "DALIDataType",
    None,
    "Old name of `dtype`.",
    deprecated=Deprecation("0.24", renamed_to="dtype"),
)
REFERENCE = opencv_reference(
    "`cv2.warpAffine`, in which pixels have their centres at whole numbers, with images of uint8, int16 or float; without "
    "`fill_value`, its border is `BORDER_REPLICATE`; `interp_type` may also be INTERP_CUBIC."
)
SIZE = Argument(
    "size",
    "float[]",
    [],
    "Output extents (height, width) or (depth, height, width).",
    tensor=True,
    example=[20.0, 30.0],
)

# NumPy codes of the types that DALI accepts for a tensor argument `size`: integers of at least 16 bits, and float32.
_SIZE_TYPES = np.typecodes["AllInteger"].replace("b", "").replace("B", "") + "f"


@dataclass(frozen=True)
class WarpPlan:
    """How to warp one image.

    Attributes:
        matrix: a 2x3 or 3x4 matrix, in the order x, y(, z), that maps output to input coordinates; None if it is on the GPU.
            With ``reference='opencv'``: the matrix that is passed to OpenCV.
        extents: the output's extents: (height, width) or (depth, height, width).
    """

    matrix: np.ndarray | None
    extents: tuple[int, ...]


@dataclass(eq=False)
class WarpPlans(PlanColumns[WarpPlan]):
    """How to warp many images; see :class:`WarpPlan`.

    Attributes:
        matrices: an array of shape (samples, 2, 3) or (samples, 3, 4); None if the matrices are on the GPU.
        extents: int64 of shape (samples, 2) or (samples, 3).
    """

    matrices: np.ndarray | None
    extents: np.ndarray

    @classmethod
    def of(cls, plans: Sequence[WarpPlan]) -> WarpPlans:
        """Return the plans of images of the same rank, at least one, as columns."""
        matrices = [plan.matrix for plan in plans if plan.matrix is not None]
        return cls(np.stack(matrices) if matrices else None, np.array([plan.extents for plan in plans]))

    def __len__(self) -> int:
        return len(self.extents)

    def row(self, number: int) -> WarpPlan:
        matrix = None if self.matrices is None else self.matrices[number]
        return WarpPlan(matrix, tuple(self.extents[number].tolist()))


class WarpingOperator(ChainOperator[None, WarpPlan, WarpPlans]):
    """Base class of operators that map output to input coordinates with a matrix."""

    step_by_step = ("volumes",)
    # Whether the matrices that are passed to OpenCV map output to input coordinates.
    maps_backwards = True

    def setup(self) -> None:
        self.follows_opencv = follows_opencv(self)
        if self.follows_opencv:
            from penstock.kernels.cpu.opencv import WARP_INTERPOLATIONS

            self.launches = False
            if self.args["interp_type"] in WARP_INTERPOLATIONS:
                return
        if self.args["interp_type"] not in (INTERP_NN, INTERP_LINEAR):
            raise RuntimeError(f"Unsupported interpolation {self.args['interp_type']}: use INTERP_NN or INTERP_LINEAR")

    def describe(self, workspace: Workspace[None]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, INT32, FLOAT):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if dtype not in ((UINT8, INT16, INT32, FLOAT) if batch.dtype == FLOAT else (batch.dtype, FLOAT)):
            raise RuntimeError(
                f"Unsupported input/output types for the operator: {dtype_name(batch.dtype)} -> {dtype_name(dtype)}."
            )
        if self.follows_opencv:
            check_opencv_types(workspace, (UINT8, INT16, FLOAT), dtype)
            if "D" in layout:
                raise RuntimeError("With `reference='opencv'`, images must have two axes. Got: 3 axes")
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer_batch(self, samples: Samples[None, WarpPlan, WarpPlans]) -> tuple[np.ndarray, WarpPlans]:
        shapes = samples.shapes()
        plans = self.plan_warps(samples, shapes[:, :-1])
        outputs = shapes.copy()
        outputs[:, :-1] = plans.extents
        if not shapes.all():
            self._check_filled(shapes, outputs)
        return outputs, plans

    @staticmethod
    def _check_filled(shapes: np.ndarray, outputs: np.ndarray) -> None:
        empty = outputs.all(axis=1) & ~shapes.all(axis=1)
        if empty.any():
            raise RuntimeError(f"Cannot warp an empty image of shape {shapes[empty][0].tolist()}")

    def plan_warps(self, samples: Samples[None, WarpPlan, WarpPlans], extents: np.ndarray) -> WarpPlans:
        """Return the plans for warping images; ``extents`` has a row for each sample."""
        raise NotImplementedError

    def wanted_extents(self, samples: Samples, count: int) -> np.ndarray | None:
        """Return the output's extents if ``size`` is set, int64: a row for each sample, or one row for all."""
        return samples.derived(("size",), ("size", count), lambda: self._wanted_extents(samples, count))

    @staticmethod
    def _wanted_extents(samples: Samples, count: int) -> np.ndarray | None:
        computed = samples.tensors("size")
        # Unlike most float arguments, this one accepts integers in tensors, too.
        if computed is not None and computed.dtype.char not in _SIZE_TYPES:
            raise TypeError(f'Unsupported argument type for "size": {computed.dtype}')
        sizes = samples.values("size") if computed is None else computed.reshape(len(samples), -1)
        if not sizes.size and computed is None:
            return None
        if sizes.shape[1] != count:
            raise RuntimeError(f"`size` has {sizes.shape[1]} entries, expected {count}")
        if not (sizes > 0).all():
            wrong = next(size for size in sizes.tolist() if not min(size) > 0)
            raise RuntimeError(f"Output size must be positive, got {wrong}")
        # Constants are rounded; tensor arguments are truncated.
        whole = np.floor(sizes + 0.5) if computed is None else np.trunc(sizes)
        return np.maximum(whole.astype(np.int64), 1)

    def matrices(self, workspace: Workspace[None, WarpPlan]) -> Sequence[Any]:
        """Return the matrix of each sample, in the form that the GPU kernel accepts."""
        return [sample.plan.matrix for sample in workspace.live]

    def _fill(self, workspace: Workspace) -> float | None:
        """Return the fill value, clamped to the output type's range and, if it is blended with pixels, also to the input type's."""
        fill, given = self.args["fill_value"], self.args["dtype"]
        if fill is None:
            return None
        dtype = workspace.inputs[0].dtype
        blended = self.args["interp_type"] == INTERP_LINEAR
        for held in (*((dtype,) if blended else ()), dtype if given is None else given):
            if held != FLOAT:
                info = np.iinfo(numpy_dtype(held))
                fill = float(np.clip(math.copysign(math.floor(abs(fill) + 0.5), fill), info.min, info.max))
        return fill

    def joins_chain(self) -> bool:
        return super().joins_chain() and not self.follows_opencv

    def compute_batch(self, workspace: Workspace[None, WarpPlan]) -> None:
        if self.follows_opencv:
            Operator.compute_batch(self, workspace)
            return
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.warp import warp_images

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = list(zip(sources, self.matrices(workspace), targets))
        warp_images(jobs, self.args["interp_type"] == INTERP_LINEAR, self._fill(workspace))

    def compute(self, sample: Sample[None, WarpPlan]) -> None:
        from penstock.kernels.cpu import opencv
        from penstock.kernels.cpu.warp import warp

        kind, fill = self.args["interp_type"], self.args["fill_value"]
        source, matrix = np.ascontiguousarray(sample.inputs[0]), sample.plan.matrix
        assert matrix is not None
        if self.follows_opencv:
            border = "replicate" if fill is None else "constant"
            opencv.warp(source, matrix, self.maps_backwards, kind, border, [fill or 0.0], sample.outputs[0])
        else:
            warp(source, matrix, kind == INTERP_LINEAR, self._fill(sample.workspace), sample.outputs[0])

    launches = True

    def stage_records(self, workspace: Workspace[None, WarpPlan, WarpPlans]) -> StageRecords | None:
        from penstock.kernels.cpu.warp import WARP, warp_kernels

        batch, plans = workspace.inputs[0], workspace.plans
        if batch.ndim() != 3 or plans.matrices is None:
            return None
        source, target = numpy_dtype(batch.dtype), numpy_dtype(workspace.outputs[0].dtype)
        shapes, fill = batch.shape_array(), self._fill(workspace)
        outputs = shapes.copy()
        outputs[:, :-1] = plans.extents
        records = np.zeros(len(shapes), WARP)
        records["matrix"] = plans.matrices.reshape(len(shapes), 6)
        records["shape_in"], records["channels"] = shapes, shapes[:, 2]
        records["linear"] = self.args["interp_type"] == INTERP_LINEAR
        records["has_fill"], records["fill"] = fill is not None, 0 if fill is None else fill
        kernels = warp_kernels(source, target)
        return StageRecords(StageKind.PARTS, records, outputs, target.itemsize, *kernels, reads_neighbours=True)

    def stage(self, sample: Sample[None, WarpPlan]) -> Sampling:
        shape = sample.shapes[0]
        if len(shape) != 3 or sample.plan.matrix is None:
            raise NotFusable("volumes")
        linear = self.args["interp_type"] == INTERP_LINEAR
        output = (*sample.plan.extents, shape[-1])
        return Warping(sample.plan.matrix, linear, self._fill(sample.workspace), shape, output)


@dataclass(frozen=True)
class Warping(Sampling):
    """Warps an image; any part of the output may depend on the whole input.

    Attributes:
        matrix: the matrix that maps output to input coordinates.
        linear: whether to interpolate between pixels.
        fill: value outside the input; None: the edge is repeated.
        shape_in, shape: the shapes of input and output.
    """

    matrix: np.ndarray
    linear: bool
    fill: float | None
    shape_in: Shape
    shape: Shape

    def covers(self, window: Region) -> Region:
        from penstock.kernels.cpu.warp import TILE

        (top, left, _), (height, width, _) = window.anchor, window.extents
        return Region((top, left // TILE * TILE, 0), (height, width + left % TILE, self.shape[2]))

    def reads(self, window: Region) -> Region:
        return Region.whole(self.shape_in)

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.kernels.cpu.warp import warp

        pixels = source.contiguous(self.reads(window))
        warp(pixels, self.matrix, self.linear, self.fill, target, *window.anchor[:2])
