"""Matrices that rotate many images, the canvases that hold the results, and affine matrices in single precision. Arrays of extents
have one row for each image, in x, y(, z) order."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

_TO_RADIANS = np.float32(math.pi / 180)


@inner
def _cosine_sine(radians: float) -> tuple[float, float]:
    """Return the cosine and sine of an angle; NaN for infinite angles."""
    if not np.isfinite(radians):
        return np.nan, np.nan
    return math.cos(radians), math.sin(radians)


@kernel
def fill_rotations_2d(angles: np.ndarray, rotations: np.ndarray) -> None:
    """Fill matrices that map output to input coordinates (x right, y down) for counter-clockwise rotations in degrees."""
    for row in range(len(rotations)):
        c, s = _cosine_sine(np.float64(np.float32(angles[min(row, len(angles) - 1)]) * _TO_RADIANS))
        rotations[row, 0, 0], rotations[row, 0, 1], rotations[row, 1, 0], rotations[row, 1, 1] = c, -s, s, c


@kernel
def fill_rotations_3d(angles: np.ndarray, axes: np.ndarray, rotations: np.ndarray) -> None:
    """Same as :func:`fill_rotations_2d` for volumes; ``axes`` are unit vectors (x, y, z), float32. Rodrigues' formula, in single
    precision as in DALI.
    """
    for row in range(len(rotations)):
        axis = axes[min(row, len(axes) - 1)]
        c, s = _cosine_sine(-np.float64(np.float32(angles[min(row, len(angles) - 1)]) * _TO_RADIANS))
        cosine, sine = np.float32(c), np.float32(s)
        for i in range(3):
            for j in range(3):
                if i == j:
                    others = axis[(i + 1) % 3] * axis[(i + 1) % 3] + axis[(i + 2) % 3] * axis[(i + 2) % 3]
                    rotations[row, i, j] = axis[i] * axis[i] + others * cosine
                else:
                    turned = axis[3 - i - j] * sine
                    mixed = axis[i] * axis[j] * (np.float32(1) - cosine)
                    rotations[row, i, j] = mixed + turned if (j - i) % 3 == 2 else mixed - turned


@kernel
def fill_canvases(sizes: np.ndarray, rotations: np.ndarray, enclosing: np.ndarray, canvases: np.ndarray) -> bool:
    """Compute the smallest extents that hold the rotated images, and those of the canvases; return whether all rotations are finite.

    A canvas has the parity of the input extent that contributes most to it, which keeps centres on or between pixels.
    """
    count, axes = sizes.shape
    for row in range(count):
        for axis in range(axes):
            # The rotation maps output to input; its transpose gives the extent of the input in the output.
            total, main = 0.0, 0
            for other in range(axes):
                reach = abs(rotations[row, other, axis])
                total += reach * np.float64(sizes[row, other])
                if reach > abs(rotations[row, main, axis]):
                    main = other
            if abs(rotations[row, axis, axis]) >= abs(rotations[row, main, axis]):
                main = axis
            if not np.isfinite(total):
                return False
            extent = np.int64(np.ceil(total - 0.01))
            enclosing[row, axis], canvases[row, axis] = extent, extent + (extent - sizes[row, main]) % 2
    return True


@kernel
def fill_about_centres(linear: np.ndarray, sizes_in: np.ndarray, sizes_out: np.ndarray, matrices: np.ndarray) -> None:
    """Compute the matrices [R|t], float32, where R is ``linear`` and t maps the centre of each output to the centre of its input."""
    half = np.float32(0.5)
    for row in range(len(matrices)):
        matrix = matrices[row]
        for i in range(len(matrix)):
            total = np.float32(0)
            for j in range(len(matrix)):
                matrix[i, j] = np.float32(linear[row, i, j])
                total += matrix[i, j] * (-np.float32(sizes_out[row, j]) * half)
            matrix[i, len(matrix)] = total + np.float32(sizes_in[row, i]) * half
