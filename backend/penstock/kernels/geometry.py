"""Affine maps of points and pixels, and the canvases that rotated images need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def rotation_2d(angle: float) -> np.ndarray:
    """Maps output to input coordinates (x right, y down) for a counter-clockwise rotation of ``angle`` degrees."""
    radians = float(np.float32(angle) * np.float32(math.pi / 180))
    c, s = _cosine_sine(radians)
    return np.array([[c, -s], [s, c]])


def _cosine_sine(radians: float) -> tuple[float, float]:
    """NaN where the angle is infinite."""
    return (math.cos(radians), math.sin(radians)) if math.isfinite(radians) else (math.nan, math.nan)


def rotation_3d(angle: float, axis: Sequence[float] | np.ndarray) -> np.ndarray:
    """Maps output to input coordinates for a rotation about ``axis`` (x, y, z); Rodrigues' formula."""
    x, y, z = np.asarray(axis, np.float64) / np.linalg.norm(axis)
    radians = -float(np.float32(angle) * np.float32(math.pi / 180))
    c, s = _cosine_sine(radians)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return c * np.eye(3) + s * cross + (1 - c) * np.outer((x, y, z), (x, y, z))


def rotated_canvas(size: Sequence[int], rotation: np.ndarray) -> tuple[int, ...]:
    """The extents (x, y(, z)) that hold a rotated image of ``size``.

    Each has the parity of the input extent from which most of it comes, so that the centre stays on or between pixels.
    """
    reach = np.abs(rotation.T)
    canvas = []
    for axis, extent in enumerate(enclosing_extents(size, rotation)):
        own = reach[axis, axis]
        main = axis if own >= reach[axis].max() else int(np.argmax(reach[axis]))
        canvas.append(extent + (extent - size[main]) % 2)
    return tuple(canvas)


def enclosing_extents(size: Sequence[int], rotation: np.ndarray) -> list[int]:
    """The least extents (x, y(, z)) that hold a rotated image of ``size``."""
    # The rotation maps output to input, so its transpose tells how far the input reaches in the output.
    reach = np.abs(rotation.T)
    return [math.ceil(float(row @ np.asarray(size, np.float64)) - 0.01) for row in reach]


def about_centres(rotation: np.ndarray, size_in: Sequence[float], size_out: Sequence[float]) -> np.ndarray:
    """The affine matrix [R|t] that maps the middle of the output to the middle of the input."""
    from penstock.kernels.cpu.affine import fill_about_centres

    # In single precision, as the reference computes it.
    matrix = np.empty((len(size_in), len(size_in) + 1), np.float32)
    fill_about_centres(rotation, tuple(map(float, size_in)), tuple(map(float, size_out)), matrix)
    return matrix


def inverted(matrix: np.ndarray) -> np.ndarray:
    """The inverse of an affine matrix [M|t]; raises ValueError where there is none."""
    linear, translation = matrix[:, :-1].astype(np.float32), matrix[:, -1].astype(np.float32)
    try:
        inverse = np.linalg.inv(linear.astype(np.float64)).astype(np.float32)
        return np.column_stack([inverse, -(inverse @ translation)])
    except np.linalg.LinAlgError:
        raise ValueError(f"Cannot calculate the inverse of a singular matrix: {matrix.tolist()}") from None


def affine(linear: np.ndarray, centre: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
    """The matrix [M|t] that applies ``linear`` and leaves ``centre`` (default: the origin) where it is; float32."""
    linear = linear.astype(np.float32)
    if centre is None:
        return np.column_stack([linear, np.zeros(len(linear), np.float32)])
    middle = np.asarray(centre, np.float32)
    return np.column_stack([linear, middle - linear @ middle])


def composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The matrix [M|t] that applies ``first``, then ``second``."""
    # With the last row of the homogeneous matrix, so that infinities spread as they do in the reference.
    row = np.zeros((1, first.shape[1]), first.dtype)
    row[0, -1] = 1
    with np.errstate(invalid="ignore"):
        return second @ np.vstack([first, row])
