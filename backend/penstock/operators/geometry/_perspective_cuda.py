"""Images under a homography, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.axes import image_view
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import Located, blocks_for, cuda_type, kernel, launch, locate, scratch

_MAX_FILLS = 4
# Of a block; as in perspective.cu.
_BLOCK_PIXELS = 1024
_PERSPECTIVE = np.dtype(
    [
        *((name, np.uint64) for name in ("source", "target", "matrix_at")),
        ("matrix", np.float64, 9),
        ("pixels", np.int64),
        *((name, np.int32) for name in ("height", "width", "inner", "out_height", "out_width")),
        *((name, np.int32) for name in ("taps", "coarse", "border")),
        ("fill", np.float32, _MAX_FILLS),
    ],
    align=True,
)
_GIVEN = np.dtype([("source", np.uint64), ("target", np.uint64), ("to_centres", np.int32), ("inverted", np.int32)])


@dataclass(slots=True)
class Perspective:
    """What happens to one image.

    Attributes:
        source, target: arrays on the GPU.
        axis: the dimension of height, which that of width follows.
        matrix: 3x3, from the centres of output pixels to input coordinates counted from the first pixel's centre: an
            array in host memory, or one of :func:`prepared_matrices`.
        taps: along each axis: 1 (the nearest pixel), 2 (linear) or 4 (cubic).
        coarse: positions between pixels are rounded to multiples of 1/32.
        fill: beyond a constant border: one value for each element of a pixel.
    """

    source: Any
    target: Any
    axis: int
    matrix: np.ndarray | Located
    taps: int
    coarse: bool
    fill: np.ndarray


def warp_images(jobs: Sequence[Perspective], border: str) -> None:
    """Fills all targets, of the sources' type, in one launch; ``border`` is one of ``BORDERS``."""
    located = [(job, locate(job.source), locate(job.target)) for job in jobs]
    located = [item for item in located if item[2].size]
    if not located:
        return
    entries = []
    for job, source, target in located:
        matrix = (job.matrix.address, np.zeros(9)) if isinstance(job.matrix, Located) else (0, job.matrix.reshape(9))
        height, width, inner = image_view(source.shape, job.axis)[1:]
        fill = np.zeros(_MAX_FILLS, np.float32)
        fill[: len(job.fill)] = job.fill
        entries.append(
            (
                source.address,
                target.address,
                *matrix,
                target.size // inner,
                height,
                width,
                inner,
                *target.shape[job.axis : job.axis + 2],
                job.taps,
                job.coarse,
                BORDERS.index(border),
                fill,
            )
        )
    function = kernel(__file__, f"warp_perspective<{cuda_type(located[0][1].dtype)}>")
    descriptors = np.array(entries, _PERSPECTIVE)
    launch(function, descriptors, [blocks_for(pixels, _BLOCK_PIXELS) for pixels in descriptors["pixels"].tolist()])


def prepared_matrices(matrices: Sequence[Any], to_centres: bool, inverted: bool) -> list[Located]:
    """Matrices of float32 on the GPU as :class:`Perspective` takes them, in one launch.

    Args:
        matrices: 3x3.
        to_centres: they count from the corner of the first pixel.
        inverted: they map input to output coordinates.
    """
    given = [locate(matrix) for matrix in matrices]
    prepared = scratch([(3, 3)] * len(given), np.float64)
    entries = [(one.address, other.address, to_centres, inverted) for one, other in zip(given, prepared)]
    # A thread for each matrix.
    counts = [blocks_for(len(given)), *[0] * (len(given) - 1)]
    launch(kernel(__file__, "prepare"), np.array(entries, _GIVEN), counts)
    return prepared
