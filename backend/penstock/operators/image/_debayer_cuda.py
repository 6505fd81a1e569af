"""Colours from a sensor's mosaic, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate

_MOSAIC = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("pixels", np.int64),
        *((name, np.int32) for name in ("height", "width", "blue_y", "blue_x")),
    ]
)


def debayer_images(jobs: Sequence[tuple[Any, tuple[int, int], Any]]) -> None:
    """``(source, blue, target)`` for each image, in one launch; ``blue`` is the row and column of a blue pixel."""
    located = [(locate(source), blue, locate(target)) for source, blue, target in jobs]
    located = [job for job in located if job[2].size]
    if not located:
        return
    entries = [
        (source.address, target.address, source.size, *target.shape[:2], blue[0] % 2, blue[1] % 2)
        for source, blue, target in located
    ]
    function = kernel(__file__, f"debayer<{cuda_type(located[0][0].dtype)}>")
    launch(function, np.array(entries, _MOSAIC), [blocks_for(source.size) for source, _, _ in located])
