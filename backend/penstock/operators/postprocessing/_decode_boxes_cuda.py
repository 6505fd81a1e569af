"""Decoding detectors' predictions to boxes on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.data_types import FLOAT, DALIDataType
from penstock.kernels.cuda.launch import launch
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Int64, Pointer, Records, Repeated, blank_records, cuda_type
from penstock.operators.postprocessing._exponential import EXPONENTIAL, MAX_POWER
from penstock.schema import PlanColumns


class _Predictions(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        anchors: the address of the sample's anchors; 0: all samples share the anchors that the kernel gets as an argument.
        rows: number of boxes.
        height, width: the extents of the network's input; only for grids.
        geometry: how boxes are moved, scaled and limited, as on the CPU: see
            :func:`~penstock.operators.postprocessing._decode_boxes_cpu.decode_centres`.
    """

    source: Pointer
    anchors: Pointer
    target: Pointer
    rows: Int64
    height: Int64
    width: Int64
    geometry: Annotated[np.ndarray, Repeated(np.float32, 8)]


SOURCE = KernelSource(__file__, _Predictions, MAX_POWER=np.float64(MAX_POWER), **EXPONENTIAL)


class Placement(NamedTuple):
    """How a sample's boxes are moved, scaled and limited; see :class:`PlacementColumns`."""

    geometry: np.ndarray
    extents: np.ndarray


@dataclass(eq=False)
class PlacementColumns(PlanColumns[Placement]):
    """How the boxes of many samples are moved, scaled and limited.

    Attributes:
        geometry: float32 of shape (samples, 8); see :func:`~penstock.operators.postprocessing._decode_boxes_cpu.decode_centres`.
        extents: height and width of the network's input, int64 of shape (samples, 2); 0 without grids.
    """

    geometry: np.ndarray
    extents: np.ndarray

    def __len__(self) -> int:
        return len(self.geometry)

    def row(self, number: int) -> Placement:
        return Placement(self.geometry[number], self.extents[number])


@dataclass
class Boxes:
    """The samples to decode, all on the GPU.

    Attributes:
        sources, targets: the addresses of each sample's predictions and results, uint64; results are float32.
        counts: number of boxes of each sample.
        placements: how boxes are moved, scaled and limited.
        dtype: the predictions' type.
    """

    sources: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    placements: PlacementColumns
    dtype: DALIDataType

    def descriptors(self) -> Records:
        """Return the samples' descriptors for kernels."""
        made = blank_records(_Predictions, len(self.counts))
        made["source"], made["target"], made["rows"] = self.sources, self.targets, self.counts
        made["geometry"] = self.placements.geometry
        made["height"], made["width"] = self.placements.extents.T
        return made

    @property
    def kind(self) -> str:
        """The C type of predictions."""
        return cuda_type(self.dtype)


def decode_centres(boxes: Boxes) -> None:
    """Decode centres and extents."""
    launch(SOURCE.kernel(f"decode_centres<{boxes.kind}>"), boxes.descriptors(), _blocks(boxes.counts))


def decode_offsets(
    boxes: Boxes,
    anchors: np.ndarray,
    dtype: DALIDataType,
    means: np.ndarray,
    stds: np.ndarray,
    max_log: float,
) -> None:
    """Decode offsets from anchors.

    Args:
        anchors: left, top, right, bottom, float32 of shape (n, 4), which all samples share; or the addresses of each sample's anchors,
            uint64 of shape (samples,).
        dtype: the anchors' type; FLOAT if they are shared.
        means, stds: means and standard deviations of the offsets of x, y, width and height, float32 of shape (4,).
        max_log: the greatest logarithm of a box's extent relative to its anchor's.
    """
    descriptors, shared = boxes.descriptors(), anchors
    if anchors.ndim == 1:
        descriptors["anchors"], shared = anchors, np.zeros((1, 4), np.float32)
    kernel = SOURCE.kernel(f"decode_offsets<{boxes.kind}, {cuda_type(dtype if anchors.ndim == 1 else FLOAT)}>")
    launch(kernel, descriptors, _blocks(boxes.counts), shared, means, stds, np.float32(max_log))


def decode_cells(boxes: Boxes, strides: np.ndarray) -> None:
    """Decode offsets from the cells of grids; there is a grid for each of ``strides``, int64."""
    kernel = SOURCE.kernel(f"decode_cells<{boxes.kind}>")
    launch(kernel, boxes.descriptors(), _blocks(boxes.counts), strides, np.int32(len(strides)))


def decode_distances(boxes: Boxes, strides: np.ndarray, logits: int) -> None:
    """Decode distances from the centres of cells to the edges of boxes; see :func:`decode_cells`.

    Args:
        logits: number of logits of an edge; 1: the distance itself.
    """
    kernel = SOURCE.kernel(f"decode_distances<{boxes.kind}>")
    blocks = _blocks(4 * boxes.counts)
    launch(kernel, boxes.descriptors(), blocks, strides, np.int32(len(strides)), np.int32(logits))


def _blocks(counts: np.ndarray) -> np.ndarray:
    """Return the number of blocks for each sample, so that there is a thread for each of ``counts`` boxes or edges."""
    blocks: np.ndarray = -(-counts // THREADS)
    return blocks
