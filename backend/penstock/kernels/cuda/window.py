"""Boxes of arrays on GPU: crop, slice, pad, flip, transpose, cast, crop-mirror-normalize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch
from penstock.types import from_numpy_dtype

_DIMS, _CHANNELS = 6, 16
_WINDOW = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("extents", np.int64, _DIMS),
        ("anchors", np.int64, _DIMS),
        ("sizes", np.int64, _DIMS),
        ("strides", np.int64, _DIMS),
        ("mirrored", np.int32, _DIMS),
        ("channel_dim", np.int32),
        ("channels", np.int32),
        ("normalize", np.int32),
        ("fill_count", np.int32),
        ("mean", np.float32, _CHANNELS),
        ("factor", np.float32, _CHANNELS),
        ("fill", np.float64, _CHANNELS),
        ("shift", np.float32),
        ("padding", np.int32),
    ],
    align=True,
)


@dataclass
class WindowCopy:
    """What happens to one sample.

    Attributes:
        source, target: contiguous arrays on the GPU.
        permutation: the source dimension that each target dimension is; None: the same order.
        anchor: where the box begins in the source; None: at 0.
        mirrored: source dimensions that are read backwards.
        fill: values for what lies outside: one, or one for each channel.
        channel_axis: the source dimension of channels, or None.
        mean, factor, shift: ``(x - mean) * factor + shift``, where given.
        channels: of the source, where normalization adds more.
    """

    source: Any
    target: Any
    permutation: Sequence[int] | None = None
    anchor: Sequence[int] | None = None
    mirrored: Sequence[int] = ()
    fill: Sequence[float] = (0.0,)
    channel_axis: int | None = None
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None
    shift: float = 0.0


def copy_windows(copies: Sequence[WindowCopy]) -> None:
    """Fills all targets in one launch; sources have one type, and targets have one."""
    copies = [copy for copy in copies if copy.target.size]
    if not copies:
        return
    sources = contiguous([copy.source for copy in copies])
    descriptors = np.zeros(len(copies), _WINDOW)
    for entry, copy, source in zip(descriptors, copies, sources):
        _describe(entry, copy, source)
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], copies[0].target)]
    launch(
        kernel("window", f"window<{types[0]}, {types[1]}>"), descriptors, [blocks_for(c.target.shape) for c in copies]
    )


def _describe(entry: Any, copy: WindowCopy, source: Any) -> None:
    rank = copy.target.ndim
    if rank > _DIMS:
        raise RuntimeError(f"Data of {rank} dimensions is not supported on GPU: at most {_DIMS}")
    permutation = list(range(rank)) if copy.permutation is None else list(copy.permutation)
    anchor = [0] * rank if copy.anchor is None else list(copy.anchor)
    lead = _DIMS - rank
    strides = [int(np.prod(source.shape[axis + 1 :], dtype=np.int64)) for axis in range(rank)]
    entry["source"], entry["target"] = source.data.ptr, copy.target.data.ptr
    entry["extents"] = [1] * lead + list(copy.target.shape)
    entry["sizes"] = [1] * lead + [source.shape[axis] for axis in permutation]
    entry["anchors"] = [0] * lead + [anchor[axis] for axis in permutation]
    entry["strides"] = [0] * lead + [strides[axis] for axis in permutation]
    entry["mirrored"] = [0] * lead + [int(axis in copy.mirrored) for axis in permutation]
    entry["channel_dim"] = -1 if copy.channel_axis is None else lead + permutation.index(copy.channel_axis)
    fill = np.asarray(copy.fill, np.float64)
    channels = 1 if copy.channel_axis is None else max(source.shape[copy.channel_axis], len(fill))
    if (copy.mean is not None or len(fill) > 1) and channels > _CHANNELS:
        raise RuntimeError(f"Images of {channels} channels are not supported on GPU here: at most {_CHANNELS}")
    entry["fill_count"] = len(fill)
    entry["fill"][: len(fill)] = fill
    if copy.mean is not None and copy.factor is not None:
        entry["normalize"] = 1
        entry["channels"] = source.shape[copy.channel_axis]
        entry["mean"][: len(copy.mean)] = copy.mean
        entry["factor"][: len(copy.factor)] = copy.factor
        entry["shift"] = copy.shift
