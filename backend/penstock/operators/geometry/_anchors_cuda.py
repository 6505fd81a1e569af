"""Matching boxes to anchors on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch
from penstock.kernels.cuda.sources import KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Pointer, Repeated, records


class _Matching(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        boxes, labels: addresses of the boxes (left, top, right, bottom) and of their labels.
        targets, target_labels: addresses of the target and of the label of each anchor; outputs.
        best: address of the index of the anchor that overlaps each box most, int32.
    """

    boxes: Pointer
    labels: Pointer
    targets: Pointer
    target_labels: Pointer
    best: Pointer
    box_count: Int32


class _Encoding(NamedTuple):
    """The parameters that all samples share; see :func:`encode_boxes`."""

    means: Annotated[Sequence[float], Repeated(np.float32, 4)]
    deviations: Annotated[Sequence[float], Repeated(np.float32, 4)]
    criteria: Float
    scale: Float
    offset: Int32


SOURCE = KernelSource(__file__, _Matching, _Encoding)


@dataclass(slots=True)
class Matching:
    """One sample on the GPU: its boxes (float32) and their labels (int32), and outputs for each anchor's target and label."""

    boxes: Located
    labels: Located
    targets: Located
    target_labels: Located


def encode_boxes(
    matchings: Sequence[Matching],
    anchors: Located,
    criteria: float,
    scale: float,
    offset: tuple[Sequence[float], Sequence[float]] | None,
) -> None:
    """Match boxes to anchors and fill all targets, with one launch for boxes and one for anchors.

    Args:
        matchings: the samples.
        anchors: float32 of shape (n, 4), on the GPU.
        criteria: the intersection over union above which an anchor is matched.
        scale: the factor by which boxes and anchors are multiplied before offsets are computed.
        offset: means and standard deviations that normalize the offsets from anchors; None: targets are boxes, as centre and extents.
    """
    counts = [matching.labels.size for matching in matchings]
    best = scratch([(count,) for count in counts], np.int32)
    rows = [
        _Matching(m.boxes.address, m.labels.address, m.targets.address, m.target_labels.address, own.address, count)
        for m, own, count in zip(matchings, best, counts)
    ]
    descriptors = records(_Matching, rows)
    means, deviations = ((0.0,) * 4, (1.0,) * 4) if offset is None else offset
    encoding = records(_Encoding, [_Encoding(means, deviations, criteria, scale, offset is not None)])
    number = anchors.shape[0]
    launch(SOURCE.kernel("match_boxes"), descriptors, counts, anchors, np.int32(number))
    blocks = [blocks_for(number)] * len(counts)
    launch(SOURCE.kernel("encode_boxes"), descriptors, blocks, anchors, np.int32(number), encoding)
