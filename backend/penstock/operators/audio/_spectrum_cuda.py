"""Power spectra of a signal's frames on the GPU, with Fourier transforms of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Columns, launch, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Repeated, blank_records, records

_MAX_PASSES = 24


class _Signal(NamedTuple):
    """The kernel's description of one signal.

    Attributes:
        frames: the number of frames.
        bin_step, frame_step: the distances between frequencies and between frames in the target, in elements.
    """

    source: Pointer
    target: Pointer
    length: Int64
    frames: Int64
    bin_step: Int64
    frame_step: Int64


class _Transform(NamedTuple):
    """The parameters that all signals share.

    Attributes:
        step, start: the distance between the starts of frames; the start of the first frame. Both in elements of the signal.
        window, points: elements of a frame; elements of the frame's real transform.
        size, lanes: elements of the complex transform; frames per block.
    """

    step: Int64
    start: Int64
    window: Int32
    points: Int32
    size: Int32
    lanes: Int32
    reflect: Int32
    magnitude: Int32
    passes: Int32
    radices: Annotated[Sequence[int], Repeated(np.int32, _MAX_PASSES)]


SOURCE = KernelSource(__file__, _Signal, _Transform)
_COMPLEX_BYTES = 8
# A block transforms up to _MAX_LANES frames, so that its memory accesses coalesce, but no more than fit _COMFORTABLE_BYTES, so that
# several blocks fit on a multiprocessor. Blocks that need more than _SHARED_BYTES use global memory.
_MAX_LANES, _COMFORTABLE_BYTES, _SHARED_BYTES = 8, 32 * 1024, 48 * 1024
# For transforms in global memory: the limit of scratch memory, and a number of blocks that keeps the device busy.
_SCRATCH_BYTES, _MAX_BLOCKS = 256 * 1024 * 1024, 1024


@dataclass(frozen=True)
class Framing:
    """How to cut a signal into frames, and what to compute from the frames.

    Attributes:
        step: the distance between the starts of frames, in samples.
        start: the position of the first frame's first sample; negative: before the signal.
        count: the size of the transform; shorter frames are padded with zeros.
        reflect: pad the signal by reflection instead of with zeros.
        magnitude: compute magnitudes, the square roots of powers.
        time_first: targets have the shape (time, frequency) instead of (frequency, time).
    """

    step: int
    start: int
    count: int
    reflect: bool
    magnitude: bool
    time_first: bool


def power_spectra(signals: Columns, spectra: Columns, window: np.ndarray, framing: Framing) -> None:
    """Compute the power spectra of signals, float32, in one launch.

    Args:
        signals: the signals, of any shapes.
        spectra: the results, of shape (time, frequency) or (frequency, time).
        window: the window, float32.
        framing: how to cut the signals, and what to compute.
    """
    f = framing
    size = f.count if f.count % 2 else f.count // 2
    # Each frame takes memory twice: a pass reads one copy and writes the other.
    frame_bytes = 2 * size * _COMPLEX_BYTES
    lanes = _MAX_LANES
    while lanes > 1 and lanes * frame_bytes > _COMFORTABLE_BYTES:
        lanes //= 2
    frames, bins = spectra.shapes.T if f.time_first else spectra.shapes.T[::-1]
    entries = blank_records(_Signal, len(frames))
    entries["source"], entries["target"] = signals.addresses, spectra.addresses
    entries["length"], entries["frames"] = signals.sizes, frames
    entries["bin_step"], entries["frame_step"] = (1, bins) if f.time_first else (frames, 1)
    counts = -(-frames // lanes)
    groups = int(counts.sum())
    if not groups:
        return
    radices = radices_of(size)
    padded = [*radices, *[0] * (_MAX_PASSES - len(radices))]
    transform = _Transform(
        f.step, f.start, len(window), f.count, size, lanes, f.reflect, f.magnitude, len(radices), padded
    )
    block_bytes = lanes * frame_bytes
    in_shared = block_bytes <= _SHARED_BYTES
    blocks = groups if in_shared else min(groups, _MAX_BLOCKS, max(_SCRATCH_BYTES // block_bytes, 1))
    room = None if in_shared else scratch([(blocks * block_bytes,)], np.uint8)[0]
    launch(
        SOURCE.kernel(f"power_spectra<{'true' if in_shared else 'false'}>"),
        entries,
        counts,
        records(_Transform, [transform]),
        roots_of_unity(f.count),
        window,
        room,
        np.int64(groups),
        shared=block_bytes if in_shared else 0,
        blocks=blocks,
    )


@cache
def roots_of_unity(count: int) -> np.ndarray:
    """Return ``exp(-2 pi i k / count)`` as pairs of float32."""
    angles = -2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def radices_of(size: int) -> list[int]:
    """Return the factors of the transform's size: 4, 2, 3 and 5, for which there is fast code, and larger primes."""
    radices = []
    for factor in (4, 2, 3, 5):
        while size % factor == 0:
            radices.append(factor)
            size //= factor
    factor = 7
    while size > 1:
        if factor * factor > size:
            factor = size
        if size % factor == 0:
            radices.append(factor)
            size //= factor
        else:
            factor += 2
    return radices
