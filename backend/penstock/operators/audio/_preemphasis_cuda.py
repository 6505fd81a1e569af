"""The preemphasis filter on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate

_PREEMPHASIS = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("count", np.int64),
        ("before", np.int64),
        ("coefficient", np.float32),
        ("padding", np.int32),
    ],
    align=True,
)


def preemphasize(jobs: Sequence[tuple[Any, float, Any]], border: str) -> None:
    """``(source, coefficient, target)`` for each sample, in one launch; arrays are taken as one row.

    Args:
        jobs: the samples.
        border: what stands before the first element: ``zero``, that element (``clamp``), or the next (``reflect``).
    """
    located = [(locate(source), coefficient, locate(target)) for source, coefficient, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        (source.address, target.address, target.size, _element_before(border, target.size), coefficient, 0)
        for source, coefficient, target in located
    ]
    source, _, target = located[0]
    work = "double" if source.dtype == np.float64 else "float"
    function = kernel(__file__, f"preemphasize<{cuda_type(source.dtype)}, {work}, {cuda_type(target.dtype)}>")
    counts = [blocks_for(job[2].size) for job in located]
    launch(function, np.array(entries, _PREEMPHASIS), counts)


def _element_before(border: str, count: int) -> int:
    if border == "clamp":
        return 0
    return 1 if border == "reflect" and count > 1 else -1
