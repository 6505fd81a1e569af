"""The median under a rectangular window, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.cuda.launch import blocks_for, cuda_type, kernel, launch, locate

# Windows of these sides are kept in registers.
_SMALL = (3, 5)
_MEDIAN = np.dtype(
    [
        ("source", np.uint64),
        ("target", np.uint64),
        ("elements", np.int64),
        *((name, np.int32) for name in ("height", "width", "inner", "window_height", "window_width", "padding")),
    ],
    align=True,
)


def median_filter(jobs: Sequence[tuple[Any, int, tuple[int, int], Any]]) -> None:
    """``(source, axis, window, target)`` for each sample, in one launch.

    ``axis`` is the dimension of height, which that of width follows; windows are (height, width), odd.
    """
    located = [(locate(source), axis, window, locate(target)) for source, axis, window, target in jobs]
    located = [job for job in located if job[3].size]
    if not located:
        return
    entries = [
        (source.address, target.address, target.size, *image_view(source.shape, axis)[1:], *window, 0)
        for source, axis, window, target in located
    ]
    sides = {side for _, _, window, _ in located for side in window}
    side = next((side for side in _SMALL if sides == {side}), 0)
    function = kernel("median", f"median<{cuda_type(located[0][0].dtype)}, {side}>")
    launch(function, np.array(entries, _MEDIAN), [blocks_for(target.size) for *_, target in located])
