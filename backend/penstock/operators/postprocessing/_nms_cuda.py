"""Non-maximum suppression on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Located, blocks_for, launch, scratch, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import Float, Int32, Int64, Pointer, Records, UInt64, cuda_type, layout_of, records
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


class _Part(NamedTuple):
    """The addresses of a sample's scratch memory, and the number of its candidates; see :class:`_Detections`."""

    keys: int
    sorted: int
    known: int
    kept: int
    candidates: int


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
    blocks = [blocks_for(own.size, THREADS * _ROUNDS) for own in scores]
    addresses = [own.address for own in labels] if labels else [0] * len(boxes)
    limits = settings.limits.tolist()
    thresholds = list(zip(settings.score_thresholds.tolist(), settings.iou_thresholds.tolist()))

    def described(parts: Sequence[_Part]) -> Records:
        return records(
            _Detections,
            [
                _Detections(
                    boxes=boxes[i].address,
                    scores=scores[i].address,
                    labels=addresses[i],
                    keys=part.keys,
                    sorted=part.sorted,
                    known=part.known,
                    kept=part.kept,
                    num_scores=scores[i].size,
                    classes=int(classes[i]),
                    candidates=part.candidates,
                    limit=limits[i],
                    max_candidates=settings.max_candidates,
                    score_threshold=thresholds[i][0],
                    iou_threshold=thresholds[i][1],
                    class_wise=int(settings.class_wise),
                    with_sizes=int(settings.with_sizes),
                    names=settings.names,
                )
                for i, part in enumerate(parts)
            ],
        )

    findings = _structs(_Finding, [(_NONE, _NONE, 0)] * len(boxes))
    unknown = described([_Part(0, 0, 0, 0, 0)] * len(boxes))
    launch(SOURCE.kernel(f"count_candidates<{', '.join(kinds)}>"), unknown, blocks, findings)
    found = _host(_Finding, findings, len(boxes))
    _check(found["unordered"], "Score {} is NaN")
    _check(found["infinite"], "Box {} has a coordinate that is not finite")
    candidates = found["candidates"].tolist()
    sizes = [(own,) for own in candidates]
    keys, ordered = scratch(sizes, np.uint64), scratch(sizes, np.uint64)
    known = scratch([(own * _CANDIDATE_BYTES,) for own in candidates], np.uint8)
    kept = scratch(sizes, np.uint32)
    parts = [
        _Part(key.address, place.address, box.address, left.address, number)
        for key, place, box, left, number in zip(keys, ordered, known, kept, candidates)
    ]
    descriptors = described(parts)
    ends = upload([np.zeros(len(boxes), np.uint32)])[0]
    launch(SOURCE.kernel(f"collect_candidates<{kinds[1]}>"), descriptors, blocks, ends)
    ranking = f"rank_candidates<{'true' if settings.max_candidates else 'false'}>"
    launch(SOURCE.kernel(ranking), descriptors, [blocks_for(own) for own in candidates])
    results = _structs(_Result, [(0, 0, 0)] * len(boxes))
    launch(SOURCE.kernel(f"suppress<{kinds[0]}>"), descriptors, [1] * len(boxes), results)
    found = _host(_Result, results, len(boxes))
    if found["is_unnamed"].any():
        first = int(found["unnamed"][found["is_unnamed"] != 0][0])
        raise ValueError(f"There is a box of class {first}, and `names` has {settings.names}")
    return KeptColumns([Kept(*own) for own in zip(kept, found["kept"].tolist(), classes.tolist())])


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
    addresses = [own.address for own in labels] if labels else [0] * len(boxes)
    to_boxes, to_scores, to_labels, to_indices = targets
    entries = [
        _Gathered(
            boxes=boxes[i].address,
            scores=scores[i].address,
            labels=addresses[i],
            kept=own.positions.address,
            to_boxes=to_boxes[i].address,
            to_scores=to_scores[i].address,
            to_labels=to_labels[i].address,
            to_indices=to_indices[i].address,
            rows=own.count,
            classes=own.classes,
        )
        for i, own in enumerate(kept)
    ]
    kinds = ", ".join(cuda_type(own[0].dtype) for own in (boxes, scores))
    counts = [blocks_for(own.count) for own in kept]
    launch(SOURCE.kernel(f"gather<{kinds}>"), records(_Gathered, entries), counts)


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
