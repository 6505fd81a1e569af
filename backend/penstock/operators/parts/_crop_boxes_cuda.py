"""Cutting boxes out of images on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import launch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int32, Int64, Pointer, blank_records, cuda_type


class _Crop(NamedTuple):
    """The kernel's description of one crop, of an image of shape (planes, height, width, inner).

    Attributes:
        elements: the number of elements of the crop.
        height, width: the image's extents.
        out_height, out_width: the crop's extents.
        top, left: the crop's position in the image; may be negative.
        inner: the number of adjacent elements of a pixel: the channels for HWC, 1 for CHW.
    """

    source: Pointer
    target: Pointer
    elements: Int64
    height: Int64
    width: Int64
    out_height: Int64
    out_width: Int64
    top: Int64
    left: Int64
    inner: Int32


# The number of elements that each thread copies.
_PACK = 8
SOURCE = KernelSource(__file__, _Crop, PACK=_PACK)


@dataclass
class Crops:
    """The crops to cut out on the GPU.

    Attributes:
        sources: the address of each crop's image, uint64.
        targets: the address of each crop, uint64.
        image_shapes, shapes: the shapes of each crop's image and of each crop, int64 of shape (crops, 3), in the order of the layout.
        corners: x and y of the upper left corner of each crop in its image, int64 of shape (crops, 2).
    """

    sources: np.ndarray
    targets: np.ndarray
    image_shapes: np.ndarray
    shapes: np.ndarray
    corners: np.ndarray


def cut_boxes(crops: Crops, layout: str, fill: np.ndarray) -> None:
    """Cut out all crops in one launch.

    Args:
        crops: at least one.
        layout: HWC or CHW.
        fill: the value for elements outside of the image, of the image's type: one for each channel, or one for all.
    """
    high, wide = layout.index("H"), layout.index("W")
    made = blank_records(_Crop, len(crops.sources))
    made["source"], made["target"] = crops.sources, crops.targets
    made["elements"] = elements = crops.shapes.prod(axis=1)
    made["height"], made["width"] = crops.image_shapes[:, high], crops.image_shapes[:, wide]
    made["out_height"], made["out_width"] = crops.shapes[:, high], crops.shapes[:, wide]
    made["left"], made["top"] = crops.corners.T
    made["inner"] = crops.shapes[:, 2] if layout == "HWC" else 1
    # The kernel copies values as unsigned integers, so that types of the same size share a kernel.
    bits = fill.view(f"u{fill.itemsize}")
    kernel = SOURCE.kernel(f"cut_boxes<{cuda_type(bits.dtype)}>")
    launch(kernel, made, -(-elements // (THREADS * _PACK)), bits, np.int32(len(bits)))
