"""How samples are resampled: extents, regions, filters and windows of their spatial axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from penstock.data_types import INTERP_NN, DALIInterpType
from penstock.kernels.filters import Taps, nearest, taps
from penstock.kernels.reference_filters import ReferenceTaps
from penstock.kernels.resize_passes import EdgeTaps, Passes, passes
from penstock.kernels.resize_shapes import AxisPlan, AxisPlans
from penstock.kernels.windows import Region
from penstock.schema import PlanColumns
from penstock.schema.operator import Shape

_FILTERS = {int(kind): kind for kind in DALIInterpType.__members__.values()}
AnyTaps = EdgeTaps | ReferenceTaps


@dataclass(frozen=True)
class Window:
    """The part of a resized axis that is kept.

    Attributes:
        start, stop: positions in the resized axis.
        mirrored: whether it is reversed.
    """

    start: int
    stop: int
    mirrored: bool = False

    def part(self, inner: Window) -> Window:
        """A window of this window, as a window of the axis."""
        if self.mirrored:
            return Window(self.stop - inner.stop, self.stop - inner.start, not inner.mirrored)
        return Window(self.start + inner.start, self.start + inner.stop, inner.mirrored)


@dataclass(frozen=True)
class ResamplePlan:
    """How to resample one sample.

    Attributes:
        axes: the plan of each spatial axis.
        filters: the filter of each spatial axis.
        antialias: whether filters widen when an axis shrinks.
        windows: the part of each spatial axis that is kept.
    """

    axes: tuple[AxisPlan, ...]
    filters: tuple[DALIInterpType, ...]
    antialias: bool
    windows: tuple[Window, ...]

    # Whether it can be fused with normalization.
    normalizes: ClassVar[bool] = True

    @property
    def extents(self) -> tuple[int, ...]:
        """The output's extents along the spatial axes."""
        return tuple(window.stop - window.start for window in self.windows)

    def resized(self, shape: Shape, first: int) -> Shape:
        """The output's shape for an input's, whose spatial dimensions begin with ``first``."""
        return (*shape[:first], *self.extents, *shape[first + len(self.windows) :])

    @functools.cached_property
    def passes(self) -> Passes:
        """The passes, in their order."""
        return passes(self.axes, self.filters, bool(self.antialias))

    @property
    def columns_first(self) -> bool:
        """Whether lines are resampled before the height."""
        order = self.passes.order
        return order.index(len(order) - 1) < order.index(len(order) - 2)

    def cropped(self, windows: Sequence[Window]) -> ResamplePlan:
        """The plan for the given window of each axis of this plan's output."""
        composed = tuple(outer.part(inner) for outer, inner in zip(self.windows, windows))
        return replace(self, windows=composed)

    def taps_of(self, axis: int) -> EdgeTaps:
        """The filter of one axis, for the positions in its window."""
        window = self.windows[axis]
        table = self.passes.taps(axis, range(window.start, window.stop))
        return table.reversed() if window.mirrored else table

    def gpu_taps_of(self, axis: int) -> Taps:
        """The filter of one axis, for the positions in its window, as the GPU computes it for whole batches."""
        plan, window = self.axes[axis], self.windows[axis]
        outputs = range(window.start, window.stop)
        if self.filters[axis] == INTERP_NN:
            starts = nearest(plan, axis == len(self.axes) - 1, outputs)
            table = Taps(starts, np.ones((len(starts), 1), np.float32))
        else:
            table = taps(plan, self.filters[axis], self.antialias, outputs)
        return Taps(*(np.ascontiguousarray(array[::-1]) for array in table)) if window.mirrored else table

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[AnyTaps]) -> None:
        """Resamples an image (H, W, C), or a part of one, by the tables of both axes."""
        from penstock.kernels.cpu import resample as kernels

        vertical, horizontal = tables
        assert isinstance(vertical, EdgeTaps)
        assert isinstance(horizontal, EdgeTaps)
        if all(kind == INTERP_NN for kind in self.filters):
            kernels.gather_image(source, vertical.starts, horizontal.starts, target)
            return
        left_over = self.passes.left_over(source.shape[2], target.dtype, horizontal.outputs)
        kernels.resample_image(source, vertical, horizontal, self.columns_first, left_over, target)

    @functools.cached_property
    def tables(self) -> tuple[AnyTaps, ...]:
        """The filters of all axes, for the positions in the windows."""
        return tuple(self.taps_of(axis) for axis in range(len(self.axes)))

    @property
    def byte_tables(self) -> tuple[ReferenceTaps, ReferenceTaps] | None:
        """The vertical and the horizontal filter, if images of three channels are resampled by integers, columns first."""
        return None

    @functools.cached_property
    def part_read(self) -> Region:
        """The part of the input, along the spatial axes, that the windows depend on."""
        spans = [table.span for table in self.tables]
        return Region(tuple(start for start, _ in spans), tuple(stop - start for start, stop in spans))


@dataclass(eq=False)
class ResamplePlans(PlanColumns[ResamplePlan]):
    """How to resample many samples: arrays of shape (samples, spatial axes).

    Attributes:
        size_in, size_out: extents, int64.
        start, end: the region of the input that the output covers, float64.
        filters: as numbers.
        antialias: whether filters widen when an axis shrinks.
    """

    size_in: np.ndarray
    size_out: np.ndarray
    start: np.ndarray
    end: np.ndarray
    filters: np.ndarray
    antialias: bool

    def __len__(self) -> int:
        return len(self.size_in)

    def row(self, number: int) -> ResamplePlan:
        sizes = self.size_out[number].tolist()
        columns = (self.size_in[number].tolist(), sizes, self.start[number].tolist(), self.end[number].tolist())
        filters = tuple(_FILTERS[kind] for kind in self.filters[number].tolist())
        return ResamplePlan(
            tuple(map(AxisPlan, *columns)), filters, self.antialias, tuple(Window(0, size) for size in sizes)
        )

    def axis(self, number: int) -> AxisPlans:
        """One axis of all samples."""
        sizes = self.size_out[:, number]
        return AxisPlans(
            self.size_in[:, number],
            sizes,
            self.start[:, number],
            self.end[:, number],
            self.filters[:, number],
            self.antialias,
            np.zeros_like(sizes),
            sizes,
            np.zeros(len(sizes), bool),
        )


@dataclass
class ImagePlans:
    """How to resample all images of a batch on the GPU.

    Attributes:
        shapes: of the samples as stacks of images (n, H, W, C), int64 of shape (samples, 4).
        vertical, horizontal: the plans of both axes.
    """

    shapes: np.ndarray
    vertical: AxisPlans
    horizontal: AxisPlans


class Spatial(NamedTuple):
    """The dimensions to resize: a number of ``axes``, from ``first`` on."""

    first: int
    axes: int
