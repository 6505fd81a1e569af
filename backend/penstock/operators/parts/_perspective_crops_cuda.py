"""Cutting quadrilaterals out of images and warping them to rectangles, on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.data_types import DALIDataType
from penstock.kernels.borders import BORDERS
from penstock.kernels.cuda.launch import launch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, Repeated, blank_records, cuda_type


class _Crop(NamedTuple):
    """The kernel's description of one crop.

    Attributes:
        matrix: maps the centres of the upright crop's pixels to coordinates relative to the centre of the image's first pixel.
        pixels: the number of pixels of the crop.
        height, width: the image's extents.
        out_width: the crop's width.
        upright_width: the crop's width before it is turned by 90 degrees, if it is turned.
    """

    source: Pointer
    target: Pointer
    matrix: Annotated[np.ndarray, Repeated(np.float64, 9)]
    pixels: Int64
    height: Int32
    width: Int32
    out_width: Int32
    upright_width: Int32
    is_turned: Int32


SOURCE = KernelSource(__file__, _Crop)


@dataclass
class Crops:
    """The crops to cut out on the GPU.

    Attributes:
        sources: the address of each crop's image, uint64.
        targets: the address of each crop, uint64.
        image_shapes: int64 of shape (crops, 3): height, width and channels of each crop's image.
        extents: int64 of shape (crops, 2): each crop's height and width before it is turned.
        are_turned: bool: whether each crop is turned by 90 degrees counterclockwise.
        matrices: float64 of shape (crops, 3, 3): each maps coordinates of an upright crop's pixels to coordinates of the image's pixels.
        dtype: the images' type.
    """

    sources: np.ndarray
    targets: np.ndarray
    image_shapes: np.ndarray
    extents: np.ndarray
    are_turned: np.ndarray
    matrices: np.ndarray
    dtype: DALIDataType


def cut_quadrilaterals(crops: Crops, channels: int, border: str, is_nearest: bool) -> None:
    """Cut out all crops in one launch.

    Args:
        crops: at least one crop.
        channels: the number of channels of all images: 1, 3 or 4, or with ``is_nearest`` also 2.
        border: the border mode, one of ``BORDERS``.
        is_nearest: take the nearest pixel instead of interpolating linearly.
    """
    made = blank_records(_Crop, len(crops.sources))
    made["source"], made["target"] = crops.sources, crops.targets
    made["matrix"] = crops.matrices.reshape(-1, 9)
    made["pixels"] = pixels = crops.extents.prod(axis=1)
    made["height"], made["width"] = crops.image_shapes[:, :2].T
    made["upright_width"] = crops.extents[:, 1]
    made["out_width"] = np.where(crops.are_turned, crops.extents[:, 0], crops.extents[:, 1])
    made["is_turned"] = crops.are_turned
    kernel = SOURCE.kernel(f"cut_quadrilaterals<{cuda_type(crops.dtype)}, {channels}>")
    launch(kernel, made, -(-pixels // THREADS), np.int32(BORDERS.index(border)), np.int32(is_nearest))
