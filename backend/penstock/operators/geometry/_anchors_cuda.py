"""Boxes matched to anchors, on GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, kernel, launch, scratch

_MATCHING = np.dtype(
    [
        *((name, np.uint64) for name in ("boxes", "labels", "targets", "target_labels", "best")),
        ("count", np.int32),
        ("padding", np.int32),
    ]
)
_ENCODING = np.dtype(
    [
        ("means", np.float32, 4),
        ("deviations", np.float32, 4),
        ("criteria", np.float32),
        ("scale", np.float32),
        ("offset", np.int32),
        ("padding", np.int32),
    ]
)


@dataclass(slots=True)
class Matching:
    """One sample: float32 boxes and int32 labels, and for each anchor what it is to learn. All are on the GPU."""

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
    """Matches boxes to anchors and fills all targets, in a launch for boxes and one for anchors.

    Args:
        matchings: the samples.
        anchors: float32 (n, 4) on the GPU.
        criteria: the overlap above which an anchor is matched.
        scale: boxes and anchors are multiplied with it before offsets are taken.
        offset: means and deviations by which offsets from anchors are normalized; None: boxes come out as they are.
    """
    counts = [matching.labels.size for matching in matchings]
    best = scratch([(count,) for count in counts], np.int32)
    descriptors = np.array(
        [
            (m.boxes.address, m.labels.address, m.targets.address, m.target_labels.address, own.address, count, 0)
            for m, own, count in zip(matchings, best, counts)
        ],
        _MATCHING,
    )
    means, deviations = ((0.0,) * 4, (1.0,) * 4) if offset is None else offset
    encoding = np.array([(means, deviations, criteria, scale, offset is not None, 0)], _ENCODING)
    number = anchors.shape[0]
    where = (np.uint64(anchors.address), np.int32(number))
    launch(kernel(__file__, "match_boxes"), descriptors, counts, *where)
    launch(kernel(__file__, "encode_boxes"), descriptors, [blocks_for(number)] * len(counts), *where, encoding)
