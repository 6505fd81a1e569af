"""OpenCV, for operators that are defined by one of its functions; all of these release the GIL."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from penstock.data_types import INTERP_CUBIC, INTERP_LINEAR, INTERP_NN, DALIInterpType

_INTERPOLATIONS = {INTERP_NN: "INTER_NEAREST", INTERP_LINEAR: "INTER_LINEAR", INTERP_CUBIC: "INTER_CUBIC"}
WARP_INTERPOLATIONS = frozenset(_INTERPOLATIONS)
"""The interpolation types that warps support."""
# The largest number of channels for which OpenCV accepts fill values.
_CHANNELS = 4


@functools.cache
def opencv() -> ModuleType:
    """Return OpenCV's module; raises ImportError with installation advice if it is missing."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("OpenCV is needed for this operator: pip install opencv-python-headless") from error
    return cv2


def border(name: str) -> int:
    """Return OpenCV's constant for a border type: ``constant``, ``replicate``, ``reflect``, ``reflect_101`` or ``wrap``."""
    return int(getattr(opencv(), f"BORDER_{name.upper()}"))


def images(array: np.ndarray, layout: str) -> list[np.ndarray]:
    """Return views of an HW, HWC or CHW array as images for OpenCV: one image, or for CHW, a plane for each channel."""
    return list(array) if layout.startswith("C") else [array]


def keep(result: np.ndarray, target: np.ndarray) -> None:
    """Copy a function's result to ``target``, unless the function wrote it there."""
    if not np.may_share_memory(result, target):
        target[...] = result.reshape(target.shape)


def rotation(size_in: Sequence[int], size_out: Sequence[int], degrees: float) -> np.ndarray:
    """Return the matrix that maps input to output coordinates when an image is turned counter-clockwise about its centre, which
    becomes the centre of the output.

    Args:
        size_in, size_out: the width and height of the input and the output.
        degrees: the angle in degrees.
    """
    moved = [(after - before) / 2 for before, after in zip(size_in, size_out)]
    matrix: np.ndarray = opencv().getRotationMatrix2D([(extent - 1) / 2 for extent in size_in], degrees, 1.0)
    matrix[:, 2] += moved
    return matrix


def warp(
    source: np.ndarray,
    matrix: np.ndarray,
    inverse_map: bool,
    kind: DALIInterpType,
    border_name: str,
    fill: Sequence[float],
    target: np.ndarray,
) -> None:
    """Apply `cv2.warpAffine` or `cv2.warpPerspective` to an image (H, W) or (H, W, C).

    Args:
        source: contiguous.
        matrix: 2x3 for affine warps, 3x3 for perspective; the centres of pixels have integer coordinates.
        inverse_map: whether ``matrix`` maps output to input coordinates.
        kind: the interpolation type.
        border_name: a name that :func:`border` accepts.
        fill: the values outside the image for ``constant``: one for all channels, or one for each.
        target: an array of the source's type.
    """
    cv2 = opencv()
    flags = getattr(cv2, _INTERPOLATIONS[kind]) | (cv2.WARP_INVERSE_MAP if inverse_map else 0)
    values = [float(value) for value in fill]
    keep(
        (cv2.warpAffine if len(matrix) == 2 else cv2.warpPerspective)(
            source,
            matrix,
            target.shape[1::-1],
            dst=target,
            flags=flags,
            borderMode=border(border_name),
            borderValue=values * _CHANNELS if len(values) == 1 else values,
        ),
        target,
    )
