"""Matching boxes to anchors on the CPU."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.kernels.cpu.options import kernel

_NONE: Final = np.float32(0)
_HALF: Final = np.float32(0.5)


@kernel
def match_boxes(boxes: np.ndarray, anchors: np.ndarray, criteria: np.float32, owners: np.ndarray) -> None:
    """Match anchors to boxes. If several boxes or anchors overlap equally, the last one is chosen.

    Args:
        boxes: float32 of shape (n, 4).
        anchors: float32 of shape (4, anchors), a row for each coordinate.
        criteria: the intersection over union above which an anchor is matched.
        owners: output, int32: the index of each anchor's box, -1 for an anchor without a box.
    """
    lefts, tops, rights, bottoms = anchors[0], anchors[1], anchors[2], anchors[3]
    count = anchors.shape[1]
    shares, most = np.empty(count, np.float32), np.zeros(count, np.float32)
    closest = np.empty(len(boxes), np.int64)
    owners[:] = -1
    for i in range(len(boxes)):
        left, top, right, bottom = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        area = (right - left) * (bottom - top)
        for j in range(count):
            width = max(min(right, rights[j]) - max(left, lefts[j]), _NONE)
            height = max(min(bottom, bottoms[j]) - max(top, tops[j]), _NONE)
            shared = width * height
            united = area + (rights[j] - lefts[j]) * (bottoms[j] - tops[j]) - shared
            share = shared / united
            shares[j] = share if shared > 0 else _NONE
        best, closest[i] = _NONE, 0
        for j in range(count):
            share = shares[j]
            if share >= best:
                best, closest[i] = share, j
            if share > criteria and share >= most[j]:
                most[j], owners[j] = share, i
    for i in range(len(boxes)):
        owners[closest[i]] = i


@kernel
def encode_boxes(
    boxes: np.ndarray,
    labels: np.ndarray,
    owners: np.ndarray,
    centres: np.ndarray,
    encoded: np.ndarray,
    classes: np.ndarray,
) -> None:
    """Write the target box (x and y of the centre, width, height) and the label of each anchor.

    Args:
        boxes: float32 of shape (n, 4).
        labels: the label of each box, int32 of shape (n,).
        owners: the output of :func:`match_boxes`.
        centres: centre and extents of each anchor, float32 of shape (anchors, 4).
        encoded: output, float32 of shape (anchors, 4): the target box of each anchor; the anchor itself if it is unmatched.
        classes: output, int32 of shape (anchors,): the label of each anchor; 0 if it is unmatched.
    """
    for j, i in enumerate(owners):
        if i < 0:
            encoded[j] = centres[j]
            classes[j] = 0
            continue
        classes[j] = labels[i]
        for axis in range(2):
            encoded[j, axis] = (boxes[i, axis] + boxes[i, 2 + axis]) * _HALF
            encoded[j, 2 + axis] = boxes[i, 2 + axis] - boxes[i, axis]


@kernel
def subtract_anchors(
    owners: np.ndarray,
    centres: np.ndarray,
    scale: np.float32,
    means: np.ndarray,
    stds: np.ndarray,
    encoded: np.ndarray,
) -> None:
    """Replace the target boxes of :func:`encode_boxes` with their normalized offsets from the anchors; 0 for unmatched anchors."""
    for j, i in enumerate(owners):
        if i < 0:
            encoded[j] = 0
            continue
        for axis in range(2):
            extent = centres[j, 2 + axis] * scale
            moved = (encoded[j, axis] * scale - centres[j, axis] * scale) / extent
            grown = np.float32(math.log(encoded[j, 2 + axis] * scale / extent))
            encoded[j, axis] = (moved - means[axis]) / stds[axis]
            encoded[j, 2 + axis] = (grown - means[2 + axis]) / stds[2 + axis]
