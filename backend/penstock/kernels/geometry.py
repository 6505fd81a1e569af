"""Affine transforms of points and pixels, and the canvases of rotated images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def rotation_2d(angle: float) -> np.ndarray:
    """Return the matrix that maps output to input coordinates (x right, y down) of a counter-clockwise rotation by ``angle`` degrees."""
    rotation: np.ndarray = rotations_2d(np.array([angle], np.float64), 1)[0]
    return rotation


def rotation_3d(angle: float, axis: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the matrix that maps output to input coordinates of a rotation by ``angle`` degrees about ``axis`` (x, y, z); Rodrigues'
    formula.
    """
    rotation: np.ndarray = rotations_3d(np.array([angle], np.float64), np.array([axis], np.float64), 1)[0]
    return rotation


def rotations_2d(angles: np.ndarray, count: int) -> np.ndarray:
    """Return the result of :func:`rotation_2d` for each of ``count`` images; ``angles`` may have one angle for all."""
    from penstock.kernels.cpu.affine import fill_rotations_2d

    rotations = np.empty((count, 2, 2))
    fill_rotations_2d(angles, rotations)
    return rotations


def rotations_3d(angles: np.ndarray, axes: np.ndarray, count: int) -> np.ndarray:
    """Return the result of :func:`rotation_3d` for each of ``count`` volumes; there may be one angle or one axis for all."""
    from penstock.kernels.cpu.affine import fill_rotations_3d

    rotations = np.empty((count, 3, 3))
    fill_rotations_3d(angles, _unit_vectors(axes.astype(np.float32)), rotations)
    return rotations


def _unit_vectors(axes: np.ndarray) -> np.ndarray:
    """Return the rows scaled to length 1; rows along a coordinate axis are exact."""
    squares = axes * axes
    lengths = np.sqrt((squares[:, 0] + squares[:, 1]) + squares[:, 2])
    alone = (axes != 0).sum(axis=1) == 1
    return np.where(alone[:, None], np.sign(axes), axes / lengths[:, None])


def rotated_canvases(sizes: np.ndarray, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest extents (x, y(, z)) that hold rotated images of ``sizes``, and the extents of their canvases; arrays have one
    row for each image.

    Each extent of a canvas has the parity of the input extent that contributes most to it: this keeps a centre on a pixel, or between
    pixels.

    Raises:
        ValueError: an angle is infinite or NaN.
    """
    from penstock.kernels.cpu.affine import fill_canvases

    enclosing, canvases = np.empty_like(sizes), np.empty_like(sizes)
    if not fill_canvases(sizes, rotations, enclosing, canvases):
        raise ValueError("The angle of a rotation must be finite")
    return enclosing, canvases


def about_centres(rotations: np.ndarray, sizes_in: np.ndarray, sizes_out: np.ndarray) -> np.ndarray:
    """Return the affine matrices [R|t], float32, where R are ``rotations`` and t maps the centre of each output to the centre of its
    input.
    """
    from penstock.kernels.cpu.affine import fill_about_centres

    # In single precision, like DALI.
    count, axes = sizes_in.shape
    matrices = np.empty((count, axes, axes + 1), np.float32)
    fill_about_centres(rotations, sizes_in, sizes_out, matrices)
    return matrices


def inverted(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of an affine matrix [M|t]; raise ValueError if it is singular."""
    inverse = inverse_in_single(matrix[:, :-1])
    if inverse is None:
        raise ValueError(f"Cannot calculate the inverse of a singular matrix: {matrix.tolist()}")
    return np.column_stack([inverse, -product(inverse, matrix[:, -1:].astype(np.float32))])


def inverse_in_single(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a matrix [M|t] in single precision, with DALI's roundings; None if the matrix is singular.

    A matrix of two rows is inverted with its determinant; a larger one, with Gauss-Jordan elimination, in which each update is rounded
    once.
    """
    left = matrix.astype(np.float32)
    if len(left) == 2:
        determinant = left[0, 0] * left[1, 1] - left[0, 1] * left[1, 0]
        adjugate = np.array([[left[1, 1], -left[0, 1]], [-left[1, 0], left[0, 0]]])
        return adjugate / determinant if determinant else None
    right = np.eye(len(left), dtype=np.float32)
    for pivot in range(len(left)):
        best = pivot + int(np.abs(left[pivot:, pivot]).argmax())
        if not left[best, pivot]:
            return None
        left[[pivot, best]], right[[pivot, best]] = left[[best, pivot]], right[[best, pivot]]
        factor = np.float32(1) / left[pivot, pivot]
        left[pivot, pivot + 1 :] *= factor
        right[pivot] *= factor
        for row in set(range(len(left))) - {pivot}:
            # Products of two float32 numbers are exact in double precision, so each update is rounded only once.
            factor = -left[row, pivot]
            left[row, pivot + 1 :] = (
                np.multiply(factor, left[pivot, pivot + 1 :], dtype=np.float64) + left[row, pivot + 1 :]
            )
            right[row] = np.multiply(factor, right[pivot], dtype=np.float64) + right[row]
    return right


def affine(linear: np.ndarray, centre: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
    """Return the matrix [M|t] that applies ``linear`` about ``centre`` (default: the origin); float32."""
    linear = linear.astype(np.float32)
    if centre is None:
        return np.column_stack([linear, np.zeros(len(linear), np.float32)])
    middle = np.asarray(centre, np.float32)
    return np.column_stack([linear, middle - product(linear, middle[:, None])[:, 0]])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices, or of two stacks of matrices, with sums computed from the first term to the last, in the
    precision of the matrices.

    Unlike with ``a @ b``, this is DALI's order, so that results are equal bit for bit.
    """
    total = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        total += a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the matrix [M|t] that applies ``first``, then ``second``; both may be stacks of the same number of matrices."""
    # The last row of the homogeneous matrix is included, so that infinities propagate as in DALI.
    row = np.zeros((*first.shape[:-2], 1, first.shape[-1]), first.dtype)
    row[..., -1] = 1
    with np.errstate(invalid="ignore"):
        return product(second, np.concatenate([first, row], axis=-2))
