"""`roi_random_crop`: draws a random window that contains a region of interest or lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.data_types import INT64
from penstock.schema import (
    Argument,
    Input,
    OutputSpec,
    PlanColumns,
    Sample,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, pictures
from penstock.schema.operator import Shape
from penstock.schema.random_operator import RandomOperator

_ARGUMENTS = frozenset({"crop_shape", "in_shape", "roi_end", "roi_shape", "roi_start"})


@dataclass(frozen=True)
class StartRange:
    """The lowest and the highest start of a window along each axis, int64."""

    lows: np.ndarray
    highs: np.ndarray


@dataclass(eq=False)
class StartRanges(PlanColumns[StartRange]):
    """The lowest and the highest starts of the windows of many samples, with one row for each sample."""

    lows: np.ndarray
    highs: np.ndarray

    def __len__(self) -> int:
        return len(self.lows)

    def row(self, number: int) -> StartRange:
        return StartRange(self.lows[number], self.highs[number])


@register_operator
class ROIRandomCrop(RandomOperator[None, StartRange, StartRanges]):
    """Draws the start of a random window of fixed extents that contains a region of interest or lies in it.

    Along each axis, the window lies inside the region if the window is smaller, and contains the region if the window is larger. If the
    input's shape is known, the window never reaches outside of the input.

    >>> start = fn.roi_random_crop(volumes, roi_start=start, roi_end=end, crop_shape=[64, 64, 64, 1])
    """

    schema = Schema(
        name="ROIRandomCrop",
        devices=("cpu",),
        inputs=(Input("input", doc="Data that the window is for; only its shape matters."),),
        min_inputs=0,
        arguments=(
            Argument(
                "crop_shape",
                "int32[]",
                doc="Extents of the window.",
                required=True,
                tensor=True,
                uniform=True,
                example=[5, 6],
            ),
            Argument(
                "in_shape",
                "int32[]",
                None,
                "Shape of the input, instead of the input itself.",
                tensor=True,
                uniform=True,
            ),
            Argument(
                "roi_end",
                "int32[]",
                None,
                "End of the region of interest; excludes `roi_shape`.",
                tensor=True,
                uniform=True,
            ),
            Argument("roi_shape", "int32[]", None, "Extents of the region of interest.", tensor=True, uniform=True),
            Argument(
                "roi_start",
                "int32[]",
                doc="Start of the region of interest.",
                required=True,
                tensor=True,
                uniform=True,
                example=[2, 3],
            ),
        ),
        random=True,
        stateful=True,
        examples=(
            Example({"in_shape": [20, 24], "roi_shape": [7, 9]}),
            Example({"in_shape": [20, 24], "roi_end": [9, 12]}),
            Example({"crop_shape": [5, 6, 2], "roi_start": [2, 3, 0], "roi_shape": [7, 9, 3]}, (pictures,)),
        ),
    )

    def setup(self) -> None:
        if self.given("roi_end") == self.given("roi_shape"):
            raise RuntimeError("Either ROI end or ROI shape should be defined, but not both: `roi_end` or `roi_shape`")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        if workspace.inputs and self.given("in_shape"):
            raise RuntimeError("The ``in_shape`` argument is incompatible with providing an input.")
        return [OutputSpec(INT64, ndim=1)]

    def infer_batch(self, samples: Samples[None, StartRange, StartRanges]) -> tuple[np.ndarray, StartRanges]:
        if samples.workspace.inputs:
            return _planned(samples)
        return samples.derived(_ARGUMENTS, len(samples), lambda: _planned(samples))

    def compute_samples(self, workspace: Workspace[None, StartRange, StartRanges], shapes: Sequence[Shape]) -> None:
        from penstock.kernels.cpu.starts import draw_starts

        if workspace.failures or not workspace.batch_size:
            super().compute_samples(workspace, shapes)
            return
        ranges = workspace.plans
        starts = workspace.outputs[0].contiguous_elements().reshape(ranges.lows.shape)
        draw_starts(*self.streams(workspace, range(workspace.batch_size)), ranges.lows, ranges.highs, starts, False)

    def compute(self, sample: Sample[None, StartRange]) -> None:
        from penstock.kernels.cpu.starts import draw_starts

        streams = self.streams(sample.workspace, [sample.index])
        draw_starts(*streams, sample.plan.lows[None], sample.plan.highs[None], sample.outputs[0][None], False)


def _planned(samples: Samples) -> tuple[np.ndarray, StartRanges]:
    """Return the shapes of the outputs, and the range of starts for each sample."""
    (lows, highs), count = _ranges(samples), len(samples)
    ndim = lows.shape[1]
    if len(lows) != count:
        lows, highs = lows.repeat(count, axis=0), highs.repeat(count, axis=0)
    return np.full((count, 1), ndim), StartRanges(lows, highs)


def _ranges(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest starts, int64, with one row for each sample or one row for all.

    Raises:
        RuntimeError: an extent is negative, or the window or the region does not fit the input.
    """
    crop = samples.values("crop_shape")
    # The window may have fewer axes than the input: it then has the input's first axes.
    ndim = crop.shape[1]
    start = samples.per_axis("roi_start", ndim)
    if samples.given("roi_end"):
        end = samples.per_axis("roi_end", ndim)
    else:
        end = start + samples.per_axis("roi_shape", ndim)
    bounds = np.empty((1, 0))
    if samples.workspace.inputs:
        bounds = samples.shapes()[:, :ndim]
    elif samples.given("in_shape"):
        bounds = samples.per_axis("in_shape", ndim)
    _check_extents("Input shape", bounds)
    _check_extents("Crop shape", crop)
    axes = bounds.shape[1]
    _check_bounds(bounds, crop[:, :axes], start[:, :axes], end[:, :axes])
    low, high = np.minimum(start, end - crop), np.maximum(start, end - crop)
    if axes:
        low, high = (np.broadcast_to(ends, (max(len(ends), len(bounds)), ndim)).copy() for ends in (low, high))
        low[:, :axes] = np.maximum(low[:, :axes], 0)
        high[:, :axes] = np.minimum(high[:, :axes], bounds - crop[:, :axes])
    return low.astype(np.int64), high.astype(np.int64)


def _check_extents(name: str, extents: np.ndarray) -> None:
    for row, axis in np.argwhere(extents < 0):
        raise RuntimeError(f"{name} can't be negative. Got {extents[row, axis]:.0f} in axis {axis}")


def _check_bounds(bounds: np.ndarray, crop: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
    if not ((bounds < crop) | (start < 0) | (end > bounds)).any():
        return
    tables = np.broadcast_arrays(bounds, crop, start, end)
    for rows in zip(*(table.astype(np.int64).tolist() for table in tables)):
        for axis, (extent, size, first, last) in enumerate(zip(*rows)):
            if extent < size:
                raise RuntimeError(
                    f"Cropping shape can't be bigger than the input shape. Got: {size} > {extent} in axis {axis}"
                )
            if first < 0 or last > extent:
                raise RuntimeError(
                    f"ROI can't be out of bounds. Got roi_start[{first}], roi_end[{last}], sample_shape[{extent}], for d={axis}"
                )
