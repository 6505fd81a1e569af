"""Separable resampling on the GPU, and the normalization that may follow it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from penstock.kernels.cpu.resampling_plans import (
    PlannedStacks,
    RowLimits,
    StackRules,
    StripLimits,
    plan_stacks,
)
from penstock.kernels.cuda.launch import (
    KernelLaunch,
    Located,
    OnGpu,
    RunValue,
    addresses_of,
    allow_shared,
    blocks_for,
    group_samples,
    launch,
    launch_all,
    locate,
    packed,
)
from penstock.kernels.cuda.sources import THREADS, Kernel, KernelSource
from penstock.kernels.cuda.structs import (
    Float,
    Int32,
    Int64,
    Pointer,
    Records,
    blank_records,
    cuda_type,
    layout_of,
    records,
)
from penstock.kernels.cuda.taps import FilterTables, blank_tables
from penstock.kernels.filters import Taps
from penstock.kernels.resize_shapes import AxisPlans

# The largest number of floats of an input row that a block holds in shared memory: small enough for several blocks to share a
# multiprocessor.
_ROW = 8192
# If a batch has fewer output rows than this, rows are cut into more segments, to keep all multiprocessors busy.
_MANY_ROWS = 2048
_FEW_COLUMNS = 16
# Bytes are read in aligned groups of eight, other types in groups of four.
_MOST_TOGETHER = 8
_ROUNDING = 2 * (_MOST_TOGETHER - 1)
# For strips of output rows: the number of four-byte groups of each row that a thread reads, and of rows that it reads before adding them.
_STRIP_GROUPS, _READ_ROWS = 3, 5
# The number of blocks that share a multiprocessor; its registers are divided among them.
_STRIP_BLOCKS = 4
# Numbers of channels for which kernels are specialized.
_KNOWN_CHANNELS = (1, 3)

_Plan = TypeVar("_Plan")


class _Resample(NamedTuple):
    """The descriptor of one stack of images.

    Attributes:
        source_plane, target_plane: the distance from one plane (an image of the stack) to the next, in elements.
        height, width, channels: the extents of a source plane.
        v_starts, v_weights, v_taps: the offsets of the vertical filter's starts and weights in the tables, and the number of taps for each
            output position.
        h_starts, h_weights, h_taps: the same for the horizontal filter.
        segment, segments: output columns per block, and blocks per row.
        strip: output rows per block, for kernels that make more than one.
        planar: whether the output is CHW.
        together: the number of elements that can be read at once: 1, 4 or 8.
        normalize: whether to subtract the mean and scale.
        normalization: the offset of the channels' means, which are followed by their factors.
    """

    source: Pointer
    target: Pointer
    source_plane: Int64
    target_plane: Int64
    height: Int32
    width: Int32
    channels: Int32
    out_height: Int32
    out_width: Int32
    out_channels: Int32
    v_starts: Int32
    v_weights: Int32
    v_taps: Int32
    h_starts: Int32
    h_weights: Int32
    h_taps: Int32
    segment: Int32
    segments: Int32
    strip: Int32
    planar: Int32
    together: Int32
    normalize: Int32
    normalization: Int32
    shift: Float
    fill: Float


class _Axis(NamedTuple):
    """The descriptor of one axis of an array viewed as (outer, n, inner)."""

    source: Pointer
    target: Pointer
    outer: Int64
    size: Int64
    inner: Int64
    out_size: Int64
    starts: Int32
    weights: Int32
    taps: Int32


STRIP_LIMITS = StripLimits(
    # With fewer blocks, some multiprocessors are idle.
    least_blocks=512,
    # Strips with fewer rows do not pay off.
    least_rows=8,
    most_rows=28,
    most_kept=3,
    least_columns=16,
    read_rows=_READ_ROWS,
    own_bytes=layout_of(_Resample).dtype.itemsize + 4 * 2 * max(_KNOWN_CHANNELS),
    # Bytes of shared memory that a block may use on every supported GPU.
    most_shared=64 * 1024,
)

SOURCE = KernelSource(
    __file__, _Resample, _Axis, STRIP_GROUPS=_STRIP_GROUPS, READ_ROWS=_READ_ROWS, STRIP_BLOCKS=_STRIP_BLOCKS
)


@dataclass(slots=True)
class ImageResampling:
    """The work for one stack of images.

    Attributes:
        source: an array of shape (..., H, W, C) on the GPU; C may be 1.
        target: an array of shape (..., h, w, C') or, if ``planar``, (..., C', h, w), on the GPU, contiguous.
        vertical, horizontal: filters, which include crop and mirroring. The starts of taps must rise or fall monotonically along the axis.
        planar: whether channels come first in the target.
        mean, factor, shift: values become ``(x - mean) * factor + shift``, with one of each for each channel of the source; None: values
            are not changed.
        fill: the value of channels that only the target has.
    """

    source: OnGpu
    target: OnGpu
    vertical: Taps
    horizontal: Taps
    planar: bool = False
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None
    shift: float = 0.0
    fill: float = 0.0


def resample_grouped(
    sources: Sequence[Located],
    targets: Sequence[Located],
    plans: Sequence[_Plan],
    job_of: Callable[[_Plan, Located, Located], ImageResampling],
    between: np.dtype | None = None,
    mirrored: RunValue | None = None,
) -> None:
    """Fill all targets in one launch; efficient if many samples have the same shapes and share one plan object.

    Sources share a data type, and so do targets.

    Args:
        job_of: makes the job from a sample's plan, source and target; called once for each group of samples that share them.
        between: the type to which resampled values are rounded before they are normalized, as by a separate resize; None: no rounding.
        mirrored: whether each sample's rows are reversed, int32; if not None, no target may be empty.
    """
    kept = [index for index, target in enumerate(targets) if target.size]
    sources, targets = [sources[i] for i in kept], [targets[i] for i in kept]
    plans = [plans[i] for i in kept]
    firsts, kinds = group_samples(sources, targets, plans)
    jobs = [job_of(plans[i], sources[i], targets[i]) for i in firsts]
    _resample(jobs, sources, targets, kinds, between, mirrored)


def _resample(
    jobs: Sequence[ImageResampling],
    sources: Sequence[Located],
    targets: Sequence[Located],
    kinds: Sequence[int],
    between: np.dtype | None,
    mirrored: RunValue | None = None,
) -> None:
    """Resample each source to its target; ``kinds``: the index, in ``jobs``, of each sample's job."""
    if not jobs:
        return
    pairs = [(job, locate(job.source), locate(job.target)) for job in jobs]
    tables = [job.vertical for job, _, _ in pairs] + [job.horizontal for job, _, _ in pairs]
    starts, start_places = packed([table.starts for table in tables], np.int32)
    normalizations = [_mean_and_factor(job) for job, _, _ in pairs]
    # Transposed, so that adjacent threads (columns) read adjacent weights.
    turned = {id(job.horizontal.weights): job.horizontal.weights.T for job, _, _ in pairs}
    weights = [job.vertical.weights for job, _, _ in pairs]
    weights += [turned[id(job.horizontal.weights)] for job, _, _ in pairs]
    reals, real_places = packed([*weights, *normalizations], np.float32)
    places = list(zip(start_places, real_places))
    rows = [len(job.vertical.starts) * math.prod(source.shape[:-3]) for job, source, _ in pairs]
    room = _ROW if sum(rows[kind] for kind in kinds) >= _MANY_ROWS else _ROW // 4
    entries, counts, capacity, sums = [], [], 4, 0
    for number, (job, source, target) in enumerate(pairs):
        segment, widest = _segments(job.horizontal, source.shape[-1], room)
        segments = -(-_width(job, target) // segment)
        capacity = max(capacity, min(widest, room))
        if widest > room:
            sums = max(sums, segment * source.shape[-1])
        job_places = (places[number], places[len(pairs) + number], real_places[2 * len(pairs) + number])
        entries.append(_entry(job, source, target, job_places, segment, segments))
        counts.append(rows[number] * segments)
    capacity = -(-capacity // _MOST_TOGETHER) * _MOST_TOGETHER
    middle = "float" if between is None else cuda_type(between)
    numbers = {source.shape[-1] for _, source, _ in pairs}
    channels = numbers.pop() if len(numbers) == 1 else 0
    types = (cuda_type(pairs[0][1].dtype), middle, cuda_type(pairs[0][2].dtype))
    addresses = addresses_of(sources)
    descriptors = records(_Resample, entries).take(np.array(kinds))
    descriptors["source"], descriptors["target"] = addresses, addresses_of(targets)
    rows_of = descriptors["width"].astype(np.int64) * descriptors["channels"]
    descriptors["together"] = _together(rows_of, addresses, sources[0].dtype)
    launch(
        SOURCE.kernel(f"resample<{', '.join(types)}, {channels if channels in _KNOWN_CHANNELS else 0}>"),
        descriptors,
        np.array(counts)[list(kinds)],
        starts,
        reals,
        mirrored,
        np.int32(capacity),
        shared=4 * (capacity + sums),
    )


@dataclass(slots=True)
class ImageStacks:
    """The locations of stacks of images (n, H, W, C) on the GPU, one for each sample.

    Attributes:
        addresses: the stacks' addresses, uint64.
        shapes: the stacks' shapes, int64, of shape (samples, 4).
        dtype: the elements' dtype.
        owner: object that keeps the memory alive.
    """

    addresses: np.ndarray
    shapes: np.ndarray
    dtype: np.dtype
    owner: object = None


class Normalized(NamedTuple):
    """The normalization that follows the resampling of all images.

    Attributes:
        planar: whether channels come first in the target.
        normalization: the means of the source's channels, followed by the channels' factors, float32: values become ``(x - mean) * factor +
            shift``. None: values are not changed.
        channels: the number of channels of the target; those that the source lacks are filled with ``fill``. None: as many as the source
            has.
        fill: the value of channels that the source lacks.
        between: the type to which resampled values are rounded first; None: no rounding.
        mirrored: whether each image's rows are reversed, int32; None: no image's.
    """

    planar: bool = False
    normalization: np.ndarray | None = None
    shift: float = 0.0
    channels: int | None = None
    fill: float = 0.0
    between: np.dtype | None = None
    mirrored: RunValue | None = None


def resample_planned(
    sources: ImageStacks,
    targets: np.ndarray,
    dtype: np.dtype,
    vertical: AxisPlans,
    horizontal: AxisPlans,
    after: Normalized | None = None,
) -> None:
    """Same as :func:`resample_grouped`, but the GPU computes the tables, too, which takes the least time on the host.

    Args:
        sources: the stacks, not empty, of an integer type. Whether taps of weight 0 are skipped is undefined, which would matter for NaN
            and infinity.
        targets: addresses of the contiguous targets, uint64.
        dtype: the targets' dtype.
        vertical, horizontal: the plans of both axes; each output has at least one position on either axis.
        after: the steps after the resampling.
    """
    after = after or Normalized()
    copied = 0 if after.normalization is None else len(after.normalization)
    tables = FilterTables.planned(vertical, horizontal, copied)
    resample_by_tables(sources, targets, dtype, tables, after)


def resample_by_tables(
    sources: ImageStacks, targets: np.ndarray, dtype: np.dtype, tables: FilterTables, after: Normalized
) -> None:
    """Same as :func:`resample_planned`, with tables that are planned already; they must have room for ``after.normalization``."""
    plan_by_tables(sources, targets, dtype, tables, after).launch()


class ResamplingColumns(NamedTuple):
    """Stacks to be resampled, in the form that compiled code accepts.

    Attributes:
        kernels: one :data:`RESAMPLING_KERNELS`.
        tables: the descriptors of the filters' tables.
        values: the tabulated values of the filters.
        copied: the values to put before the weights, float32.
        descriptors: the stacks' descriptors; compiled code adds the images' addresses to the field ``source``.
        blocks: the number of thread blocks of each stack.
        mirrored: whether the rows of each stack are reversed, int32; empty if none are.
    """

    kernels: np.ndarray
    tables: np.ndarray
    values: np.ndarray
    copied: np.ndarray
    descriptors: np.ndarray
    blocks: np.ndarray
    mirrored: np.ndarray


OTHERS = 3
"""The largest number of arguments that a kernel has after the tables and flags."""
RESAMPLING_KERNELS = np.dtype(
    [
        *((name, np.int64) for name in ("fill_tables", "resample", "shared_bytes", "starts", "weights")),
        ("others", np.int64, (OTHERS,)),
    ]
)
"""The handles of the kernels that fill tables and that resample; the bytes of shared memory of the latter; the addresses of the tables'
starts and weights; and the other arguments.
"""
RESAMPLING = layout_of(_Resample).dtype
"""The type of a stack's descriptor."""
_NO_WEIGHTS, _NO_FLAGS = np.zeros(0, np.float32), np.zeros(0, np.int32)
NO_RESAMPLING = ResamplingColumns(
    np.zeros(1, RESAMPLING_KERNELS),
    blank_tables(0),
    np.zeros(0),
    _NO_WEIGHTS,
    blank_records(_Resample, 0).rows,
    np.zeros(0, np.int64),
    _NO_FLAGS,
)
"""Columns without any stacks."""
_NO_WINDOWS = np.zeros((0, 4), np.int64)


@dataclass(slots=True)
class PlannedResampling:
    """Stacks of images that are to be resampled.

    Attributes:
        tables: the filters' tables.
        starts, weights: memory for the tables' starts and weights.
        after: the steps after the resampling.
        kernel, shared, others: the kernel that resamples, its bytes of shared memory, and its arguments after tables and flags.
        descriptors: the stacks' descriptors. If images are yet to be decoded, the field ``source`` holds offsets to which the images'
            addresses are added.
        blocks: the number of thread blocks of each stack.
        windows: top, left, height and width of the part of each image that is read, if only this part will be decoded. No rows: whole
            images are decoded.
        owner: object that keeps the targets' memory alive, if nothing else does.
    """

    tables: FilterTables
    starts: Located
    weights: Located
    after: Normalized
    kernel: Kernel
    shared: int
    others: tuple[int, ...]
    descriptors: Records
    blocks: np.ndarray
    windows: np.ndarray
    owner: object = None

    def launch(self) -> None:
        """Launch the kernels that compute the tables and resample all stacks."""
        filling = self.tables.filling(self.starts, self.weights, self.after.normalization)
        extra = self.starts, self.weights, self.after.mirrored, *map(np.int32, self.others)
        launch_all([filling, KernelLaunch(self.kernel, self.descriptors, self.blocks, extra, self.shared)])

    def columns(self) -> ResamplingColumns:
        """Return the values in the form that compiled code accepts."""
        allow_shared(self.kernel, self.shared)
        others = self.others + (0,) * (OTHERS - len(self.others))
        kernels = self.tables.kernel().kernel.ptr, self.kernel.kernel.ptr, self.shared
        memory = self.starts.address, self.weights.address
        copied, mirrored = columns_after(self.after)
        return ResamplingColumns(
            np.array([(*kernels, *memory, others)], RESAMPLING_KERNELS),
            self.tables.rows,
            self.tables.values(),
            copied,
            self.descriptors.rows,
            self.blocks,
            mirrored,
        )


def columns_after(after: Normalized) -> tuple[np.ndarray, np.ndarray]:
    """Return the fields ``copied`` and ``mirrored`` of :class:`ResamplingColumns`."""
    copied, mirrored = after.normalization, after.mirrored
    return _NO_WEIGHTS if copied is None else copied, _NO_FLAGS if mirrored is None else np.asarray(mirrored.value)


def plan_by_tables(
    sources: ImageStacks,
    targets: np.ndarray,
    dtype: np.dtype,
    tables: FilterTables,
    after: Normalized,
    owner: object = None,
) -> PlannedResampling:
    """Plan the launches of :func:`resample_by_tables`; ``owner``: object that keeps the targets' memory alive, if
    nothing else does.
    """
    starts, weights = tables.memory()
    descriptors = blank_descriptors(len(sources.addresses))
    blocks = np.empty(len(descriptors), np.int64)
    place = sources.addresses, targets, sources.shapes, tables.down, tables.across
    channels = int(sources.shapes[0, 3])
    planned = plan_stacks(descriptors.rows, blocks, *place, stack_rules(after, sources.dtype, channels).record())
    way = chosen(planned, sources.dtype, after, dtype)
    return PlannedResampling(tables, starts, weights, after, *way, descriptors, blocks, _NO_WINDOWS, owner)


def blank_descriptors(stacks: int) -> Records:
    """Return descriptors of this many stacks, filled with zeros."""
    return blank_records(_Resample, stacks)


def stack_rules(after: Normalized, dtype: np.dtype, channels: int) -> StackRules:
    """Return the rules for planning stacks of one data type and number of channels."""
    stored = after.channels or 0, after.planar, after.normalization is not None, after.shift, after.fill
    pitch = 4 * _STRIP_GROUPS * THREADS if dtype == np.uint8 and channels in _KNOWN_CHANNELS else 0
    rows = RowLimits(_most_together(dtype), _ROW, _MANY_ROWS, _FEW_COLUMNS)
    return StackRules(*stored, pitch, THREADS, dtype.itemsize, STRIP_LIMITS, rows)


def chosen(
    planned: PlannedStacks, source: np.dtype, after: Normalized, target: np.dtype
) -> tuple[Kernel, int, tuple[int, ...]]:
    """Return the kernel that :func:`plan_stacks` chose, its bytes of shared memory, and its arguments after tables and flags."""
    shared, kept, rows, taps, channels = planned
    name = _name(bool(kept), source, after.between, target, channels)
    return SOURCE.kernel(name), shared, (kept, rows, taps) if kept else (rows,)


@functools.cache
def _name(in_strips: bool, source: np.dtype, between: np.dtype | None, target: np.dtype, channels: int) -> str:
    """Return the name of the kernel that resamples images of these types."""
    types = f"{_rounded(between)}, {cuda_type(target)}"
    if in_strips:
        return f"resample_strips<{types}, {channels}>"
    own = channels if channels in _KNOWN_CHANNELS else 0
    return f"resample<{cuda_type(source)}, {types}, {own}>"


def _rounded(between: np.dtype | None) -> str:
    """Return the type to which resampled values are rounded."""
    return "float" if between is None else cuda_type(between)


def _most_together(dtype: np.dtype) -> int:
    """Return the largest number of elements of a type that kernels read at once."""
    return _MOST_TOGETHER if dtype.itemsize == 1 else 4


def _together(row: np.ndarray, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return how many elements of each image can be read at once; ``row``: the number of elements in a row of each image."""
    together = np.ones_like(row)
    for count in (4, _most_together(dtype)):
        together[(row % count == 0) & (addresses % np.uint64(count * dtype.itemsize) == 0)] = count
    return together


def _width(job: ImageResampling, target: Located) -> int:
    return target.shape[-1] if job.planar else target.shape[-2]


def _segments(taps: Taps, channels: int, room: int) -> tuple[int, int]:
    """Return the number of output columns per block, and the largest number of floats of an input row that a block needs."""
    starts, width = taps.starts, taps.weights.shape[1]
    whole = (abs(int(starts[-1]) - int(starts[0])) + width) * channels + _ROUNDING
    if whole <= room:
        return len(starts), whole
    overlap = width * channels + _ROUNDING
    if overlap > room // 2:
        # The taps of a few columns fill all the memory for a row, which is then refilled for the next few.
        segment = _FEW_COLUMNS
    else:
        segment = max(1, len(starts) // -(-whole // (room - overlap)))
    firsts = starts[::segment].astype(np.int64)
    lasts = starts[np.minimum(np.arange(0, len(starts), segment) + segment, len(starts)) - 1].astype(np.int64)
    return segment, int(np.abs(lasts - firsts).max() + width) * channels + _ROUNDING


def _mean_and_factor(job: ImageResampling) -> np.ndarray:
    if job.mean is None or job.factor is None:
        return np.zeros(0, np.float32)
    return np.concatenate([job.mean, job.factor])


def _entry(
    job: ImageResampling,
    source: Located,
    target: Located,
    places: tuple[tuple[int, int], tuple[int, int], int],
    segment: int,
    segments: int,
) -> _Resample:
    """Return a descriptor without addresses; ``places``: the offsets of the job's values in the tables."""
    height, width, channels = source.shape[-3:]
    vertical, horizontal, normalization = places
    return _Resample(
        0,
        0,
        height * width * channels,
        math.prod(target.shape[-3:]),
        height,
        width,
        channels,
        len(job.vertical.starts),
        len(job.horizontal.starts),
        target.shape[-3] if job.planar else target.shape[-1],
        *vertical,
        job.vertical.weights.shape[1],
        *horizontal,
        job.horizontal.weights.shape[1],
        segment,
        segments,
        1,
        job.planar,
        1,
        job.mean is not None,
        normalization,
        job.shift,
        job.fill,
    )


def resample_axes(jobs: Sequence[tuple[OnGpu, int, Taps, OnGpu]]) -> None:
    """Resample one axis of each source, in one launch; a job is ``(source, axis, taps, target)``."""
    located = [(locate(source), axis, taps, locate(target)) for source, axis, taps, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    starts, start_places = packed([job[2].starts for job in located], np.int32)
    weights, weight_places = packed([job[2].weights for job in located], np.float32)
    entries = [
        _Axis(
            source.address,
            target.address,
            math.prod(source.shape[:axis]),
            source.shape[axis],
            math.prod(source.shape[axis + 1 :]),
            target.shape[axis],
            *place,
            taps.weights.shape[1],
        )
        for (source, axis, taps, target), place in zip(located, zip(start_places, weight_places))
    ]
    types = f"{cuda_type(located[0][0].dtype)}, {cuda_type(located[0][3].dtype)}"
    counts = [blocks_for(job[3].size) for job in located]
    launch(SOURCE.kernel(f"resample_axis<{types}>"), records(_Axis, entries), counts, starts, weights)
