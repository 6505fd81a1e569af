"""Non-maximum suppression on the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from penstock.kernels.cuda.launch import Columns, KernelLaunch, Located, columns_of, launch, launch_all, scratch, upload
from penstock.kernels.cuda.sources import THREADS, KernelSource
from penstock.kernels.cuda.structs import (
    Float,
    Int32,
    Int64,
    Pointer,
    Records,
    UInt64,
    blank_records,
    cuda_type,
    layout_of,
    records,
)
from penstock.schema import PlanColumns
from penstock.tensors import TensorListGPU

UInt32 = Annotated[int, np.uint32]


class _Detections(NamedTuple):
    """The descriptor of one sample.

    Attributes:
        labels: address of the label of each box, int32; 0: a score's column is its class.
        keys: address of the key of each candidate, uint64, in whole tiles; 0: candidates are only counted.
        candidates: address of a struct for each candidate, the best first; kept candidates are moved to the front.
        overlaps: address of a bit for each pair of a chunk's candidates; a row of words for each candidate.
        classes: number of scores of a box.
        limit: the largest number of boxes to keep.
        max_candidates: the largest number of candidates of a class.
        names: number of names of classes; 0: there are no names.
    """

    boxes: Pointer
    scores: Pointer
    labels: Pointer
    keys: Pointer
    candidates: Pointer
    overlaps: Pointer
    num_scores: Int64
    classes: Int64
    limit: Int64
    max_candidates: Int64
    score_threshold: Float
    iou_threshold: Float
    class_wise: Int32
    with_sizes: Int32
    names: Int32


class _Result(NamedTuple):
    """The result of a sample.

    Attributes:
        unordered: position of the first score that is NaN.
        infinite: number of the first candidate's box that is not finite.
        unnamed: in the upper half, the index of the first kept box whose class has no name; in the lower half, that class.
        candidates: number of candidates.
        kept: number of boxes kept so far.
        before: number of boxes kept before the last chunk.
    """

    unordered: UInt64
    infinite: UInt64
    unnamed: UInt64
    candidates: UInt32
    kept: UInt32
    before: UInt32


class _Gathered(NamedTuple):
    """The descriptor of one sample whose results are gathered; see :class:`_Detections`. ``kept``: address of kept candidates."""

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


# Number of scores that each thread reads.
_ROUNDS = 8
# Number of candidates in a chunk, whose pairs are all compared at once; the words of a warp's threads have a bit for each.
_CHUNK = 2048
_WORD_BITS = 64
_OVERLAPS_BYTES = _CHUNK // 8
_CANDIDATE_BYTES = 32
# If no sample has more scores than this, memory is allocated as if all of them were candidates; otherwise candidates are counted first.
_MAX_SCORES_UNCOUNTED = 8 * _CHUNK
_NONE = np.iinfo(np.uint64).max
SOURCE = KernelSource(__file__, _Detections, _Result, _Gathered, ROUNDS=_ROUNDS, CHUNK=_CHUNK)


@dataclass(frozen=True)
class Settings:
    """How boxes suppress one another.

    Attributes:
        score_thresholds, iou_thresholds: float32, one for each sample.
        limits: the largest number of boxes to keep of each sample, int64.
        max_candidates: consider only this many candidates of a class, those with the highest scores; 0: all.
        class_wise: whether boxes suppress only boxes of their own class.
        with_sizes: whether a box consists of a corner and its extents, rather than two corners.
        names: number of names of classes; 0: there are no names.
    """

    score_thresholds: np.ndarray
    iou_thresholds: np.ndarray
    limits: np.ndarray
    max_candidates: int
    class_wise: bool
    with_sizes: bool
    names: int


@dataclass(frozen=True)
class Detected:
    """Boxes on the GPU with their scores and classes.

    Attributes:
        boxes: of shape (boxes, 4).
        scores: one score for each box, or for each box and class.
        labels: the label of each box, int32; None: a score's column is its class.
        kinds: the C types of boxes and of scores.
    """

    boxes: Columns
    scores: Columns
    labels: Columns | None
    kinds: tuple[str, str]

    @classmethod
    def of(cls, batches: Sequence[TensorListGPU], indices: Sequence[int]) -> Detected:
        """Return the detections of the samples at ``indices`` in batches of boxes, scores and, optionally, labels."""
        boxes, scores, *labels = (columns_of(batch, indices) for batch in batches)
        kinds = cuda_type(batches[0].dtype), cuda_type(batches[1].dtype)
        return cls(boxes, scores, labels[0] if labels else None, kinds)

    def describe(self, descriptors: Records) -> None:
        """Set the addresses of boxes, scores and labels in the samples' descriptors."""
        descriptors["boxes"], descriptors["scores"] = self.boxes.addresses, self.scores.addresses
        descriptors["labels"] = self.labels.addresses if self.labels else 0


@dataclass(frozen=True)
class Kept:
    """The remaining boxes of a sample; see :class:`KeptColumns`."""

    address: int
    count: int
    classes: int


@dataclass(eq=False)
class KeptColumns(PlanColumns[Kept]):
    """The remaining boxes of many samples.

    Attributes:
        addresses: the address of each sample's kept candidates, which are in descending order of score, uint64.
        counts: number of boxes, int64.
        classes: number of scores of a box, int64.
        owners: objects that keep the memory alive.
    """

    addresses: np.ndarray
    counts: np.ndarray
    classes: np.ndarray
    owners: list[Located]

    def __len__(self) -> int:
        return len(self.counts)

    def row(self, number: int) -> Kept:
        return Kept(int(self.addresses[number]), int(self.counts[number]), int(self.classes[number]))


def suppress_boxes(detected: Detected, classes: np.ndarray, settings: Settings) -> KeptColumns:
    """Find the boxes of each sample that no better box suppresses.

    Waits for the GPU once, or twice if a sample has more than ``_MAX_SCORES_UNCOUNTED`` scores.

    Args:
        classes: number of scores of a box, for each sample.

    Raises:
        ValueError: a score is NaN, a box with a score above the threshold is not finite, or a class has no name.
    """
    count, sizes = len(classes), detected.scores.sizes
    descriptors = blank_records(_Detections, count)
    detected.describe(descriptors)
    descriptors["num_scores"], descriptors["classes"] = sizes, classes
    descriptors["limit"], descriptors["max_candidates"] = settings.limits, settings.max_candidates
    descriptors["score_threshold"] = settings.score_thresholds
    descriptors["iou_threshold"] = settings.iou_thresholds
    descriptors["class_wise"], descriptors["with_sizes"] = settings.class_wise, settings.with_sizes
    descriptors["names"] = settings.names
    results = _no_results(count)
    collect, blocks = (
        SOURCE.kernel(f"collect_candidates<{', '.join(detected.kinds)}>"),
        -(-sizes // (THREADS * _ROUNDS)),
    )
    most = sizes
    if sizes.max(initial=0) > _MAX_SCORES_UNCOUNTED:
        launch(collect, descriptors, blocks, results)
        most = _checked(results, count)["candidates"].astype(np.int64)
        results = _no_results(count)
    memory = _allocate(descriptors, most)
    tiles = -(-most // THREADS)
    launches = [
        KernelLaunch(collect, descriptors, blocks, (results,)),
        KernelLaunch(SOURCE.kernel("sort_tiles"), descriptors, tiles, (results,)),
        KernelLaunch(SOURCE.kernel(f"rank_candidates<{detected.kinds[0]}>"), descriptors, tiles, (results,)),
    ]
    if settings.max_candidates:
        launches.append(KernelLaunch(SOURCE.kernel("limit_candidates"), descriptors, tiles, (results,)))
    launch_all([*launches, *_decisions(descriptors, most, results)])
    found = _checked(results, count)
    unnamed = found["unnamed"][found["unnamed"] != _NONE]
    if len(unnamed):
        first = int(unnamed.astype(np.uint32).view(np.int32)[0])
        raise ValueError(f"There is a box of class {first}, but `names` has only {settings.names} names")
    kept, memory_of_each = found["kept"].astype(np.int64), [memory["candidates"]] * count
    return KeptColumns(descriptors["candidates"], kept, classes, memory_of_each)


def _allocate(descriptors: Records, most: np.ndarray) -> dict[str, Located]:
    """Allocate memory for keys, candidates and the overlaps of a chunk, and set each sample's addresses in its descriptor.

    Args:
        most: the largest possible number of candidates of each sample.

    Returns:
        The memory by purpose, as bytes.
    """
    rows = {
        "keys": (-(-most // THREADS) * THREADS, 8),
        "candidates": (most, _CANDIDATE_BYTES),
        "overlaps": (np.minimum(most, _CHUNK), _OVERLAPS_BYTES),
    }
    made = {}
    for name, (counts, size) in rows.items():
        ends = counts.cumsum() * size
        made[name] = scratch([(int(ends[-1]) if len(ends) else 0,)], np.uint8)[0]
        descriptors[name] = made[name].address + ends - counts * size
    return made


def _decisions(descriptors: Records, most: np.ndarray, results: Located) -> Iterator[KernelLaunch]:
    """Yield the launches that decide which candidates are kept, chunk by chunk.

    Args:
        most: the largest possible number of candidates of each sample.
    """
    for begin in range(0, int(most.max(initial=0)), _CHUNK):
        left = np.maximum(most - begin, 0)
        words = -(-np.minimum(left, _CHUNK) // _WORD_BITS)
        squares = -(-(words * (words + 1) // 2) // (THREADS // _WORD_BITS))
        others = -(-np.maximum(left - _CHUNK, 0) // THREADS)
        yield KernelLaunch(SOURCE.kernel("compare_candidates"), descriptors, squares, (results, np.int64(begin)))
        yield KernelLaunch(SOURCE.kernel("sweep"), descriptors, [1] * len(most), (results, np.int64(begin)))
        end = np.int64(begin + _CHUNK)
        yield KernelLaunch(SOURCE.kernel("suppress_others"), descriptors, others, (results, end))


def gather_kept(detected: Detected, kept: KeptColumns, targets: Sequence[Columns]) -> None:
    """Fill the targets with the boxes, scores, labels and indices of the remaining detections.

    Args:
        kept: each sample's remaining boxes.
        targets: the samples of the four outputs.
    """
    made = blank_records(_Gathered, len(kept))
    detected.describe(made)
    made["kept"], made["rows"], made["classes"] = kept.addresses, kept.counts, kept.classes
    for name, own in zip(("to_boxes", "to_scores", "to_labels", "to_indices"), targets):
        made[name] = own.addresses
    launch(SOURCE.kernel(f"gather<{', '.join(detected.kinds)}>"), made, -(-kept.counts // THREADS))


def _no_results(count: int) -> Located:
    """Return initialized results of ``count`` samples on the GPU, as bytes."""
    return upload([records(_Result, [(_NONE, _NONE, _NONE, 0, 0, 0)] * count).rows.view(np.uint8)])[0]


def _checked(results: Located, count: int) -> np.ndarray:
    """Wait for the GPU, and return the results of the samples.

    Raises:
        ValueError: a score is NaN, or a box with a score above the threshold is not finite.
    """
    found: np.ndarray = results.array().get().view(layout_of(_Result).dtype)[:count]
    for name, told in (("unordered", "Score {} is NaN"), ("infinite", "Box {} has a coordinate that is not finite")):
        faults = found[name][found[name] != _NONE]
        if len(faults):
            raise ValueError(told.format(faults[0]))
    return found
