"""`segmentation.random_object_bbox`: the bounding box of a random object in a label map."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from penstock.data_types import BOOL, INT8, INT16, INT32, UINT8, UINT16, UINT32, dtype_name
from penstock.kernels.boxes import volumes
from penstock.kernels.random_streams import bounded, philox
from penstock.schema import Argument, Input, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import random_arrays
from penstock.schema.random_operator import RandomOperator

_FORMATS = ("anchor_shape", "start_end", "box")
_CLASS_ARGUMENTS = ("classes", "class_weights", "output_class")


@register_operator
class RandomObjectBBox(RandomOperator[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]]):
    """Draws a class, then one of its objects, and returns the object's bounding box.

    An object is a set of elements with the same label, connected by shared faces. With probability
    ``1 - foreground_prob``, or if no object fits, the box is the whole map.

    >>> anchor, shape = fn.segmentation.random_object_bbox(labels, k_largest=3)
    """

    schema = Schema(
        name="segmentation__RandomObjectBBox",
        fn="segmentation.random_object_bbox",
        devices=("cpu",),
        inputs=(
            Input(
                "input",
                doc="Label maps: integers of up to 32 bits, of 1 to 6 dimensions.",
                example=random_arrays((9, 8), (5, 6), (7, 7), dtype=np.int32, low=0, high=3),
            ),
        ),
        arguments=(
            Argument(
                "background",
                "int32",
                0,
                "The label of the background; by default 0, or one less than the lowest class if 0 is a class.",
                tensor=True,
                zero_dimensional=True,
            ),
            Argument("cache_objects", "bool", False, "Accepted for compatibility."),
            Argument(
                "class_weights",
                "float[]",
                None,
                "Relative probabilities of the classes; without `classes`, of the labels from 0 on except the background.",
                tensor=True,
                example=[0.3, 0.7],
            ),
            Argument(
                "classes",
                "int32[]",
                None,
                "The labels to draw from; by default all except the background.",
                tensor=True,
                example=[1, 2],
            ),
            Argument(
                "foreground_prob",
                "float",
                1.0,
                "The probability of drawing an object.",
                tensor=True,
                zero_dimensional=True,
            ),
            Argument(
                "format",
                "string",
                "anchor_shape",
                "`anchor_shape` and `start_end`: two outputs; `box`: one, starts followed by ends.",
                choices=("anchor_shape", "start_end", "box"),
            ),
            Argument("ignore_class", "bool", False, "Treat all labels except the background as one class."),
            Argument(
                "k_largest", "int32", None, "Draw only from this number of objects with the largest boxes.", example=2
            ),
            Argument("output_class", "bool", False, "Return the object's class as one more output."),
            Argument(
                "threshold",
                "int32[]",
                None,
                "The minimum extents of an object: one, or one for each dimension.",
                tensor=True,
                uniform=True,
                example=[1],
                tensor_example=1,
            ),
        ),
        outputs=lambda arguments: (1 if arguments.get("format") == "box" else 2) + bool(arguments.get("output_class")),
        random=True,
        stateful=True,
    )

    def setup(self) -> None:
        if self.args["format"] not in _FORMATS:
            raise RuntimeError(
                f'Invalid output format: "{self.args["format"]}". Possible values: {", ".join(_FORMATS)}'
            )
        if self.args["ignore_class"] and self._distinguishes_classes():
            names = ", ".join(_CLASS_ARGUMENTS)
            raise RuntimeError(f"Class-related arguments ({names}) cannot be used when ``ignore_class`` is True")
        if self.args["k_largest"] is not None and self.args["k_largest"] < 1:
            raise RuntimeError(f"``k_largest`` must be at least 1; got {self.args['k_largest']}")

    def _distinguishes_classes(self) -> bool:
        return any(self.given(name) and self.args.get(name) is not False for name in _CLASS_ARGUMENTS)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype not in (BOOL, INT8, INT16, INT32, UINT8, UINT16, UINT32):
            raise RuntimeError(f"Unsupported input type: {dtype_name(batch.dtype)}")
        if len(batch) and not 1 <= batch.ndim() <= 6:
            raise RuntimeError(f"Unsupported number of dimensions {batch.ndim()}; must be 1 to 6")
        coordinates = OutputSpec(INT32, "", 1)
        boxes = [coordinates] if self.args["format"] == "box" else [coordinates, coordinates]
        return [*boxes, OutputSpec(INT32, "", 0)] if self.args["output_class"] else boxes

    def infer(
        self, sample: Sample[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]]
    ) -> list[tuple[int, ...]]:
        ndim = len(sample.shapes[0])
        boxes: list[tuple[int, ...]] = [(2 * ndim,)] if self.args["format"] == "box" else [(ndim,), (ndim,)]
        sample.plan = self._classes(sample), self._threshold(sample, ndim)
        return [*boxes, ()] if self.args["output_class"] else boxes

    def _threshold(
        self, sample: Sample[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]], ndim: int
    ) -> np.ndarray:
        threshold, computed = sample["threshold"], sample.tensor_argument("threshold")
        if threshold is None or (computed is not None and not computed.ndim):
            threshold = threshold or [0]
        if len(threshold) not in ((1, ndim) if computed is None or not computed.ndim else (ndim,)):
            raise RuntimeError(
                f'Argument "threshold" expected shape {ndim} but got {len(threshold)} values, '
                "which can't be interpreted as the expected shape."
            )
        return np.array(threshold, np.int64)

    def _classes(
        self, sample: Sample[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]]
    ) -> tuple[int, list[int] | None, list[float] | None]:
        """Return the background label, the classes (None: all that occur) and their weights (None: all are equal)."""
        classes, weights, background = sample["classes"], sample["class_weights"], sample["background"]
        if classes is not None and weights is not None and len(classes) != len(weights):
            raise RuntimeError(
                "If both ``classes`` and ``class_weights`` are provided, their shapes must match. Got:\n"
                f"  classes.shape = {{{len(classes)}}}\n  weights.shape = {{{len(weights)}}}"
            )
        if classes and background in classes:
            if sample.given("background"):
                raise RuntimeError(
                    f"Class label {background} coincides with background label: take it out of `classes` or name "
                    "another background"
                )
            background = _below(classes)
        if classes is None and weights is not None:
            labels = (label for label in itertools.count() if label != background)
            classes = list(itertools.islice(labels, len(weights)))
        return background, classes, weights

    def compute(
        self, sample: Sample[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]]
    ) -> None:
        label, box = self._drawn(sample)
        ndim, outputs = len(box) // 2, sample.outputs
        if self.args["output_class"]:
            outputs[-1][...] = label
        if self.args["format"] == "box":
            outputs[0][...] = box
            return
        starts, ends = box[:ndim], box[ndim:]
        outputs[0][...] = starts
        outputs[1][...] = ends if self.args["format"] == "start_end" else ends - starts

    def _drawn(
        self, sample: Sample[None, tuple[tuple[int, list[int] | None, list[float] | None], np.ndarray]]
    ) -> tuple[int, np.ndarray]:
        """Return the class and the box of a random object, or, if no object is drawn, the background and the whole map's box."""
        labels, draws = sample.inputs[0], philox(self.stream(sample))
        (background, classes, weights), threshold = sample.plan
        whole = background, np.array([0] * labels.ndim + list(labels.shape))
        if _fraction(draws) >= sample["foreground_prob"]:
            return whole
        if self.args["ignore_class"]:
            boxes = self._objects(labels, labels != background, threshold)
            return (background, boxes[bounded(draws, len(boxes))]) if len(boxes) else whole
        left = _candidates(labels, background, classes, weights)
        while left:
            chosen = _weighted([weight for _, weight in left], draws)
            if chosen is None:
                break
            label, _ = left.pop(chosen)
            boxes = self._objects(labels, labels == label, threshold)
            if len(boxes):
                return label, boxes[bounded(draws, len(boxes))]
        return whole

    def _objects(self, labels: np.ndarray, wanted: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        """Return the boxes of objects among the wanted elements: all that reach ``threshold``, or only the ``k_largest`` largest."""
        from penstock.operators.segmentation._components_cpu import component_boxes

        boxes = component_boxes(labels, wanted)
        if threshold.any():
            boxes = boxes[((boxes[:, labels.ndim :] - boxes[:, : labels.ndim]) >= threshold).all(axis=1)]
        max_objects = self.args["k_largest"]
        if max_objects is None or max_objects >= len(boxes):
            return boxes
        return boxes[np.argsort(-volumes(boxes), kind="stable")[:max_objects]]


def _candidates(
    labels: np.ndarray, background: int, classes: Sequence[int] | None, weights: Sequence[float] | None
) -> list[tuple[int, float]]:
    """Return pairs of a class that occurs in ``labels`` and its weight."""
    present = np.unique(labels).tolist()
    if classes is None:
        return [(int(label), 1.0) for label in present if label != background]
    return [(label, weight) for label, weight in zip(classes, weights or itertools.repeat(1.0)) if label in present]


def _fraction(draws: Iterator[int]) -> float:
    """Return a number in [0, 1) from 64 random bits."""
    low = next(draws)
    return (low + next(draws) * 2.0**32) * 2.0**-64


def _weighted(weights: Sequence[float], draws: Iterator[int]) -> int | None:
    """Return an index drawn with probabilities proportional to ``weights``; None if all weights are 0."""
    sums = list(itertools.accumulate(weights))
    if not sums[-1] > 0:
        return None
    return min(bisect.bisect_left([part / sums[-1] for part in sums], _fraction(draws)), len(sums) - 1)


def _below(classes: list[int]) -> int:
    """Return a label that is not a class: the lowest class minus 1, wrapped around to int32, or the next lower free number."""
    label = min(classes) - 1
    if label < -(2**31):
        label += 2**32
    while label in classes:
        label -= 1
    return label
