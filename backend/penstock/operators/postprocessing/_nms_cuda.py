"""Non-maximum suppression on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, addresses_of, launch, scratch, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import (
    Float,
    Int32,
    Int64,
    Pointer,
    UInt64,
    blank_records,
    cuda_type,
    layout_of,
    records,
)
from penstock.schema import PlanColumns


class _Detections(NamedTuple):
    """One sample.

    Attributes:
        labels: int32 for each box; 0: the class is that of the score.
        keys, sorted: uint64 for each candidate.
        known: a struct for each candidate.
        kept: uint32 for each candidate.
        classes: number of scores of a box.
        limit: the largest number of boxes to keep.
        max_candidates: the largest number of candidates of a class.
        names: number of names; 0: there are none.
    """

    boxes: Pointer
    scores: Pointer
    labels: Pointer
    keys: Pointer
    sorted: Pointer
    known: Pointer
    kept: Pointer
    num_scores: Int64
    classes: Int64
    candidates: Int64
    limit: Int64
    max_candidates: Int64
    score_threshold: Float
    iou_threshold: Float
    class_wise: Int32
    with_sizes: Int32
    names: Int32


class _Finding(NamedTuple):
    """What was found in a sample's scores.

    Attributes:
        unordered: position of the first score that is NaN.
        infinite: number of the first box of a candidate that is not finite.
    """

    unordered: UInt64
    infinite: UInt64
    candidates: Annotated[int, np.uint32]


class _Result(NamedTuple):
    """The result of a sample.

    Attributes:
        kept: number of remaining boxes.
        is_unnamed: whether one of them has a class without a name.
        unnamed: that class.
    """

    kept: Annotated[int, np.uint32]
    is_unnamed: Int32
    unnamed: Int32


class _Gathered(NamedTuple):
    """The rows of one sample to gather; see :class:`_Detections`."""

    boxes: Pointer
    scores: Pointer
    labels: Pointer
    kept: Pointer
    to_boxes: Pointer
    to_scores: Pointer
    to_labels: Pointer
    to_indices: Pointer
    rows: Int64
    classes: Int64


# Scores that each thread reads.
_ROUNDS = 8
_CANDIDATE_BYTES = 24
_NONE = np.iinfo(np.uint64).max
SOURCE = KernelSource(__file__, _Detections, _Finding, _Result, _Gathered, ROUNDS=_ROUNDS)


@dataclass(frozen=True)
class Settings:
    """How boxes suppress one another.

    Attributes:
        score_thresholds, iou_thresholds: float32, one for each sample.
        limits: the largest number of boxes to keep of each sample, int64.
        max_candidates: the largest number of candidates of a class, those with the highest scores; 0: all.
        class_wise: boxes of different classes do not suppress one another.
        with_sizes: a box is a corner and its extents, rather than two corners.
        names: number of names of classes; 0: there are none.
    """

    score_thresholds: np.ndarray
    iou_thresholds: np.ndarray
    limits: np.ndarray
    max_candidates: int
    class_wise: bool
    with_sizes: bool
    names: int


@dataclass(frozen=True)
class Kept:
    """The remaining boxes of a sample.

    Attributes:
        positions: among its scores, uint32, the best first.
        count: number of boxes.
        classes: number of scores of a box.
    """

    positions: Located
    count: int
    classes: int


@dataclass(eq=False)
class KeptColumns(PlanColumns[Kept]):
    """The remaining boxes of many samples."""

    rows: list[Kept]

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, number: int) -> Kept:
        return self.rows[number]


def suppress_boxes(
    boxes: Sequence[Located],
    scores: Sequence[Located],
    labels: Sequence[Located] | None,
    classes: np.ndarray,
    settings: Settings,
) -> KeptColumns:
    """Find the boxes of each sample that no better one suppresses. Waits for the GPU twice.

    Args:
        boxes: of shape (boxes, 4).
        scores: one score for each box and class.
        labels: int32 for each box; None: the class is that of the score.
        classes: number of scores of a box, for each sample.

    Raises:
        ValueError: a score is NaN, a box with a sufficient score is not finite, or a class has no name.
    """
    kinds = [cuda_type(own[0].dtype) for own in (boxes, scores)]
    sizes = np.array([own.size for own in scores], np.int64)
    blocks = -(-sizes // (THREADS * _ROUNDS))
    descriptors = blank_records(_Detections, len(boxes))
    descriptors["boxes"], descriptors["scores"] = addresses_of(boxes), addresses_of(scores)
    descriptors["labels"] = addresses_of(labels) if labels else 0
    descriptors["num_scores"], descriptors["classes"] = sizes, classes
    descriptors["limit"], descriptors["max_candidates"] = settings.limits, settings.max_candidates
    descriptors["score_threshold"] = settings.score_thresholds
    descriptors["iou_threshold"] = settings.iou_thresholds
    descriptors["class_wise"], descriptors["with_sizes"] = settings.class_wise, settings.with_sizes
    descriptors["names"] = settings.names
    findings = _structs(_Finding, [(_NONE, _NONE, 0)] * len(boxes))
    launch(SOURCE.kernel(f"count_candidates<{', '.join(kinds)}>"), descriptors, blocks, findings)
    found = _host(_Finding, findings, len(boxes))
    _check(found["unordered"], "Score {} is NaN")
    _check(found["infinite"], "Box {} has a coordinate that is not finite")
    # Of each candidate: two keys, a struct, and a position.
    candidates = found["candidates"].astype(np.int64)
    firsts, total = candidates.cumsum() - candidates, int(candidates.sum())
    keys, ordered = scratch([(total,), (total,)], np.uint64)
    known, kept = scratch([(total * _CANDIDATE_BYTES,)], np.uint8)[0], scratch([(total,)], np.uint32)[0]
    descriptors["candidates"] = candidates
    descriptors["keys"], descriptors["sorted"] = keys.address + 8 * firsts, ordered.address + 8 * firsts
    descriptors["known"], descriptors["kept"] = known.address + _CANDIDATE_BYTES * firsts, kept.address + 4 * firsts
    ends = upload([np.zeros(len(boxes), np.uint32)])[0]
    launch(SOURCE.kernel(f"collect_candidates<{kinds[1]}>"), descriptors, blocks, ends)
    ranking = f"rank_candidates<{'true' if settings.max_candidates else 'false'}>"
    launch(SOURCE.kernel(ranking), descriptors, -(-candidates // THREADS))
    results = _structs(_Result, [(0, 0, 0)] * len(boxes))
    launch(SOURCE.kernel(f"suppress<{kinds[0]}>"), descriptors, [1] * len(boxes), results)
    found = _host(_Result, results, len(boxes))
    if found["is_unnamed"].any():
        first = int(found["unnamed"][found["is_unnamed"] != 0][0])
        raise ValueError(f"There is a box of class {first}, and `names` has {settings.names}")
    positions = [kept.part(first, count) for first, count in zip(firsts.tolist(), found["kept"].tolist())]
    return KeptColumns([Kept(*own) for own in zip(positions, found["kept"].tolist(), classes.tolist())])


def gather_kept(
    boxes: Sequence[Located],
    scores: Sequence[Located],
    labels: Sequence[Located] | None,
    kept: Sequence[Kept],
    targets: Sequence[Sequence[Located]],
) -> None:
    """Fill the targets with the boxes, scores, labels and indices of the remaining detections.

    Args:
        boxes, scores, labels: as in :func:`suppress_boxes`.
        kept: each sample's remaining boxes.
        targets: for each of the four outputs, the targets of all samples.
    """
    made = blank_records(_Gathered, len(kept))
    made["boxes"], made["scores"] = addresses_of(boxes), addresses_of(scores)
    made["labels"] = addresses_of(labels) if labels else 0
    made["kept"] = [own.positions.address for own in kept]
    made["rows"] = rows = np.array([own.count for own in kept], np.int64)
    made["classes"] = [own.classes for own in kept]
    for name, own in zip(("to_boxes", "to_scores", "to_labels", "to_indices"), targets):
        made[name] = addresses_of(own)
    kinds = ", ".join(cuda_type(own[0].dtype) for own in (boxes, scores))
    launch(SOURCE.kernel(f"gather<{kinds}>"), made, -(-rows // THREADS))


def _structs(struct: type[tuple[object, ...]], rows: Sequence[tuple[int, ...]]) -> Located:
    """Return structs on the GPU, as bytes."""
    return upload([records(struct, rows).rows.view(np.uint8)])[0]


def _host(struct: type[tuple[object, ...]], data: Located, count: int) -> np.ndarray:
    """Wait for the GPU, and return structs copied from it."""
    found: np.ndarray = data.array().get().view(layout_of(struct).dtype)
    return found[:count]


def _check(faults: np.ndarray, told: str) -> None:
    found = faults[faults != _NONE]
    if len(found):
        raise ValueError(told.format(found[0]))
