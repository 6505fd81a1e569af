"""Random numbers on GPU: the same as on the CPU, up to the last places of logarithms and cosines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate, packed
from penstock.kernels.random_streams import Stream

_DRAWING = np.dtype(
    [
        *((name, np.uint64) for name in ("target", "source", "key", "stream", "start")),
        *((name, np.int64) for name in ("count", "pixels", "channels")),
        *((name, np.float64) for name in ("a", "b", "c", "d")),
        ("values", np.int32),
        ("value_count", np.int32),
    ],
    align=True,
)


@dataclass
class Drawing:
    """What is drawn for one sample.

    Attributes:
        target: array on the GPU.
        stream: of the sample.
        a, b: ``Uniform``: the lowest number and the distance of neighbours; ``Normal``: mean and standard deviation;
            ``Flip``: the largest draw that gives 1; shots: ``a`` is the factor.
        values: ``Pick``: what is picked from.
        source: array on the GPU to which noise is added.
    """

    target: Any
    stream: Stream
    a: float = 0.0
    b: float = 0.0
    values: np.ndarray | None = None
    source: Any = None


@dataclass
class Sprinkling:
    """Salt and pepper for one sample.

    Attributes:
        source, target: arrays on the GPU, of one type.
        stream: of the sample.
        view: (planes, pixels, channels) that the arrays are seen as; all elements of a pixel share a decision.
        probability, salt_probability: of a pixel to be replaced, and to be replaced by salt.
        salt, pepper: the values; what the type does not hold becomes its limit.
    """

    source: Any
    target: Any
    stream: Stream
    view: tuple[int, int, int]
    probability: float
    salt_probability: float
    salt: float
    pepper: float


@dataclass
class Jitter:
    """One image (H, W, C), whose pixels are displaced.

    Attributes:
        source, target: arrays on the GPU, of one type.
        stream: of the sample.
        farthest: how far in y and in x, in pixels.
        fill: what lies outside of the source.
    """

    source: Any
    target: Any
    stream: Stream
    farthest: int
    fill: float


def draw_numbers(distribution: str, drawings: Sequence[Drawing]) -> None:
    """Fills all targets, which have one type, in one launch.

    Args:
        distribution: ``Uniform``, ``UniformDouble``, ``Normal``, ``NormalDouble``, ``Flip`` or ``Pick``.
        drawings: the samples.
    """
    _launch(drawings, lambda kind: f"draw_numbers<{distribution}, {kind}>")


def add_noise(distribution: str, drawings: Sequence[Drawing]) -> None:
    """Fills all targets with the sources, of the same type, plus numbers of ``distribution``, in one launch."""
    real = "double" if distribution.endswith("Double") else "float"
    _launch(drawings, lambda kind: f"add_noise<{distribution}, {real}, {kind}>")


def replace_by_shots(drawings: Sequence[Drawing]) -> None:
    """Fills all targets with numbers of the Poisson distribution around the sources, of the same type, in one launch."""
    _launch(drawings, lambda kind: f"replace_by_shots<{kind}>")


def _launch(drawings: Sequence[Drawing], instance: Any) -> None:
    located = [(drawing, locate(drawing.target)) for drawing in drawings]
    located = [item for item in located if item[1].size]
    if not located:
        return
    tables = [np.zeros(0, np.float32) if drawing.values is None else drawing.values for drawing, _ in located]
    table, places = packed(tables, np.float32)
    entries = [
        (
            target.address,
            0 if drawing.source is None else locate(drawing.source).address,
            *map(int, drawing.stream),
            target.size,
            1,
            1,
            drawing.a,
            drawing.b,
            0.0,
            0.0,
            place,
            own.size,
        )
        for (drawing, target), own, place in zip(located, tables, places)
    ]
    _run(instance(cuda_type(located[0][1].dtype)), entries, [target.size for _, target in located], table)


def sprinkle(sprinklings: Sequence[Sprinkling]) -> None:
    """Replaces random pixels of all samples by salt or by pepper, in one launch."""
    located = [(s, locate(s.source), locate(s.target)) for s in sprinklings]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries = [
        (
            target.address,
            source.address,
            *map(int, s.stream),
            target.size,
            *s.view[1:],
            s.probability,
            s.salt_probability,
            s.salt,
            s.pepper,
            0,
            0,
        )
        for s, source, target in located
    ]
    kind = cuda_type(located[0][2].dtype)
    _run(f"sprinkle<{kind}>", entries, [target.size for _, _, target in located], np.zeros(1, np.float32))


def jitter_images(jitters: Sequence[Jitter]) -> None:
    """Takes each pixel of all targets from a random place near its own, in one launch."""
    located = [(jitter, locate(jitter.source), locate(jitter.target)) for jitter in jitters]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries, pixels = [], []
    for jitter, source, target in located:
        height, width, channels = target.shape
        pixels.append(height * width)
        entries.append(
            (
                target.address,
                source.address,
                *map(int, jitter.stream),
                height * width,
                width,
                channels,
                jitter.farthest,
                0.0,
                jitter.fill,
                0.0,
                0,
                0,
            )
        )
    _run(f"jitter<{cuda_type(located[0][2].dtype)}>", entries, pixels, np.zeros(1, np.float32))


def _run(instance: str, entries: list[Any], sizes: list[int], table: np.ndarray) -> None:
    counts = [blocks_for(size) for size in sizes]
    launch(
        kernel("philox", instance),
        np.array(entries, _DRAWING),
        counts,
        table if table.size else np.zeros(1, np.float32),
    )
