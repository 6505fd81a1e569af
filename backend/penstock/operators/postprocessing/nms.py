"""`nms`: non-maximum suppression of a detector's boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.data_types import FLOAT, INT32, UINT8
from penstock.operators.postprocessing._axis import names_of
from penstock.operators.postprocessing._rows import (
    Rows,
    RowsOperator,
    Tables,
    check_real,
    check_type,
    elements_of,
    firsts_of,
)
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Samples,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, ExampleSamples
from penstock.schema.sharing import share

if TYPE_CHECKING:
    from penstock.operators.postprocessing._nms_cuda import KeptColumns

_FORMS = ("xyXY", "xyWH")


def _overlapping_boxes(layout: str = "") -> ExampleSamples:
    """Return boxes in pixels, several for each object."""

    def make(index: int) -> np.ndarray:
        rng = np.random.default_rng([index, 4])
        corners = rng.uniform(0, 200, (3, 1, 2)) + rng.uniform(0, 12, (3, 4, 2))
        extents = rng.uniform(30, 60, (3, 1, 2)) + rng.uniform(0, 6, (3, 4, 2))
        boxes = np.concatenate([corners, corners + extents], axis=2).reshape(-1, 4)
        return boxes[: (12, 7, 9)[index % 3]].astype(np.float32)

    return ExampleSamples(make, bad=np.zeros((2, 3), np.float32))


def _scores_of(classes: tuple[int, ...] = ()) -> ExampleSamples:
    def make(index: int) -> np.ndarray:
        count = (12, 7, 9)[index % 3]
        return np.random.default_rng([index, 5]).random((count, *classes)).astype(np.float32)

    return ExampleSamples(make)


def _labels(layout: str = "") -> ExampleSamples:
    return ExampleSamples(lambda index: np.arange((12, 7, 9)[index % 3], dtype=np.int32) % 2)


@register_operator
class NMS(RowsOperator):
    """Keeps the boxes that do not overlap a better one of their class, best first: non-maximum suppression.

    Boxes are processed in descending order of their scores, equal scores in input order; each box suppresses later boxes whose
    intersection over union with it is above a threshold. Returns the remaining boxes (FLOAT, unchanged), their scores (FLOAT),
    labels (INT32: the class of the score, or the input label, or 0) and indices (INT32, among the sample's boxes); with
    `names`, also the names of the labels, which are strings: rows of UINT8, padded with zeros. Arithmetic is in single
    precision, like torchvision's. A sample fails if a score is NaN, or if a box with a score above the threshold is not
    finite.

    >>> boxes, scores, labels, _ = fn.nms(boxes, scores, score_threshold=0.05, max_boxes=100)
    """

    schema = Schema(
        name="NMS",
        inputs=(
            Input("boxes", doc="FLOAT or FLOAT16, of shape (boxes, 4).", example=_overlapping_boxes),
            Input(
                "scores",
                doc="FLOAT or FLOAT16, of shape (boxes,), or (boxes, classes): then each box is a candidate for each class.",
                example=lambda layout: _scores_of(),
            ),
            Input(
                "labels",
                doc="INT32, of shape (boxes,): the classes, if there is one score for each box.",
                example=_labels,
            ),
        ),
        min_inputs=2,
        arguments=(
            Argument(
                "box_form",
                "string",
                "xyXY",
                "`xyXY`: left, top, right, bottom; `xyWH`: left, top, width, height.",
                choices=_FORMS,
            ),
            Argument("class_wise", "bool", True, "Boxes of different classes do not suppress one another."),
            Argument(
                "iou_threshold",
                "float",
                0.5,
                "The intersection over union above which a box is suppressed, 0 to 1.",
                tensor=True,
            ),
            Argument(
                "max_boxes", "int32", 0, "The number of boxes to keep of a sample; 0: all.", tensor=True, example=4
            ),
            Argument(
                "max_candidates",
                "int32",
                0,
                "Of each class (with `class_wise=False`, of all), only this many boxes with the highest scores are considered; 0: all.",
                example=3,
            ),
            Argument(
                "names",
                "string[]",
                None,
                "The names of the classes, which become a further output.",
                example=["cat", "dog", "owl"],
            ),
            Argument(
                "score_threshold",
                "float",
                None,
                "Only scores above it are considered; by default all.",
                tensor=True,
                example=0.3,
            ),
        ),
        outputs=lambda arguments: 4 if arguments.get("names") is None else 5,
        examples=(
            Example(),
            Example(inputs=(_overlapping_boxes, lambda layout: _scores_of(), _labels)),
            Example({"score_threshold": 0.4}, (_overlapping_boxes, lambda layout: _scores_of((3,)))),
        ),
        equivalents=(
            Equivalent(
                "torchvision.ops.nms", "It returns indices only, and knows neither classes nor thresholds of scores."
            ),
            Equivalent("torchvision.ops.batched_nms"),
            Equivalent("cv2.dnn.NMSBoxes", "Boxes are left, top, width, height."),
        ),
    )

    # Launches cannot be replayed, because the host waits for the number of remaining boxes.
    repeatable = False

    def setup(self) -> None:
        if self.args["box_form"] not in _FORMS:
            raise ValueError(f"`box_form` must be one of {', '.join(_FORMS)}. Got: {self.args['box_form']!r}")
        for name in ("max_boxes", "max_candidates"):
            if self.args[name] < 0:
                raise ValueError(f"`{name}` must be 0 or more. Got: {self.args[name]}")
        self._names = None if self.args["names"] is None else names_of(self.args["names"])

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        check_real(workspace, 0, "boxes")
        check_real(workspace, 1, "scores")
        if len(workspace.inputs) > 2:
            check_type(workspace, 2, "labels", INT32)
        specs = [OutputSpec(FLOAT, "", 2), OutputSpec(FLOAT, "", 1), OutputSpec(INT32, "", 1), OutputSpec(INT32, "", 1)]
        return specs if self._names is None else [*specs, OutputSpec(UINT8, "", 2)]

    def run_batch(self, workspace: Workspace[None, Tables, Rows]) -> None:
        # Unlike other `RowsOperator`s, this operator has kernels for GPUs, so inputs can stay on the GPU.
        Operator.run_batch(self, workspace)

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Any]:
        if samples.workspace.device != "cpu":
            return self._infer_on_gpu(samples)
        from penstock.operators.postprocessing._nms_cpu import count_candidates, suppress

        count, workspace = len(samples), samples.workspace
        box_counts, classes = self._shapes(samples)
        thresholds, overlaps, limits = self._settings(samples)
        boxes, scores = elements_of(samples, 0, np.float32).reshape(-1, 4), elements_of(samples, 1, np.float32)
        has_labels = len(workspace.inputs) > 2
        labels = elements_of(samples, 2, np.int32) if has_labels else np.empty(0, np.int32)
        sizes = box_counts * classes
        box_firsts, score_firsts = firsts_of(box_counts), firsts_of(sizes)
        candidates, faults = np.empty(count, np.int64), np.empty(count, np.int64)
        share(
            workspace,
            lambda begin, end: count_candidates(scores, score_firsts, thresholds, begin, end, candidates, faults),
            sizes,
        )
        _check(faults, "Score {} is NaN")
        firsts = firsts_of(candidates)
        kept, counts = np.empty(firsts[-1], np.int64), np.empty(count, np.int64)
        share(
            workspace,
            lambda begin, end: suppress(
                boxes,
                scores,
                labels,
                box_firsts,
                score_firsts,
                classes,
                firsts,
                thresholds,
                overlaps,
                limits,
                self.args["max_candidates"],
                self.args["class_wise"],
                self.args["box_form"] == "xyWH",
                begin,
                end,
                kept,
                counts,
                faults,
            ),
            sizes,
        )
        _check(faults, "Box {} has a coordinate that is not finite")
        chosen = np.concatenate([kept[first : first + own] for first, own in zip(firsts.tolist(), counts.tolist())])
        per_box = classes.repeat(counts)
        indices = chosen // per_box
        rows = box_firsts[:-1].repeat(counts) + indices
        own = labels[rows] if has_labels else chosen % per_box
        tables = [boxes[rows], scores[score_firsts[:-1].repeat(counts) + chosen], own, indices]
        if self._names is not None:
            bad = np.flatnonzero((own < 0) | (own >= len(self._names)))
            if len(bad):
                raise ValueError(
                    f"There is a box of class {own[bad[0]]}, but `names` has only {len(self._names)} names"
                )
            tables.append(self._names[own])
        plans = Rows(tables, counts[:, None].repeat(len(tables), axis=1))
        return plans.shapes(), plans

    def _infer_on_gpu(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], KeptColumns]:
        from penstock.operators.postprocessing._nms_cuda import Detected, Settings, suppress_boxes

        _, classes = self._shapes(samples)
        settings = Settings(
            *self._settings(samples),
            self.args["max_candidates"],
            self.args["class_wise"],
            self.args["box_form"] == "xyWH",
            0 if self._names is None else len(self._names),
        )
        kept = suppress_boxes(Detected.of(samples.workspace.inputs, samples.indices), classes, settings)
        counts = kept.counts[:, None]
        shapes = [np.column_stack([counts, np.full(len(kept), 4)]), counts, counts, counts]
        if self._names is not None:
            shapes.append(np.column_stack([counts, np.full(len(kept), self._names.shape[1])]))
        return shapes, kept

    def compute_batch(self, workspace: Workspace[None, Any, Any]) -> None:
        from penstock.kernels.cuda.launch import columns_of, locate_all
        from penstock.operators.postprocessing._axis_cuda import write_names
        from penstock.operators.postprocessing._nms_cuda import Detected, gather_kept

        indices, outputs = workspace.live_indices, workspace.outputs
        targets = [columns_of(batch, indices) for batch in outputs[:4]]
        gather_kept(Detected.of(workspace.inputs, indices), workspace.plans, targets)
        if self._names is not None:
            labels, names = (locate_all(batch, workspace.live) for batch in (outputs[2], outputs[4]))
            write_names(labels, names, self._names)

    def _shapes(self, samples: Samples[None, Tables, Rows]) -> tuple[np.ndarray, np.ndarray]:
        """Return each sample's number of boxes and its number of scores per box.

        Raises:
            ValueError: the shapes of inputs do not match each other.
        """
        boxes, scores = samples.shapes(0), samples.shapes(1)
        if boxes.shape[1] != 2 or (boxes[:, 1] != 4).any():
            raise ValueError(f"Boxes must have the shape (boxes, 4). Got: {boxes[0].tolist()}")
        if scores.shape[1] not in (1, 2) or (scores[:, 0] != boxes[:, 0]).any():
            raise ValueError(
                f"Scores must have the shape (boxes,) or (boxes, classes). Got: {scores[0].tolist()} for {boxes[0, 0]} boxes"
            )
        classes = np.ascontiguousarray(scores[:, 1]) if scores.shape[1] == 2 else np.ones(len(boxes), np.int64)
        if len(samples.workspace.inputs) > 2:
            labels = samples.shapes(2)
            if scores.shape[1] != 1:
                raise ValueError("With `labels`, scores must have the shape (boxes,): one for each box")
            if labels.shape[1] != 1 or (labels[:, 0] != boxes[:, 0]).any():
                raise ValueError(
                    f"Labels must have the shape (boxes,). Got: {labels[0].tolist()} for {boxes[0, 0]} boxes"
                )
        return boxes[:, 0], classes

    def _settings(self, samples: Samples[None, Tables, Rows]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each sample's score threshold, overlap threshold, and largest number of boxes."""
        count = len(samples)
        scores, overlaps = np.full(count, -np.inf, np.float32), np.empty(count, np.float32)
        if samples.given("score_threshold"):
            scores[:] = samples.scalars("score_threshold")
        overlaps[:] = samples.scalars("iou_threshold")
        limits = np.empty(count, np.int64)
        limits[:] = samples.scalars("max_boxes")
        if np.isnan(scores).any():
            raise ValueError("`score_threshold` must be a number. Got: nan")
        if not ((overlaps >= 0) & (overlaps <= 1)).all():
            raise ValueError(f"`iou_threshold` must be from 0 to 1. Got: {overlaps[0]:g}")
        if (limits < 0).any():
            raise ValueError(f"`max_boxes` must be 0 or more. Got: {limits[0]}")
        limits[limits == 0] = np.iinfo(np.int64).max
        return scores, overlaps, limits


def _check(faults: np.ndarray, told: str) -> None:
    """Raise ValueError with the message ``told`` if a sample has a fault, which is a number of at least 0."""
    found = faults[faults >= 0]
    if len(found):
        raise ValueError(told.format(found[0]))
