"""Random crops chosen by their overlap with bounding boxes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.schema import PlanColumns, Workspace
from penstock.schema.random_operator import RandomOperator

_AXES, _ENDS, _EXTENTS = "xyz", "XYZ", "WHD"
_NOT_GIVEN = np.zeros((1, 0), np.int64)
MAX_DRAWS_WITHOUT_LIMIT = 10_000_000
"""Without ``total_num_attempts``, the search for a window fails after this many windows, which takes about a second."""


@dataclass(frozen=True)
class BoxWindow:
    """A crop window and the boxes that remain in it.

    Attributes:
        anchor: the window's start in x, y, z order, float32: in fractions of the image, or in pixels with `crop_shape`.
        shape: the window's extents, in the same order and unit.
        boxes: the remaining boxes: starts, then ends, in fractions of the window.
        indices: the indices of the remaining boxes among the sample's boxes.
    """

    anchor: np.ndarray
    shape: np.ndarray
    boxes: np.ndarray
    indices: np.ndarray


@dataclass(eq=False)
class BoxWindows(PlanColumns[BoxWindow]):
    """The windows of many samples.

    Attributes:
        anchors, shapes: the start and the extents of each window, float32 of shape (samples, axes).
        counts: the number of remaining boxes of each sample.
        boxes, indices: the remaining boxes of all samples, one after the other; see :class:`BoxWindow`.
    """

    anchors: np.ndarray
    shapes: np.ndarray
    counts: np.ndarray
    boxes: np.ndarray
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.anchors)

    def row(self, number: int) -> BoxWindow:
        first = int(self.counts[:number].sum())
        own = slice(first, first + int(self.counts[number]))
        return BoxWindow(self.anchors[number], self.shapes[number], self.boxes[own], self.indices[own])


class BoxCroppingOperator(RandomOperator[None, BoxWindow, BoxWindows]):
    """Base class of operators that draw windows until one overlaps the boxes enough."""

    # Whether to use the first acceptable window that is drawn for a threshold, instead of the last one.
    first_counts: ClassVar[bool] = False
    # Whether to refuse boxes that reach outside of the image.
    refuses_outside: ClassVar[bool] = True

    def setup(self) -> None:
        self._check_ranges()
        if self.given("crop_shape"):
            if not self.given("input_shape"):
                raise RuntimeError("`crop_shape` needs `input_shape`")
            if self.given("scaling") or self.given("aspect_ratio"):
                raise RuntimeError("`scaling` and `aspect_ratio` cannot be given together with `crop_shape`")
        if self.given("ltrb") and self.given("bbox_layout"):
            raise RuntimeError("`ltrb` and `bbox_layout` cannot be given together: use `bbox_layout`")
        if self.args["threshold_type"] not in ("iou", "overlap"):
            raise RuntimeError(f"Unknown `threshold_type` '{self.args['threshold_type']}': use iou or overlap")
        if self.args["num_attempts"] < 1 or (self.given("total_num_attempts") and self.args["total_num_attempts"] < 1):
            raise RuntimeError("There must be at least one attempt")
        from penstock.operators.random._box_search import Rules

        self._ranges = np.array(self.args["aspect_ratio"], np.float32).reshape(-1, 2)
        prune = self.args["bbox_prune_threshold"]
        self._rules = Rules(
            thresholds=np.array(self.args["thresholds"], np.float32),
            whole=bool(self.args["allow_no_crop"]),
            attempts=self.args["num_attempts"],
            most=self.args["total_num_attempts"] if self._is_limited else MAX_DRAWS_WITHOUT_LIMIT,
            first=self.first_counts,
            union=self.args["threshold_type"] == "iou",
            every=bool(self.args["all_boxes_above_threshold"]),
            prune=np.float32(-1 if prune is None else prune),
            scaling=np.array(self.args["scaling"], np.float32),
        )

    def _check_ranges(self) -> None:
        scaling, ratios, thresholds = self.args["scaling"], self.args["aspect_ratio"], self.args["thresholds"]
        if len(scaling) != 2 or not 0 <= scaling[0] <= scaling[1]:
            raise RuntimeError(f"`scaling` must be a range of least and largest extent, got {scaling}")
        if len(ratios) not in (2, 6) or any(not 0 <= low <= high for low, high in zip(ratios[::2], ratios[1::2])):
            raise RuntimeError(f"`aspect_ratio` must be a range, or three for volumes, got {ratios}")
        if not thresholds or any(not 0 <= threshold <= 1 for threshold in thresholds):
            raise RuntimeError(f"`thresholds` must be from 0 to 1, got {thresholds}")
        prune = self.args["bbox_prune_threshold"]
        if prune is not None and not 0 <= prune <= 1:
            raise RuntimeError(f"`bbox_prune_threshold` must be from 0 to 1, got {prune}")

    @property
    def _is_limited(self) -> bool:
        """Whether `total_num_attempts` limits the number of windows, after which the best one is used."""
        return bool(self.args["total_num_attempts"] > 0)

    # -- coordinates -------------------------------------------------------------------------------------------

    def _layout(self, ndim: int) -> str:
        layout = self.args["bbox_layout"]
        with_ends, with_extents = _AXES[:ndim] + _ENDS[:ndim], _AXES[:ndim] + _EXTENTS[:ndim]
        if layout is None:
            return with_ends if self.args["ltrb"] else with_extents
        if sorted(layout) not in (sorted(with_ends), sorted(with_extents)):
            raise RuntimeError(f"`bbox_layout` should be an order of {with_ends} or {with_extents}, got '{layout}'")
        return layout

    def _read(self, boxes: np.ndarray) -> np.ndarray:
        """Convert boxes from the user's format to starts, then ends, in x, y, z order."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        others = _ENDS if "X" in layout else _EXTENTS
        read = boxes.take([layout.index(axis) for axis in _AXES[:ndim] + others[:ndim]], axis=1)
        if others is _EXTENTS:
            read[:, ndim:] += read[:, :ndim]
        # Written so that NaN is refused, too.
        if self.refuses_outside and read.size and not (read.min() >= 0 and read.max() <= 1):
            outside = read[~((read >= 0) & (read <= 1)).all(axis=1)][0]
            raise RuntimeError(f"The box {outside.tolist()} is out of bounds: coordinates are from 0 to 1")
        return read

    def written(self, boxes: np.ndarray) -> np.ndarray:
        """Convert boxes from starts, then ends, in x, y, z order, to the user's format."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        if layout == _AXES[:ndim] + _ENDS[:ndim]:
            return boxes
        starts, ends = boxes[:, :ndim], boxes[:, ndim:]
        named = dict(zip(_AXES, starts.T)) | dict(zip(_ENDS, ends.T)) | dict(zip(_EXTENTS, (ends - starts).T))
        return np.stack([named[letter] for letter in layout], axis=1)

    def columns_of(self, ndim: int) -> list[int]:
        """Return the positions of the extents along x, y (and z) in `crop_shape` and `input_shape`."""
        layout = self.args["shape_layout"] or _EXTENTS[:ndim]
        if sorted(layout) != sorted(_EXTENTS[:ndim]):
            raise RuntimeError(f"`shape_layout` should be an order of {_EXTENTS[:ndim]}, got '{layout}'")
        return [layout.index(axis) for axis in _EXTENTS[:ndim]]

    # -- the search --------------------------------------------------------------------------------------------

    def windows(
        self,
        workspace: Workspace,
        indices: Sequence[int],
        tables: Sequence[np.ndarray],
        crops: np.ndarray = _NOT_GIVEN,
        sizes: np.ndarray = _NOT_GIVEN,
    ) -> BoxWindows:
        """Search for a window for each of some samples.

        Args:
            workspace: the batch's workspace.
            indices: the indices of the samples.
            tables: the samples' boxes, in the user's format.
            crops, sizes: the extents of windows and images in pixels, in x, y, z order: int64 with a row for each sample, or one
                row for all; without columns if they are not set.
        """
        from penstock.operators.random._box_search import search_all

        ndim = tables[0].shape[1] // 2
        boxes = self._read(np.concatenate(tables))
        firsts = np.zeros(len(tables) + 1, np.int64)
        np.cumsum([len(table) for table in tables], out=firsts[1:])
        windows, inside = np.zeros((len(tables), 2 * ndim), np.float32), np.empty_like(boxes)
        kept, counts = np.empty(len(boxes), np.int32), np.empty(len(tables), np.int64)
        tries, best = np.empty(len(tables), np.int64), np.empty(len(tables), np.float32)
        rules = self._rules._replace(whole=False) if crops.shape[1] else self._rules
        streams = self.streams(workspace, indices)
        found = search_all(
            boxes, firsts, rules, self._ratios(ndim), crops, sizes, *streams, windows, inside, kept, counts, tries, best
        )
        if tries.any() and not self._is_limited:
            raise RuntimeError(
                f"None of {tries.max():,} windows met the conditions. The best overlap was {best[tries.argmax()]:g}: lower "
                "`thresholds`, widen `scaling` and `aspect_ratio`, set `allow_no_crop=True`, or set `total_num_attempts` to use the best window"
            )
        if not self.args["quiet"]:
            for row in np.flatnonzero(tries):
                warnings.warn(
                    "Could not find a valid cropping window to satisfy the specified requirements "
                    f"(attempted {tries[row]} times). Using the best cropping window so far (best_metric={best[row]:g})",
                    stacklevel=2,
                )
        anchors, shapes = windows[:, :ndim], windows[:, ndim:] - windows[:, :ndim]
        if crops.shape[1]:
            anchors, shapes = (np.rint(part * sizes).astype(np.float32) for part in (anchors, shapes))
        return BoxWindows(anchors, shapes, counts, inside[:found], kept[:found])

    def _ratios(self, ndim: int) -> np.ndarray:
        """Return the range of the aspect ratio for each pair of axes."""
        ranges, pairs = self._ranges, ndim * (ndim - 1) // 2
        if len(ranges) not in (1, pairs):
            raise RuntimeError(f"`aspect_ratio` has {len(ranges)} ranges, expected 1 or {pairs}")
        return ranges if len(ranges) == pairs else ranges.repeat(pairs, axis=0)
