"""`min_area_boxes`: the smallest rectangles around polygons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np

from penstock.data_types import FLOAT, INT32
from penstock.operators.postprocessing._rows import Rows, RowsOperator, Tables, check_real, check_type, firsts_of
from penstock.schema import Argument, Equivalent, Input, OutputSpec, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, fixed_arrays, random_arrays
from penstock.schema.libraries import OPENCV

_POLYGONS = fixed_arrays([[0, 0, 4], [1, 4, 7]], dtype=np.int32)
_VERTICES = fixed_arrays([[2, 3], [20, 5], [19, 15], [1, 13], [24, 2], [30, 9], [23, 12]], dtype=np.int32)


@register_operator
class MinAreaBoxes(RowsOperator):
    """Finds the rectangle of least area around each polygon, at any angle.

    Returns quadrilaterals, FLOAT of shape (boxes, 4, 2): x and y of the corners, clockwise from the upper left one, as
    :func:`perspective_crops` accepts them; scores, FLOAT of shape (boxes,): the mean of the map inside the rectangle, or 1 without a
    map; and the indices of the polygons, INT32 of shape (boxes,). `min_side` and `min_score` apply to rectangles before `grow` enlarges
    them. OpenCV finds the rectangles on the CPU; on a GPU, inputs are copied to the host and results back.

    >>> polygons, vertices = fn.find_contours(probabilities > 0.3)
    >>> lines, scores, _ = fn.min_area_boxes(polygons, vertices, probabilities, min_side=3, min_score=0.6, grow=1.5)  # of text
    """

    schema = Schema(
        name="MinAreaBoxes",
        inputs=(
            Input(
                "polygons",
                doc="INT32, of shape (polygons, 3), as :func:`find_contours` returns them.",
                example=_POLYGONS,
            ),
            Input("vertices", doc="INT32, of shape (vertices, 2): x and y.", example=_VERTICES),
            Input(
                "scores",
                doc="A map of FLOAT or FLOAT16, of shape (height, width): how probable it is that a pixel belongs to an object.",
                example=random_arrays((20, 32), low=0),
            ),
        ),
        min_inputs=2,
        arguments=(
            Argument(
                "grow",
                "float",
                0.0,
                "How far all sides are moved outwards, in units of the rectangle's area divided by its perimeter; detectors of text "
                "that learn to find its core take 1.5 to 2.",
            ),
            Argument(
                "order",
                "string",
                "found",
                "The order of the results: `found`, or `reading`: from top to bottom, and lines side by side from left to right.",
                choices=("found", "reading"),
            ),
            Argument("min_score", "float", 0.0, "Rectangles with a lower score are left out.", example=0.1),
            Argument("min_side", "float", 0.0, "Rectangles with a shorter side, in pixels, are left out.", example=2.0),
        ),
        outputs=3,
        needs=(OPENCV,),
        examples=(
            Example(),
            Example({"grow": 1.5, "min_score": 0.1}, (_POLYGONS, _VERTICES, random_arrays((20, 32), low=0))),
        ),
        equivalents=(Equivalent("cv2.minAreaRect", "For one polygon, as a centre, extents and an angle."),),
    )

    def setup(self) -> None:
        if self.args["order"] not in ("found", "reading"):
            raise ValueError(f"`order` must be `found` or `reading`. Got: {self.args['order']!r}")
        for name in ("grow", "min_score", "min_side"):
            if not 0 <= self.args[name] < math.inf:
                raise ValueError(f"`{name}` must be 0 or more. Got: {self.args[name]:g}")

    def describe(self, workspace: Workspace[None, Tables, Rows]) -> list[OutputSpec]:
        check_type(workspace, 0, "polygons", INT32)
        check_type(workspace, 1, "vertices", INT32)
        if len(workspace.inputs) > 2:
            check_real(workspace, 2, "scores")
        return [OutputSpec(FLOAT, "", 3), OutputSpec(FLOAT, "", 1), OutputSpec(INT32, "", 1)]

    def infer_batch(self, samples: Samples[None, Tables, Rows]) -> tuple[Sequence[np.ndarray], Rows]:
        inputs = [samples.of(batch.samples) for batch in samples.workspace.inputs]
        maps = inputs[2] if len(inputs) > 2 else [None] * len(samples)
        found = [_Boxes([], [], [])] * len(samples)

        def find(number: int) -> None:
            found[number] = self._boxes(inputs[0][number], inputs[1][number], maps[number])

        samples.workspace.parallel(find, len(samples), [vertices.size for vertices in inputs[1]])
        plans = self._joined(found)
        return plans.shapes(), plans

    def _joined(self, found: Sequence[_Boxes]) -> Rows:
        """Return the rectangles of all samples, in the order that `order` asks for."""
        counts = np.fromiter((len(boxes.indices) for boxes in found), np.int64, len(found))
        corners = np.concatenate([np.empty((0, 2), np.float32), *(four for boxes in found for four in boxes.corners)])
        tables = [
            _in_order(corners.reshape(-1, 4, 2)),
            np.array([mean for boxes in found for mean in boxes.means], np.float32),
            np.array([index for boxes in found for index in boxes.indices], np.int32),
        ]
        if self.args["order"] == "reading":
            firsts = firsts_of(counts)
            order = [
                first + index
                for first, end in zip(firsts[:-1].tolist(), firsts[1:].tolist())
                for index in _reading_order(tables[0][first:end])
            ]
            tables = [table[order] for table in tables]
        return Rows(tables, counts[:, None].repeat(3, axis=1))

    def _boxes(self, polygons: np.ndarray, vertices: np.ndarray, scores: np.ndarray | None) -> _Boxes:
        """Return the rectangles of one sample.

        Raises:
            ValueError: an input has the wrong shape, or a polygon refers to missing vertices.
        """
        from penstock.kernels.cpu.opencv import opencv

        if polygons.ndim != 2 or polygons.shape[1] != 3 or vertices.ndim != 2 or vertices.shape[1] != 2:
            raise ValueError(
                "Polygons must have the shape (polygons, 3), and vertices the shape (vertices, 2). Got: "
                f"{list(polygons.shape)} and {list(vertices.shape)}"
            )
        if scores is not None and scores.ndim != 2:
            raise ValueError(f"A map of scores must have the shape (height, width). Got: {list(scores.shape)}")
        cv2, count, points = opencv(), len(vertices), np.ascontiguousarray(vertices)
        min_side, min_score, grow = (self.args[name] for name in ("min_side", "min_score", "grow"))
        likely = None if scores is None else np.ascontiguousarray(scores, np.float32)
        found = _Boxes([], [], [])
        for number, (_, start, end) in enumerate(polygons.tolist()):
            if not 0 <= start < end <= count:
                raise ValueError(f"Polygon {number} has the vertices {start} to {end}, but there are {count} vertices")
            box = cv2.minAreaRect(points[start:end])
            if min(box[1]) < min_side:
                continue
            mean = 1.0 if likely is None else _mean_inside(cv2, likely, cv2.boxPoints(box))
            if not mean >= min_score:
                continue
            found.corners.append(cv2.boxPoints(_grown(box, grow)))
            found.means.append(mean)
            found.indices.append(number)
        return found


class _Boxes(NamedTuple):
    """The rectangles of a sample.

    Attributes:
        corners: the corners of each, float32 of shape (4, 2), in OpenCV's order.
        means: the mean score in each.
        indices: the polygon of each.
    """

    corners: list[np.ndarray]
    means: list[float]
    indices: list[int]


def _reading_order(corners: np.ndarray) -> list[int]:
    """Return the indices of rectangles in reading order: lines from top to bottom, and each line from left to right.

    A line begins with the highest rectangle that is left, and includes all whose middles are lower by at most half its height.
    """
    middles, highs = corners[:, :, 1].mean(axis=1), np.ptp(corners[:, :, 1], axis=1)
    lefts = corners[:, :, 0].min(axis=1)
    lines: list[list[int]] = []
    for index in np.argsort(middles, kind="stable").tolist():
        first = lines[-1][0] if lines else index
        if lines and middles[index] - middles[first] <= highs[first] / 2:
            lines[-1].append(index)
        else:
            lines.append([index])
    return [index for line in lines for index in sorted(line, key=lefts.__getitem__)]


def _grown(
    box: tuple[tuple[float, float], tuple[float, float], float], grow: float
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return a rectangle (centre, extents, angle) with its sides moved outwards by ``grow`` times its area over its perimeter."""
    centre, (wide, high), angle = box
    if not grow or not wide + high:
        return box
    distance = wide * high * grow / (2 * (wide + high))
    return centre, (wide + 2 * distance, high + 2 * distance), angle


def _in_order(corners: np.ndarray) -> np.ndarray:
    """Return the corners of rectangles, of shape (n, 4, 2), clockwise from the upper one of the two leftmost corners."""
    by_x = _sorted(corners, 0)
    left, right = _sorted(by_x[:, :2], 1), _sorted(by_x[:, 2:], 1)
    return np.stack([left[:, 0], right[:, 0], right[:, 1], left[:, 1]], axis=1)


def _sorted(corners: np.ndarray, axis: int) -> np.ndarray:
    """Return corners of shape (n, corners, 2), sorted by x (``axis`` 0) or y (``axis`` 1)."""
    order = np.argsort(corners[..., axis], axis=1, kind="stable")
    return np.take_along_axis(corners, order[..., None], axis=1)


def _mean_inside(cv2: ModuleType, scores: np.ndarray, corners: np.ndarray) -> float:
    """Return the mean of the scores in the pixels of a rectangle; 0 if no pixel of it is on the map."""
    height, width = scores.shape
    low = np.clip(np.floor(corners.min(axis=0)), 0, (width, height)).astype(int)
    high = np.clip(np.ceil(corners.max(axis=0)) + 1, 0, (width, height)).astype(int)
    part = scores[low[1] : high[1], low[0] : high[0]]
    if not part.size:
        return 0.0
    mask = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(mask, [np.trunc(corners - low).astype(np.int32)], 1)
    return float(cv2.mean(part, mask)[0])
