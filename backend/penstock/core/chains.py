"""Chains of stages over the samples of a batch, run by the core: see `backend/core/core.h`, whose structs these are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from penstock.core.library import core

MAX_RANK = 5
"""Dimensions of a sample."""
_STRIP_BYTES = 1 << 20
"""Of the results between two stages: smaller strips fit the caches better, but need more calls."""
_MIN_BYTES_PER_THREAD = 1 << 16
"""Of results: for less, waking another thread takes longer than it saves."""

_EXTENTS = (np.int64, MAX_RANK)
REGION = np.dtype([("anchor", *_EXTENTS), ("extents", *_EXTENTS)])
"""``PenstockRegion``: a box in an array."""
PART = np.dtype([("data", np.int64), ("strides", *_EXTENTS), ("anchor", *_EXTENTS), ("extents", *_EXTENTS)])
"""``PenstockPart``: the elements of a region in memory; ``data`` is the address of the one at its anchor."""
PLACEMENT = np.dtype(
    [
        ("anchor", *_EXTENTS),
        ("shape_in", *_EXTENTS),
        ("shape", *_EXTENTS),
        ("mirrored", *_EXTENTS),
        ("fill", np.int64),
        ("channel_axis", np.int64),
        ("element_bytes", np.int64),
    ]
)
"""``PenstockPlacement``: ``output[i] = input[anchor + i]``, reversed along mirrored axes, filled outside the input."""
IMAGE = np.dtype(
    [
        ("source", np.int64),
        ("target", np.int64),
        ("source_strides", np.int64, 3),
        ("target_strides", np.int64, 3),
        ("extents", np.int64, 3),
    ]
)
"""``PenstockImage``: an image to compute another one of, of the same rows, columns and channels."""
STORE = np.dtype(
    [("placement", PLACEMENT), ("permutation", *_EXTENTS), ("image_axes", np.int64, 3), ("values", np.int64)]
)
"""``PenstockStore``: a placement whose output has another order of dimensions and, but for what is filled, is computed by a kernel."""
_STAGE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind",
            "records",
            "record_bytes",
            "compute",
            "covers",
            "reads",
            "shapes",
            "element_bytes",
            "group",
            "reads_neighbours",
            "strip_axis",
        )
    ]
)
_CHAIN = np.dtype(
    [
        (name, np.int64)
        for name in (
            "rank",
            "samples",
            "stage_count",
            "stages",
            "source_addresses",
            "source_shapes",
            "source_element_bytes",
            "target_addresses",
            "strip_bytes",
        )
    ]
)


class StageKind(IntEnum):
    """What a stage does, as ``PenstockStageKind`` says."""

    PLACEMENT = 0
    POINTWISE = 1
    STORE = 2
    PARTS = 3


@dataclass(frozen=True)
class StageRecords:
    """One step of a chain, for all samples of a batch.

    Attributes:
        kind: what it does.
        records: a struct for each sample, contiguous.
        shapes: of the outputs: int64 of shape (samples, rank).
        element_bytes: of the outputs.
        compute: address of the kernel; 0 for placements.
        covers, reads: addresses of kernels that change a region of the output to the one that is computed, or read; 0: the same.
        group: of a pointwise stage: elements of the last dimension that are computed together.
        reads_neighbours: whether all that it reads has to be there before it begins.
        permutation: for each dimension of the output, that of the input; empty: the same.
        keep: objects whose memory records refer to.
    """

    kind: StageKind
    records: np.ndarray
    shapes: np.ndarray
    element_bytes: int
    compute: int = 0
    covers: int = 0
    reads: int = 0
    group: int = 1
    reads_neighbours: bool = False
    permutation: tuple[int, ...] = ()
    keep: object = None


def placements(
    anchors: np.ndarray,
    shapes: np.ndarray,
    shapes_in: np.ndarray,
    element_bytes: int,
    mirrored: np.ndarray | None = None,
    fill: np.ndarray | None = None,
    channel_axis: int = -1,
    records: np.ndarray | None = None,
) -> np.ndarray:
    """Records of placements.

    Args:
        anchors: where outputs begin in inputs: int64 of shape (samples, rank).
        shapes, shapes_in: of outputs and inputs, likewise.
        element_bytes: of both.
        mirrored: for each sample and dimension; None: none is.
        fill: what lies outside, in the outputs' type: an element for all samples, or one for each, in rows; with ``channel_axis``, one for
            each channel. Someone else has to keep it. None: nothing lies outside.
        channel_axis: the dimension of channels, if each has its own element.
        records: to fill in, if there are any.
    """
    count, rank = shapes.shape
    if records is None:
        records = np.zeros(count, PLACEMENT)
    records["anchor"][:, :rank], records["shape"][:, :rank], records["shape_in"][:, :rank] = anchors, shapes, shapes_in
    if mirrored is not None:
        records["mirrored"][:, :rank] = mirrored
    records["channel_axis"], records["element_bytes"] = channel_axis, element_bytes
    if fill is not None:
        records["fill"] = fill.ctypes.data
        if fill.ndim > 1:
            records["fill"] += np.arange(count) * fill.strides[0]
    return records


def array_part(array: np.ndarray, anchor: tuple[int, ...]) -> np.ndarray:
    """An array as the core sees it: a ``PART`` at ``anchor`` of a larger one. Someone else has to keep it."""
    part = np.zeros((), PART)
    rank = array.ndim
    part["data"] = array.ctypes.data
    part["strides"][:rank], part["anchor"][:rank], part["extents"][:rank] = array.strides, anchor, array.shape
    return part


def compute_part(stage: StageRecords, source: np.ndarray, target: np.ndarray) -> None:
    """Computes a part of the output of one sample, as :func:`run_chain` does.

    Args:
        stage: of one sample.
        source: a ``PART``: what the stage reads of its input for that, at least.
        target: a ``PART``: all that the stage covers.
    """
    table = np.array([_row(stage, 0)], _STAGE)
    rank = stage.shapes.shape[1]
    if core().penstock_compute_part(table.ctypes.data, rank, source.ctypes.data, target.ctypes.data):
        raise MemoryError("there is not enough memory for what an operator reads")


def _row(stage: StageRecords, strip_axis: int) -> tuple[int, ...]:
    """A stage as the core sees it; see ``PenstockStage``."""
    return (
        stage.kind,
        stage.records.ctypes.data,
        stage.records.itemsize,
        stage.compute,
        stage.covers,
        stage.reads,
        stage.shapes.ctypes.data,
        stage.element_bytes,
        stage.group,
        stage.reads_neighbours,
        strip_axis,
    )


def run_chain(
    sources: np.ndarray,
    shapes: np.ndarray,
    element_bytes: int,
    stages: Sequence[StageRecords],
    targets: np.ndarray,
    threads: int,
    cores: Sequence[int] | None = None,
) -> None:
    """Runs all samples of a batch through stages, without the GIL.

    Args:
        sources, targets: addresses of contiguous samples, int64.
        shapes: of the sources: int64 of shape (samples, rank), contiguous.
        element_bytes: of the sources.
        stages: of the same samples, in order.
        threads: that share the samples, at most; for little work there are fewer.
        cores: to which threads, but for the calling one, are bound in turn; None: they are not bound.

    Raises:
        MemoryError: there is not enough memory for results between two stages.
    """
    samples, rank = shapes.shape
    table = np.empty(len(stages), _STAGE)
    strip_axis, result_bytes = 0, 0
    for number, stage in enumerate(stages):
        if stage.reads_neighbours:
            strip_axis = 0
        if stage.permutation:
            strip_axis = stage.permutation.index(strip_axis)
        table[number] = _row(stage, strip_axis)
        result_bytes += math.prod(stage.shapes[0].tolist()) * stage.element_bytes * samples
    chain = np.array(
        (
            rank,
            samples,
            len(stages),
            table.ctypes.data,
            sources.ctypes.data,
            shapes.ctypes.data,
            element_bytes,
            targets.ctypes.data,
            _STRIP_BYTES,
        ),
        _CHAIN,
    )
    threads = max(min(threads, result_bytes // _MIN_BYTES_PER_THREAD), 1)
    bound = np.array(cores or (), np.int64)
    if core().penstock_run_chain(chain.ctypes.data, threads, bound.ctypes.data, len(bound)):
        raise MemoryError("there is not enough memory for results between two operators")
