"""Random windows of images that suit the boxes in them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.kernels.boxes import intersections, overlaps, volumes
from penstock.kernels.random_streams import bounded, philox
from penstock.schema import OutputSpec, Sample, Workspace
from penstock.schema.random_operator import RandomOperator

_AXES, _ENDS, _EXTENTS = "xyz", "XYZ", "WHD"


@dataclass(frozen=True)
class _Window:
    """A window and what it keeps.

    Attributes:
        anchor: its start in x, y, z order, as it is given out.
        shape: its extents, as they are given out.
        boxes: those kept, starts and ends in fractions of the window.
        indices: of the boxes that are kept.
    """

    anchor: np.ndarray
    shape: np.ndarray
    boxes: np.ndarray
    indices: np.ndarray


class BoxCroppingOperator(RandomOperator):
    """The base of operators that draw windows until one overlaps the boxes enough."""

    # Of the windows drawn for one threshold, whether the first that fits counts, or the last.
    first_counts: ClassVar[bool] = False

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

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        boxes, vector = workspace.inputs[0], OutputSpec(FLOAT, "", 1)
        if boxes.dtype != FLOAT:
            raise RuntimeError(f"Boxes must be of type float, got {dtype_name(boxes.dtype)}")
        if len(boxes) and boxes.ndim() != 2:
            raise RuntimeError(f"Boxes must be given as a table of two dimensions, got {boxes.ndim()}")
        specs = [vector, vector, OutputSpec(FLOAT, "", 2)]
        if len(workspace.inputs) > 1:
            labels = workspace.inputs[1]
            if labels.dtype != INT32:
                raise RuntimeError(f"Labels must be of type int32, got {dtype_name(labels.dtype)}")
            specs.append(OutputSpec(INT32, "", labels.ndim()))
        return [*specs, OutputSpec(INT32, "", 1)] if self.args["output_bbox_indices"] else specs

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        coordinates = sample.shapes[0][1]
        if coordinates not in (4, 6):
            raise RuntimeError(f"A box has 4 coordinates, or 6 in a volume, got {coordinates}")
        window = self.window(sample, sample.inputs[0])
        sample.plan = window
        kept = len(window.indices)
        shapes: list[tuple[int, ...]] = [window.anchor.shape, window.shape.shape, (kept, coordinates)]
        if len(sample.shapes) > 1:
            if sample.shapes[1][0] != sample.shapes[0][0]:
                raise RuntimeError(f"There are {sample.shapes[0][0]} boxes but {sample.shapes[1][0]} labels")
            shapes.append((kept, *sample.shapes[1][1:]))
        return [*shapes, (kept,)] if self.args["output_bbox_indices"] else shapes

    def compute(self, sample: Sample) -> None:
        window, outputs = sample.plan, sample.outputs
        outputs[0][...] = window.anchor
        outputs[1][...] = window.shape
        outputs[2][...] = self._written(window.boxes)
        if len(sample.inputs) > 1:
            outputs[3][...] = sample.inputs[1][window.indices]
        if self.args["output_bbox_indices"]:
            outputs[-1][...] = window.indices

    # -- what the coordinates mean -----------------------------------------------------------------------------

    def _layout(self, ndim: int) -> str:
        layout = self.args["bbox_layout"]
        with_ends, with_extents = _AXES[:ndim] + _ENDS[:ndim], _AXES[:ndim] + _EXTENTS[:ndim]
        if layout is None:
            return with_ends if self.args["ltrb"] else with_extents
        if sorted(layout) not in (sorted(with_ends), sorted(with_extents)):
            raise RuntimeError(f"`bbox_layout` should be an order of {with_ends} or {with_extents}, got '{layout}'")
        return layout

    def _read(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes as starts, then ends, in x, y, z order."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        starts = boxes[:, [layout.index(axis) for axis in _AXES[:ndim]]]
        if "X" in layout:
            ends = boxes[:, [layout.index(axis) for axis in _ENDS[:ndim]]]
        else:
            ends = starts + boxes[:, [layout.index(axis) for axis in _EXTENTS[:ndim]]]
        for box in np.concatenate([starts, ends], axis=1):
            if (box < 0).any() or (box > 1).any():
                raise RuntimeError(f"The box {box.tolist()} is out of bounds: coordinates are from 0 to 1")
        return np.concatenate([starts, ends], axis=1)

    def _written(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes in the order in which the user gives and takes them."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        starts, ends = boxes[:, :ndim], boxes[:, ndim:]
        named = dict(zip(_AXES, starts.T)) | dict(zip(_ENDS, ends.T)) | dict(zip(_EXTENTS, (ends - starts).T))
        return np.stack([named[letter] for letter in layout], axis=1)

    def _extents(self, name: str, sample: Sample, ndim: int) -> np.ndarray | None:
        """`crop_shape` or `input_shape` in x, y, z order."""
        if not sample.given(name):
            return None
        value, layout = sample[name], self.args["shape_layout"] or _EXTENTS[:ndim]
        if sorted(layout) != sorted(_EXTENTS[:ndim]):
            raise RuntimeError(f"`shape_layout` should be an order of {_EXTENTS[:ndim]}, got '{layout}'")
        if len(value) != ndim:
            raise RuntimeError(f"`{name}` must have {ndim} extents, got {len(value)}")
        return np.array([value[layout.index(axis)] for axis in _EXTENTS[:ndim]], np.int64)

    # -- the search --------------------------------------------------------------------------------------------

    def window(self, sample: Sample, given: np.ndarray) -> _Window:
        """The window for the boxes that are ``given``."""
        ndim = given.shape[1] // 2
        boxes, draws = self._read(given), philox(self.stream(sample))
        sizes = self._extents("crop_shape", sample, ndim), self._extents("input_shape", sample, ndim)
        thresholds, most, tries = self.args["thresholds"], self.args["total_num_attempts"], 0
        nothing = np.zeros(ndim, np.float32)
        best, best_overlap = _Window(nothing, nothing, boxes[:0], np.zeros(0, np.int32)), np.float32(-1)
        options = len(thresholds) + (self.args["allow_no_crop"] and sizes[0] is None)
        while most < 0 or tries < most:
            choice = bounded(draws, options)
            if choice == len(thresholds):
                return _Window(nothing, np.ones(ndim, np.float32), boxes, np.arange(len(boxes), dtype=np.int32))
            found = False
            for _ in range(self.args["num_attempts"]):
                tries += 1
                drawn = self._drawn(draws, ndim, *sizes)
                if drawn is None:
                    continue
                overlap = self._overlap(boxes, drawn)
                if overlap < thresholds[choice] and overlap <= best_overlap:
                    continue
                kept = self._kept(boxes, drawn)
                best, best_overlap = _finished(boxes, kept, drawn, sizes[1] if sizes[0] is not None else None), overlap
                if overlap >= thresholds[choice]:
                    found = not len(boxes) or len(kept) > 0
                if found and self.first_counts:
                    return best
            if found:
                return best
        if not self.args["quiet"]:
            warnings.warn(
                f"random_bbox_crop found no window that meets the requirements in {tries} attempts; it takes the best",
                stacklevel=2,
            )
        return best

    def _drawn(
        self, draws: Iterator[int], ndim: int, crop: np.ndarray | None, size: np.ndarray | None
    ) -> np.ndarray | None:
        """A window as starts, then ends, in fractions of the image; None where its aspect ratio does not fit."""
        if crop is not None and size is not None:
            starts = [
                min(extent - wanted, 0) + bounded(draws, abs(extent - wanted) + 1)
                for extent, wanted in zip(size.tolist(), crop.tolist())
            ]
            anchor = np.array(starts, np.float32) / size.astype(np.float32)
            return np.concatenate([anchor, anchor + crop.astype(np.float32) / size.astype(np.float32)])
        low, high = self.args["scaling"]
        shape = self._adjusted(np.array([_uniform(draws, low, high) for _ in range(ndim)], np.float32), size)
        if shape is None:
            return None
        anchor = np.array([_uniform(draws, 0, np.float32(1) - extent) for extent in shape], np.float32)
        return np.concatenate([anchor, anchor + shape])

    def _adjusted(self, shape: np.ndarray, size: np.ndarray | None) -> np.ndarray | None:
        """The extents with fixed aspect ratios met; None where a range is not met."""
        ranges = np.float32(self.args["aspect_ratio"]).reshape(-1, 2)
        pairs = list(itertools.combinations(range(len(shape)), 2))
        if len(ranges) not in (1, len(pairs)):
            raise RuntimeError(f"`aspect_ratio` has {len(ranges)} ranges, expected 1 or {len(pairs)}")
        ranges = np.broadcast_to(ranges, (len(pairs), 2))
        units = np.ones(len(shape), np.float32) if size is None else size.astype(np.float32)
        pixels = shape * units
        largest = pixels.max()
        for (one, other), (low, high) in zip(pairs, ranges):
            if low == high:
                pixels[one] = min(pixels[one], pixels[other] * low)
                pixels[other] = min(pixels[other], pixels[one] / low)
            elif not low <= pixels[one] / pixels[other] <= high:
                return None
        if (ranges[:, 0] == ranges[:, 1]).any():
            return pixels * largest / pixels.max() / units
        return shape

    def _overlap(self, boxes: np.ndarray, window: np.ndarray) -> np.float32:
        """By how much the window overlaps the boxes: the least, or the most where one box is enough."""
        if not len(boxes):
            return np.float32(1)
        if self.args["threshold_type"] == "iou":
            each = overlaps(boxes, window[None])[:, 0]
        else:
            each = _share_inside(boxes, window)
        return each.min() if self.args["all_boxes_above_threshold"] else each.max()

    def _kept(self, boxes: np.ndarray, window: np.ndarray) -> np.ndarray:
        """Indices of the boxes that are not dropped."""
        ndim, least = len(window) // 2, self.args["bbox_prune_threshold"]
        if least is not None:
            inside = intersections(boxes, window[None])[:, 0]
            return np.flatnonzero((inside > 0) & (_share_inside(boxes, window) >= least)).astype(np.int32)
        centres = (boxes[:, :ndim] + boxes[:, ndim:]) * np.float32(0.5)
        within = ((centres >= window[:ndim]) & (centres < window[ndim:])).all(axis=1)
        return np.flatnonzero(within).astype(np.int32)


def _share_inside(boxes: np.ndarray, window: np.ndarray) -> np.ndarray:
    """The fraction of each box that lies in the window."""
    shared, whole = intersections(boxes, window[None])[:, 0], volumes(boxes)
    return np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)


def _uniform(draws: Iterator[int], low: float, high: float) -> np.float32:
    """A number in [low, high), as `std::uniform_real_distribution<float>` draws it."""
    fraction = min(np.float32(next(draws)) / np.float32(2**32), np.nextafter(np.float32(1), np.float32(0)))
    return fraction * (np.float32(high) - np.float32(low)) + np.float32(low)


def _finished(boxes: np.ndarray, kept: np.ndarray, window: np.ndarray, size: np.ndarray | None) -> _Window:
    """The window with the boxes that lie in it; in pixels where the image's ``size`` is given."""
    ndim = len(window) // 2
    anchor, shape = window[:ndim], window[ndim:] - window[:ndim]
    inside = boxes[kept]
    starts = (np.maximum(inside[:, :ndim], anchor) - anchor) / shape
    ends = (np.minimum(inside[:, ndim:], window[ndim:]) - anchor) / shape
    mapped = np.concatenate([starts, ends], axis=1).clip(0, 1)
    if size is not None:
        anchor, shape = (np.rint(part * size).astype(np.float32) for part in (anchor, shape))
    return _Window(anchor, shape, mapped, kept)
