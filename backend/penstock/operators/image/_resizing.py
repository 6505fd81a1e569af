"""Base of the operators that resize: from arguments to plans, and from plans to pixels."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from penstock.data_types import (
    FLOAT,
    INT16,
    INTERP_LINEAR,
    INTERP_NN,
    UINT8,
    UINT16,
    DALIInterpType,
    dtype_name,
    numpy_dtype,
)
from penstock.kernels.filters import Taps, nearest, taps
from penstock.kernels.reference_filters import ReferenceTaps
from penstock.kernels.resize_shapes import (
    MIDDLES,
    MODES,
    NO_REGION,
    AxisPlan,
    AxisPlans,
    plan_axes,
    torchvision_sizes,
)
from penstock.kernels.windows import Region
from penstock.operators.image._stores import NormalizingStore
from penstock.schema import Argument, OutputSpec, PlanColumns, Sample, Samples, Workspace
from penstock.schema.example_data import Example
from penstock.schema.image_chain import ChainOperator, NotFusable, Pixels, Placement, Sampling, Stage, Store
from penstock.schema.operator import Shape

if TYPE_CHECKING:
    from penstock.kernels.cpu.resample import Normalization
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.resample import ImageStacks, Normalized
    from penstock.tensors import TensorListGPU

IMAGE_LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW")
VOLUME_LAYOUTS = ("DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")
FILTER_ARGUMENTS = (
    Argument("antialias", "bool", True, "Widen the filter when an axis shrinks, so that nothing is skipped."),
    Argument("dtype", "DALIDataType", None, "Type of the output: that of the input (the default), or FLOAT."),
    Argument("interp_type", "DALIInterpType", INTERP_LINEAR, "Filter for both enlarging and shrinking.", tensor=True),
    Argument("mag_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that grow.", tensor=True),
    Argument("min_filter", "DALIInterpType", INTERP_LINEAR, "Filter for axes that shrink.", tensor=True),
    Argument("minibatch_size", "int32", 32, "Accepted for compatibility."),
    Argument("temp_buffer_hint", "int32", 0, "Accepted for compatibility."),
)
SIZE_ARGUMENTS = (
    Argument(
        "max_size",
        "float[]",
        None,
        "The most that each axis may have: one value, or one for each axis (D, H, W order).",
        example=[13.0],
    ),
    Argument(
        "mode",
        "string",
        "default",
        "How sizes that are not given follow: `default` (same scale as those given), `stretch` (unchanged), "
        "`not_larger` (fits inside), `not_smaller` (covers).",
        choices=("default", "stretch", "not_larger", "not_smaller"),
    ),
    Argument("resize_longer", "float", 0.0, "Extent of the longer axis; the other follows.", tensor=True),
    Argument("resize_shorter", "float", 0.0, "Extent of the shorter axis; the other follows.", tensor=True),
    Argument(
        "resize_x", "float", 0.0, "Output width in pixels; 0: follows from the rest; negative: mirrored.", tensor=True
    ),
    Argument(
        "resize_y", "float", 0.0, "Output height in pixels; 0: follows from the rest; negative: mirrored.", tensor=True
    ),
    Argument(
        "resize_z",
        "float",
        0.0,
        "Output depth in pixels; 0: follows from the rest; negative: mirrored. Of volumes only.",
        tensor=True,
    ),
    Argument(
        "roi_end",
        "float[]",
        None,
        "End of the region to resize, in D, H, W order; before the start: mirrored.",
        tensor=True,
        uniform=True,
    ),
    Argument("roi_relative", "bool", False, "The region is given in fractions of the input's extents."),
    Argument(
        "roi_start", "float[]", None, "Start of the region to resize, in D, H, W order.", tensor=True, uniform=True
    ),
    Argument(
        "size",
        "float[]",
        None,
        "Output extents in D, H, W order: one value, or one for each axis.",
        tensor=True,
        uniform=True,
    ),
    Argument(
        "subpixel_scale", "bool", True, "When an extent is rounded, adjust the region so that the true scale is kept."
    ),
)
_SIZED: Mapping[str, Any] = {"resize_x": 20.0, "resize_y": 14.0}
SIZE_EXAMPLES = (
    Example({"size": [14.0, 20.0]}),
    Example({"resize_shorter": 12.0}),
    Example({"resize_longer": 30.0}),
    Example({**_SIZED, "roi_start": [2.0, 3.0], "roi_end": [12.0, 14.0]}),
    Example({**_SIZED, "roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True}),
)
_SIZE_ARGUMENT_GROUPS = (("size",), ("resize_x", "resize_y", "resize_z"), ("resize_shorter",), ("resize_longer",))
_SIZE_NAMES = frozenset(name for names in _SIZE_ARGUMENT_GROUPS for name in names)
_FILTER_NAMES = ("interp_type", "min_filter", "mag_filter")
_MODES_OF_SIZES = {"resize_shorter": "not_smaller", "resize_longer": "not_larger"}
_MAX_EXTENT = 1 << 31
_FILTERS = {int(kind): kind for kind in DALIInterpType}
AnyTaps = Taps | ReferenceTaps


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

    @property
    def columns_first(self) -> bool:
        """Whether lines are resampled before the height, which is quicker where the height grows."""
        vertical = self.axes[-2]
        return vertical.size_out > abs(vertical.end - vertical.start)

    def cropped(self, windows: Sequence[Window]) -> ResamplePlan:
        """The plan for the given window of each axis of this plan's output."""
        composed = tuple(outer.part(inner) for outer, inner in zip(self.windows, windows))
        return replace(self, windows=composed)

    def taps_of(self, axis: int) -> Taps:
        """The filter of one axis, for the positions in its window."""
        plan, window = self.axes[axis], self.windows[axis]
        outputs = range(window.start, window.stop)
        if self.filters[axis] == INTERP_NN:
            starts = nearest(plan, axis == len(self.axes) - 1, outputs)
            table = Taps(starts, _ones(len(starts)))
        else:
            table = taps(plan, self.filters[axis], self.antialias, outputs)
        return Taps(*(np.ascontiguousarray(array[::-1]) for array in table)) if window.mirrored else table

    def resample(self, source: np.ndarray, target: np.ndarray, tables: Sequence[AnyTaps]) -> None:
        """Resamples an image (H, W, C), or a part of one, by the tables of the last two axes."""
        from penstock.kernels.cpu import resample as kernels

        vertical, horizontal = (Taps(table.starts, table.weights) for table in tables)
        if all(kind == INTERP_NN for kind in self.filters):
            kernels.gather_image(source, vertical.starts, horizontal.starts, target)
        else:
            kernels.resample_image(source, vertical, horizontal, target, self.columns_first)

    @functools.cached_property
    def tables(self) -> tuple[AnyTaps, ...]:
        """The filters of all axes, for the positions in the windows."""
        return tuple(self.taps_of(axis) for axis in range(len(self.axes)))

    @functools.cached_property
    def part_read(self) -> Region:
        """The part of the input, along the spatial axes, that the windows depend on."""
        spans = [_span(table) for table in self.tables]
        return Region(tuple(start for start, _ in spans), tuple(stop - start for start, stop in spans))


def _span(table: AnyTaps) -> tuple[int, int]:
    """The range of positions that a filter reads."""
    if not table.starts.size:
        return 0, 0
    # Where outer weights are 0 and left out, a filter may begin behind the next one.
    return int(table.starts.min()), int(table.starts.max()) + table.weights.shape[1]


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


class SizeRules(NamedTuple):
    """How all images of all batches are resized, as compiled code takes it.

    Attributes:
        requested, mode, most, region, relative, subpixel, alignment: as in :func:`kernels.resize_shapes.plan_axes`.
        filters: those of axes that shrink, and of axes that grow, as numbers.
        antialias: whether filters widen when an axis shrinks.
    """

    requested: np.ndarray
    mode: int
    most: np.ndarray
    region: tuple[np.ndarray, np.ndarray]
    relative: bool
    subpixel: bool
    alignment: np.ndarray
    filters: tuple[np.ndarray, np.ndarray]
    antialias: bool


class Spatial(NamedTuple):
    """The dimensions to resize: a number of ``axes``, from ``first`` on."""

    first: int
    axes: int


@functools.lru_cache(maxsize=64)
def _ones(count: int) -> np.ndarray:
    return np.ones((count, 1), np.float32)


class ResizingOperator(ChainOperator[Spatial, ResamplePlan, ResamplePlans]):
    """The base of operators that resize the D, H and W dimensions of images."""

    def setup(self) -> None:
        # On the GPU all samples are planned at once, and no sample's own plan is needed.
        self.plans_by_shape = self.device == "cpu"
        if self.args.get("mode", "default") not in MODES:
            raise RuntimeError(f"Invalid resize mode: {self.args['mode']}. Use one of {', '.join(MODES)}.")
        if self.given("roi_start") != self.given("roi_end"):
            raise RuntimeError("``roi_start`` and ``roi_end`` must be specified together")
        groups = [
            group for group in _SIZE_ARGUMENT_GROUPS if any(self.given(name) for name in group if name in self.args)
        ]
        if len(groups) > 1:
            raise RuntimeError(
                "Exactly one method of specifying size must be used, but "
                f"{' and '.join('`' + group[0] + '`' for group in groups)} are given"
            )
        if groups and groups[0][0] in ("resize_shorter", "resize_longer") and self.given("mode"):
            raise RuntimeError(f"`mode` cannot be given together with `{groups[0][0]}`, which implies it")
        if not groups:
            raise RuntimeError(
                "The output size is not given. Exactly one method of specifying size must be used: separate resize_x, "
                "resize_y, resize_z arguments, size argument, resize_longer or resize_shorter"
            )

    def describe(self, workspace: Workspace[Spatial]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype not in (UINT8, INT16, UINT16, FLOAT):
            raise RuntimeError(
                f"Unsupported input type: {dtype_name(batch.dtype)}. Supported are: uint8, int16, uint16, float"
            )
        dtype = batch.dtype if self.args["dtype"] is None else self.args["dtype"]
        if dtype not in (batch.dtype, FLOAT):
            raise RuntimeError(
                f"Resize must output original type ({dtype_name(batch.dtype)}) or float. Got: {dtype_name(dtype)}"
            )
        spatial = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
        if spatial != list(range(spatial[0], spatial[-1] + 1)):
            raise ValueError(f"The spatial dimensions of layout '{layout}' must be adjacent")
        workspace.state = Spatial(spatial[0], len(spatial))
        return [OutputSpec(dtype, layout, batch.ndim())]

    def infer_batch(
        self, samples: Samples[Spatial, ResamplePlan, ResamplePlans]
    ) -> tuple[Sequence[np.ndarray], ResamplePlans]:
        first, count = samples.state
        shapes = samples.shapes()
        spatial = slice(first, first + count)
        extents = shapes[:, spatial].copy()
        sizes, starts, ends = self.plan_axes(samples, extents)
        plans = ResamplePlans(
            extents, sizes, starts, ends, self._filters(samples, sizes, starts, ends), self.args["antialias"]
        )
        # An empty dimension stays empty.
        shapes[:, spatial] = sizes * (extents > 0)
        return [shapes], plans

    def plan_axes(self, samples: Samples, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sizes and regions given by the arguments; see :func:`kernels.resize_shapes.plan_axes`."""
        count = extents.shape[1]
        requested, mode = samples.derived(_SIZE_NAMES, ("size", count), lambda: self._requested(samples, count))
        region, relative = self._region(samples, count), self.args["roi_relative"]
        most = self._max_size(count)
        subpixel = self.args["subpixel_scale"]
        return plan_axes(extents, requested, mode, most, region, relative, subpixel, keeps_empty=True)

    def constant_rules(self, samples: Samples) -> SizeRules | None:
        """The arguments, if they are constant and say alone how images are resized; ``samples``: any, to read them."""
        if self.tensor_arguments:
            return None
        requested, mode = self._requested(samples, 2)
        return SizeRules(
            requested,
            MODES.index(mode),
            np.array(self._max_size(2), np.float64),
            self._region(samples, 2) or NO_REGION,
            bool(self.args["roi_relative"]),
            bool(self.args["subpixel_scale"]),
            MIDDLES,
            self._filters_of(samples),
            bool(self.args["antialias"]),
        )

    def plan_reference(
        self, samples: Samples, extents: np.ndarray, library: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for another library's arithmetic: regions are not adjusted, and sizes are rounded like
        torchvision's."""
        count = extents.shape[1]
        requested, mode = samples.derived(_SIZE_NAMES, ("size", count), lambda: self._requested(samples, count))
        region, relative = self._region(samples, count), self.args["roi_relative"]
        most = self._max_size(count)
        if mode in _MODES_OF_SIZES.values() and library != "opencv" and not samples.given("mode"):
            covered = extents.astype(np.float64) if region is None else np.abs(region[1] - region[0])
            covered = covered * extents if relative else covered
            requested, mode, most = torchvision_sizes(covered, requested, mode, most), "stretch", []
        sizes, starts, ends = plan_axes(extents, requested, mode, most, region, relative, False, keeps_empty=True)
        if library != "pil":
            starts, ends = np.round(starts), np.round(ends)
        return sizes, starts, ends

    def _filters(self, samples: Samples, sizes: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The filters that the arguments choose for each axis, as numbers."""
        from penstock.kernels.cpu.axis_plans import fill_filters

        shrinking, growing = samples.derived(_FILTER_NAMES, "filters", lambda: self._filters_of(samples))
        filters = np.empty_like(sizes)
        fill_filters(sizes, starts, ends, shrinking, growing, filters)
        return filters

    @staticmethod
    def _filters_of(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """The filters for axes that shrink and for those that grow."""
        names = (name if samples.given(name) else "interp_type" for name in ("min_filter", "mag_filter"))
        shrinking, growing = (samples.values(name).astype(np.int64) for name in names)
        return shrinking, growing

    def _requested(self, samples: Samples, count: int) -> tuple[np.ndarray, str]:
        for name, mode in _MODES_OF_SIZES.items():
            if samples.given(name):
                return samples.values(name).repeat(count, axis=1), mode
        mode = self.args["mode"]
        if samples.given("size"):
            size = samples.values("size")
            if size.shape[1] == 1:
                size = size.repeat(count, axis=1)
            if size.shape[1] != count:
                raise RuntimeError(
                    f'Argument "size" expects either a single value or a list of {count} elements. {size.shape[1]} given.'
                )
            return size, mode
        columns = [samples.values(name) for name in ("resize_z", "resize_y", "resize_x")[-count:]]
        rows = max(map(len, columns))
        return np.concatenate([np.broadcast_to(column, (rows, 1)) for column in columns], axis=1), mode

    def _max_size(self, count: int) -> list[float]:
        value = self.args["max_size"] or []
        if len(value) not in (0, 1, count):
            raise RuntimeError(f"`max_size` has {len(value)} entries, expected 1 or {count}")
        return value * count if len(value) == 1 else value

    def _region(self, samples: Samples, count: int) -> tuple[np.ndarray, np.ndarray] | None:
        if not samples.given("roi_start"):
            return None
        start, end = (self._roi_corner(samples, name, count) for name in ("roi_start", "roi_end"))
        return start, end

    @staticmethod
    def _roi_corner(samples: Samples, name: str, count: int) -> np.ndarray:
        """One corner of the region; a single constant, or a scalar tensor argument, applies to all axes."""
        values, computed = samples.values(name), samples.tensors(name)
        if values.shape[1] == 1 and (computed is None or computed.ndim == 1):
            values = values.repeat(count, axis=1)
        if values.shape[1] != count:
            raise RuntimeError(f"`{name}` has {values.shape[1]} entries, expected {count}")
        return values

    def compute(self, sample: Sample[Spatial, ResamplePlan]) -> None:
        first, _ = sample.workspace.state
        resample(np.ascontiguousarray(sample.inputs[0]), sample.outputs[0], first, sample.plan)

    step_by_step = ("volumes",)

    def stage(self, sample: Sample[Spatial, ResamplePlan]) -> Resampling:
        first, count = sample.workspace.state
        if count != 2:
            raise NotFusable("volumes")
        return Resampling(sample.plan, first, sample.shapes[0], between_type(self, sample))

    def compute_batch(self, workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
        resample_batch(workspace)


def between_type(operator: ResizingOperator, sample: Sample) -> np.dtype:
    """The type of the resized image."""
    given = operator.args["dtype"]
    return numpy_dtype(sample.workspace.inputs[0].dtype if given is None else given)


@dataclass(frozen=True)
class Resampling(Sampling):
    """A sample of two spatial axes, resized.

    Attributes:
        plan: of the spatial axes.
        first: the first spatial dimension.
        shape_in: of the input.
        dtype: of the output.
    """

    plan: ResamplePlan
    first: int
    shape_in: Shape
    dtype: np.dtype

    @functools.cached_property
    def shape(self) -> Shape:  # type: ignore[override]
        return (*self.shape_in[: self.first], *self.plan.extents, *self.shape_in[self.first + 2 :])

    def covers(self, window: Region) -> Region:
        behind = self.first + 2
        return Region(
            (*window.anchor[:behind], *(0,) * len(self.shape[behind:])),
            (*window.extents[:behind], *self.shape[behind:]),
        )

    def reads(self, window: Region) -> Region:
        spans = [_span(table) for table in self._tables(window)]
        anchor, extents = list(window.anchor), list(window.extents)
        for axis, (start, stop) in enumerate(spans, self.first):
            anchor[axis], extents[axis] = start, stop - start
        return Region(tuple(anchor), tuple(extents))

    def _tables(self, window: Region) -> list[AnyTaps]:
        axes = range(self.first, self.first + 2)
        parts = [slice(window.anchor[axis], window.anchor[axis] + window.extents[axis]) for axis in axes]
        return [
            table._replace(starts=table.starts[part], weights=table.weights[part])
            for table, part in zip(self.plan.tables, parts)
        ]

    def narrowed(self, placement: Placement) -> Sampling | None:
        spatial = range(self.first, self.first + 2)
        whole = all(
            placement.anchor[axis] == 0 and placement.shape[axis] == extent and not placement.mirrored[axis]
            for axis, extent in enumerate(self.shape)
            if axis not in spatial
        )
        if not whole:
            return None
        windows = [
            Window(placement.anchor[axis], placement.anchor[axis] + placement.shape[axis], placement.mirrored[axis])
            for axis in spatial
        ]
        return replace(self, plan=self.plan.cropped(windows))

    def stored_by(self, store: Store) -> ResampledStore | None:
        if (
            not self.plan.normalizes
            or not isinstance(store, NormalizingStore)
            or not store.is_of_images
            or self.first != len(self.shape) - 3
        ):
            return None
        inside, place = store.place_of_image()
        windows = [
            Window(part.start, part.stop, mirrored)
            for part, mirrored in zip(inside[self.first :], (False, store.plan.mirror))
        ]
        return ResampledStore(self.plan.cropped(windows), self, store, (place[self.first], place[self.first + 1]))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        read = self.reads(window)
        pixels, origin = rows_at(source, read, self.first)
        tables = [_shifted(table, -start) for table, start in zip(self._tables(window), origin)]
        resample_planes(pixels, target, self.first, self.plan, tables)


def rows_at(source: Pixels, read: Region, first: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """A contiguous array of what is read, and the origin of its dimensions H and W, which begin at dimension
    ``first``."""
    behind = first + 2
    if not first and source.array.flags.c_contiguous and source.array.shape[behind:] == read.extents[behind:]:
        return source.array, source.origin[:2]
    outer = Region(
        (*read.anchor[:first], *source.origin[first:]),
        (*read.extents[:first], *source.array.shape[first:]),
    )
    pixels = source.part(outer)
    if pixels.flags.c_contiguous and pixels.shape[behind:] == read.extents[behind:]:
        return pixels, source.origin[first:behind]
    return source.contiguous(read), read.anchor[first:behind]


@dataclass(frozen=True)
class ResampledStore(Stage):
    """Images resized, cropped, mirrored, normalized and stored in one pass.

    Attributes:
        plan: of the part that is kept.
        resampling, store: the stages that it combines.
        place: the part's position in H and W of the output.
    """

    plan: ResamplePlan
    resampling: Resampling
    store: NormalizingStore
    place: tuple[slice, ...]

    is_whole = True

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.store.shape

    @property
    def is_inside(self) -> bool:
        """Whether nothing in the output is filled except added channels."""
        return self.store.is_inside

    def covers(self, window: Region) -> Region:
        return Region((0,) * len(self.shape), self.shape)

    def reads(self, window: Region) -> Region:
        first, shape, part = self.resampling.first, self.resampling.shape_in, self.plan.part_read
        outer = (0,) * first
        return Region((*outer, *part.anchor, 0), (*shape[:first], *part.extents, shape[-1]))

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        from penstock.kernels.cpu.resample import Normalization

        plan, place = self.store.plan, self.place
        pixels, origin = rows_at(source, self.reads(window), self.resampling.first)
        normalization = Normalization(
            plan.mean,
            plan.factor,
            plan.shift,
            self.store.is_planar,
            plan.fill,
            (place[0].start, place[1].start),
        )
        resample_and_normalize(pixels, target, self.plan, self.resampling.dtype, normalization, origin)


def image_plans(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> ImagePlans | None:
    """The plans for the kernel that computes its own tables; None if it doesn't support the batch."""
    (first, count), plans, batch = workspace.state, workspace.plans, workspace.inputs[0]
    whole = numpy_dtype(batch.dtype).kind in "iu"
    if count != 2 or not whole or workspace.failures or not len(batch) or plans.size_out.max() >= _MAX_EXTENT:
        return None
    shapes = batch.shape_array()
    return ImagePlans(_stack_shapes(shapes, first), plans.axis(0), plans.axis(1)) if shapes.all() else None


def resample_batch(workspace: Workspace[Spatial, ResamplePlan, ResamplePlans]) -> None:
    """Resamples the spatial axes of all samples on the GPU, by their plans."""
    from penstock.kernels.cuda.launch import locate_all, scratch
    from penstock.kernels.cuda.resample import ImageResampling, resample_axes, resample_grouped

    first, count = workspace.state
    images = image_plans(workspace)
    if images is not None:
        resample_images_planned(workspace.inputs[0], workspace.outputs[0], images)
        return
    samples = workspace.live
    plans = [sample.plan for sample in samples]
    sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    if count == 3:
        shapes = [(*s.shape[:first], p.extents[0], *s.shape[first + 1 :]) for s, p in zip(sources, plans)]
        middles = scratch(shapes, np.float32)
        resample_axes([(s, first, p.taps_of(0), m) for s, p, m in zip(sources, plans, middles)])
        sources, first = middles, first + 1

    def job_of(plan: ResamplePlan, source: Located, target: Located) -> ImageResampling:
        return ImageResampling(
            source.reshape(*image_stack(source.shape, first)),
            target.reshape(*image_stack(target.shape, first)),
            plan.taps_of(count - 2),
            plan.taps_of(count - 1),
        )

    resample_grouped(sources, targets, plans, job_of)


def resample_images_planned(
    sources: TensorListGPU, targets: TensorListGPU, plans: ImagePlans, after: Normalized | None = None
) -> None:
    """Resamples all samples of a batch on the GPU; ``after``: the normalization that follows."""
    from penstock.kernels.cuda.resample import resample_planned

    stacks = stacks_of(sources, plans.shapes)
    resample_planned(stacks, targets.pointers(), numpy_dtype(targets.dtype), plans.vertical, plans.horizontal, after)


def stacks_of(batch: TensorListGPU, shapes: np.ndarray) -> ImageStacks:
    """Where the samples of a batch lie, whose shapes as stacks of images are given."""
    from penstock.kernels.cuda.launch import places_of
    from penstock.kernels.cuda.resample import ImageStacks

    addresses, owner = places_of(batch)
    return ImageStacks(addresses, shapes, numpy_dtype(batch.dtype), owner)


def _stack_shapes(shapes: np.ndarray, first: int) -> np.ndarray:
    """As :func:`image_stack`, for many shapes, in rows."""
    parts = (
        shapes[:, :first].prod(axis=1),
        shapes[:, first],
        shapes[:, first + 1],
        shapes[:, first + 2 :].prod(axis=1),
    )
    return np.stack(parts, axis=1)


def image_stack(shape: Sequence[int], first: int) -> tuple[int, int, int, int]:
    """A shape with H and W from dimension ``first`` on, as that of a stack of images with channels last."""
    return (math.prod(shape[:first]), shape[first], shape[first + 1], math.prod(shape[first + 2 :]))


def resample(source: np.ndarray, target: np.ndarray, first: int, plan: ResamplePlan) -> None:
    """Resamples the spatial axes of a contiguous array, from dimension ``first`` on."""
    from penstock.kernels.cpu import resample as kernels

    if not target.size:
        return
    if not source.size:
        raise RuntimeError(f"Cannot resize an empty image of shape {list(source.shape)}")
    if len(plan.axes) == 3:
        shape = (*source.shape[:first], plan.extents[0], *source.shape[first + 1 :])
        middle = np.empty(shape, np.float32)
        kernels.resample_axis(source, first, plan.taps_of(0), middle)
        source, first = middle, first + 1
        plan = replace(plan, axes=plan.axes[1:], filters=plan.filters[1:], windows=plan.windows[1:])
    resample_planes(source, target, first, plan, plan.tables)


def resample_planes(
    source: np.ndarray, target: np.ndarray, first: int, plan: ResamplePlan, tables: Sequence[AnyTaps]
) -> None:
    """Resamples H and W of a contiguous array, from dimension ``first`` on, with these tables of the plan."""
    for plane, result in zip(_planes(source, first), _planes(target, first)):
        plan.resample(plane, result, tables)


def resample_and_normalize(
    source: np.ndarray,
    target: np.ndarray,
    plan: ResamplePlan,
    between: np.dtype,
    normalization: Normalization,
    origin: tuple[int, ...] = (0, 0),
) -> None:
    """Resizes, crops, mirrors, normalizes, converts and transposes images in one pass.

    Only the rows and columns in ``plan.windows`` are computed. The result is bit for bit that of :func:`resample` into
    an array of dtype ``between``, followed by the normalization.

    Args:
        source: contiguous, of shape (..., H, W, C), of uint8, int16, uint16 or float32.
        target: contiguous, of shape (..., C', h, w) or (..., h, w, C') as ``normalization.planar`` says, C' >= C; of
            float32, float16, uint8 or int8.
        plan: of two axes.
        between: the type that the resized images would have: the source's, or float32.
        normalization: what follows.
        origin: the position of ``source`` in the image, if it is only a part of it.
    """
    from penstock.kernels.cpu import resample as kernels

    if not target.size:
        return
    if not source.size:
        raise RuntimeError(f"Cannot resize an empty image of shape {list(source.shape)}")
    vertical, horizontal = (Taps(t.starts - np.int32(start), t.weights) for t, start in zip(plan.tables, origin))
    images, results = source.reshape(-1, *source.shape[-3:]), target.reshape(-1, *target.shape[-3:])
    for image, result in zip(images, results):
        kernels.resample_normalized(image, vertical, horizontal, between, normalization, result, plan.columns_first)


def _shifted(table: AnyTaps, by: int) -> AnyTaps:
    return table._replace(starts=table.starts + np.int32(by)) if by else table


def _planes(array: np.ndarray, first: int) -> np.ndarray:
    """The array as a stack of images (n, H, W, rest); H is dimension ``first``."""
    return array.reshape(math.prod(array.shape[:first]), *array.shape[first : first + 2], -1)
