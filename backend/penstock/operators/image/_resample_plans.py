"""Plans for resampling samples: extents, regions, filters and windows of the spatial axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.core.chains import StageKind, StageRecords, array_part, compute_part
from penstock.data_types import INTERP_NN, DALIInterpType
from penstock.kernels.filters import Taps, nearest, taps
from penstock.kernels.resize_passes import EdgeTaps, Passes, filter_tables, passes, rounded_together
from penstock.kernels.resize_shapes import AxisPlan, AxisPlans
from penstock.schema import PlanColumns
from penstock.schema.operator import Shape

if TYPE_CHECKING:
    from typing import Self

_FILTERS = {int(kind): kind for kind in DALIInterpType.__members__.values()}


@dataclass(frozen=True)
class Window:
    """The part of a resized axis that is computed.

    Attributes:
        start, stop: positions in the resized axis; ``stop`` is exclusive.
        mirrored: whether the part is reversed.
    """

    start: int
    stop: int
    mirrored: bool = False

    def part(self, inner: Window) -> Window:
        """Return ``inner``, whose positions are relative to this window, as a window of the axis."""
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
        windows: the part of each resized axis that is computed.
    """

    axes: tuple[AxisPlan, ...]
    filters: tuple[DALIInterpType, ...]
    antialias: bool
    windows: tuple[Window, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The output's extents along the spatial axes."""
        return tuple(window.stop - window.start for window in self.windows)

    def resized(self, shape: Shape, first: int) -> Shape:
        """Return the output's shape for an input of ``shape``, whose spatial dimensions begin at ``first``."""
        return (*shape[:first], *self.extents, *shape[first + len(self.windows) :])

    @functools.cached_property
    def passes(self) -> Passes:
        """The passes of the resampling, in the order in which they run."""
        return passes(self.axes, self.filters, bool(self.antialias))

    def cropped(self, windows: Sequence[Window]) -> Self:
        """Return the plan that computes only these windows, one per axis, of this plan's output."""
        composed = tuple(outer.part(inner) for outer, inner in zip(self.windows, windows))
        return replace(self, windows=composed)

    @property
    def widens(self) -> bool:
        """Whether filters widen when an axis shrinks, so that every input pixel contributes."""
        return self.antialias and INTERP_NN not in self.filters

    def of_reduced(self, scale: int) -> Self:
        """Return the plan for an image reduced by ``scale``; its last row and column may stand for fewer than ``scale`` pixels."""
        axes = [
            AxisPlan(-(-axis.size_in // scale), axis.size_out, axis.start / scale, axis.end / scale)
            for axis in self.axes
        ]
        return replace(self, axes=tuple(axes))

    def taps_of(self, axis: int) -> EdgeTaps:
        """Return the filter of one axis, for all output positions."""
        return self.passes.taps(axis, range(self.axes[axis].size_out))

    def gpu_taps_of(self, axis: int) -> Taps:
        """Return the filter of one axis, for the positions in its window, as the GPU computes it for whole batches."""
        plan, window = self.axes[axis], self.windows[axis]
        outputs = range(window.start, window.stop)
        if self.filters[axis] == INTERP_NN:
            starts = nearest(plan, axis == len(self.axes) - 1, outputs)
            table = Taps(starts, np.ones((len(starts), 1), np.float32))
        else:
            table = taps(plan, self.filters[axis], self.antialias, outputs)
        return Taps(*(np.ascontiguousarray(array[::-1]) for array in table)) if window.mirrored else table

    def records(self, shape: Shape, first: int, source: np.dtype, target: np.dtype) -> StageRecords:
        """Return the core's descriptors for resampling a sample with two spatial axes; see :func:`resampling_records`."""
        numbers = [
            np.array([[getattr(axis, name) for axis in self.axes]]) for name in ("size_in", "size_out", "start", "end")
        ]
        sizes_in, sizes_out, starts, ends = numbers
        filters = np.array([[int(kind) for kind in self.filters]])
        plans = ResamplePlans(
            sizes_in, sizes_out, starts.astype(np.float64), ends.astype(np.float64), filters, self.antialias
        )
        return resampling_records(plans, np.array([shape]), first, source, target)

    def resample_images(self, source: np.ndarray, target: np.ndarray, first: int) -> None:
        """Resample dimensions ``first`` and ``first + 1`` of a contiguous array."""
        images, results, origin = planes_of(source, first), planes_of(target, first), (0, 0, 0, 0)
        stage = self.records(images.shape, 1, source.dtype, target.dtype)
        compute_part(stage, array_part(images, origin), array_part(results, origin))


@dataclass(eq=False)
class ResamplePlans(PlanColumns[ResamplePlan]):
    """How to resample many samples. All arrays are of shape (samples, spatial axes).

    Attributes:
        size_in, size_out: extents of inputs and outputs, int64.
        start, end: the region of the input that the output covers, float64.
        filters: the filters, as numbers of ``DALIInterpType``.
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
        """Return the plans of one axis for all samples."""
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


def planes_of(array: np.ndarray, first: int) -> np.ndarray:
    """Return a contiguous array as a stack of images (n, H, W, rest); H is dimension ``first``."""
    return array.reshape(math.prod(array.shape[:first]), *array.shape[first : first + 2], -1)


def resampling_records(
    plans: ResamplePlans, shapes: np.ndarray, first: int, source: np.dtype, target: np.dtype
) -> StageRecords:
    """Return the core's descriptors for resampling a batch of samples with two spatial axes.

    Args:
        plans: the plans of the samples.
        shapes: the inputs' shapes, int64 of shape (samples, rank).
        first: the dimension of H; the next one is W.
        source, target: the element types of inputs and outputs.
    """
    from penstock.kernels.cpu.axis_passes import TAPS
    from penstock.kernels.cpu.resample import RESAMPLING, fill_common_axis, fill_resamplings, resampling_kernels

    count, outputs = len(shapes), shapes.copy()
    outputs[:, first : first + 2] = plans.size_out
    records = np.zeros(count, RESAMPLING)
    filters, entries = filter_tables()
    scratch_bytes, *common = fill_resamplings(
        np.ascontiguousarray(plans.size_in),
        np.ascontiguousarray(plans.size_out),
        np.ascontiguousarray(plans.start),
        np.ascontiguousarray(plans.end),
        np.ascontiguousarray(plans.filters),
        bool(plans.antialias),
        filters,
        entries,
        outputs,
        first,
        rounded_together(target),
        records,
    )
    tables = []
    for axis in range(2):
        if common[axis] and count > 1:
            size = int(plans.size_out[0, axis])
            starts, weights = (
                np.empty(size, np.int32),
                np.empty((size, int(records["wholes"][0, axis, TAPS])), np.float32),
            )
            fill_common_axis(records, axis, starts, weights)
            records["starts"][:, axis], records["weights"][:, axis] = starts.ctypes.data, weights.ctypes.data
            tables.append((starts, weights))
    return StageRecords(
        StageKind.PARTS,
        records,
        outputs,
        target.itemsize,
        *resampling_kernels(source, target),
        reads_neighbours=True,
        strided=True,
        scratch_bytes=scratch_bytes,
        keep=tables,
    )


@dataclass
class ImagePlans:
    """How to resample all images of a batch on the GPU.

    Attributes:
        shapes: the shapes of the samples as stacks of images (n, H, W, C), int64 of shape (samples, 4).
        vertical, horizontal: the plans of both axes.
    """

    shapes: np.ndarray
    vertical: AxisPlans
    horizontal: AxisPlans


class Spatial(NamedTuple):
    """The dimensions to resize: ``axes`` adjacent dimensions, the first of which is ``first``."""

    first: int
    axes: int
