"""Boxes of arrays on GPU: crop, slice, pad, flip, transpose, cast, join, erase, crop-mirror-normalize."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import (
    THREADS,
    Located,
    addresses_of,
    alike,
    cuda_type,
    kernel,
    launch,
    locate,
    packed,
    strides_of,
)
from penstock.tensors import TensorListGPU

_DIMS = 6
# Boxes of fewer elements are indexed with 32 bits, which is much faster.
_NARROW = 1 << 31
_WINDOW = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64, _DIMS) for name in ("extents", "anchors", "sizes", "strides", "target_strides")),
        ("volume", np.int64),
        *((name, np.int32) for name in ("rank", "mirrored", "channel_dim", "channels", "normalize", "fill_count")),
        *((name, np.int32) for name in ("values", "padding")),
        ("shift", np.float32),
        ("padding2", np.int32),
    ],
    align=True,
)


@dataclass(slots=True)
class WindowCopy:
    """What happens to one sample, or to one part of one.

    Attributes:
        source, target: arrays on the GPU; the target is contiguous. A source of extents 0 gives only fill values.
        permutation: the source dimension that each target dimension is; None: the same order.
        anchor: where the box begins in the source; None: at 0.
        mirrored: source dimensions that are read backwards.
        fill: values for what lies outside: one, or one for each channel.
        channel_axis: the source dimension of channels, or None.
        mean, factor, shift: ``(x - mean) * factor + shift``, where given.
        place: where the box begins in the target; None: at 0.
        extents: of the box, in the target's order of dimensions; None: the target's.
        strides: of the source, in elements, where it is not contiguous.
    """

    source: Any
    target: Any
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
class _Dimension:
    """One dimension of a box, in the target's order."""

    extent: int
    anchor: int
    size: int
    stride: int
    target_stride: int
    mirrored: bool
    is_channels: bool

    def continues(self, outer: _Dimension) -> bool:
        """Whether this dimension and the one around it are one, in source and target."""
        whole = not self.anchor and self.extent == self.size and not self.mirrored and not outer.mirrored
        steps = outer.stride == self.stride * self.size and outer.target_stride == self.target_stride * self.extent
        return whole and steps and not self.is_channels and not outer.is_channels


def copy_windows(copies: Sequence[WindowCopy]) -> None:
    """Fills all boxes in one launch; sources have one type, and targets have one."""
    sources, targets = [locate(copy.source) for copy in copies], [locate(copy.target) for copy in copies]
    _copy(copies, sources, targets, range(len(copies)))


def copy_alike(
    sources: Sequence[Located],
    targets: Sequence[Located],
    plans: Sequence[Any],
    copy_of: Callable[[Any, Located, Located], WindowCopy],
) -> None:
    """Like :func:`copy_windows`, for samples of which many are of one plan (the same object) and of equal shapes.

    Args:
        copy_of: what happens to a sample, from its plan, source and target; called for one sample of each kind.
    """
    firsts, kinds = alike(sources, targets, plans)
    _copy([copy_of(plans[i], sources[i], targets[i]) for i in firsts], sources, targets, kinds)


def _copy(copies: Sequence[WindowCopy], sources: Sequence[Located], targets: Sequence[Located], kinds: Any) -> None:
    """Copies each source to its target, as the copy of its kind says."""
    if not copies:
        return
    tables, places = packed([_values(copy) for copy in copies], np.float32)
    entries = [_entry(copy, locate(copy.source), locate(copy.target), place) for copy, place in zip(copies, places)]
    descriptors = np.array(entries, _WINDOW)[list(kinds)]
    descriptors["source"] = addresses_of(sources)
    descriptors["target"] += addresses_of(targets)
    descriptors = descriptors[descriptors["volume"] > 0]
    if not len(descriptors):
        return
    index = "uint32" if int(descriptors["volume"].max()) < _NARROW else "uint64"
    types = (cuda_type(sources[0].dtype), cuda_type(targets[0].dtype), index)
    counts = -(-descriptors["volume"] // THREADS)
    launch(kernel("window", f"window<{', '.join(types)}>"), descriptors, counts, tables)


def copy_batch(source: TensorListGPU, target: TensorListGPU) -> None:
    """Copies all samples into those of another batch, of the same shapes, in one launch."""
    pairs = zip(source.samples, target.samples)
    copy_windows([WindowCopy(locate(one).flat(), locate(other).flat()) for one, other in pairs])


def copy_views(views: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copies arrays that need not be contiguous, in one launch; all have one type."""
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


def join(parts: Sequence[Sequence[Any]], targets: Sequence[Any], axis: int) -> None:
    """Fills each target with its parts, one behind the other along ``axis``, in one launch."""
    places: dict[Any, list[list[int]]] = {}
    sources, wholes, plans = [], [], []
    for own, whole in zip(parts, targets):
        located, target = [locate(part) for part in own], locate(whole)
        shapes = tuple(part.shape for part in located)
        if shapes not in places:
            places[shapes] = _places(shapes, axis)
        sources += located
        wholes += [target] * len(located)
        plans += places[shapes]
    copy_alike(sources, wholes, plans, lambda place, s, t: WindowCopy(s, t, place=place, extents=s.shape))


def _places(shapes: Sequence[Sequence[int]], axis: int) -> list[list[int]]:
    """Where arrays of these shapes begin, one behind the other along ``axis``."""
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


def _entry(copy: WindowCopy, source: Located, target: Located, values: int) -> tuple[Any, ...]:
    """The fields of a descriptor, in order, with offsets in the place of addresses."""
    rank = len(target.shape)
    permutation = range(rank) if copy.permutation is None else copy.permutation
    anchor = (0,) * rank if copy.anchor is None else copy.anchor
    extents = target.shape if copy.extents is None else copy.extents
    source_strides = strides_of(source.shape) if copy.strides is None else copy.strides
    target_strides = strides_of(target.shape)
    first = 0 if copy.place is None else sum(p * s for p, s in zip(copy.place, target_strides))
    dimensions = _merged(
        [
            _Dimension(
                extents[number],
                anchor[axis],
                source.shape[axis],
                source_strides[axis],
                target_strides[number],
                axis in copy.mirrored,
                axis == copy.channel_axis and (copy.mean is not None or len(copy.fill) > 1),
            )
            for number, axis in enumerate(permutation)
        ]
    )
    if len(dimensions) > _DIMS:
        raise RuntimeError(f"Data of {len(dimensions)} dimensions is not supported on GPU: at most {_DIMS}")
    return (
        0,
        first * target.dtype.itemsize,
        *(
            _filled([getattr(d, name) for d in dimensions])
            for name in ("extent", "anchor", "size", "stride", "target_stride")
        ),
        math.prod(extents),
        len(dimensions),
        sum(1 << number for number, d in enumerate(dimensions) if d.mirrored),
        next((number for number, d in enumerate(dimensions) if d.is_channels), -1),
        0 if copy.channel_axis is None else source.shape[copy.channel_axis],
        copy.mean is not None,
        len(copy.fill),
        values,
        0,
        copy.shift,
        0,
    )


def _merged(dimensions: list[_Dimension]) -> list[_Dimension]:
    """As few dimensions as the box needs: those that lie in memory as one become one."""
    merged: list[_Dimension] = []
    for dimension in dimensions:
        if merged and dimension.continues(merged[-1]):
            outer = merged.pop()
            merged.append(
                _Dimension(
                    outer.extent * dimension.extent,
                    outer.anchor * dimension.extent,
                    outer.size * dimension.extent,
                    dimension.stride,
                    dimension.target_stride,
                    False,
                    False,
                )
            )
        else:
            merged.append(dimension)
    return merged


def _filled(values: list[int]) -> tuple[int, ...]:
    return (*values, *(0,) * (_DIMS - len(values)))
