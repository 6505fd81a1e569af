"""Linear transforms of points on the CPU."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.convert import converted
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import elements_at


@inner
def _transform(
    points: np.ndarray, matrix: np.ndarray, rows: int, coordinates: int, target: np.ndarray, like: np.generic
) -> None:
    """Compute ``M x + T`` for the points of one sample; ``matrix`` is [M|T], row by row."""
    for p in range(points.size // coordinates):
        for row in range(rows):
            value, first = np.float32(0), row * (coordinates + 1)
            for i in range(coordinates):
                value += np.float32(points[p * coordinates + i]) * matrix[first + i]
            target[p * rows + row] = converted(value + matrix[first + coordinates], like)


@kernel
def transform_points(
    sources: np.ndarray,
    targets: np.ndarray,
    volumes: np.ndarray,
    maps: np.ndarray,
    sizes: np.ndarray,
    begin: int,
    end: int,
    like: np.generic,
    like_out: np.generic,
) -> None:
    """Compute ``M x + T`` for each point x, in single precision.

    Args:
        sources, targets: the addresses of each sample's points and of its results.
        volumes: the number of elements of each sample's points, int64.
        maps: [M|T] of all samples, one after the other, float32.
        sizes: the numbers of rows and columns of each sample's [M|T], int64.
        begin, end: the samples to compute.
        like, like_out: a value of the points' type and of the results', which decides how results are rounded.
    """
    at = 0
    for sample in range(end):
        rows, coordinates = sizes[sample, 0], sizes[sample, 1] - 1
        start, at = at, at + rows * (coordinates + 1)
        if sample < begin or not volumes[sample]:
            continue
        points = elements_at(sources[sample], volumes[sample], like)
        target = elements_at(targets[sample], volumes[sample] // coordinates * rows, like_out)
        _transform(points, maps[start:at], rows, coordinates, target, like_out)
