"""Random crops chosen by their overlap with bounding boxes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.data_types import FLOAT, INT32, dtype_name
from penstock.schema import OutputSpec, Sample, Workspace
from penstock.schema.random_operator import RandomOperator

_AXES, _ENDS, _EXTENTS = "xyz", "XYZ", "WHD"
_NOT_GIVEN = np.zeros(0, np.int64)


@dataclass(frozen=True)
class BoxWindow:
    """A crop window and the boxes in it.

    Attributes:
        anchor: its start in x, y, z order, as returned.
        shape: its extents, as returned.
        boxes: those kept, as starts and ends in fractions of the window.
        indices: of the boxes kept.
    """

    anchor: np.ndarray
    shape: np.ndarray
    boxes: np.ndarray
    indices: np.ndarray


class BoxCroppingOperator(RandomOperator[None, BoxWindow]):
    """The base of operators that draw windows until one overlaps the boxes enough."""

    # Whether the first acceptable window drawn for a threshold is used, or the last.
    first_counts: ClassVar[bool] = False
    # Boxes that reach beyond the image are refused.
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
            most=self.args["total_num_attempts"],
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

    def infer(self, sample: Sample[None, BoxWindow]) -> list[tuple[int, ...]]:
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

    def compute(self, sample: Sample[None, BoxWindow]) -> None:
        window, outputs = sample.plan, sample.outputs
        outputs[0][...] = window.anchor
        outputs[1][...] = window.shape
        outputs[2][...] = self._written(window.boxes)
        if len(sample.inputs) > 1:
            outputs[3][...] = sample.inputs[1][window.indices]
        if self.args["output_bbox_indices"]:
            outputs[-1][...] = window.indices

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
        """Boxes as starts, then ends, in x, y, z order."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        others = _ENDS if "X" in layout else _EXTENTS
        read = boxes.take([layout.index(axis) for axis in _AXES[:ndim] + others[:ndim]], axis=1)
        if others is _EXTENTS:
            read[:, ndim:] += read[:, :ndim]
        if self.refuses_outside and read.size and (read.min() < 0 or read.max() > 1):
            outside = read[((read < 0) | (read > 1)).any(axis=1)][0]
            raise RuntimeError(f"The box {outside.tolist()} is out of bounds: coordinates are from 0 to 1")
        return read

    def _written(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes in the user's format."""
        ndim = boxes.shape[1] // 2
        layout = self._layout(ndim)
        if layout == _AXES[:ndim] + _ENDS[:ndim]:
            return boxes
        starts, ends = boxes[:, :ndim], boxes[:, ndim:]
        named = dict(zip(_AXES, starts.T)) | dict(zip(_ENDS, ends.T)) | dict(zip(_EXTENTS, (ends - starts).T))
        return np.stack([named[letter] for letter in layout], axis=1)

    def _extents(self, name: str, sample: Sample, ndim: int) -> np.ndarray:
        """`crop_shape` or `input_shape` in x, y, z order; empty if not given."""
        if not sample.given(name):
            return _NOT_GIVEN
        value, layout = sample[name], self.args["shape_layout"] or _EXTENTS[:ndim]
        if sorted(layout) != sorted(_EXTENTS[:ndim]):
            raise RuntimeError(f"`shape_layout` should be an order of {_EXTENTS[:ndim]}, got '{layout}'")
        if len(value) != ndim:
            raise RuntimeError(f"`{name}` must have {ndim} extents, got {len(value)}")
        return np.array([value[layout.index(axis)] for axis in _EXTENTS[:ndim]], np.int64)

    # -- the search --------------------------------------------------------------------------------------------

    def window(self, sample: Sample, given: np.ndarray) -> BoxWindow:
        """The window for the boxes that are ``given``."""
        from penstock.operators.random._box_search import place, search

        ndim = given.shape[1] // 2
        boxes = self._read(given)
        crop, size = self._extents("crop_shape", sample, ndim), self._extents("input_shape", sample, ndim)
        window, kept = np.zeros(2 * ndim, np.float32), np.zeros(len(boxes), bool)
        rules = self._rules if not len(crop) else self._rules._replace(whole=False)
        met, tries = search(boxes, rules, self._ratios(ndim), crop, size, *self.stream(sample), window, kept)
        if not met and not self.args["quiet"]:
            warnings.warn(
                f"random_bbox_crop found no window that meets the requirements in {tries} attempts; the best one is used",
                stacklevel=2,
            )
        indices = kept.nonzero()[0].astype(np.int32)
        inside = np.empty((len(indices), 2 * ndim), np.float32)
        place(boxes, window, indices, inside)
        anchor, shape = window[:ndim], window[ndim:] - window[:ndim]
        if len(crop):
            anchor, shape = (np.rint(part * size).astype(np.float32) for part in (anchor, shape))
        return BoxWindow(anchor, shape, inside, indices)

    def _ratios(self, ndim: int) -> np.ndarray:
        """The ranges of the aspect ratios for all pairs of axes."""
        ranges, pairs = self._ranges, ndim * (ndim - 1) // 2
        if len(ranges) not in (1, pairs):
            raise RuntimeError(f"`aspect_ratio` has {len(ranges)} ranges, expected 1 or {pairs}")
        return ranges if len(ranges) == pairs else ranges.repeat(pairs, axis=0)
