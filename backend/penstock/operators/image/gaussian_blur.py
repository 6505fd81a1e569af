"""`gaussian_blur`: a separable Gaussian filter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from penstock.data_types import BOOL, FLOAT, dtype_name
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


@register_operator
class GaussianBlur(Operator[list[int], list[tuple[int, np.ndarray]]]):
    """Blurs with a Gaussian along all dimensions but channels; the border reflects without repeating the edge."""

    keeps_frame_shape = True
    schema = Schema(
        name="GaussianBlur",
        inputs=(Input("input", doc="Images of any numeric type; channels first, last or absent."),),
        arguments=(
            Argument("dtype", "DALIDataType", None, "Type of the output; by default that of the input."),
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
            Equivalent("cv2.GaussianBlur", "It sums 8-bit images in fixed point, so values differ by up to 1."),
            Equivalent(
                "torchvision.transforms.v2.GaussianBlur", "It wants the window's size, and draws sigma from a range."
            ),
            Equivalent("PIL.ImageFilter.GaussianBlur", "It approximates with box filters, and repeats the border."),
        ),
    )

    def setup(self) -> None:
        if not self.given("sigma") and not self.given("window_size"):
            raise RuntimeError("`sigma` and `window_size` shouldn't be 0 at the same time: one of them must be given")

    def describe(self, workspace: Workspace[list[int], list[tuple[int, np.ndarray]]]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = batch.layout()
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if batch.dtype == BOOL:
            raise RuntimeError("Unsupported input type: bool")
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(f"Output data type must be same as input, FLOAT or skipped, got {dtype_name(dtype)}")
        axes = spatial_axes(layout, batch.ndim()) if len(batch) else []
        workspace.state = axes
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer(self, sample: Sample[list[int], list[tuple[int, np.ndarray]]]) -> tuple[int, ...]:
        axes = sample.workspace.state
        sigmas = per_axis(sample, "sigma", len(axes))
        sizes = per_axis(sample, "window_size", len(axes))
        _check_windows(sigmas, sizes, sample.index)
        sample.plan = [(axis, _window(float(s), int(d))) for axis, s, d in zip(axes, sigmas, sizes)]
        return sample.shapes[0]

    def compute(self, sample: Sample[list[int], list[tuple[int, np.ndarray]]]) -> None:
        from penstock.kernels.cpu.convolution import convolve_axes

        if sample.outputs[0].size:
            convolve_axes(sample.inputs[0], sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[list[int], list[tuple[int, np.ndarray]]]) -> None:
        from penstock.kernels.cuda.convolution import Filters, Term, convolve
        from penstock.kernels.cuda.launch import locate_all

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        jobs = [Filters(a, b, [Term(1.0, dict(sample.plan))]) for sample, a, b in zip(samples, sources, targets)]
        convolve(jobs, workspace.state)


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
    """The odd window size that covers three standard deviations on each side."""
    return 2 * math.ceil(3 * sigma) + 1


def _sigma_of(diameter: int) -> float:
    """The default standard deviation for a window size."""
    return ((diameter - 1) / 2 - 1) * 0.3 + 0.8


@functools.lru_cache(maxsize=256)
def _gaussian_window(sigma: float, diameter: int) -> np.ndarray:
    """The weights, float32, which sum to 1."""
    distance = np.arange(diameter) - (diameter - 1) / 2
    weights = np.exp(-(distance**2) / (2 * sigma**2))
    return (weights / weights.sum()).astype(np.float32)
