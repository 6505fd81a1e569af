"""Correlation of images with any window, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate, packed

_CORRELATION = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "target", "window", "fill")),
        ("elements", np.int64),
        *((name, np.int32) for name in ("height", "width", "inner", "out_height", "out_width")),
        *((name, np.int32) for name in ("window_height", "window_width", "anchor_y", "anchor_x", "border", "place")),
        ("outside", np.float32),
    ],
    align=True,
)


@dataclass(slots=True)
class Correlation:
    """What happens to one sample.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height, which that of width follows.
        window: float32 (height, width): an array in host memory, or located on the GPU.
        anchor: the window's element (y, x) that lies on the output's position.
        fill: what lies beyond a constant border: a number in host memory, or a scalar of the source's
            type, located on the GPU.
    """

    source: Any
    target: Any
    axis: int
    window: np.ndarray | Located
    anchor: tuple[int, int]
    fill: float | Located = 0.0


def correlate_images(jobs: Sequence[Correlation], border: str) -> None:
    """Fills all targets in one launch; ``border`` is one of ``BORDERS``."""
    located = [(job, locate(job.source), locate(job.target)) for job in jobs]
    located = [item for item in located if item[2].size]
    if not located:
        return
    table, places = packed([job.window for job, _, _ in located if not isinstance(job.window, Located)], np.float32)
    place, entries = iter(places), []
    for job, source, target in located:
        window = job.window.address if isinstance(job.window, Located) else 0
        fill, outside = (job.fill.address, 0.0) if isinstance(job.fill, Located) else (0, job.fill)
        entries.append(
            (
                source.address,
                target.address,
                window,
                fill,
                target.size,
                *image_view(source.shape, job.axis)[1:],
                *target.shape[job.axis : job.axis + 2],
                *job.window.shape,
                *job.anchor,
                BORDERS.index(border),
                0 if window else next(place),
                outside,
            )
        )
    types = f"{cuda_type(located[0][1].dtype)}, {cuda_type(located[0][2].dtype)}"
    counts = [blocks_for(target.size) for _, _, target in located]
    launch(kernel("correlation", f"correlate<{types}>"), np.array(entries, _CORRELATION), counts, table)
