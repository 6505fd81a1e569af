"""Copies between boxes of arrays on the GPU, for crop, slice, pad, flip, transpose, cast, join, erase and
crop-mirror-normalize.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from penstock.kernels.cuda.launch import (
    Located,
    OnGpu,
    addresses_of,
    division_by,
    group_samples,
    launch,
    locate,
    packed,
    strides_of,
)
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, Records, Repeated, cuda_type, records
from penstock.tensors import TensorListGPU
from penstock.tensors.cuda import DeviceArray

_DIMS = 6

# Elements per block.
_BLOCK_ELEMENTS = 4096
# Elements are written in aligned units, so a box may touch one unit more than its elements fill.
_MAX_MISSING = 15
# Boxes that span fewer elements than this have 32-bit indices, which are much faster.
_INT32_INDEX_LIMIT = 1 << 31

_Plan = TypeVar("_Plan")


class _Dimension(NamedTuple):
    """A dimension of a box.

    Attributes:
        begin, end: the range of the box's positions that lie inside the source.
        step, target_step: the distance from one position to the next in source and target, in elements; negative if the source is read
            backwards.
        divisor: see :func:`division_by`.
    """

    extent: Int64
    begin: Int64
    end: Int64
    step: Int64
    target_step: Int64
    divisor: Int64


class _Window(NamedTuple):
    """The descriptor of one box.

    Attributes:
        source, target: the addresses of the box's first element; the one in the source may lie outside of it.
        volume: the number of elements of the box.
        dims: the dimensions, innermost first; at least two.
        rank: the number of dimensions in use.
        contiguous, inside: whether the box is contiguous in the target, and lies within the source.
        channel_dim: the index of the channel dimension; -1: none.
        channels: the number of channels of the source.
        values: the offset, in the table of values, of the fill values, which are followed by each channel's mean and factor.
    """

    source: Pointer
    target: Pointer
    volume: Int64
    dims: Annotated[list[_Dimension], Repeated(_Dimension, _DIMS)]
    rank: Int32
    contiguous: Int32
    inside: Int32
    channel_dim: Int32
    channels: Int32
    normalize: Int32
    fill_count: Int32
    values: Int32
    shift: Float


SOURCE = KernelSource(__file__, _Window, BLOCK_ELEMENTS=_BLOCK_ELEMENTS)


@dataclass(slots=True)
class WindowCopy:
    """The work for one sample, or for one part of one.

    Attributes:
        source, target: arrays on the GPU; the target is contiguous. If the source is empty, the box gets only fill values.
        permutation: the source dimension of each target dimension; None: the same order.
        anchor: the position in the source at which the box begins; None: 0.
        mirrored: source dimensions to read backwards.
        fill: the value of elements outside the source: one for all, or one for each channel.
        channel_axis: the source dimension of channels, or None.
        mean, factor, shift: values become ``(x - mean) * factor + shift``; None: values are not changed.
        place: the position in the target at which the box begins; None: 0.
        extents: the box's extents, in the target's order of dimensions; None: the target's.
        strides: the source's strides, in elements, if it isn't contiguous.
    """

    source: OnGpu
    target: OnGpu
    permutation: Sequence[int] | None = None
    anchor: Sequence[int] | None = None
    mirrored: Sequence[int] = ()
    fill: Sequence[float] | np.ndarray = (0.0,)
    channel_axis: int | None = None
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None
    shift: float = 0.0
    place: Sequence[int] | None = None
    extents: Sequence[int] | None = None
    strides: Sequence[int] | None = None


@dataclass(slots=True)
class _BoxAxis:
    """A dimension of a box, in the target's order, and the source dimension that it corresponds to."""

    extent: int
    anchor: int
    size: int
    stride: int
    target_stride: int
    mirrored: bool = False
    is_channels: bool = False

    def continues(self, outer: _BoxAxis) -> bool:
        """Return whether this dimension and the next outer one can be merged, both in the source and in the target."""
        whole = not self.anchor and self.extent == self.size and not self.mirrored and not outer.mirrored
        steps = outer.stride == self.stride * self.size and outer.target_stride == self.target_stride * self.extent
        return whole and steps and not self.is_channels and not outer.is_channels

    def is_one_inside(self) -> bool:
        """Return whether the dimension has a single position, inside the source, so that the dimension can be dropped."""
        return self.extent == 1 and 0 <= self.anchor < self.size

    def first(self) -> int:
        """Return the source offset of the dimension's first position, in elements; it may lie outside the source."""
        return (self.anchor + (self.extent - 1 if self.mirrored else 0)) * self.stride

    def inside(self) -> tuple[int, int]:
        """Return the range of positions that lie inside the source, (begin, end)."""
        if self.extent == self.size and not self.anchor:
            return 0, self.extent
        before, behind = -self.anchor, self.size - self.anchor
        if self.mirrored:
            before, behind = self.extent - behind, self.extent - before
        begin = max(before, 0)
        return begin, max(min(behind, self.extent), begin)


def blank(target: OnGpu, **box: Any) -> WindowCopy:
    """Return a copy that only fills a box of ``target``; ``box``: further attributes of :class:`WindowCopy`."""
    located = locate(target)
    return WindowCopy(located.reshape(*(0,) * len(located.shape)), located, **box)


def copy_windows(copies: Sequence[WindowCopy]) -> None:
    """Fill all boxes in one launch; all sources have the same data type, and so do all targets."""
    sources, targets = [locate(copy.source) for copy in copies], [locate(copy.target) for copy in copies]
    _copy(copies, sources, targets, range(len(copies)))


def copy_grouped(
    sources: Sequence[Located],
    targets: Sequence[Located],
    plans: Sequence[_Plan],
    copy_of: Callable[[_Plan, Located, Located], WindowCopy],
) -> None:
    """Same as :func:`copy_windows`, but efficient if many samples have the same shapes and share one plan object.

    Args:
        copy_of: makes the copy from a sample's plan, source and target; called once for each group of samples that share them.
    """
    firsts, kinds = group_samples(sources, targets, plans)
    _copy([copy_of(plans[i], sources[i], targets[i]) for i in firsts], sources, targets, kinds)


def _copy(
    copies: Sequence[WindowCopy], sources: Sequence[Located], targets: Sequence[Located], kinds: Sequence[int]
) -> None:
    """Copy each source to its target; ``kinds``: the index, in ``copies``, of each sample's copy."""
    if not copies:
        return
    tables, places = packed([_values(copy) for copy in copies], np.float32)
    entries = [_entry(copy, locate(copy.source), locate(copy.target), place) for copy, place in zip(copies, places)]
    descriptors = records(_Window, entries).take(np.array(kinds))
    descriptors["source"] += addresses_of(sources)
    descriptors["target"] += addresses_of(targets)
    descriptors = descriptors.take(descriptors["volume"] > 0)
    if not len(descriptors):
        return
    index = "uint32" if _span(descriptors) < _INT32_INDEX_LIMIT else "uint64"
    plain = not descriptors["normalize"].any() and bool((descriptors["channel_dim"] < 0).all())
    types = (cuda_type(sources[0].dtype), cuda_type(targets[0].dtype), index, str(plain).lower())
    counts = -(-(descriptors["volume"] + _MAX_MISSING) // _BLOCK_ELEMENTS)
    launch(SOURCE.kernel(f"window<{', '.join(types)}>"), descriptors, counts, tables)


def _span(descriptors: Records) -> int:
    """Return an upper bound of the distance between two elements of a box, in source or target, and of the box's volume."""
    dims = descriptors["dims"]
    spans = [(dims["extent"] * np.abs(dims[step])).sum(axis=1).max() for step in ("step", "target_step")]
    return max(*map(int, spans), int(descriptors["volume"].max()))


def copy_batch(source: TensorListGPU, target: TensorListGPU) -> None:
    """Copy all samples of a batch to another batch of the same shapes, in one launch."""
    pairs = zip(source.samples, target.samples)
    copy_windows([WindowCopy(locate(one).flat(), locate(other).flat()) for one, other in pairs])


def copy_views(views: Sequence[DeviceArray], targets: Sequence[DeviceArray]) -> None:
    """Copy arrays of one data type, which need not be contiguous, in one launch."""
    copies = []
    for view, target in zip(views, targets):
        bits = np.dtype(f"u{view.dtype.itemsize}")
        strides = [step // bits.itemsize for step in view.strides]
        copies.append(
            WindowCopy(
                Located(view.data.ptr, view.shape, bits, view),
                Located(target.data.ptr, target.shape, bits, target),
                strides=strides,
            )
        )
    copy_windows(copies)


def join(parts: Sequence[Sequence[OnGpu]], targets: Sequence[OnGpu], axis: int) -> None:
    """Concatenate each target's parts along ``axis``, in one launch."""
    places: dict[tuple[tuple[int, ...], ...], list[list[int]]] = {}
    sources, wholes, plans = [], [], []
    for own, whole in zip(parts, targets):
        located, target = [locate(part) for part in own], locate(whole)
        shapes = tuple(part.shape for part in located)
        if shapes not in places:
            places[shapes] = _places(shapes, axis)
        sources += located
        wholes += [target] * len(located)
        plans += places[shapes]
    copy_grouped(sources, wholes, plans, lambda place, s, t: WindowCopy(s, t, place=place, extents=s.shape))


def _places(shapes: Sequence[Sequence[int]], axis: int) -> list[list[int]]:
    """Return the position of each array along ``axis`` when arrays of these shapes are concatenated along it."""
    places, start = [], 0
    for shape in shapes:
        places.append([start if number == axis else 0 for number in range(len(shape))])
        start += shape[axis]
    return places


def _values(copy: WindowCopy) -> np.ndarray:
    parts = [np.asarray(copy.fill, np.float32)]
    if copy.mean is not None and copy.factor is not None:
        parts += [np.asarray(copy.mean, np.float32), np.asarray(copy.factor, np.float32)]
    return np.concatenate(parts)


def _entry(copy: WindowCopy, source: Located, target: Located, values: int) -> _Window:
    """Return the descriptor of a copy, with offsets in place of addresses."""
    rank = len(target.shape)
    permutation = range(rank) if copy.permutation is None else copy.permutation
    anchor = (0,) * rank if copy.anchor is None else copy.anchor
    extents = target.shape if copy.extents is None else copy.extents
    source_strides = strides_of(source.shape) if copy.strides is None else copy.strides
    target_strides = strides_of(target.shape)
    start = 0 if copy.place is None else sum(p * s for p, s in zip(copy.place, target_strides))
    normalized = copy.mean is not None
    channel_axis = copy.channel_axis if normalized or len(copy.fill) > 1 else None
    every = [
        _BoxAxis(
            extents[number],
            anchor[axis],
            source.shape[axis],
            source_strides[axis],
            target_strides[number],
            axis in copy.mirrored,
            axis == channel_axis,
        )
        for number, axis in enumerate(permutation)
    ]
    dimensions = _merged(every)
    if len(dimensions) > _DIMS:
        raise RuntimeError(f"Data of {len(dimensions)} dimensions is not supported on GPU: at most {_DIMS}")
    channels = 0 if copy.channel_axis is None else source.shape[copy.channel_axis]
    dims = [_stepped(d, channels if normalized and d.is_channels else d.extent) for d in dimensions]
    is_anything_inside = all(dimension.begin < dimension.end for dimension in dims)
    return _Window(
        # Addresses are 64-bit and wrap around, so offsets may be negative.
        sum(d.first() for d in every) * source.dtype.itemsize % (1 << 64) if is_anything_inside else 0,
        start * target.dtype.itemsize,
        math.prod(extents),
        dims + [_ONE] * (_DIMS - len(dims)),
        len(dimensions),
        _is_contiguous(dimensions),
        all(dimension.end - dimension.begin == dimension.extent for dimension in dims),
        next((number for number, d in enumerate(dimensions) if d.is_channels), -1),
        channels,
        normalized,
        len(copy.fill),
        values,
        copy.shift,
    )


def _stepped(dimension: _BoxAxis, most: int) -> _Dimension:
    """Return the descriptor of a dimension; positions from ``most`` on are treated as outside the source."""
    begin, end = dimension.inside()
    if end > most:
        end = max(most, begin)
    step = -dimension.stride if dimension.mirrored else dimension.stride
    return _Dimension(dimension.extent, begin, end, step, dimension.target_stride, division_by(dimension.extent))


# The parameters of the single dimension of a scalar.
_ONE = _Dimension(1, 0, 1, 0, 0, division_by(1))


def _is_contiguous(dimensions: Sequence[_BoxAxis]) -> bool:
    """Return whether the dimensions, innermost first, are contiguous in the target."""
    step = 1
    for dimension in dimensions:
        if dimension.extent > 1 and dimension.target_stride != step:
            return False
        step *= dimension.extent
    return True


def _merged(dimensions: list[_BoxAxis]) -> list[_BoxAxis]:
    """Merge the dimensions of a box that are contiguous in memory; return them innermost first."""
    merged: list[_BoxAxis] = []
    for dimension in dimensions:
        if dimension.is_one_inside():
            continue
        if merged and dimension.continues(merged[-1]):
            outer = merged.pop()
            merged.append(
                _BoxAxis(
                    outer.extent * dimension.extent,
                    outer.anchor * dimension.extent,
                    outer.size * dimension.extent,
                    dimension.stride,
                    dimension.target_stride,
                )
            )
        else:
            merged.append(dimension)
    return merged[::-1]
