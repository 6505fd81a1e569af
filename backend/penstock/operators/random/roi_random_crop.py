"""`roi_random_crop`: a random window that contains, or lies in, a region of interest."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.data_types import INT64
from penstock.kernels.random_streams import bounded, philox
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, pictures
from penstock.schema.random_operator import RandomOperator


@register_operator
class ROIRandomCrop(RandomOperator[None, list[tuple[int, int]]]):
    """The start of a window of given extents. Along each axis it lies in the region of interest if it is smaller than
    that, and contains it if it is larger; it never leaves the input, if that is given.

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

    def infer(self, sample: Sample[None, list[tuple[int, int]]]) -> tuple[int, ...]:
        crop = sample["crop_shape"]
        # The window may have fewer axes than the input; they are the first ones.
        ndim = len(crop)
        start = self._extents(sample, "roi_start", ndim)
        if sample.given("roi_end"):
            end = self._extents(sample, "roi_end", ndim)
        else:
            end = [s + extent for s, extent in zip(start, self._extents(sample, "roi_shape", ndim))]
        bounds: Sequence[int] = ()
        if sample.shapes:
            bounds = sample.shapes[0][:ndim]
        elif sample.given("in_shape"):
            bounds = self._extents(sample, "in_shape", ndim)
        _check_extents("Input shape", bounds)
        _check_extents("Crop shape", crop)
        _check_bounds(bounds, crop, start, end)
        sample.plan = [
            _start_range(crop[axis], start[axis], end[axis], bounds[axis] if axis < len(bounds) else None)
            for axis in range(ndim)
        ]
        return (ndim,)

    @staticmethod
    def _extents(sample: Sample[None, list[tuple[int, int]]], name: str, ndim: int) -> list[int]:
        values = sample[name]
        if len(values) == 1:
            return values * ndim
        if len(values) != ndim:
            raise RuntimeError(f'Argument "{name}" expected shape {ndim} but got {len(values)} values')
        return values

    def compute(self, sample: Sample[None, list[tuple[int, int]]]) -> None:
        draws = philox(self.stream(sample))
        sample.outputs[0][...] = [
            low if low == high else low + bounded(draws, high - low + 1) for low, high in sample.plan
        ]


def _check_extents(name: str, extents: Sequence[int]) -> None:
    for axis, extent in enumerate(extents):
        if extent < 0:
            raise RuntimeError(f"{name} can't be negative. Got {extent} in axis {axis}")


def _check_bounds(bounds: Sequence[int], crop: list[int], start: list[int], end: list[int]) -> None:
    for axis, extent in enumerate(bounds):
        if extent < crop[axis]:
            raise RuntimeError(
                f"Cropping shape can't be bigger than the input shape. Got: {crop[axis]} > {extent} in axis {axis}"
            )
        if start[axis] < 0 or end[axis] > extent:
            raise RuntimeError(
                f"ROI can't be out of bounds. Got roi_start[{start[axis]}], roi_end[{end[axis]}], sample_shape[{extent}], "
                f"for d={axis}"
            )


def _start_range(crop: int, start: int, end: int, bound: int | None) -> tuple[int, int]:
    """The lowest and highest start of the window along one axis."""
    low, high = sorted((start, end - crop))
    if bound is not None:
        low, high = max(low, 0), min(high, bound - crop)
    return low, high
