"""`laplacian`: the sum of second derivatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import BOOL, FLOAT, FLOAT64, dtype_name
from penstock.kernels.axes import spatial_axes
from penstock.operators.image._axis_values import per_axis
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

_LARGEST_WINDOW = 31
# Powers of two from this one to its inverse scale sums exactly in single precision.
_SMALLEST_SCALE = 2.0**-20


@dataclass(frozen=True)
class Derivative:
    """The second derivative along one axis, a term of the sum.

    Attributes:
        scale: the factor of the term in the sum.
        windows: pairs of an axis and its window: a derivative's window along one axis, smoothing windows along the others
            (omitted if they have size 1).
    """

    scale: float
    windows: list[tuple[int, np.ndarray]]


@register_operator
class Laplacian(Operator[list[int], list[Derivative]]):
    """The sum of the second derivatives along all dimensions but channels, each smoothed along the other dimensions.

    The border reflects without repeating the edge.
    """

    keeps_frame_shape = True
    schema = Schema(
        name="Laplacian",
        inputs=(
            Input("input", doc="Images or volumes of any numeric type but double; channels first, last or absent."),
        ),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output: FLOAT, or by default that of the input."),
            Argument(
                "normalized_kernel",
                "bool",
                False,
                "Scale each derivative by 2^(n + 2 - s), s being the sum of its windows' sizes in n dimensions.",
            ),
            Argument(
                "scale",
                "float[]",
                [1.0],
                "Factor of each derivative: one value, or one for each axis.",
                tensor=True,
                per_frame=True,
            ),
            Argument(
                "smoothing_size",
                "int32[]",
                None,
                "Size of the smoothing windows, odd, from 1 (none) to 31: one value, or one for each axis. "
                "By default that of the derivative's window.",
                tensor=True,
                per_frame=True,
                example=[3],
            ),
            Argument(
                "window_size",
                "int32[]",
                [3],
                "Size of the derivatives' windows, odd, from 3 to 31: one value, or one for each axis.",
                tensor=True,
                per_frame=True,
                example=[5],
            ),
        ),
        sequences=True,
        volumetric=True,
        shown=(on_photo(window_size=[5], dtype=FLOAT),),
        equivalents=(Equivalent("cv2.Laplacian"),),
    )

    def setup(self) -> None:
        if self.args["normalized_kernel"] and self.given("scale"):
            raise RuntimeError(
                "Parameter ``scale`` cannot be specified when ``normalized_kernel`` is set to True, which determines the scale"
            )

    def describe(self, workspace: Workspace[list[int], list[Derivative]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if batch.dtype in (BOOL, FLOAT64):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(f"Output data type must be same as input, FLOAT or skipped, got {dtype_name(dtype)}")
        workspace.state = spatial_axes(batch.layout(), batch.ndim()) if len(batch) else []
        return [OutputSpec(dtype, batch.layout(), batch.ndim())]

    def infer(self, sample: Sample[list[int], list[Derivative]]) -> tuple[int, ...]:
        axes = sample.workspace.state
        widths = per_axis(sample, "window_size", len(axes))
        smoothing = per_axis(sample, "smoothing_size", len(axes)) if sample.given("smoothing_size") else None
        scales = per_axis(sample, "scale", len(axes))
        for name, sizes, smallest in (("Window", widths, 3), ("Smoothing window", smoothing or (), 1)):
            for size in sizes:
                if not smallest <= size <= _LARGEST_WINDOW or not size % 2:
                    raise RuntimeError(
                        f"{name} size must be an odd integer between {smallest} and {_LARGEST_WINDOW}, got {size} "
                        f"for sample: {sample.index}."
                    )
        sample.plan = []
        for along in range(len(axes)):
            sizes = list(smoothing or [widths[along]] * len(axes))
            sizes[along] = widths[along]
            scale = _normalizing_scale(sizes) if self.args["normalized_kernel"] else scales[along]
            windows = [
                (axis, _derivative_window(size) if index == along else _smoothing_window(size))
                for index, (axis, size) in enumerate(zip(axes, sizes))
                if size > 1
            ]
            sample.plan.append(Derivative(float(scale), windows))
        return sample.shapes[0]

    def compute(self, sample: Sample[list[int], list[Derivative]]) -> None:
        from penstock.kernels.cpu.casting import cast
        from penstock.kernels.cpu.convolution import convolve_axes
        from penstock.kernels.cpu.halves import rounded_to_halves

        source = np.ascontiguousarray(sample.inputs[0])
        if not source.size or self._compute_exactly(sample, source):
            return
        halves = source.dtype == np.float16
        if not halves:
            source = source.astype(np.float32, copy=False)
        total = np.zeros(source.shape, np.float32)
        part = np.empty(source.shape, np.float32)
        for derivative in sample.plan:
            convolve_axes(source, derivative.windows, part)
            part *= np.float32(derivative.scale)
            total += part
            if halves:
                total[...] = rounded_to_halves(total)
        cast(total, sample.outputs[0])

    @staticmethod
    def _compute_exactly(sample: Sample[list[int], list[Derivative]], source: np.ndarray) -> bool:
        """Compute a uint8 sample with windows of size 3 in integers; for any other sample, compute nothing and return False."""
        from penstock.operators.image._laplacian_cpu import laplacian_of_bytes

        axes, derivatives = sample.workspace.state, sample.plan
        scales = {derivative.scale for derivative in derivatives}
        windows = [window.size for derivative in derivatives for _, window in derivative.windows]
        if source.dtype != np.uint8 or windows != [3] * 4 or len(scales) > 1 or axes[1] != axes[0] + 1:
            return False
        (scale,) = scales
        # Only scaling by a power of two does not round before the final conversion.
        if not _SMALLEST_SCALE <= abs(scale) <= 1 / _SMALLEST_SCALE or abs(math.frexp(scale)[0]) != 0.5:
            return False
        rows, target = source.shape[axes[0]], sample.outputs[0]
        inner = math.prod(source.shape[axes[1] + 1 :])
        extents = (-1, rows, source.shape[axes[1]] * inner)
        laplacian_of_bytes(
            source.reshape(extents), inner, np.float32(scale), target.reshape(extents), target.dtype.type(0)
        )
        return True

    def compute_batch(self, workspace: Workspace[list[int], list[Derivative]]) -> None:
        from penstock.kernels.cuda.convolution import Filters, Term, convolve
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = [
            Filters(a, b, [Term(derivative.scale, dict(derivative.windows)) for derivative in sample.plan])
            for sample, a, b in zip(samples, sources, targets)
        ]
        convolve(jobs, workspace.state)


# The window of a second derivative is [1, -2, 1], convolved with [1, 2, 1] until it has the requested size.


@functools.cache
def _smoothing_window(size: int) -> np.ndarray:
    """Return the binomial coefficients of order ``size - 1``, float32; ``size`` is odd."""
    window = np.ones(1)
    for _ in range(size // 2):
        window = np.convolve(window, [1.0, 2.0, 1.0])
    return window.astype(np.float32)


@functools.cache
def _derivative_window(size: int) -> np.ndarray:
    """Return the second derivative of a smoothing window, float32; ``size`` is odd and at least 3."""
    return np.convolve(_smoothing_window(size - 2).astype(np.float64), [1.0, -2.0, 1.0]).astype(np.float32)


def _normalizing_scale(sizes: Sequence[int]) -> float:
    """Return the factor that normalizes a partial derivative, taken with windows of these sizes, to a unit pixel spacing."""
    return 2.0 ** (-sum(sizes) + len(sizes) + 2)
