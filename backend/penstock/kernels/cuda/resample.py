"""Separable resampling on GPU, with what comes behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, contiguous, cuda_type, kernel, launch, packed, upload
from penstock.kernels.filters import Taps
from penstock.types import from_numpy_dtype

# What a block may have of shared memory; every GPU since Volta offers it.
_MOST_SHARED = 96 * 1024
_RESAMPLE = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("source_plane", np.int64),
        ("target_plane", np.int64),
        *((name, np.int32) for name in ("height", "width", "channels", "out_height", "out_width")),
        *((name, np.int32) for name in ("v_starts", "v_weights", "v_taps", "h_starts", "h_weights", "h_taps")),
        *((name, np.int32) for name in ("first_column", "columns", "planar", "normalize", "rounded", "out_channels")),
        ("mean", np.float32, 4),
        ("factor", np.float32, 4),
        ("shift", np.float32),
        ("fill", np.float32),
    ],
    align=True,
)
_AXIS = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("outer", "size", "inner", "out_size")),
        *((name, np.int32) for name in ("starts", "weights", "taps", "padding")),
    ],
    align=True,
)


@dataclass
class ImageResampling:
    """What happens to one stack of images.

    Attributes:
        source: of shape (..., H, W, C), C possibly 1.
        target: of shape (..., h, w, C') or, where ``planar``, (..., C', h, w).
        vertical, horizontal: filters.
        planar: channels first.
        rounded: values are rounded to uint8 before they are normalized.
        mean, factor, shift: ``(x - mean) * factor + shift``, where given.
        fill: of added channels.
    """

    source: Any
    target: Any
    vertical: Taps
    horizontal: Taps
    planar: bool = False
    rounded: bool = False
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None
    shift: float = 0.0
    fill: float = 0.0


def resample_images(jobs: Sequence[ImageResampling]) -> None:
    """Fills all targets in one launch; sources have one type, and targets have one."""
    jobs = [job for job in jobs if job.target.size]
    if not jobs:
        return
    sources = contiguous([job.source for job in jobs])
    tables = [job.vertical for job in jobs] + [job.horizontal for job in jobs]
    starts, start_places = packed([table.starts for table in tables], np.int32)
    weights, weight_places = packed([table.weights for table in tables], np.float32)
    descriptors = np.zeros(len(jobs), _RESAMPLE)
    counts = []
    for number, (entry, job, source) in enumerate(zip(descriptors, jobs, sources)):
        _describe(entry, job, source)
        entry["v_starts"], entry["v_weights"] = start_places[number], weight_places[number]
        entry["h_starts"], entry["h_weights"] = start_places[len(jobs) + number], weight_places[len(jobs) + number]
        counts.append(int(entry["out_height"]) * math.prod(source.shape[:-3]))
    shared = int((descriptors["columns"] * descriptors["channels"]).max()) * 4
    if shared > _MOST_SHARED:
        raise RuntimeError(
            f"Images of {shared // 4} values a row are not supported on GPU: at most {_MOST_SHARED // 4}"
        )
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], jobs[0].target)]
    function = kernel("resample", f"resample<{types[0]}, {types[1]}>")
    launch(function, descriptors, counts, upload(starts), upload(weights), shared=shared)


def _describe(entry: Any, job: ImageResampling, source: Any) -> None:
    height, width, channels = source.shape[-3:]
    out_channels = job.target.shape[-3] if job.planar else job.target.shape[-1]
    first = int(job.horizontal.starts.min())
    last = int(job.horizontal.starts.max()) + job.horizontal.weights.shape[1]
    entry["source"], entry["target"] = source.data.ptr, job.target.data.ptr
    entry["source_plane"], entry["target_plane"] = height * width * channels, math.prod(job.target.shape[-3:])
    entry["height"], entry["width"], entry["channels"] = height, width, channels
    entry["out_height"], entry["out_width"] = len(job.vertical.starts), len(job.horizontal.starts)
    entry["v_taps"], entry["h_taps"] = job.vertical.weights.shape[1], job.horizontal.weights.shape[1]
    entry["first_column"], entry["columns"] = first, min(last, width) - first
    entry["planar"], entry["rounded"], entry["out_channels"] = job.planar, job.rounded, out_channels
    entry["fill"] = job.fill
    if job.mean is not None and job.factor is not None:
        entry["normalize"] = 1
        entry["mean"][: len(job.mean)] = job.mean
        entry["factor"][: len(job.factor)] = job.factor
        entry["shift"] = job.shift


def resample_axes(jobs: Sequence[tuple[Any, int, Taps, Any]]) -> None:
    """Resamples one axis of each source: ``(source, axis, taps, target)``."""
    jobs = [job for job in jobs if job[3].size]
    if not jobs:
        return
    sources = contiguous([job[0] for job in jobs])
    starts, start_places = packed([job[2].starts for job in jobs], np.int32)
    weights, weight_places = packed([job[2].weights for job in jobs], np.float32)
    descriptors = np.zeros(len(jobs), _AXIS)
    for number, (entry, (_, axis, taps, target), source) in enumerate(zip(descriptors, jobs, sources)):
        entry["source"], entry["target"] = source.data.ptr, target.data.ptr
        entry["outer"], entry["inner"] = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
        entry["size"], entry["out_size"] = source.shape[axis], target.shape[axis]
        entry["starts"], entry["weights"] = start_places[number], weight_places[number]
        entry["taps"] = taps.weights.shape[1]
    types = [cuda_type(from_numpy_dtype(array.dtype)) for array in (sources[0], jobs[0][3])]
    function = kernel("resample", f"resample_axis<{types[0]}, {types[1]}>")
    launch(function, descriptors, [blocks_for(job[3].shape) for job in jobs], upload(starts), upload(weights))
