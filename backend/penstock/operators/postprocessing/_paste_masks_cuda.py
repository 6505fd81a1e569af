"""Pasting the masks of boxes into images on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.data_types import FLOAT, UINT8, DALIDataType
from penstock.kernels.cuda.launch import launch, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, blank_records, cuda_type
from penstock.operators.postprocessing._paste_masks import MAX_COORDINATE, factors_of


class _Masks(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        elements: number of values of the target.
        height, width: the image's extents.
        factor_x, factor_y: the factors by which a box grows if its mask gets a border.
    """

    masks: Pointer
    boxes: Pointer
    target: Pointer
    elements: Int64
    height: Int32
    width: Int32
    mask_height: Int32
    mask_width: Int32
    factor_x: Float
    factor_y: Float


SOURCE = KernelSource(__file__, _Masks, MAX_COORDINATE=np.float32(MAX_COORDINATE))
# Number of elements that each thread computes, and writes at once, by type of the output.
_PACKS = {FLOAT: 4, UINT8: 8}
_NONE = np.iinfo(np.uint64).max


@dataclass
class Masks:
    """The masks of each image, all on the GPU.

    Attributes:
        masks, boxes, targets: the addresses of each image's masks, boxes and results, uint64.
        mask_shapes, shapes: int64 of shape (images, 3): number, height and width of masks and of results.
        mask_dtype, box_dtype: types of masks and boxes.
    """

    masks: np.ndarray
    boxes: np.ndarray
    targets: np.ndarray
    mask_shapes: np.ndarray
    shapes: np.ndarray
    mask_dtype: DALIDataType
    box_dtype: DALIDataType


def paste_masks(masks: Masks, threshold: float | None) -> np.ndarray:
    """Fill targets with masks that are resized to their boxes, and zeros around them. Waits for the GPU.

    Args:
        masks: the masks to paste, their boxes, and the targets.
        threshold: targets are uint8: 1 for values above it, else 0; None: targets are float32, and contain the values themselves.

    Returns:
        Each image's first box with a coordinate that is NaN, or lies far outside of any image, int64; -1 if there is none.
    """
    out = FLOAT if threshold is None else UINT8
    made = blank_records(_Masks, len(masks.masks))
    made["masks"], made["boxes"], made["target"] = masks.masks, masks.boxes, masks.targets
    made["elements"] = elements = masks.shapes.prod(axis=1)
    made["height"], made["width"] = masks.shapes[:, 1:].T
    made["mask_height"], made["mask_width"] = masks.mask_shapes[:, 1:].T
    made["factor_x"], made["factor_y"] = factors_of(masks.mask_shapes).T
    faults = upload([np.full(len(made), _NONE, np.uint64)])[0]
    kinds = ", ".join(cuda_type(own) for own in (masks.mask_dtype, masks.box_dtype, out))
    blocks = -(-elements // (THREADS * _PACKS[out]))
    launch(SOURCE.kernel(f"paste_masks<{kinds}>"), made, blocks, np.float32(threshold or 0), faults)
    found: np.ndarray = faults.array().get()
    return found.view(np.int64)
