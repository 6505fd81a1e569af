"""`draw_boxes` colours the pixels of outlines, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(43)
IMAGES = [RNG.integers(0, 256, shape, np.uint8) for shape in ((40, 60, 3), (30, 30, 3), (25, 50, 3))]
BOXES = [
    np.array([[5, 6, 30, 25], [20.4, 10.6, 45, 35], [-5, -5, 10, 60]], np.float32),
    np.zeros((0, 4), np.float32),
    np.array([[0, 0, 50, 25], [10, 10, 12, 11], [20, 20, 10, 10], [1e9, 0, 2e9, np.inf]], np.float32),
]
COLOURS = [[255, 0, 0], [0, 160, 255]]


def outlined(image: np.ndarray, boxes: np.ndarray, thickness: int, labels: np.ndarray) -> np.ndarray:
    result = image.copy()
    y, x = np.indices(image.shape[:2])
    for (left, top, right, bottom), label in zip(np.rint(boxes.astype(np.float64)), labels):
        inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        core = (x >= left + thickness) & (x < right - thickness) & (y >= top + thickness) & (y < bottom - thickness)
        result[inside & ~core] = COLOURS[label % 2]
    return result


def draw(
    labelled: bool = False, images: list[np.ndarray] = IMAGES, boxes: list[np.ndarray] = BOXES, **arguments: Any
) -> Any:
    labels = [np.arange(len(own), dtype=np.int32) - 1 for own in boxes]

    def define() -> Any:
        given = [fn.external_source(name="images", layout="HWC"), fn.external_source(name="boxes", ndim=2)]
        if labelled:
            given.append(fn.external_source(name="labels", ndim=1))
        return fn.draw_boxes(*given, **arguments)

    return outputs(define, images=images, boxes=boxes, **({"labels": labels} if labelled else {}))[0]


@pytest.mark.parametrize("thickness", [1, 2, 7])
def test_outlines(thickness: int) -> None:
    for own, image, boxes in zip(draw(thickness=thickness), IMAGES, BOXES):
        np.testing.assert_array_equal(own, outlined(image, boxes, thickness, np.zeros(len(boxes), int)))


def test_colours_by_label() -> None:
    for own, image, boxes in zip(draw(True, colors=[*COLOURS[0], *COLOURS[1]]), IMAGES, BOXES):
        np.testing.assert_array_equal(own, outlined(image, boxes, 2, np.arange(len(boxes)) - 1))


def test_many_boxes() -> None:
    corners = RNG.uniform(-10, 50, (2000, 2))
    boxes = np.hstack([corners, corners + RNG.uniform(0, 30, (2000, 2))]).astype(np.float32)
    (own,) = draw(images=IMAGES[:1], boxes=[boxes])
    np.testing.assert_array_equal(own, outlined(IMAGES[0], boxes, 2, np.zeros(2000, int)))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (np.zeros((2, 3), np.float32), r"shape \(boxes, 4\)"),
        (np.array([[0, 0, 5, 5], [0, np.nan, 5, 5]], np.float32), "Box 1 has a coordinate that is NaN"),
    ],
)
def test_a_sample_with_bad_boxes_fails_alone(bad: np.ndarray, told: str) -> None:
    def define() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        return fn.draw_boxes(images, fn.external_source(name="boxes", ndim=2))

    received, failures = isolated(define, images=IMAGES, boxes=[BOXES[0], bad, BOXES[2]])
    assert list(failures) == [1]
    with pytest.raises(OperatorError, match=told):
        raise failures[1]
    np.testing.assert_array_equal(received[0][2], outlined(IMAGES[2], BOXES[2], 2, np.zeros(4, int)))


@pytest.mark.parametrize("arguments", [{"thickness": 0}, {"colors": [256, 0, 0]}, {"colors": [1, 2]}])
def test_arguments_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OperatorError), match=next(iter(arguments))):
        draw(**arguments)
