"""Random numbers on the GPU: the same as on the CPU, except for the last digits of logarithms and cosines."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.philox import ELEMENT_STRIDE
from penstock.kernels.cuda.launch import Located, OnGpu, RunValue, blocks_for, launch, locate, packed
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Double, Int32, Int64, Pointer, Records, UInt64, cuda_type, records
from penstock.kernels.random_streams import SAMPLE_STRIDE, Stream

# The number of elements in a group (their first draws are words 0, 1, 2 and 3 of their Philox blocks), and of groups per thread.
_GROUP, _GROUPS = 4, 4
# Elements per block, for shot noise.
_SHOTS = 2048
_KNOWN_REJECTIONS, _KNOWN_FACTORIALS = 512, 1024
# Poisson numbers with means from this on are drawn by rejection.
_MIN_REJECTED = 12
_UNROLLED_CHANNELS = (1, 3)


class _Drawing(NamedTuple):
    """The descriptor of one sample's draws.

    Attributes:
        source: the address of the input to which noise is added.
        elements: the number of elements of the target, or of pixels if the elements of a pixel share a draw.
        columns: the number of pixels in a row, for jitter.
        reciprocal: 2^64 / the number of displacements in each direction, rounded up; for jitter.
        a, b, c, d: parameters of the distribution.
        planes, channels: the number of planes and channels, for salt and pepper, and for jitter.
        values, value_count: the values to pick from: the offset in the table of values, and the number of values.
        stream: index into the batch's random streams.
    """

    target: Pointer
    source: Pointer
    elements: Int64
    a: Double
    b: Double
    c: Double = 0.0
    d: Double = 0.0
    columns: Int64 = 0
    reciprocal: UInt64 = 0
    planes: Int32 = 1
    channels: Int32 = 1
    values: Int32 = 0
    value_count: Int32 = 0
    stream: Int32 = 0


class _Rejection(NamedTuple):
    """Constants for drawing Poisson numbers by rejection, for one integer part of a mean."""

    root: Double
    d: Double
    cx: Double
    c1: Double
    c2: Double
    total: Double
    spread: Double


SOURCE = KernelSource(
    __file__,
    _Drawing,
    _Rejection,
    SAMPLE_STRIDE=np.uint64(SAMPLE_STRIDE),
    ELEMENT_STRIDE=np.uint64(ELEMENT_STRIDE),
    GROUP=_GROUP,
    GROUPS=_GROUPS,
    SHOTS=_SHOTS,
    KNOWN_REJECTIONS=_KNOWN_REJECTIONS,
    KNOWN_FACTORIALS=_KNOWN_FACTORIALS,
    MIN_REJECTED=np.float32(_MIN_REJECTED),
)


@dataclass
class Drawing:
    """The parameters of one sample's draws.

    Attributes:
        target: array on the GPU.
        stream: index into the batch's random streams.
        a, b: ``Uniform``: the lowest number and the spacing; ``Normal``: mean and standard deviation; ``Flip``: the
            largest draw that gives 1; shot noise: ``a`` is the factor by which means are divided.
        values: ``Pick``: the values to pick from.
        source: array on the GPU to which noise is added, or None.
    """

    target: OnGpu
    stream: int
    a: float = 0.0
    b: float = 0.0
    values: np.ndarray | None = None
    source: OnGpu | None = None


@dataclass
class Sprinkling:
    """Salt-and-pepper noise for one sample.

    Attributes:
        source, target: arrays on the GPU, of one type.
        stream: index into the batch's random streams.
        view: the arrays as (planes, pixels, channels); all elements of a pixel share a decision.
        probability, salt_probability: the probability that a pixel is replaced, and that it is replaced by salt.
        salt, pepper: the values of salt and of pepper, saturated to the data type.
    """

    source: OnGpu
    target: OnGpu
    stream: int
    view: tuple[int, int, int]
    probability: float
    salt_probability: float
    salt: float
    pepper: float


@dataclass
class Jitter:
    """Jitter for one image (H, W, C).

    Attributes:
        source, target: arrays on the GPU, of one type.
        stream: index into the batch's random streams.
        farthest: the largest displacement in y and in x, in pixels.
        fill: the value of pixels outside the source.
    """

    source: OnGpu
    target: OnGpu
    stream: int
    farthest: int
    fill: float


def draw_numbers(distribution: str, drawings: Sequence[Drawing], first_stream: Stream) -> None:
    """Fill all targets, which share a data type, in one launch.

    Args:
        distribution: ``Uniform``, ``UniformDouble``, ``Normal``, ``NormalDouble``, ``Flip`` or ``Pick``.
        drawings: the samples.
        first_stream: the first of the batch's random streams.
    """
    located = _located(drawings)
    if not located:
        return
    tables = [np.zeros(0, np.float32) if drawing.values is None else drawing.values for drawing, _ in located]
    table, places = packed(tables, np.float32)
    entries = [
        _entry(drawing, target)._replace(values=place, value_count=own.size)
        for (drawing, target), own, place in zip(located, tables, places)
    ]
    kind = cuda_type(located[0][1].dtype)
    instance = f"draw_numbers<{distribution}, {kind}>"
    _run(instance, entries, first_stream, table if table.size else np.zeros(1, np.float32))


def add_noise(distribution: str, drawings: Sequence[Drawing], first_stream: Stream) -> None:
    """Fill each target with its source, which has the same data type, plus noise of ``distribution``; all targets in one launch."""
    located = _located(drawings)
    if located:
        real = "double" if distribution.endswith("Double") else "float"
        instance = f"add_noise<{distribution}, {real}, {cuda_type(located[0][1].dtype)}>"
        _run(instance, [_entry(*item) for item in located], first_stream)


def replace_by_shots(drawings: Sequence[Drawing], first_stream: Stream) -> None:
    """Fill each target with Poisson numbers whose means are the values of its source, which has the same data type; all targets in one
    launch."""
    located = _located(drawings)
    if located:
        instance = f"replace_by_shots<{cuda_type(located[0][1].dtype)}>"
        counts = [blocks_for(target.size, _SHOTS) for _, target in located]
        _run(instance, [_entry(*item) for item in located], first_stream, *_poisson_tables(), counts=counts)


def _located(drawings: Sequence[Drawing]) -> list[tuple[Drawing, Located]]:
    """Return the drawings whose targets are not empty, each with the location of its target."""
    located = [(drawing, locate(drawing.target)) for drawing in drawings]
    return [item for item in located if item[1].size]


def _entry(drawing: Drawing, target: Located) -> _Drawing:
    source = 0 if drawing.source is None else locate(drawing.source).address
    return _Drawing(target.address, source, target.size, drawing.a, drawing.b, stream=drawing.stream)


@functools.cache
def _poisson_tables() -> tuple[Records, np.ndarray]:
    """Return the constants for drawing by rejection, for the integer parts of means from 0 on, and the logarithms of factorials."""
    rejections = [_Rejection(*[0.0] * 7)] * _MIN_REJECTED
    for m in range(_MIN_REJECTED, _KNOWN_REJECTIONS):
        root, reach = math.sqrt(m), math.sqrt(2 * m * math.log(32 * m / (math.pi / 4)))
        d = math.floor(max(6.0, min(m, reach)) + 0.5)
        cx = 2 * m + d
        c1 = root * math.sqrt(math.pi / 2)
        c2 = c1 + math.sqrt(math.pi / 4 * cx) * math.exp(1 / cx)
        total = c2 + 1 + 1 + 1.0129030479320018583 + 2 * cx * math.exp(-d / cx * (1 + d / 2)) / d
        rejections.append(_Rejection(root, d, cx, c1, c2, total, math.sqrt(cx / 2)))
    return records(_Rejection, rejections), np.array([math.lgamma(n + 1) for n in range(_KNOWN_FACTORIALS)])


def sprinkle(sprinklings: Sequence[Sprinkling], first_stream: Stream) -> None:
    """Replace random pixels of all samples with salt or pepper, in one launch."""
    located = [(s, locate(s.source), locate(s.target)) for s in sprinklings]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries = []
    for s, source, target in located:
        planes, pixels, channels = s.view
        numbers = (s.probability, s.salt_probability, s.salt, s.pepper)
        own = _Drawing(
            target.address, source.address, pixels, *numbers, planes=planes, channels=channels, stream=s.stream
        )
        entries.append(own)
    channels = _unrolled_channels(s.view[2] for s, _, _ in located)
    _run(f"sprinkle<{cuda_type(located[0][2].dtype)}, {channels}>", entries, first_stream)


def jitter_images(jitters: Sequence[Jitter], first_stream: Stream) -> None:
    """Replace each pixel of all images by a random one near it, in one launch."""
    located = [(jitter, locate(jitter.source), locate(jitter.target)) for jitter in jitters]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries = []
    for jitter, source, target in located:
        height, width, channels = target.shape
        own = _Drawing(
            target.address,
            source.address,
            height * width,
            a=jitter.farthest,
            b=0.0,
            c=jitter.fill,
            columns=width,
            reciprocal=-(-(1 << 64) // (2 * jitter.farthest + 1)) & (1 << 64) - 1,
            channels=channels,
            stream=jitter.stream,
        )
        entries.append(own)
    channels = _unrolled_channels(target.shape[2] for _, _, target in located)
    _run(f"jitter<{cuda_type(located[0][2].dtype)}, {channels}>", entries, first_stream)


def _unrolled_channels(channels: Iterable[int]) -> int:
    """Return the number of channels for which to compile the kernel, if it is the same in all samples; 0: any number."""
    numbers = set(channels)
    number = numbers.pop()
    return number if number in _UNROLLED_CHANNELS and not numbers else 0


def _run(
    instance: str,
    entries: Sequence[_Drawing],
    first_stream: Stream,
    *tables: np.ndarray | Records,
    counts: list[int] | None = None,
) -> None:
    """Launch a kernel; ``counts``: each sample's number of blocks, if it does not follow from the number of groups."""
    if counts is None:
        # The first group may begin with up to three elements that do not belong to the sample.
        groups = [blocks_for(entry.elements + _GROUP - 1, _GROUP) for entry in entries]
        counts = [blocks_for(number, _GROUPS * THREADS) for number in groups]
    values = (RunValue(name, value) for name, value in first_stream.launch_values().items())
    launch(SOURCE.kernel(instance), records(_Drawing, entries), counts, *values, *tables)
