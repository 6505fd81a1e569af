"""`nms` keeps the same boxes as a plain search over pairs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(11)
NOTHING = (np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int32))


def detections(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    corners = RNG.uniform(0, 300, (count, 2))
    boxes = np.hstack([corners, corners + RNG.uniform(5, 80, (count, 2))]).astype(np.float32)
    # Some scores are equal.
    return boxes, (RNG.integers(0, 400, count) / 400).astype(np.float32), RNG.integers(-2, 3, count).astype(np.int32)


def searched(
    boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, iou: float, least: float = -np.inf, most: int = 10**9
) -> list[int]:
    """Return the indices of the remaining boxes by descending score.

    Repeatedly keep the best box, and remove those of its class whose IoU with it exceeds ``iou``.
    """
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = [i for i in np.argsort(-scores, kind="stable").tolist() if scores[i] > np.float32(least)]
    kept: list[int] = []
    while left and len(kept) < most:
        best, *others = left
        kept.append(best)
        rest = np.array(others, np.int64)
        low, high = np.maximum(boxes[best, :2], boxes[rest, :2]), np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, np.float32(0)), axis=1)
        overlap = shared / (areas[best] + areas[rest] - shared)
        left = rest[(overlap <= np.float32(iou)) | (labels[rest] != labels[best])].tolist()
    return kept


def nms(samples: list[Any], labelled: bool = True, **arguments: Any) -> list[list[np.ndarray]]:
    names = ("boxes", "scores", "labels")[: 3 if labelled else 2]

    def define() -> Any:
        given = [fn.external_source(name=name, ndim=1 + (name == "boxes")) for name in names]
        return tuple(fn.nms(*given, **arguments))

    return outputs(define, **{name: [sample[i] for sample in samples] for i, name in enumerate(names)})


@pytest.mark.parametrize("iou", [0.0, 0.3, 0.45, 0.5, 1.0])
def test_boxes_of_each_class(iou: float) -> None:
    samples = [detections(150), NOTHING, detections(2000)]
    boxes, scores, labels, indices = nms(samples, iou_threshold=iou)
    for number, sample in enumerate(samples):
        kept = searched(*sample, iou)
        assert indices[number].tolist() == kept
        for received, given in zip((boxes, scores, labels), sample):
            np.testing.assert_array_equal(received[number], given[kept])


def test_boxes_of_all_classes_and_the_best_of_them() -> None:
    samples = [detections(300), NOTHING, detections(40)]
    _, _, labels, indices = nms(samples, class_wise=False, score_threshold=0.25, max_boxes=7)
    for number, (own_boxes, own_scores, own_labels) in enumerate(samples):
        kept = searched(own_boxes, own_scores, np.zeros(len(own_boxes)), 0.5, 0.25, 7)
        assert indices[number].tolist() == kept
        np.testing.assert_array_equal(labels[number], own_labels[kept])


def test_without_labels_all_are_of_one_class() -> None:
    samples = [detections(50)] * 3
    _, _, labels, indices = nms(samples, labelled=False)
    assert indices[1].tolist() == searched(*samples[0][:2], np.zeros(50), 0.5)
    assert not labels[1].any()


def by_class(boxes: np.ndarray, scores: np.ndarray, **arguments: Any) -> list[np.ndarray]:
    def define() -> Any:
        given = fn.external_source(name="boxes", ndim=2), fn.external_source(name="scores", ndim=2)
        return tuple(fn.nms(*given, **arguments))

    return [batch[0] for batch in outputs(define, boxes=[boxes] * 3, scores=[scores] * 3)]


def test_scores_of_several_classes() -> None:
    boxes, classes = detections(120)[0], 4
    scores = RNG.permutation(480).reshape(120, classes).astype(np.float32) / 480
    expected = searched(boxes.repeat(classes, axis=0), scores.reshape(-1), np.tile(np.arange(classes), 120), 0.5, 0.3)
    kept, best, labels, indices = by_class(boxes, scores, score_threshold=0.3)
    assert (indices * classes + labels).tolist() == expected
    np.testing.assert_array_equal(best, scores.reshape(-1)[expected])
    np.testing.assert_array_equal(kept, boxes[indices])


def test_candidates_of_each_class_are_limited() -> None:
    boxes, classes, limit = detections(120)[0], 3, 10
    scores = RNG.permutation(360).reshape(120, classes).astype(np.float32)
    chosen = np.sort(np.argsort(-scores, axis=0)[:limit] * classes + np.arange(classes), axis=None)
    expected = searched(boxes[chosen // classes], scores.reshape(-1)[chosen], chosen % classes, 0.5)
    _, _, labels, indices = by_class(boxes, scores, max_candidates=limit)
    assert (indices * classes + labels).tolist() == chosen[expected].tolist()


def test_half_precision_and_extents() -> None:
    boxes, scores, labels = detections(64)
    halves = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]).astype(np.float16)
    corners = halves.astype(np.float32)
    corners[:, 2:] += corners[:, :2]
    kept = searched(corners, scores.astype(np.float16).astype(np.float32), labels, 0.5)
    received, _, _, indices = nms([(halves, scores.astype(np.float16), labels)] * 3, box_form="xyWH")
    assert indices[0].tolist() == kept
    np.testing.assert_array_equal(received[0], halves[kept])


def test_boxes_without_area_overlap_nothing() -> None:
    boxes = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 2, 2]], np.float32)
    _, _, _, indices = nms(
        [(boxes, np.array([0.5, 0.5, 0.9], np.float32), np.zeros(3, np.int32))] * 3, iou_threshold=0.0
    )
    assert indices[0].tolist() == [2, 0, 1]


def test_padded_to_one_shape() -> None:
    samples = [detections(30), NOTHING, detections(9)]

    def define() -> Any:
        given = fn.external_source(name="boxes", ndim=2), fn.external_source(name="scores", ndim=1)
        boxes, scores, _, _ = fn.nms(*given, max_boxes=12)
        return fn.pad(boxes, axes=[0], shape=[12]), fn.pad(scores, axes=[0], shape=[12], fill_value=-1)

    boxes, scores = outputs(define, boxes=[own[0] for own in samples], scores=[own[1] for own in samples])
    assert [own.shape for own in boxes] == [(12, 4)] * 3
    assert [(own >= 0).sum() for own in scores] == [12, 0, len(searched(*samples[2][:2], np.zeros(9), 0.5))]


def test_thresholds_of_each_sample() -> None:
    sample = detections(100)
    least = [np.float32(0.1), np.float32(0.5), np.float32(2)]

    def define() -> Any:
        given = fn.external_source(name="boxes", ndim=2), fn.external_source(name="scores", ndim=1)
        return tuple(fn.nms(*given, score_threshold=fn.external_source(name="least", ndim=0)))

    fed = {"boxes": [sample[0]] * 3, "scores": [sample[1]] * 3, "least": least}
    indices = outputs(define, **fed)[3]
    zeros = np.zeros(100)
    assert [own.tolist() for own in indices] == [searched(*sample[:2], zeros, 0.5, float(low)) for low in least]


def test_names_of_labels() -> None:
    samples = [detections(30), NOTHING, detections(5)]
    samples = [(boxes, scores, labels % 3) for boxes, scores, labels in samples]
    _, _, labels, _, names = nms(samples, names=["cat", "été", "owl"])
    for own, found in zip(names, labels):
        assert own.shape == (len(found), 5)
        assert [row.tobytes().rstrip(b"\0").decode() for row in own] == [
            ("cat", "été", "owl")[label] for label in found
        ]


def test_a_label_without_a_name_is_refused() -> None:
    with pytest.raises(OperatorError, match="There is a box of class 2, but `names` has only 2 names"):
        nms([(np.array([[0, 0, 1, 1]], np.float32), np.ones(1, np.float32), np.array([2], np.int32))], names=["a", "b"])


def test_arrays_that_cannot_be_written() -> None:
    sample = detections(30)
    for array in sample:
        array.setflags(write=False)
    assert nms([sample] * 3)[3][0].tolist() == searched(*sample, 0.5)


GOOD = detections(5)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ((GOOD[0][:, :3], GOOD[1], GOOD[2]), r"shape \(boxes, 4\)\. Got: \[5, 3\]"),
        ((GOOD[0], GOOD[1][:4], GOOD[2]), r"Got: \[4\] for 5 boxes"),
        ((GOOD[0], GOOD[1], GOOD[2][:2]), r"Labels must have the shape \(boxes,\)\. Got: \[2\] for 5 boxes"),
        ((GOOD[0], np.array([1, 2, np.nan, 1, np.nan], np.float32), GOOD[2]), "Score 2 is NaN"),
        (
            (np.where(np.arange(20).reshape(5, 4) == 13, np.inf, GOOD[0]).astype(np.float32), *GOOD[1:]),
            "Box 3 has a coordinate",
        ),
    ],
)
def test_a_bad_sample_fails_alone(bad: tuple[np.ndarray, ...], told: str) -> None:
    def define() -> Any:
        names = {"boxes": 2, "scores": 1, "labels": 1}
        return tuple(fn.nms(*(fn.external_source(name=name, ndim=ndim) for name, ndim in names.items())))

    samples = [GOOD, bad, GOOD]
    received, failures = isolated(
        define, **{name: [own[i] for own in samples] for i, name in enumerate(("boxes", "scores", "labels"))}
    )
    assert list(failures) == [1]
    assert re.search(told, str(failures[1]))
    for number in (0, 2):
        assert received[3][number].tolist() == searched(*GOOD, 0.5)


@pytest.mark.parametrize(
    "arguments", [{"iou_threshold": 1.5}, {"max_boxes": -1}, {"max_candidates": -1}, {"box_form": "cxcyWH"}]
)
def test_arguments_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OperatorError), match=next(iter(arguments))):
        nms([GOOD] * 3, **arguments)


# -- on a GPU ----------------------------------------------------------------------------------------------------------


def on_device(device: str, samples: list[Any], labelled: bool = True, **arguments: Any) -> list[list[np.ndarray]]:
    names = ("boxes", "scores", "labels")[: 3 if labelled else 2]

    def define() -> Any:
        given = [fn.external_source(name=name) for name in names]
        return tuple(fn.nms(*(node.gpu() if device == "gpu" else node for node in given), **arguments))

    fed = {name: [sample[i] for sample in samples] for i, name in enumerate(names)}
    return outputs(define, device_id=0, **fed)


def check_same(samples: list[Any], labelled: bool = True, **arguments: Any) -> None:
    expected, received = (on_device(device, samples, labelled, **arguments) for device in ("cpu", "gpu"))
    for own, other in zip(received, expected, strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


GPU_SAMPLES = [detections(150), NOTHING, detections(700), detections(1)]


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"iou_threshold": 0.0},
        {"class_wise": False, "score_threshold": 0.25, "max_boxes": 7},
        {"max_boxes": 300},
        {"score_threshold": 1.5},
        {"box_form": "xyWH", "class_wise": False},
        {"max_candidates": 1},
        {"max_candidates": 5, "max_boxes": 9, "iou_threshold": 0.3},
        {"max_candidates": 300, "class_wise": False},
    ],
)
def test_devices_agree(arguments: dict[str, Any]) -> None:
    check_same(GPU_SAMPLES, **arguments)


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_devices_agree_on_scores_of_each_class(dtype: Any) -> None:
    samples = []
    for boxes, _, _ in GPU_SAMPLES[:3]:
        scores = RNG.integers(0, 50, (len(boxes), 3)) / 50
        scores[::7] = -0.0
        samples.append((boxes.astype(dtype), scores.astype(dtype)))
    check_same(samples, labelled=False, score_threshold=-0.5, names=["cat", "dog", "owl"])
    check_same(samples, labelled=False, score_threshold=0.6, class_wise=False)
    check_same(samples, labelled=False, score_threshold=-0.5, max_candidates=7, names=["cat", "dog", "owl"])


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("arguments", [{}, {"max_boxes": 2100}, {"max_candidates": 290, "iou_threshold": 0.1}])
def test_devices_agree_on_several_chunks(arguments: dict[str, Any]) -> None:
    check_same([detections(4500), detections(2048), detections(2049)], **arguments)


@pytest.mark.usefixtures("with_gpu")
def test_devices_agree_where_candidates_are_counted_first() -> None:
    boxes, _, _ = detections(5700)
    samples = [(boxes, RNG.random((5700, 3), np.float32)), (boxes[:9], np.full((9, 3), 0.9, np.float32))]
    check_same(samples, labelled=False, score_threshold=0.85)
    samples[1][1][4, 1] = np.nan
    with pytest.raises(OperatorError, match="Score 13 is NaN"):
        on_device("gpu", samples, labelled=False, score_threshold=0.85)


@pytest.mark.usefixtures("with_gpu")
def test_no_boxes_at_all_on_a_gpu() -> None:
    check_same([NOTHING, NOTHING])
    check_same([NOTHING], names=["cat"])


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("number", "place", "value", "arguments", "told"),
    [
        (1, (12,), np.nan, {}, r"Score 12 is NaN"),
        (0, (30, 2), np.inf, {}, r"Box 30 has a coordinate that is not finite"),
        (0, (30, 2), np.nan, {"max_boxes": 1}, r"Box 30 has a coordinate that is not finite"),
        (
            2,
            (5,),
            7,
            {"names": ["a", "b", "c", "d", "e", "f", "g"]},
            r"There is a box of class 7, but `names` has only 7 names",
        ),
    ],
)
def test_failures_on_both_devices(
    device: str, number: int, place: tuple[int, ...], value: float, arguments: dict[str, Any], told: str
) -> None:
    _, scores, labels = detections(100)
    corners = np.arange(100, dtype=np.float32)[:, None] * 100 + np.array([0, 0, 50, 50], np.float32)
    good = [corners, scores, np.abs(labels)]
    bad = [array.copy() for array in good]
    bad[number][place] = value
    with pytest.raises(OperatorError, match=told):
        on_device(device, [tuple(good), tuple(bad)], **arguments)
