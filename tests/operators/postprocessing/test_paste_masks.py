"""`paste_masks` compared with masks that are padded, resized as a whole, and cropped, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(41)
SIZE = (40, 60)
BOXES = [
    np.array([[5, 6, 30.5, 25.25], [-20, -10, 15, 50], [55, 35, 90, 70], [10, 10, 10.2, 10.1]], np.float32),
    np.zeros((0, 4), np.float32),
    np.array([[0, 0, 60, 40], [100, 100, 120, 130]], np.float32),
]
MASKS = [RNG.random((len(boxes), 14, 14), np.float32) for boxes in BOXES]


def taps(extent: int, given: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = ((np.arange(extent) + 0.5) * (given / extent) - 0.5).clip(0)
    first = places.astype(int)
    return first, np.minimum(first + 1, given - 1), places - first


def pasted(mask: np.ndarray, box: np.ndarray) -> np.ndarray:
    padded = np.pad(mask.astype(np.float64), 1)
    half = (
        (box[2:] - box[:2])
        / 2
        * np.array([padded.shape[1] / mask.shape[1], padded.shape[0] / mask.shape[0]], np.float32)
    )
    centre = (box[2:] + box[:2]) / 2
    left, top = (int(edge) for edge in centre - half)
    wide, high = (max(int(edge) - first + 1, 1) for edge, first in zip(centre + half, (left, top)))
    upper, lower, down = taps(high, padded.shape[0])
    before, after, along = taps(wide, padded.shape[1])
    rows = padded[upper] * (1 - down[:, None]) + padded[lower] * down[:, None]
    whole = rows[:, before] * (1 - along) + rows[:, after] * along
    canvas = np.zeros((SIZE[0] + 400, SIZE[1] + 400))
    canvas[200 + top : 200 + top + high, 200 + left : 200 + left + wide] = whole
    return canvas[200 : 200 + SIZE[0], 200 : 200 + SIZE[1]]


def paste(masks: list[np.ndarray], boxes: list[np.ndarray], **arguments: Any) -> list[np.ndarray]:
    def define() -> Any:
        given = fn.external_source(name="masks", ndim=3), fn.external_source(name="boxes", ndim=2)
        return fn.paste_masks(*given, **{"size": list(SIZE), **arguments})

    return outputs(define, masks=masks, boxes=boxes)[0]


def test_probabilities() -> None:
    for own, masks, boxes in zip(paste(MASKS, BOXES), MASKS, BOXES):
        assert own.shape == (len(boxes), *SIZE)
        for image, mask, box in zip(own, masks, boxes):
            np.testing.assert_allclose(image, pasted(mask, box), atol=2e-6)


def test_objects() -> None:
    for own, probabilities in zip(paste(MASKS, BOXES, threshold=0.5), paste(MASKS, BOXES)):
        assert own.dtype == np.uint8
        np.testing.assert_array_equal(own, probabilities > 0.5)


def test_images_of_different_sizes_and_half_precision() -> None:
    def define() -> Any:
        given = fn.external_source(name="masks", ndim=3), fn.external_source(name="boxes", ndim=2)
        return fn.paste_masks(*given, size=fn.external_source(name="size", ndim=1))

    halves = [masks.astype(np.float16) for masks in MASKS]
    sizes = [np.array(size, np.int32) for size in ((40, 60), (3, 5), (20, 100))]
    received = outputs(define, masks=halves, boxes=BOXES, size=sizes)[0]
    assert [own.shape for own in received] == [(4, 40, 60), (0, 3, 5), (2, 20, 100)]
    whole = paste([masks.astype(np.float32) for masks in halves], BOXES)
    np.testing.assert_array_equal(received[0], whole[0])
    np.testing.assert_array_equal(received[2][:, :, :60], whole[2][:, :20])


@pytest.mark.parametrize(
    ("boxes", "told"),
    [
        (BOXES[0][:2], r"boxes the shape \(boxes, 4\)"),
        (np.where(np.arange(16).reshape(4, 4) == 9, np.nan, BOXES[0]).astype(np.float32), "Box 2 has a coordinate"),
        (BOXES[0] + np.float32(1e9), "Box 0 has a coordinate"),
    ],
)
def test_a_sample_with_bad_boxes_fails_alone(boxes: np.ndarray, told: str) -> None:
    def define() -> Any:
        given = fn.external_source(name="masks", ndim=3), fn.external_source(name="boxes", ndim=2)
        return fn.paste_masks(*given, size=list(SIZE))

    received, failures = isolated(define, masks=[MASKS[2], MASKS[0], MASKS[2]], boxes=[BOXES[2], boxes, BOXES[2]])
    assert list(failures) == [1]
    with pytest.raises(OperatorError, match=told):
        raise failures[1]
    np.testing.assert_array_equal(received[0][0], received[0][2])


@pytest.mark.parametrize("arguments", [{"size": [0, 4]}, {"size": [4]}, {"threshold": 2.0}])
def test_arguments_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OperatorError), match=next(iter(arguments))):
        paste(MASKS, BOXES, **arguments)
