"""Base class of operators that copy a window of each sample: arguments are converted to regions, which are then copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.core.chains import StageKind, StageRecords, placements
from penstock.data_types import BOOL, FLOAT, FLOAT16, UINT8, DALIDataType, dtype_name, numpy_dtype
from penstock.kernels import windows
from penstock.kernels.windows import (
    EXTENSIONS,
    Region,
    apply_policy,
    check_policy,
    cut_off,
    extended_places,
    fill_per_channel,
)
from penstock.schema import Argument, Deprecation, Operator, PlanColumns, Sample, Samples, Workspace
from penstock.schema.image_chain import ChainOperator, Pixels, Placement
from penstock.schema.operator import Shape
from penstock.schema.plans import State

if TYPE_CHECKING:
    from penstock.kernels.cuda.launch import Located
    from penstock.kernels.cuda.window import WindowCopy

CROP_ARGUMENTS = (
    Argument(
        "crop",
        "float[]",
        None,
        "Extents of the window: (height, width) or (depth, height, width).",
        tensor=True,
        example=[10.0, 12.0],
    ),
    Argument("crop_d", "float", 0.0, "Depth of the window; 0: all.", tensor=True),
    Argument("crop_h", "float", 0.0, "Height of the window; 0: all.", tensor=True),
    Argument("crop_pos_x", "float", 0.5, "Horizontal place of the window, from 0 (left) to 1 (right).", tensor=True),
    Argument("crop_pos_y", "float", 0.5, "Vertical place of the window, from 0 (top) to 1 (bottom).", tensor=True),
    Argument("crop_pos_z", "float", 0.5, "Place of the window in depth, from 0 (front) to 1 (back).", tensor=True),
    Argument("crop_w", "float", 0.0, "Width of the window; 0: all.", tensor=True),
    Argument(
        "rounding",
        "string",
        "round",
        "How the window's start is made an integer: `round` (half away from zero), `truncate`, `floor`, or "
        "`torchvision` (half to even, or down for windows larger than the image).",
        choices=windows.ROUNDINGS,
    ),
)
_FILL_ARGUMENTS = (
    Argument(
        "fill_values",
        "float[]",
        [0.0],
        'Value of pixels outside the input, with out_of_bounds_policy="pad": one, or one for each channel.',
    ),
    Argument(
        "image_type", "DALIImageType", None, "Colour space of the input.", deprecated=Deprecation("0.24", removed=True)
    ),
)
POLICY_ARGUMENTS = (
    *_FILL_ARGUMENTS,
    Argument(
        "out_of_bounds_policy",
        "string",
        "error",
        "A window that reaches outside of the input: `error`, `pad` or `trim_to_shape`.",
        choices=windows.POLICIES,
    ),
)
EXTENDING_POLICY_ARGUMENTS = (
    *_FILL_ARGUMENTS,
    Argument(
        "out_of_bounds_policy",
        "string",
        "error",
        "A window that reaches outside of the input: `error`, `pad`, `trim_to_shape`, or what continues the input: `clamp` "
        "(aa|abc), `reflect` (ba|abc), `reflect_101` (cb|abc), `wrap` (bc|abc).",
        choices=(*windows.POLICIES, *windows.EXTENSIONS),
    ),
)
_MAX_DIMENSIONS = 4
_EXTENTS = {"F": "crop_d", "D": "crop_d", "H": "crop_h", "W": "crop_w"}
_POSITIONS = {"F": "crop_pos_z", "D": "crop_pos_z", "H": "crop_pos_y", "W": "crop_pos_x"}
_EXTENT_NAMES = frozenset(("crop", *_EXTENTS.values()))
_POSITION_NAMES = frozenset(_POSITIONS.values())


def check_crop_arguments(operator: Operator) -> None:
    """Raise RuntimeError if crop arguments contradict each other, or the rounding is unknown."""
    if operator.given("crop") and any(operator.given(name) for name in _EXTENTS.values()):
        raise RuntimeError("`crop` argument is not compatible with `crop_h`, `crop_w`, `crop_d`")
    if operator.given("crop_h") != operator.given("crop_w"):
        raise RuntimeError("`crop_w` and `crop_h` arguments must be provided together")
    if operator.given("crop_d") and not operator.given("crop_h"):
        raise RuntimeError("`crop_d` argument must be provided together with `crop_w` and `crop_h`")
    if operator.args["rounding"] not in windows.ROUNDINGS:
        known = ", ".join(windows.ROUNDINGS)
        raise RuntimeError(f"Unknown rounding '{operator.args['rounding']}': use one of {known}")


def window_type(operator: Operator, batch: Any) -> DALIDataType:
    """Return the output's type; raise RuntimeError if the output's type, the input's type or the rank is not supported."""
    dtype = batch.dtype
    if batch.ndim() > _MAX_DIMENSIONS:
        raise RuntimeError(f"Not supported number of dimensions: {batch.ndim()}")
    if dtype == BOOL:
        raise RuntimeError(f"Not supported input type: {dtype_name(dtype)}")
    wanted = operator.args["dtype"]
    if wanted is None or wanted == dtype:
        return dtype
    if wanted not in (FLOAT, FLOAT16, UINT8):
        raise RuntimeError(f"Not supported output type: {dtype_name(wanted)}; use the input's, FLOAT, FLOAT16 or UINT8")
    return wanted


@dataclass(eq=False)
class Regions(PlanColumns[Region]):
    """The regions of many samples.

    Attributes:
        anchors, extents: int64 of shape (samples, dimensions).
    """

    anchors: np.ndarray
    extents: np.ndarray

    def __len__(self) -> int:
        return len(self.anchors)

    def row(self, number: int) -> Region:
        return Region(tuple(self.anchors[number].tolist()), tuple(self.extents[number].tolist()))

    def are_inside(self, shapes: np.ndarray) -> bool:
        """Return whether all regions lie within samples of ``shapes``."""
        return bool(((self.anchors >= 0) & (self.anchors + self.extents <= shapes)).all())

    def are_whole(self, shapes: np.ndarray, count: int) -> bool:
        """Return whether all regions span the samples in each of the first ``count`` dimensions."""
        return bool((self.extents[:, :count] == shapes[:, :count]).all())


def crop_regions(samples: Samples, shapes: np.ndarray, layout: str, policy: str = "pad") -> Regions:
    """Return the windows that the crop arguments select in data of ``shapes``, in all dimensions of ``layout``.

    Raises:
        RuntimeError: an argument is out of range, or a window reaches outside and ``policy`` forbids it.
    """
    extents, positions = _crop_columns(samples, layout)
    anchors, extents = windows.crop_regions(shapes, extents, positions, samples.constant("rounding"))
    apply_policy(shapes, anchors, extents, policy)
    return Regions(anchors, extents)


class CropRules(NamedTuple):
    """The rules by which all images are cropped, in the form that compiled code accepts.

    Attributes:
        wanted, positions: requested extents and relative positions, in one row with a column per dimension of the layout.
        rounding: how anchors are rounded: an index of :data:`penstock.kernels.windows.ROUNDINGS`.
    """

    wanted: np.ndarray
    positions: np.ndarray
    rounding: int


def constant_crop(samples: Samples, layout: str) -> CropRules:
    """Return the rules that constant crop arguments describe."""
    return CropRules(*_crop_columns(samples, layout), windows.ROUNDINGS.index(samples.constant("rounding")))


def _crop_columns(samples: Samples, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the requested extents and relative positions in all dimensions: a row for each sample, or one row for all."""
    letters, extents = samples.derived(_EXTENT_NAMES, ("extents", layout), _extent_columns, samples, layout)
    positions = samples.derived(_POSITION_NAMES, ("positions", layout), _position_columns, samples, layout, letters)
    return extents, positions


def _extent_columns(samples: Samples, layout: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the dimensions that are cropped, and the requested extents in all dimensions."""
    wanted = _wanted_extents(samples, layout)
    return tuple(wanted), _in_columns(layout, wanted)


def _position_columns(samples: Samples, layout: str, letters: Sequence[str]) -> np.ndarray:
    """Return the relative positions in all dimensions, including those that are not cropped."""
    columns = {}
    for letter in letters:
        columns[letter] = samples.scalars(_POSITIONS[letter])
    return _in_columns(layout, columns)


def _wanted_extents(samples: Samples, layout: str) -> dict[str, np.ndarray]:
    """Return the requested extents by dimension, one for each sample or one for all; 0, negative or absent: the whole
    extent."""
    # Frames count as depth if there is no D.
    letters = ("D" if "D" in layout else "F", "H", "W")
    if not samples.given("crop"):
        return {letter: samples.scalars(_EXTENTS[letter]) for letter in letters if letter in layout}
    crop = samples.values("crop")
    if crop.shape[1] not in (2, 3):
        raise RuntimeError(f"`crop` argument should have 2 or 3 elements, got {crop.shape[1]}")
    return {letter: column for letter, column in zip(letters[-crop.shape[1] :], crop.T) if letter in layout}


def _in_columns(layout: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return columns for all dimensions of ``layout``; dimensions without a column get 0."""
    rows = np.zeros((max(map(len, columns.values()), default=1), len(layout)))
    for letter, column in columns.items():
        rows[:, layout.index(letter)] = column
    return rows


class WindowOperator(ChainOperator[State, Region, Regions]):
    """Base class of operators that copy a window of each sample."""

    launches = True
    shares_plans_in_chains = True
    repeats_plans = True
    is_placement = True

    def setup(self) -> None:
        self.policy = check_policy(self.args["out_of_bounds_policy"], extends=True)

    def joins_chain(self) -> bool:
        return self.policy not in EXTENSIONS

    def channel_axis(self, workspace: Workspace) -> int | None:
        """Return the dimension of channels, or None."""
        raise NotImplementedError

    def compute(self, sample: Sample[State, Region]) -> None:
        source, target = sample.inputs[0], sample.outputs[0]
        if self.policy in EXTENSIONS:
            _copy_extended(source, sample.plan, self.policy, target)
        else:
            copy_region(source, sample.plan, self.args["fill_values"], self.channel_axis(sample.workspace), target)

    def stage_records(self, workspace: Workspace[State, Region, Regions]) -> StageRecords | None:
        batch = workspace.inputs[0]
        if self.policy in EXTENSIONS or self.args["dtype"] not in (None, batch.dtype):
            return None
        return region_records(workspace, self.args["fill_values"], self.channel_axis(workspace))

    def stage(self, sample: Sample[State, Region]) -> Placement:
        converts = self.args["dtype"] not in (None, sample.workspace.inputs[0].dtype)
        channel_axis = self.channel_axis(sample.workspace)
        return region_copy(sample.plan, sample.shapes[0], self.args["fill_values"], channel_axis, converts)

    def compute_batch(self, workspace: Workspace[State]) -> None:
        if self.policy in EXTENSIONS:
            # There is no kernel for these policies: the host copies the windows.
            super().compute_batch(workspace)
        else:
            copy_regions(workspace, self.args["fill_values"], self.channel_axis(workspace))


def region_records(
    workspace: Workspace[Any, Region, Regions], fill: Sequence[float] | np.ndarray, channel_axis: int | None
) -> StageRecords | None:
    """Return the stages that copy regions of a batch without conversion; None if fill values do not match the channels of all.

    Args:
        fill: the fill value outside the samples: one value, one for each channel, or an array with a row for each sample.
        channel_axis: the dimension of channels, or None.
    """
    batch, regions = workspace.inputs[0], workspace.plans
    shapes, dtype = batch.shape_array(), numpy_dtype(batch.dtype)
    element, axis = None, -1
    if not regions.are_inside(shapes):
        if len(fill) > 1 and not isinstance(fill, np.ndarray):
            if channel_axis is None or (regions.extents[:, channel_axis] != len(fill)).any():
                return None
            axis = channel_axis
        element = cut_off(fill if len(fill) else [0.0], dtype)
    records = placements(regions.anchors, regions.extents, shapes, dtype.itemsize, fill=element, channel_axis=axis)
    return StageRecords(StageKind.PLACEMENT, records, regions.extents, dtype.itemsize, keep=element)


def _copy_extended(source: np.ndarray, region: Region, policy: str, target: np.ndarray) -> None:
    """Copy a region of ``source`` to ``target``, extending the source beyond its border, and convert to the target's type."""
    sizes = zip(region.anchor, region.extents, source.shape)
    part = source[np.ix_(*(extended_places(*dimension, policy) for dimension in sizes))]
    target[...] = part if part.dtype == target.dtype else _converted(part, target.dtype)


def copy_region(
    source: np.ndarray, region: Region, fill: Sequence[float], channel_axis: int | None, target: np.ndarray
) -> None:
    """Copy a region of ``source`` to ``target``, convert to the target's type, and fill the parts outside the source.

    Args:
        source: any array.
        region: a region with the target's extents.
        fill: one value, or one for each channel.
        channel_axis: the dimension of channels, or None.
        target: the array to fill.
    """
    inside, place = region.overlap(source.shape)
    part = source[inside]
    if part.shape != target.shape and target.size:
        _fill_around(target, place, fill, channel_axis)
    if not part.size:
        return
    target[place] = part if part.dtype == target.dtype else _converted(part, target.dtype)


@dataclass(frozen=True)
class Window(Placement):
    """A region of a sample, as for :func:`copy_region`, or a mirrored copy of the sample.

    Attributes:
        fill: value outside the sample: one, or one for each channel.
        channel_axis: the dimension of channels, or None.
    """

    anchor: tuple[int, ...]
    shape: Shape
    shape_in: Shape
    mirrored: tuple[bool, ...]
    converts: bool = False
    fill: Sequence[float] = ()
    channel_axis: int | None = None

    writes_views = True

    def compute(self, sample: Sample, source: Pixels, window: Region, target: np.ndarray) -> None:
        region = self.source_region(window)
        inside, place = region.overlap(self.shape_in)
        extents = tuple(s.stop - s.start for s in inside)
        if any(self.mirrored):
            place = self._turned(place, window)
        if extents != target.shape:
            _fill_around(target, place, self._fill_of(window), self.channel_axis)
        if not all(extents):
            return
        part = source.part(Region(tuple(s.start for s in inside), extents))
        if any(self.mirrored):
            _copy_mirrored(part, self.mirrored, target[place])
        else:
            target[place] = part if part.dtype == target.dtype else _converted(part, target.dtype)

    def _fill_of(self, window: Region) -> Sequence[float]:
        if self.channel_axis is None or len(self.fill) == 1:
            return self.fill
        first = window.anchor[self.channel_axis]
        return self.fill[first : first + window.extents[self.channel_axis]]

    def _turned(self, place: tuple[slice, ...], window: Region) -> tuple[slice, ...]:
        """Return the position that a part of the window at ``place`` has after the window is mirrored."""
        triples = zip(place, window.extents, self.mirrored)
        return tuple(slice(size - p.stop, size - p.start) if turned else p for p, size, turned in triples)


def region_copy(
    region: Region,
    shape: Shape,
    fill: Sequence[float],
    channel_axis: int | None,
    converts: bool = False,
) -> Window:
    """Return the stage that copies a region of a sample of ``shape``.

    Raises:
        RuntimeError: the region reaches outside, and the number of fill values does not match that of channels.
    """
    if not region.inside(shape):
        channels = None if channel_axis is None else region.extents[channel_axis]
        fill = fill_per_channel(fill, channels).tolist()
    return Window(region.anchor, region.extents, shape, (False,) * len(shape), converts, fill, channel_axis)


def _copy_mirrored(part: np.ndarray, mirrored: Sequence[bool], target: np.ndarray) -> None:
    """Copy ``part`` to ``target``, reversed along the mirrored axes; a kernel reverses the last of these where possible."""
    from penstock.kernels.cpu.mirror import mirror_axis

    axis = max(axis for axis, turned in enumerate(mirrored) if turned)
    others = tuple(slice(None, None, -1 if turned and a != axis else 1) for a, turned in enumerate(mirrored))
    if target.flags.c_contiguous and part.dtype == target.dtype:
        mirror_axis(part[others], axis, target)
    else:
        np.copyto(target, np.flip(part[others], axis))


def _converted(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert values to ``dtype``, clamped to its finite range if that is smaller.

    For integer types, fractions are truncated, and NaN becomes 0.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        clamped = np.clip(values, limits.min, limits.max)
        return (np.nan_to_num(clamped) if values.dtype.kind == "f" else clamped).astype(dtype)
    single = values.astype(np.float32)
    if values.dtype == np.float16 and dtype.itemsize > values.itemsize:
        return single.astype(dtype)
    highest = float(np.finfo(dtype).max)
    clamped = np.clip(single, -highest, highest)
    if dtype == np.float16:
        from penstock.kernels.cpu.halves import rounded_to_halves

        return rounded_to_halves(clamped)
    return clamped.astype(dtype)


def wrapped(values: Sequence[float] | np.ndarray, dtype: np.dtype) -> list[float]:
    """Return fill values; for integer types, they are truncated, and wrapped around if out of range."""
    return list(values) if dtype.kind == "f" else cut_off(values, dtype).tolist()


def copy_regions(workspace: Workspace, fill: Sequence[float] | None, channel_axis: int | None) -> None:
    """Apply :func:`copy_region` to all samples on the GPU; with ``fill`` None, use each sample's ``fill_value``, wrapped."""
    from penstock.kernels.cuda.launch import locate_all
    from penstock.kernels.cuda.window import WindowCopy, copy_grouped

    samples = workspace.live
    sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
    fills = {id(sample.plan): sample["fill_value"] for sample in samples} if fill is None else {}

    def copy_of(region: Region, source: Located, target: Located) -> WindowCopy:
        channels = None if channel_axis is None else source.shape[channel_axis]
        values = [fills[id(region)]] if fill is None else fill_per_channel(fill, channels)
        cut = wrapped(values, target.dtype)
        return WindowCopy(source, target, anchor=region.anchor, fill=cut, channel_axis=channel_axis)

    copy_grouped(sources, targets, [sample.plan for sample in samples], copy_of)


def _fill_around(
    target: np.ndarray, place: tuple[slice, ...], values: Sequence[float], channel_axis: int | None
) -> None:
    """Fill ``target`` around the part at ``place``, which may be empty."""
    # Fill everything if the part is empty, as its position then has no meaning, or if it lacks channels, as fill values are per
    # channel and cannot be assigned to slices of the channels.
    cuts_channels = channel_axis is not None and place[channel_axis] != slice(0, target.shape[channel_axis])
    if cuts_channels or any(part.start >= part.stop for part in place):
        _fill(target, values, channel_axis)
        return
    within = [slice(None)] * target.ndim
    for axis, part in enumerate(place):
        for beside in (slice(0, part.start), slice(part.stop, target.shape[axis])):
            if beside.start < beside.stop:
                within[axis] = beside
                _fill(target[tuple(within)], values, channel_axis)
        within[axis] = part


def _fill(target: np.ndarray, values: Sequence[float], channel_axis: int | None) -> None:
    channels = None if channel_axis is None else target.shape[channel_axis]
    fill: Any = cut_off(fill_per_channel(values, channels), target.dtype)
    if len(fill) > 1 and channel_axis is not None:
        *_, between_pixels, between_channels = (0, *target.strides)
        whole_rows = between_channels == target.itemsize and between_pixels == len(fill) * target.itemsize
        if channel_axis == target.ndim - 1 and target.ndim > 1 and whole_rows:
            # Filling whole rows is much faster than filling pixel by pixel.
            fill, target = np.tile(fill, target.shape[-2]), target.reshape(*target.shape[:-2], -1)
        else:
            fill = fill.reshape([-1 if axis == channel_axis else 1 for axis in range(target.ndim)])
    target[...] = fill
