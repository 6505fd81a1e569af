"""The extreme of the values under a rectangle, on GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate, scratch

_LINE = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        *((name, np.int64) for name in ("outer", "size", "inner")),
        *((name, np.int32) for name in ("length", "anchor", "border", "padding")),
    ],
    align=True,
)


@dataclass(slots=True)
class Morphology:
    """What happens to one sample.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height, which that of width follows.
        lengths, anchor: of the rectangle, (height, width), and which of its elements lies on the output's position.
    """

    source: Any
    target: Any
    axis: int
    lengths: tuple[int, int]
    anchor: tuple[int, int]


def take_extremes(extreme: str, jobs: Sequence[Morphology], border: str) -> None:
    """Fills all targets, of the sources' type, in a launch for each axis along which a rectangle is not a single element.

    Args:
        extreme: ``Greatest`` or ``Least``.
        jobs: the samples.
        border: one of ``BORDERS``.
    """
    located = [(job, locate(job.source), locate(job.target)) for job in jobs]
    located = [item for item in located if item[2].size]
    if not located:
        return
    passes = [number for number in (0, 1) if any(job.lengths[number] > 1 for job, _, _ in located)] or [0]
    sources = [source for _, source, _ in located]
    for number in passes:
        last = number == passes[-1]
        targets = [t for _, _, t in located] if last else scratch([s.shape for s in sources], sources[0].dtype)
        entries = [
            _entry(source, target, job.axis + number, job.lengths[number], job.anchor[number], border)
            for (job, _, _), source, target in zip(located, sources, targets)
        ]
        function = kernel("morphology", f"extreme<{cuda_type(sources[0].dtype)}, {extreme}>")
        launch(function, np.array(entries, _LINE), [blocks_for(target.size) for target in targets])
        sources = targets


def _entry(source: Located, target: Located, axis: int, length: int, anchor: int, border: str) -> tuple[Any, ...]:
    shape = source.shape
    extents = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return (source.address, target.address, *extents, length, anchor, BORDERS.index(border), 0)
