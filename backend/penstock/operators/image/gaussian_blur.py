"""`gaussian_blur`: a separable Gaussian filter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import BOOL, FLOAT, FLOAT64, INT16, UINT8, UINT16, dtype_name
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
from penstock.schema.example_data import Example, on_photo
from penstock.schema.references import check_opencv_types, follows_opencv, opencv_reference


@dataclass(frozen=True)
class BlurPlan:
    """How to blur one sample.

    Attributes:
        axes: the dimensions of the data that the windows run along.
        sigmas, sizes: the sigmas and sizes of the windows, as the user passed them: 0 where one is derived from the
            other.
    """

    axes: list[int]
    sigmas: list[float]
    sizes: list[int]

    @property
    def windows(self) -> list[tuple[int, np.ndarray]]:
        """Pairs of an axis and the weights of its window."""
        return [(axis, _window(float(s), int(d))) for axis, s, d in zip(self.axes, self.sigmas, self.sizes)]


@register_operator
class GaussianBlur(Operator[list[int], BlurPlan]):
    """Blurs with a Gaussian along all dimensions but channels; the border reflects without repeating the edge."""

    keeps_frame_shape = True
    schema = Schema(
        name="GaussianBlur",
        inputs=(Input("input", doc="Images of any numeric type; channels first, last or absent."),),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
            opencv_reference(
                "`cv2.GaussianBlur` of images of uint8, int16, uint16, float or float64, with the window's size that it derives "
                "from sigma."
            ),
            Argument(
                "sigma",
                "float[]",
                [0.0],
                "Standard deviation of the Gaussian, in pixels: one value, or one for each axis in the layout's order.",
                tensor=True,
                per_frame=True,
            ),
            Argument(
                "window_size",
                "int32[]",
                [0],
                "Diameter of the window, odd: one value, or one for each axis in the layout's order; 0: derived "
                "from sigma.",
                tensor=True,
                per_frame=True,
            ),
        ),
        sequences=True,
        volumetric=True,
        examples=(Example({"sigma": [1.5]}), Example({"window_size": [5]})),
        shown=(on_photo(sigma=[4.0]),),
        equivalents=(
            Equivalent(
                "cv2.GaussianBlur",
                'Equal with `reference="opencv"`; otherwise, values of 8-bit images differ by up to 1, as it sums them in fixed point.',
            ),
            Equivalent(
                "torchvision.transforms.v2.GaussianBlur", "It wants the window's size, and draws sigma from a range."
            ),
            Equivalent("PIL.ImageFilter.GaussianBlur", "It approximates with box filters, and repeats the border."),
        ),
    )

    def setup(self) -> None:
        if not self.given("sigma") and not self.given("window_size"):
            raise RuntimeError("`sigma` and `window_size` shouldn't be 0 at the same time: one of them must be given")
        self._follows_opencv = follows_opencv(self)

    def describe(self, workspace: Workspace[list[int], BlurPlan]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = batch.layout()
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if batch.dtype == BOOL:
            raise RuntimeError("Unsupported input type: bool")
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(f"Output data type must be same as input, FLOAT or skipped, got {dtype_name(dtype)}")
        axes = spatial_axes(layout, batch.ndim()) if len(batch) else []
        if self._follows_opencv:
            check_opencv_types(workspace, (UINT8, INT16, UINT16, FLOAT, FLOAT64), dtype)
            if len(batch) and len(axes) != 2:
                raise RuntimeError(f"With `reference='opencv'`, images must have two axes. Got: {len(axes)} axes")
        workspace.state = axes
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer(self, sample: Sample[list[int], BlurPlan]) -> tuple[int, ...]:
        axes = sample.workspace.state
        sigmas = per_axis(sample, "sigma", len(axes))
        sizes = per_axis(sample, "window_size", len(axes))
        _check_windows(sigmas, sizes, sample.index)
        sample.plan = BlurPlan(axes, sigmas, sizes)
        return sample.shapes[0]

    def compute(self, sample: Sample[list[int], BlurPlan]) -> None:
        from penstock.kernels.cpu.convolution import convolve_axes

        if not sample.outputs[0].size:
            return
        if self._follows_opencv:
            _blur_by_opencv(sample)
        else:
            convolve_axes(sample.inputs[0], sample.plan.windows, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[list[int], BlurPlan]) -> None:
        if self._follows_opencv:
            Operator.compute_batch(self, workspace)
            return
        from penstock.kernels.cuda.convolution import Filters, Term, convolve
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = [
            Filters(a, b, [Term(1.0, dict(sample.plan.windows))]) for sample, a, b in zip(samples, sources, targets)
        ]
        convolve(jobs, workspace.state)


def _blur_by_opencv(sample: Sample[list[int], BlurPlan]) -> None:
    from penstock.kernels.cpu.opencv import images, keep, opencv

    (rows, columns), (height, width) = sample.plan.sigmas, sample.plan.sizes
    layout = sample.workspace.inputs[0].layout()
    source = np.ascontiguousarray(sample.inputs[0])
    for image, out in zip(images(source, layout), images(sample.outputs[0], layout)):
        keep(opencv().GaussianBlur(image, (width, height), columns, dst=out, sigmaY=rows), out)


def _check_windows(sigmas: Sequence[float], sizes: Sequence[int], sample: int) -> None:
    for axis, (sigma, size) in enumerate(zip(sigmas, sizes)):
        if not sigma and not size:
            raise RuntimeError(
                f"`sigma` and `window_size` shouldn't be 0 at the same time for sample: {sample}, axis: {axis}."
            )
        if sigma < 0:
            raise RuntimeError(
                f"`sigma` must have non-negative values, got {sigma:g} for sample: {sample}, axis: {axis}."
            )
        if size < 0:
            raise RuntimeError(
                f"`window_size` must have non-negative values, got {size} for sample: {sample}, axis : {axis}."
            )
        if size and not size % 2:
            raise RuntimeError(f"Kernel window should have odd length, got: {size}.")


def _window(sigma: float, diameter: int) -> np.ndarray:
    return _gaussian_window(sigma or _sigma_of(diameter), diameter or _diameter_of(sigma))


def _diameter_of(sigma: float) -> int:
    """Return the odd window size that covers three standard deviations on each side."""
    return 2 * math.ceil(np.float32(sigma) * np.float32(3)) + 1


def _sigma_of(diameter: int) -> float:
    """Return the default standard deviation for a window size."""
    return ((diameter - 1) / 2 - 1) * 0.3 + 0.8


@functools.lru_cache(maxsize=256)
def _gaussian_window(sigma: float, diameter: int) -> np.ndarray:
    """Return Gaussian weights that sum to 1, float32; each step of the computation is rounded as in DALI."""
    one, two = np.float32(1), np.float32(2)
    scale = np.float32(0.5) / np.float32(sigma) ** 2
    distances = np.arange(diameter // 2, 0, -1)
    rising = np.exp(-np.float64(np.float32(distances**2) * scale)).astype(np.float32)
    total = np.float32(0)
    for weight in rising:
        total += weight
    middle = one / (total * two + one)
    rising *= middle
    return np.concatenate([rising, [middle], rising[::-1]], dtype=np.float32)
