"""Kernels for recordings in WAV files: conversion to the same numbers as libsndfile, downmixing and resampling.

A kernel computes a piece of one recording, and gets all parameters in a record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from penstock.core.arrays import address
from penstock.core.codecs import Encoding
from penstock.core.records import compute_records
from penstock.kernels.cpu.audio import TAPS_AT_A_TIME
from penstock.kernels.cpu.code_generation import types
from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.deferred import overload
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import address_of, elements_at, pointer_to, record_at
from penstock.kernels.cpu.simd import at, fence, load, pointer, store_past_cache, total, unaligned_at, zeros
from penstock.kernels.resampling import filter_phases

_PIECE = np.dtype(
    [
        ("source", np.int64),
        ("encoding", np.int64),
        ("frames", np.int64),
        ("channels", np.int64),
        ("target", np.int64),
        ("length", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("downmix", np.int64),
        ("scale", np.float64),
        ("lobes", np.int64),
        ("phases", np.int64),
        ("factor", np.float64),
    ]
)
# The first four fields describe the whole recording; `target` and `length`, its whole output, of which the kernel computes frames `first`
# to `last`. `downmix`: whether channels are replaced by their mean. `scale`: the number of input frames per output frame. `lobes` and
# `phases` (an address) describe the resampling filter. `factor`: the output value that represents 1.0.
_ARGUMENTS = ("int64",)
"""The types of arguments after the record: the address of scratch memory."""
# The number of frames of a recording that are converted at a time; greater than the number that the longest filter reads.
_WINDOW_FRAMES = 2048
# The number of output frames whose positions are computed from the position of the first one.
_BLOCK_FRAMES = 256
# Large recordings are computed in pieces of this many output samples, in whole blocks, by several threads.
_PIECE_SAMPLES = 1 << 16
# The minimum size of outputs that take longer to compute than it takes to wake a thread.
_LARGE_BYTES = 1 << 20
# The minimum size of outputs that are too large to stay in a core's cache until they are read.
_BEYOND_CACHE_BYTES = 1 << 21
_CACHED_SAMPLES = 2048  # the number of samples converted in the cache at a time, before they are written past it
_FLOAT_BYTES = 4
_LANES = 8
# Up to this many channels, numpy adds them in order; more channels are added in eight interleaved sums.
_CHANNELS_IN_ORDER = 7

_UINT8, _INT16, _INT24, _INT32 = map(int, (Encoding.UINT8, Encoding.INT16, Encoding.INT24, Encoding.INT32))
_FLOAT32, _FLOAT64, _A_LAW, _MU_LAW = map(int, (Encoding.FLOAT32, Encoding.FLOAT64, Encoding.A_LAW, Encoding.MU_LAW))
_SAMPLE_BYTES = np.array([0, 1, 2, 3, 4, 4, 8, 1, 1])
_STEPS = np.arange(2 * 64 + TAPS_AT_A_TIME, dtype=np.float32)


def _a_law() -> np.ndarray:
    """Return the sample that each A-law code (ITU-T G.711) stands for, int16."""
    codes = np.arange(256) ^ 0x55
    exponents, mantissas = codes >> 4 & 7, (codes & 15) << 4
    sizes = np.where(exponents == 0, mantissas + 8, mantissas + 0x108 << np.maximum(exponents - 1, 0))
    return np.where(codes & 0x80, sizes, -sizes).astype(np.int16)


def _mu_law() -> np.ndarray:
    """Return the sample that each mu-law code (ITU-T G.711) stands for, int16."""
    codes = ~np.arange(256) & 0xFF
    sizes = (((codes & 15) << 3) + 0x84 << (codes >> 4 & 7)) - 0x84
    return np.where(codes & 0x80, -sizes, sizes).astype(np.int16)


_A_LAW_SAMPLES, _MU_LAW_SAMPLES = _a_law(), _mu_law()


def _number(value: Any, like: Any) -> Any:
    """Return a sample in the type of ``like``, converted as libsndfile does; ``value``: the stored sample, scaled to int32 if it is an
    integer. For use in kernels.
    """
    raise TypeError("this function can only be called in numba kernels")


# numba compares the signatures of overloads, annotations included, so these functions have none.
@overload(_number)
def _number_of(value, like):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Float):
        return _float_number(value, like)
    if isinstance(like, types.Float):
        return lambda value, like: np.float32(value) * np.float32(2.0**-31)
    if like.bitwidth == 16:
        return lambda value, like: np.int16(value >> 16)
    return lambda value, like: np.int32(value)


def _float_number(value, like):  # type: ignore[no-untyped-def]
    if isinstance(like, types.Float):
        return lambda value, like: np.float32(value)
    # Values are rounded half to even and saturate. NaN becomes what the conversion instruction returns for it; int16 is the low half of
    # that, which is 0.
    lowest, highest = np.iinfo(like.name).min, np.iinfo(like.name).max
    low, high, nan_value = float(lowest), float(highest), 0 if like.bitwidth == 16 else lowest

    def convert(value, like):  # type: ignore[no-untyped-def]
        if value != value:
            return type(like)(nan_value)
        if value >= high:
            return type(like)(highest)
        if value <= low:
            return type(like)(lowest)
        return type(like)(np.rint(value))

    return convert


@inner
def _convert(encoding: int, source: int, count: int, target: np.ndarray, like: np.generic) -> None:
    """Convert the ``count`` samples at the address ``source``."""
    bytes_there = pointer_to(source, np.uint8(0))
    if encoding == _INT16:
        shorts = pointer_to(source, np.int16(0))
        for i in range(count):
            target[i] = _number(np.int32(unaligned_at(shorts, i)) << 16, like)
    elif encoding == _FLOAT32:
        singles = pointer_to(source, np.float32(0))
        for i in range(count):
            target[i] = _number(unaligned_at(singles, i), like)
    elif encoding == _INT24:
        for i in range(count):
            low, middle = np.int32(unaligned_at(bytes_there, 3 * i)), np.int32(unaligned_at(bytes_there, 3 * i + 1))
            high = np.int32(np.int8(unaligned_at(bytes_there, 3 * i + 2)))
            target[i] = _number(np.int32(low << 8 | middle << 16 | high << 24), like)
    elif encoding == _INT32:
        words = pointer_to(source, np.int32(0))
        for i in range(count):
            target[i] = _number(unaligned_at(words, i), like)
    elif encoding == _FLOAT64:
        doubles = pointer_to(source, np.float64(0))
        for i in range(count):
            target[i] = _number(unaligned_at(doubles, i), like)
    elif encoding == _UINT8:
        for i in range(count):
            target[i] = _number((np.int32(unaligned_at(bytes_there, i)) - 128) << 24, like)
    elif encoding == _A_LAW:
        for i in range(count):
            target[i] = _number(np.int32(_A_LAW_SAMPLES[unaligned_at(bytes_there, i)]) << 16, like)
    elif encoding == _MU_LAW:
        for i in range(count):
            target[i] = _number(np.int32(_MU_LAW_SAMPLES[unaligned_at(bytes_there, i)]) << 16, like)


@inner
def _mean(samples: np.ndarray, channels: int, target: np.ndarray) -> None:
    """Compute the mean of the channels of each frame, added in numpy's order."""
    count, divisor, place = target.size, np.float32(channels), pointer(samples)
    if channels == 2:
        for i in range(count):
            target[i] = (at(place, 2 * i) + at(place, 2 * i + 1)) * np.float32(0.5)
    elif channels <= _CHANNELS_IN_ORDER:
        for i in range(count):
            added = at(place, i * channels)
            for channel in range(1, channels):
                added += at(place, i * channels + channel)
            target[i] = added / divisor
    else:
        whole = channels - channels % 8
        for i in range(count):
            k = i * channels
            a, b, c, d = at(place, k), at(place, k + 1), at(place, k + 2), at(place, k + 3)
            e, f, g, h = at(place, k + 4), at(place, k + 5), at(place, k + 6), at(place, k + 7)
            for m in range(k + 8, k + whole, 8):
                a, b, c, d = a + at(place, m), b + at(place, m + 1), c + at(place, m + 2), d + at(place, m + 3)
                e, f, g, h = e + at(place, m + 4), f + at(place, m + 5), g + at(place, m + 6), h + at(place, m + 7)
            added = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for m in range(k + whole, k + channels):
                added += at(place, m)
            target[i] = added / divisor


@inner
def _store_past_cache(values: np.ndarray, target: np.ndarray, place: int) -> None:
    """Copy floats to a target at the address ``place``, past the cache, except at both ends, where they do not fill whole vectors."""
    count = values.size
    head = min(-(place // _FLOAT_BYTES) & _LANES - 1, count) if place % _FLOAT_BYTES == 0 else count
    end = head + (count - head) // _LANES * _LANES
    for i in range(head):
        target[i] = values[i]
    for i in range(head, end, _LANES):
        store_past_cache(target, i, load(values, i, _LANES))
    for i in range(end, count):
        target[i] = values[i]


@kernel
def _convert_piece(record: np.ndarray, _scratch: int, like: np.generic) -> None:
    """Convert samples; the record is a ``_PIECE``."""
    piece = record_at(record)
    first, count = piece.first * piece.channels, (piece.last - piece.first) * piece.channels
    target = elements_at(piece.target, piece.length * piece.channels, like)[first : first + count]
    _convert(piece.encoding, piece.source + first * _SAMPLE_BYTES[piece.encoding], count, target, like)


@kernel
def _convert_piece_past_cache(record: np.ndarray, scratch: int, like: np.float32) -> None:
    """Same as :func:`_convert_piece`, for large float outputs, which are written past the cache."""
    piece = record_at(record)
    first, end, width = piece.first * piece.channels, piece.last * piece.channels, _SAMPLE_BYTES[piece.encoding]
    for start in range(first, end, _CACHED_SAMPLES):
        count = min(_CACHED_SAMPLES, end - start)
        values, place = elements_at(scratch, count, like), piece.target + _FLOAT_BYTES * start
        _convert(piece.encoding, piece.source + start * width, count, values, like)
        _store_past_cache(values, elements_at(place, count, like), place)
    fence()


@inner
def _load_planes(piece: Any, first: int, last: int, scratch: int) -> None:
    """Convert frames ``first`` to ``last`` to floats, in planes of that many frames: one for each channel, or a single one for
    the mean of all channels.

    Frames outside the recording are silent. The planes begin at the address ``scratch``, and after them there must be
    scratch memory for the same number of frames of all channels.
    """
    count, planes = last - first, 1 if piece.downmix else piece.channels
    room = elements_at(scratch, planes * count, np.float32(0))
    begin, end = min(max(first, 0), last), max(min(last, piece.frames), first)
    start, whole = begin - first, max(end - begin, 0)
    samples = elements_at(scratch + _FLOAT_BYTES * planes * count, whole * piece.channels, np.float32(0))
    source = piece.source + begin * piece.channels * _SAMPLE_BYTES[piece.encoding]
    if whole < count:
        room[:] = 0
    if piece.channels == 1:
        _convert(piece.encoding, source, whole, room[start : start + whole], np.float32(0))
        return
    _convert(piece.encoding, source, whole * piece.channels, samples, np.float32(0))
    if piece.downmix:
        _mean(samples, piece.channels, room[start : start + whole])
        return
    channels, place = piece.channels, pointer(samples)
    for channel in range(channels):
        plane = room[channel * count + start : channel * count + start + whole]
        for i in range(plane.size):
            plane[i] = at(place, i * channels + channel)


@kernel
def _mix_piece(record: np.ndarray, scratch: int, like: np.generic) -> None:
    """Compute the mean of the channels of each frame; the record is a ``_PIECE``."""
    piece = record_at(record)
    target, factor = elements_at(piece.target, piece.length, like), np.float32(piece.factor)
    for first in range(piece.first, piece.last, _WINDOW_FRAMES):
        last = min(first + _WINDOW_FRAMES, piece.last)
        _load_planes(piece, first, last, scratch)
        means, own = elements_at(scratch, last - first, np.float32(0)), target[first:last]
        for i in range(own.size):
            own[i] = converted(means[i] * factor, like)


@kernel
def _mix_piece_past_cache(record: np.ndarray, scratch: int, like: np.float32) -> None:
    """Same as :func:`_mix_piece`, for large float outputs, which are written past the cache."""
    piece = record_at(record)
    for first in range(piece.first, piece.last, _WINDOW_FRAMES):
        last, place = min(first + _WINDOW_FRAMES, piece.last), piece.target + _FLOAT_BYTES * first
        _load_planes(piece, first, last, scratch)
        means = elements_at(scratch, last - first, like)
        _store_past_cache(means, elements_at(place, last - first, like), place)
    fence()


@kernel
def _resample_piece(record: np.ndarray, scratch: int, like: np.generic) -> None:
    """Resample as :func:`~penstock.kernels.cpu.audio.resample` does; the record is a ``_PIECE`` that begins at the start of a
    block.
    """
    piece = record_at(record)
    planes, lobes, scale = 1 if piece.downmix else piece.channels, piece.lobes, piece.scale
    target, factor = elements_at(piece.target, piece.length * planes, like), np.float32(piece.factor)
    per_sample, center = np.float32(32), np.float32(lobes * 32 + 1)
    taps = (2 * lobes + TAPS_AT_A_TIME - 1) // TAPS_AT_A_TIME * TAPS_AT_A_TIME
    stride = 2 * lobes + 2 + TAPS_AT_A_TIME
    phases = elements_at(piece.phases, 33 * stride, np.float32(0))
    # No output frame's taps may begin after this frame.
    highest = max(piece.frames, math.ceil(piece.length * scale)) + lobes + 2 * TAPS_AT_A_TIME - taps
    loaded, window = 0, 0
    room = elements_at(scratch, planes * _WINDOW_FRAMES, np.float32(0))
    for begin in range(piece.first, piece.last, _BLOCK_FRAMES):
        block_position = begin * scale
        base = math.floor(block_position)
        position = np.float32(block_position - base)
        for i in range(begin, min(begin + _BLOCK_FRAMES, piece.last)):
            first = math.ceil(position) - lobes
            # An output's taps are 32 entries of the table apart, so in `phases` they are adjacent: in one row, and for interpolation in
            # the next one.
            x = np.float32(first) - position
            entry = math.floor(x * per_sample + center)
            low = (entry & 31) * stride + (entry >> 5)
            place = min(max(base + first, -lobes - 1), highest)
            if window == 0 or place < loaded or place + taps > loaded + window:
                loaded, window = place, _WINDOW_FRAMES
                _load_planes(piece, loaded, loaded + window, scratch)
            for plane in range(planes):
                read = plane * window + place - loaded
                products = zeros(TAPS_AT_A_TIME)
                for k in range(0, taps, TAPS_AT_A_TIME):
                    step = load(_STEPS, k, TAPS_AT_A_TIME)
                    rest = ((step + x) * per_sample + center) - (step * per_sample + np.float32(entry))
                    before, behind = (
                        load(phases, low + k, TAPS_AT_A_TIME),
                        load(phases, low + stride + k, TAPS_AT_A_TIME),
                    )
                    products = products + load(room, read + k, TAPS_AT_A_TIME) * (before + rest * (behind - before))
                target[i * planes + plane] = converted(total(products) * factor, like)
            position += np.float32(scale)


def compute_recordings(
    recordings: np.ndarray,
    targets: np.ndarray,
    lengths: np.ndarray,
    scales: np.ndarray | None,
    downmix: bool,
    lobes: int,
    dtype: np.dtype,
    threads: int,
    cores: Sequence[int] | None = None,
) -> None:
    """Compute the outputs of recordings, without the GIL.

    Args:
        recordings: an array of type :data:`~penstock.core.codecs.RECORDING`, none of them marked as unusual. The caller must keep their
            data alive.
        targets: the address of each output, of shape (frames, channels), or (frames,) with ``downmix``.
        lengths: the number of frames of each output.
        scales: the output sample rate of each recording divided by its input rate; None: no recording is resampled.
        downmix: whether channels are replaced by their mean.
        lobes: the number of lobes of the resampling filter, on each side.
        dtype: the outputs' dtype: float32, int16 or int32. With integers, floats are used in between only if values are resampled
            or mixed.
        threads: the maximum number of threads that share the work.
        cores: the cores to which threads are bound in turn; None: threads are not bound.

    Raises:
        MemoryError: there is not enough memory.
    """
    pieces = np.empty(len(recordings), _PIECE)
    pieces["source"] = recordings["data"]
    for name in ("encoding", "frames", "channels"):
        pieces[name] = recordings[name]
    pieces["target"], pieces["length"], pieces["first"], pieces["last"] = targets, lengths, 0, lengths
    pieces["downmix"], pieces["factor"] = downmix, 1 if dtype.kind == "f" else np.iinfo(dtype).max
    channels = pieces["channels"]
    parts = [(_Step.CONVERT, pieces)]
    if downmix and (is_mixed := channels > 1).any():
        parts = [(_Step.CONVERT, pieces[~is_mixed]), (_Step.MIX, pieces[is_mixed])]
    phases = None
    if scales is not None and (is_resampled := (scales != 1) & (lengths > 0)).any():
        # This reference keeps the phases alive: the cache that holds them may be emptied meanwhile.
        phases = filter_phases(lobes)
        pieces["scale"], pieces["lobes"], pieces["phases"] = 1 / scales, lobes, address(phases)
        parts = [(_Step.RESAMPLE, pieces[is_resampled])]
        if not is_resampled.all():
            is_mixed = ~is_resampled & bool(downmix) & (channels > 1)
            parts += (_Step.MIX, pieces[is_mixed]), (_Step.CONVERT, pieces[~(is_resampled | is_mixed)])
    for step, own in parts:
        if len(own):
            _compute(step, own, dtype, threads, cores)


class _Step(Enum):
    """A way to compute an output from a recording."""

    CONVERT = 1
    MIX = 2
    RESAMPLE = 3


# The two kernels for each step: for any output, and for large float outputs.
_KERNELS = {
    _Step.CONVERT: (_convert_piece, _convert_piece_past_cache),
    _Step.MIX: (_mix_piece, _mix_piece_past_cache),
    _Step.RESAMPLE: (_resample_piece, _resample_piece),
}


def _compute(step: _Step, pieces: np.ndarray, dtype: np.dtype, threads: int, cores: Sequence[int] | None) -> None:
    """Compute the outputs of whole recordings, each described by one piece, with one kernel."""
    channels, lengths = pieces["channels"], pieces["length"]
    output_bytes = int(lengths @ (channels if step != _Step.MIX else np.ones_like(channels))) * dtype.itemsize
    is_large = output_bytes >= _LARGE_BYTES
    if is_large and threads > 1:
        pieces = _cut(pieces)
    past_cache = dtype == np.float32 and output_bytes >= _BEYOND_CACHE_BYTES
    scratch_bytes = 2 * _FLOAT_BYTES * _WINDOW_FRAMES * (1 if step == _Step.CONVERT else int(channels.max()))
    kernel_address = address_of(_KERNELS[step][past_cache], _PIECE, _ARGUMENTS, dtype)
    compute_records(kernel_address, pieces, scratch_bytes, threads, cores, is_large)


def _cut(recordings: np.ndarray) -> np.ndarray:
    """Return the pieces of recordings: large recordings are cut into several, so that threads can share them."""
    frames = np.maximum(_PIECE_SAMPLES // recordings["channels"] // _BLOCK_FRAMES, 1) * _BLOCK_FRAMES
    counts = -(-recordings["length"] // frames)
    pieces, frames = recordings.repeat(counts), frames.repeat(counts)
    numbers = np.arange(len(pieces)) - (counts.cumsum() - counts).repeat(counts)
    pieces["first"] = numbers * frames
    pieces["last"] = np.minimum(pieces["first"] + frames, pieces["length"])
    return pieces
