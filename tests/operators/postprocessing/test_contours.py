"""`find_contours` and `min_area_boxes` equal OpenCV's results, and find the rectangles that were drawn."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(37)
# Rectangles that do not touch, each as its centre, extents and angle.
DRAWN = [((40.0, 30.0), (50.0, 14.0), 12.0), ((110.0, 60.0), (60.0, 20.0), -25.0), ((40.0, 90.0), (30.0, 30.0), 0.0)]


def drawn(rectangles: list[Any]) -> np.ndarray:
    mask = np.zeros((130, 170), np.uint8)
    for rectangle in rectangles:
        cv2.fillPoly(mask, [np.rint(cv2.boxPoints(rectangle)).astype(np.int32)], 255)
    return mask


def noise() -> np.ndarray:
    return (cv2.GaussianBlur(RNG.random((64, 80), np.float32), (7, 7), 0) > 0.5).astype(np.uint8)


MASKS = [drawn(DRAWN), np.zeros((5, 9), np.uint8), noise(), np.ones((1, 1), np.uint8), np.zeros((0, 4), np.uint8)]


def contours(masks: list[np.ndarray], layout: str = "HW", **arguments: Any) -> Any:
    return outputs(lambda: fn.find_contours(fn.external_source(name="masks", layout=layout), **arguments), masks=masks)


@pytest.mark.parametrize("mode", ["external", "list"])
@pytest.mark.parametrize("approximation", ["simple", "none"])
def test_contours_are_opencvs(mode: str, approximation: str) -> None:
    flags = getattr(cv2, f"RETR_{mode.upper()}"), getattr(cv2, f"CHAIN_APPROX_{approximation.upper()}")
    polygons, vertices = contours(MASKS, mode=mode, approximation=approximation)
    for mask, own, points in zip(MASKS, polygons, vertices):
        expected = [outline.reshape(-1, 2) for outline in cv2.findContours(mask, *flags)[0]] if mask.size else []
        assert own[:, 0].tolist() == list(range(len(expected)))
        assert len(points) == sum(map(len, expected))
        for (_, start, end), outline in zip(own, expected, strict=True):
            np.testing.assert_array_equal(points[start:end], outline)


def test_masks_of_bool_and_of_one_channel() -> None:
    expected = contours([MASKS[2]] * 2)
    for masks, layout in (
        ([MASKS[2] > 0] * 2, "HW"),
        ([MASKS[2][..., None]] * 2, "HWC"),
        ([MASKS[2][None]] * 2, "CHW"),
    ):
        for own, other in zip(contours(masks, layout), expected):
            np.testing.assert_array_equal(own[1], other[1])


def test_the_number_of_contours_is_limited() -> None:
    whole, limited = contours([MASKS[2]]), contours([MASKS[2]], max_contours=2)
    np.testing.assert_array_equal(limited[0][0], whole[0][0][:2])
    np.testing.assert_array_equal(limited[1][0], whole[1][0][: whole[0][0][1, 2]])


@pytest.mark.parametrize("masks", [[np.zeros((4, 4, 2), np.uint8)], [np.zeros((4, 4, 1), np.float32)]])
def test_masks_that_are_refused(masks: list[np.ndarray]) -> None:
    with pytest.raises(OperatorError, match=r"one channel|compare with a threshold"):
        contours(masks, "HWC")
    with pytest.raises(ValueError, match="`mode` must be one of"):
        contours(MASKS, mode="tree")


def boxes(masks: list[np.ndarray], maps: list[np.ndarray] | None = None, **arguments: Any) -> Any:
    def define() -> Any:
        found = fn.find_contours(fn.external_source(name="masks", layout="HW"))
        given = [] if maps is None else [fn.external_source(name="maps", ndim=2)]
        return tuple(fn.min_area_boxes(*found, *given, **arguments))

    return outputs(define, masks=masks, **({} if maps is None else {"maps": maps}))


def test_rectangles_that_were_drawn_are_found() -> None:
    corners, scores, indices = boxes(MASKS[:2])
    assert [len(own) for own in corners] == [3, 0]
    assert corners[1].shape == (0, 4, 2)
    assert scores[0].tolist() == [1, 1, 1]
    assert indices[0].tolist() == [0, 1, 2]
    for rectangle in DRAWN:
        centre = np.array(rectangle[0])
        own = min(corners[0], key=lambda quad: float(np.abs(quad.mean(axis=0) - centre).max()))
        expected = cv2.boxPoints(rectangle)
        for corner in expected:
            assert np.abs(own - corner).max(axis=1).min() < 1.5
        left, right = own[[0, 3]], own[[1, 2]]
        assert left[0, 1] < left[1, 1]
        assert right[0, 1] < right[1, 1]
        assert left[:, 0].max() <= right[:, 0].min() + 1e-3


def test_rectangles_grow_by_their_area_over_their_perimeter() -> None:
    corners, grown = boxes([MASKS[0]])[0][0], boxes([MASKS[0]], grow=1.5)[0][0]
    for small, large in zip(corners, grown):
        wide, high = np.linalg.norm(small[1] - small[0]), np.linalg.norm(small[3] - small[0])
        distance = wide * high * 1.5 / (2 * (wide + high))
        np.testing.assert_allclose(large.mean(axis=0), small.mean(axis=0), atol=1e-3)
        np.testing.assert_allclose(np.linalg.norm(large[1] - large[0]), wide + 2 * distance, rtol=1e-4)
        np.testing.assert_allclose(np.linalg.norm(large[3] - large[0]), high + 2 * distance, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_scores_are_means_inside(dtype: Any) -> None:
    likely = np.where(MASKS[0] > 0, 0.75, 0.1).astype(dtype)
    likely[:, 100:] *= 0.5
    corners, scores, indices = boxes([MASKS[0]], [likely], min_score=0.5)
    assert len(scores[0]) == 2
    assert (corners[0][:, :, 0] < 100).all()
    for quadrilateral, score in zip(corners[0], scores[0]):
        inside = cv2.fillPoly(np.zeros(MASKS[0].shape, np.uint8), [quadrilateral.astype(np.int32)], 1)
        np.testing.assert_allclose(score, likely[inside > 0].astype(np.float32).mean(), rtol=1e-5)
    _, everything, all_indices = boxes([MASKS[0]], [likely])
    kept = np.isin(all_indices[0], indices[0])
    assert (everything[0][~kept] < 0.5).all()


def test_small_rectangles_are_left_out() -> None:
    corners, _, indices = boxes(MASKS[:1], min_side=16)
    assert len(corners[0]) == len(indices[0]) == 2
    assert len(boxes(MASKS[3:4], min_side=1)[0][0]) == 0
    assert len(boxes(MASKS[3:4])[0][0]) == 1


def test_a_map_of_another_size() -> None:
    _, scores, _ = boxes([MASKS[0]], [np.ones((20, 20), np.float32)])
    assert scores[0].min() == 0


POLYGONS, VERTICES = np.array([[0, 0, 3]], np.int32), np.array([[0, 0], [9, 0], [9, 9]], np.int32)


@pytest.mark.parametrize(
    ("polygons", "vertices", "told"),
    [
        (POLYGONS + 1, VERTICES, "Polygon 0 has the vertices 1 to 4, but there are 3"),
        (POLYGONS * 0, VERTICES, "Polygon 0 has the vertices 0 to 0"),
        (POLYGONS[:, :2], VERTICES, r"shape \(polygons, 3\)"),
        (POLYGONS, VERTICES[:, :1], r"the shape \(vertices, 2\)"),
    ],
)
def test_a_sample_with_bad_polygons_fails_alone(polygons: np.ndarray, vertices: np.ndarray, told: str) -> None:
    def define() -> Any:
        return tuple(
            fn.min_area_boxes(fn.external_source(name="polygons", ndim=2), fn.external_source(name="vertices", ndim=2))
        )

    received, failures = isolated(
        define, polygons=[POLYGONS, polygons, POLYGONS], vertices=[VERTICES, vertices, VERTICES]
    )
    assert list(failures) == [1]
    with pytest.raises(OperatorError, match=told):
        raise failures[1]
    np.testing.assert_array_equal(received[0][0], received[0][2])


@pytest.mark.parametrize("arguments", [{"grow": -1.0}, {"min_side": -1.0}, {"min_score": float("nan")}])
def test_arguments_that_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        boxes(MASKS[:1], **arguments)


def test_rectangles_in_reading_order() -> None:
    mask = np.zeros((100, 200), np.uint8)
    for top, left in ((60, 10), (12, 120), (10, 10), (58, 120), (30, 60)):
        mask[top : top + 10, left : left + 50] = 1
    corners, _, indices = boxes([mask], order="reading")
    upper_left = [tuple(int(own) for own in quadrilateral[0]) for quadrilateral in corners[0]]
    assert upper_left == [(10, 10), (120, 12), (60, 30), (10, 60), (120, 58)]
    found, _, _ = boxes([mask])
    np.testing.assert_array_equal(found[0][indices[0]], corners[0])
    with pytest.raises(ValueError, match="Got: 'random'"):
        boxes([mask], order="random")
