"""The preemphasis filter on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import OnGpu, blocks_for, launch, locate
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int64, Pointer, cuda_type, records


class _Preemphasis(NamedTuple):
    """The kernel's description of one signal.

    Attributes:
        before: the index of the element that is subtracted from the first element; -1: subtract zero.
    """

    source: Pointer
    target: Pointer
    length: Int64
    before: Int64
    coefficient: Float


SOURCE = KernelSource(__file__, _Preemphasis)


def preemphasize(jobs: Sequence[tuple[OnGpu, float, OnGpu]], border: str) -> None:
    """Fill targets with ``x[i] - coefficient * x[i - 1]``, in one launch; arrays of any shape are treated as flat.

    Args:
        jobs: ``(source, coefficient, target)`` of each sample.
        border: which value precedes the first element: zero (``zero``), the first element (``clamp``), or the second
            (``reflect``).
    """
    located = [(locate(source), coefficient, locate(target)) for source, coefficient, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        _Preemphasis(source.address, target.address, target.size, _element_before(border, target.size), coefficient)
        for source, coefficient, target in located
    ]
    source, _, target = located[0]
    work = "double" if source.dtype == np.float64 else "float"
    function = SOURCE.kernel(f"preemphasize<{cuda_type(source.dtype)}, {work}, {cuda_type(target.dtype)}>")
    counts = [blocks_for(job[2].size) for job in located]
    launch(function, records(_Preemphasis, entries), counts)


def _element_before(border: str, count: int) -> int:
    if border == "clamp":
        return 0
    return 1 if border == "reflect" and count > 1 else -1
