"""Plans for resizing images with another library's arithmetic."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.data_types import (
    FLOAT,
    INTERP_CUBIC,
    INTERP_LANCZOS3,
    INTERP_LINEAR,
    INTERP_NN,
    INTERP_TRIANGULAR,
    DALIDataType,
    DALIInterpType,
)
from penstock.kernels.reference_filters import TORCH_SMALL, ReferenceAxis, ReferenceTaps, pil_taps, torch_taps
from penstock.kernels.windows import Region
from penstock.operators.image._float_stages import CHANNELS
from penstock.operators.image._resample_plans import ResamplePlan, ResamplePlans, Window, planes_of

if TYPE_CHECKING:
    from penstock.kernels.cuda.torch_floats import WidenedTaps
    from penstock.kernels.resize_shapes import AxisPlan

# For each library, the names of its filters, and the `interp_type` that selects each; None: it needs `interpolation`.
FILTER_NAMES: dict[str, dict[str, DALIInterpType | None]] = {
    "pil": {
        "nearest": INTERP_NN,
        "box": None,
        "bilinear": INTERP_LINEAR,
        "hamming": None,
        "bicubic": INTERP_CUBIC,
        "lanczos": INTERP_LANCZOS3,
    },
    "torchvision": {
        "nearest": INTERP_NN,
        "nearest-exact": None,
        "bilinear": INTERP_LINEAR,
        "bicubic": INTERP_CUBIC,
        "lanczos": INTERP_LANCZOS3,
    },
    "opencv": {
        "nearest": INTERP_NN,
        "nearest-exact": None,
        "linear": INTERP_LINEAR,
        "linear-exact": None,
        "area": None,
        "cubic": INTERP_CUBIC,
        "lanczos4": None,
    },
}
_OPENCV_FLAGS = {name: f"INTER_{name.upper().replace('-', '_')}" for name in FILTER_NAMES["opencv"]}


@dataclass(frozen=True)
class Reference:
    """A library, and its parameters for resizing.

    Attributes:
        library: `pil`, `torchvision` or `opencv`.
        interpolation: the library's name for the filter; if empty, `interp_type` selects the filter.
        reducing_gap: Pillow's argument: first reduce the image by integer factors, to no less than this many times the
            output's size; 0: do not.
        as_floats: whether to resize uint8 images as PyTorch resizes floats, and to round the results.
    """

    library: str
    interpolation: str
    reducing_gap: float
    as_floats: bool = False

    def plan_of(self, dtype: DALIDataType) -> type[ReferencePlan]:
        """Return the class of the plans for images of this type."""
        if self.library == "opencv":
            return OpencvPlan
        if dtype == FLOAT:
            return FloatPlan
        if self.as_floats:
            return RoundedPlan
        return ReducingPlan if self.reducing_gap else ReferencePlan

    def filter_of(self, kind: DALIInterpType) -> str:
        """Return the library's name for the filter ``kind``.

        Raises:
            ValueError: the library has no such filter.
        """
        if self.interpolation:
            return self.interpolation
        kind = INTERP_LINEAR if kind == INTERP_TRIANGULAR and self.library == "pil" else kind
        for name, meant in FILTER_NAMES[self.library].items():
            if meant == kind:
                return name
        known = ", ".join(str(meant.name) for meant in FILTER_NAMES[self.library].values() if meant is not None)
        raise ValueError(
            f"`interp_type`: {self.library} has no {kind.name}. Use one of {known}, or set `interpolation` to one of "
            f"{', '.join(FILTER_NAMES[self.library])}"
        )


@dataclass(frozen=True)
class ReferencePlan(ResamplePlan):
    """How to resample one sample of ``channels`` channels with the arithmetic of ``reference``."""

    reference: Reference
    channels: int

    @functools.cached_property
    def filter(self) -> str:
        """The library's name for the filter."""
        return self.reference.filter_of(self.filters[0])

    @property
    def columns_first(self) -> bool:
        """Whether the width is resampled before the height."""
        if self.reference.library != "pil":
            return True
        # As in Pillow 13, an image that loses more than twice as many rows as columns is resampled vertically first.
        vertical, horizontal = self.axes
        fewer_rows = vertical.size_in - vertical.size_out
        return fewer_rows <= 0 or fewer_rows <= 2 * (horizontal.size_in - horizontal.size_out)

    @functools.cached_property
    def tables(self) -> tuple[ReferenceTaps, ...]:
        """The filters of both axes, for the positions in the windows; empty if images are resampled without tables."""
        return tuple(self._table(axis) for axis in range(len(self.axes)))

    @functools.cached_property
    def part_read(self) -> Region:
        """The part of the input, along both axes, that the windows depend on."""
        spans = [table.span for table in self.tables]
        return Region(tuple(start for start, _ in spans), tuple(stop - start for start, stop in spans))

    @property
    def byte_tables(self) -> tuple[ReferenceTaps, ReferenceTaps] | None:
        """The vertical and horizontal filters of a three-channel image resampled in integers, columns first; None for others."""
        if self.filter.startswith("nearest") or self.channels != 3 or not self.columns_first or not self.tables:
            return None
        vertical, horizontal = self.tables
        return vertical, horizontal

    @property
    def part_kept(self) -> Region | None:
        """The part of the image, along its two axes, that is the result; None unless all filters copy pixels unchanged."""
        from penstock.kernels.cpu.fixed_point import kept_positions

        if not self.tables or self.has_alpha(self.channels):
            return None
        kept = [kept_positions(table) for table in self.tables]
        parts = [part for part in kept if part is not None]
        if len(parts) < len(self.axes):
            return None
        return Region(tuple(part.start for part in parts), tuple(part.stop - part.start for part in parts))

    @property
    def widens(self) -> bool:
        return (self.antialias or self.reference.library == "pil") and not self.filter.startswith("nearest")

    def _table(self, axis: int) -> ReferenceTaps:
        plan, window = self.axes[axis], self.windows[axis]
        if self.reference.library == "pil":
            table = pil_taps(ReferenceAxis(plan.size_in, plan.size_out, plan.start, plan.end, self.filter, True, True))
        else:
            # The region is cut out first, so that filters do not see pixels beyond it.
            begin = int(plan.start)
            start, end, size = plan.start - begin, plan.end - begin, math.ceil(plan.end) - begin
            small = sum(each.size_out for each in self.axes) <= TORCH_SMALL
            table = torch_taps(ReferenceAxis(size, plan.size_out, start, end, self.filter, self.antialias, True, small))
            table = table._replace(starts=table.starts + np.int32(begin))
        part = slice(window.start, window.stop)
        starts, weights = table.starts[part], table.weights[part]
        if window.mirrored:
            starts, weights = starts[::-1], weights[::-1]
        return table._replace(starts=np.ascontiguousarray(starts), weights=np.ascontiguousarray(weights))

    def resample_images(self, source: np.ndarray, target: np.ndarray, first: int) -> None:
        for plane, result in zip(planes_of(source, first), planes_of(target, first)):
            self.resample(plane, result, self.tables)

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        """Resample an image (H, W, C), or a part of one, with the tables of both axes."""
        from penstock.kernels.cpu.resample import gather_image
        from penstock.kernels.cpu.translucency import premultiplied, unmultiply

        if self.filter.startswith("nearest"):
            rows, columns = (table.starts for table in tables)
            gather_image(source, rows, columns, target)
        elif self.has_alpha(source.shape[2]):
            self.resample_opaque(premultiplied(source), target, tables)
            unmultiply(target)
        else:
            self.resample_opaque(source, target, tables)

    def has_alpha(self, channels: int) -> bool:
        """Return whether the last of ``channels`` channels is the alpha channel, as in Pillow's modes LA and RGBA."""
        return self.reference.library == "pil" and channels in (2, 4)

    def resample_opaque(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        """Resample each channel separately, including an alpha channel."""
        from penstock.kernels.cpu.fixed_point import resample_image

        vertical, horizontal = tables
        resample_image(source, vertical, horizontal, target, self.columns_first)


@dataclass(frozen=True)
class ReducingPlan(ReferencePlan):
    """How to resample one sample like Pillow with a ``reducing_gap``: first reduce it by integer factors, then resample it."""

    @functools.cached_property
    def tables(self) -> tuple[ReferenceTaps, ...]:
        return ()

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        from penstock.kernels.cpu.translucency import premultiplied, unmultiply
        from penstock.kernels.pil_reduction import reduce_image, reduction_of

        gap, nearest = self.reference.reducing_gap, self.filter == "nearest"
        reductions = [reduction_of(axis, self.filter, gap) for axis in self.axes]
        plan = ReferencePlan(self.axes, self.filters, self.antialias, self.windows, self.reference, self.channels)
        if nearest or all(reduction.factor == 1 for reduction in reductions):
            plan.resample(source, target, plan.tables)
            return
        translucent = self.has_alpha(source.shape[2])
        less = reduce_image(premultiplied(source) if translucent else source, *reductions)
        axes = tuple(reduction.rest(axis) for reduction, axis in zip(reductions, self.axes))
        rest = replace(plan, axes=axes)
        rest.resample_opaque(less, target, rest.tables)
        if translucent:
            unmultiply(target)


@dataclass(frozen=True)
class FloatPlan(ReferencePlan):
    """How to resample one sample of float32 as PyTorch resamples a contiguous tensor on a machine with FMA."""

    @functools.cached_property
    def tables(self) -> tuple[ReferenceTaps, ...]:
        return ()

    @property
    def has_kernel(self) -> bool:
        """Whether there is a GPU kernel for the plan: only with antialiasing, and if the size changes."""
        same = all(axis.size_out == int(axis.end) - int(axis.start) for axis in self.axes)
        return self.antialias and not same and not self.filter.startswith("nearest")

    @property
    def neighbours(self) -> str | None:
        """The filter if fused kernels support the plan, else None.

        They resize whole three-channel images without antialiasing, if input and output are at least one vector wide.
        """
        from penstock.kernels.cpu.torch_pixels import LEAST

        whole = all(
            (axis.start, axis.end, axis.size_out, False) == (0, axis.size_in, window.stop, window.mirrored)
            for axis, window in zip(self.axes, self.windows)
        )
        same = all(axis.size_in == axis.size_out for axis in self.axes)
        narrow = min(self.axes[1].size_in, self.axes[1].size_out) < LEAST
        other = self.antialias or self.filter.startswith("nearest") or self.channels != CHANNELS
        return None if same or narrow or other or not whole else self.filter

    @functools.cached_property
    def widened(self) -> tuple[WidenedTaps, ...]:
        """The filters of both axes in the form that the GPU uses."""
        return tuple(_widened_taps(*each, self.filter == "bicubic") for each in zip(self.axes, self.windows))

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        from penstock.kernels.cpu.torch_floats import resample_image

        rows, columns = (slice(int(axis.start), int(axis.end)) for axis in self.axes)
        part = np.ascontiguousarray(source[rows, columns])
        backwards = tuple(slice(None, None, -1 if window.mirrored else 1) for window in self.windows)
        if self.filter.startswith("nearest"):
            whole = ReferencePlan(self.axes, self.filters, self.antialias, self.windows, self.reference, self.channels)
            whole.resample(source, target, whole.tables)
        elif part.shape == target.shape:
            target[...] = part[backwards]
        else:
            result = np.empty(target.shape, np.float32)
            resample_image(part, result, self.filter == "bicubic", self.antialias, self.channels)
            target[...] = result[backwards]


@dataclass(frozen=True)
class RoundedPlan(FloatPlan):
    """How to resample one sample of uint8 as float32 and round the result, ties to even."""

    @property
    def has_kernel(self) -> bool:
        return False

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        from penstock.kernels.cpu.torch_pixels import resample_rounded

        if self.neighbours and source.shape[2] == CHANNELS:
            resample_rounded(np.ascontiguousarray(source), self.neighbours == "bicubic", target)
            return
        values = np.empty(target.shape, np.float32)
        super().resample(source.astype(np.float32), values, tables)
        target[...] = np.clip(np.rint(values), 0, 255)


@functools.lru_cache(256)
def _widened_taps(axis: AxisPlan, window: Window, cubic: bool) -> WidenedTaps:
    from penstock.kernels.cpu.torch_floats import widened_taps
    from penstock.kernels.cuda.torch_floats import WidenedTaps

    begin, order = int(axis.start), -1 if window.mirrored else 1
    starts, counts, weights = widened_taps(int(axis.end) - begin, axis.size_out, cubic)
    return WidenedTaps((starts + begin)[::order], counts[::order], weights[::order])


@dataclass(frozen=True)
class OpencvPlan(ReferencePlan):
    """How to resize one sample by calling OpenCV, which is a dependency anyway and releases the GIL."""

    @functools.cached_property
    def tables(self) -> tuple[ReferenceTaps, ...]:
        return ()

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[ReferenceTaps]) -> None:
        from penstock.kernels.cpu.opencv import keep, opencv

        library = opencv()
        flag = getattr(library, _OPENCV_FLAGS[self.filter])
        rows, columns = (slice(int(axis.start), int(axis.end)) for axis in self.axes)
        result = library.resize(source[rows, columns], self.extents[::-1], interpolation=flag).reshape(target.shape)
        backwards = tuple(slice(None, None, -1 if window.mirrored else 1) for window in self.windows)
        keep(result[backwards], target)


@dataclass(eq=False)
class ReferencePlans(ResamplePlans):
    """How to resample many samples with the arithmetic of ``reference``.

    Attributes:
        channels: each sample's number of channels.
        kind: the class of a single sample's plan.
    """

    reference: Reference
    channels: np.ndarray
    kind: type[ReferencePlan]

    def row(self, number: int) -> ReferencePlan:
        plan = super().row(number)
        # Reversed regions are resized forwards, and the result is mirrored.
        axes = [replace(axis, start=min(axis.start, axis.end), end=max(axis.start, axis.end)) for axis in plan.axes]
        windows = [Window(0, axis.size_out, axis.start > axis.end) for axis in plan.axes]
        return self.kind(
            tuple(axes), plan.filters, plan.antialias, tuple(windows), self.reference, int(self.channels[number])
        )
