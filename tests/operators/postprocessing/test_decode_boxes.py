"""`decode_boxes` compared with the formulas of the networks' papers, in double precision, and with `box_encoder`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import isolated, outputs

from penstock import fn, types
from penstock.errors import OperatorError

RNG = np.random.default_rng(29)


def predictions(count: int, low: float = -1, high: float = 1) -> np.ndarray:
    return RNG.uniform(low, high, (count, 4)).astype(np.float32)


def anchors(count: int) -> np.ndarray:
    corners = RNG.uniform(0, 0.6, (count, 2))
    return np.hstack([corners, corners + RNG.uniform(0.05, 0.4, (count, 2))]).astype(np.float32)


def corners(centres: np.ndarray, extents: np.ndarray) -> np.ndarray:
    return np.hstack([centres - extents / 2, centres + extents / 2])


def decoded(samples: list[np.ndarray], **arguments: Any) -> list[np.ndarray]:
    ndim = samples[0].ndim
    return outputs(lambda: fn.decode_boxes(fn.external_source(name="boxes", ndim=ndim), **arguments), boxes=samples)[0]


def check(received: np.ndarray, expected: np.ndarray) -> None:
    assert received.dtype == np.float32
    np.testing.assert_allclose(received, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max(initial=1))


def test_centres() -> None:
    samples = [predictions(count, 0, 1) for count in (5, 0, 2000)]
    for own, sample in zip(decoded(samples), samples):
        check(own, corners(sample[:, :2], sample[:, 2:]))


def test_the_way_back_to_the_original_image() -> None:
    samples = [predictions(7, 0, 100), predictions(3, 0, 100)]
    for own, sample in zip(decoded(samples, shift=[10, 3], scale=[2, 4], clip=[150, 90]), samples):
        whole = (corners(sample[:, :2], sample[:, 2:]) - [10, 3, 10, 3]) * [2, 4, 2, 4]
        check(own, whole.clip(0, [150, 90, 150, 90]))


def test_images_of_different_sizes() -> None:
    samples = [predictions(4, 0, 1) for _ in range(2)]
    sizes = [np.array([640, 480], np.float32), np.array([32, 1000], np.float32)]

    def define() -> Any:
        size = fn.external_source(name="sizes", ndim=1)
        return fn.decode_boxes(fn.external_source(name="boxes", ndim=2), scale=size, clip=size)

    for own, sample, size in zip(outputs(define, boxes=samples, sizes=sizes)[0], samples, sizes):
        whole = corners(sample[:, :2], sample[:, 2:]) * np.tile(size, 2)
        check(own, whole.clip(0, np.tile(size, 2)))


def offset_boxes(sample: np.ndarray, base: np.ndarray, stds: Any, means: Any = (0, 0, 0, 0)) -> np.ndarray:
    offsets = sample.astype(np.float64) * stds + means
    extents = (base[:, 2:] - base[:, :2]).astype(np.float64)
    centres = offsets[:, :2] * extents + (base[:, :2] + base[:, 2:]) / 2
    return corners(centres, np.exp(np.minimum(offsets[:, 2:], np.log(62.5))) * extents)


def test_offsets_from_anchors() -> None:
    base, stds, means = anchors(60), [0.1, 0.1, 0.2, 0.2], [0.05, 0, 0.1, 0]
    samples = [predictions(60, -30, 30) for _ in range(3)]
    arguments = {"form": "anchors", "anchors": base.reshape(-1).tolist(), "stds": stds, "means": means}
    for own, sample in zip(decoded(samples, **arguments), samples):
        check(own, offset_boxes(sample, base, stds, means))


def test_each_sample_with_anchors_of_its_own() -> None:
    counts = (5, 0, 17)
    samples, base = [predictions(count) for count in counts], [anchors(count) for count in counts]

    def define() -> Any:
        given = fn.external_source(name="boxes", ndim=2), fn.external_source(name="anchors", ndim=2)
        return fn.decode_boxes(*given, form="anchors")

    for own, sample, other in zip(outputs(define, boxes=samples, anchors=base)[0], samples, base):
        check(own, offset_boxes(sample, other, 1))


def test_what_the_encoder_encoded() -> None:
    base, targets = anchors(6), anchors(6)
    given = base.reshape(-1).tolist()

    def define() -> Any:
        boxes, labels = fn.external_source(name="boxes", ndim=2), fn.external_source(name="labels", ndim=1)
        settings = {"stds": [0.1, 0.1, 0.2, 0.2], "means": [0.1, 0.2, 0.3, 0.4], "anchors": given}
        offsets, matched = fn.box_encoder(boxes, labels, offset=True, criteria=0.0, **settings)
        encoded, _ = fn.box_encoder(boxes, labels, criteria=0.0, anchors=given)
        return fn.decode_boxes(offsets, form="anchors", **settings), fn.decode_boxes(encoded), matched

    one, other, matched = outputs(define, boxes=[targets] * 2, labels=[np.ones(6, np.int32)] * 2)
    # Unmatched anchors have offsets of 0, whatever the means.
    found = matched[0] > 0
    assert found.any()
    np.testing.assert_allclose(one[0][found], other[0][found], atol=1e-5)


def test_cells_of_grids() -> None:
    high, wide, strides = 48, 64, (8, 16)
    sample = predictions(sum((high // stride) * (wide // stride) for stride in strides))
    rows = []
    for stride in strides:
        y, x = np.mgrid[: high // stride, : wide // stride].reshape(2, -1)
        part = sample[sum(map(len, rows)) :][: len(x)].astype(np.float64)
        rows.append(corners((part[:, :2] + np.stack([x, y], axis=1)) * stride, np.exp(part[:, 2:]) * stride))
    check(decoded([sample] * 2, form="grid", size=[high, wide], strides=list(strides))[1], np.concatenate(rows))


# Height and width, 45 and 67, are not multiples of the strides, so that the last row and column of each grid extend beyond the image.
@pytest.mark.parametrize("logits", [1, 8])
def test_distances_from_cells(logits: int) -> None:
    high, wide, strides = 45, 67, (8, 16, 64)
    grids = [np.mgrid[: -(-high // stride), : -(-wide // stride)].reshape(2, -1) for stride in strides]
    sample = RNG.normal(1, 2, (sum(grid.shape[1] for grid in grids), 4 * logits)).astype(np.float32)
    distances = sample.reshape(len(sample), 4, logits).astype(np.float64)
    if logits > 1:
        likely = np.exp(distances)
        distances = (likely * np.arange(logits)).sum(axis=2, keepdims=True) / likely.sum(axis=2, keepdims=True)
    steps = np.repeat(strides, [grid.shape[1] for grid in grids])[:, None]
    centres = np.hstack(grids)[::-1].T + 0.5
    expected = (np.hstack([centres, centres]) + distances[:, :, 0] * [-1, -1, 1, 1]) * steps
    check(decoded([sample] * 2, form="distances", size=[high, wide], strides=list(strides))[1], expected)


def test_distances_of_images_of_different_sizes() -> None:
    sizes = [np.array([16, 32], np.int32), np.array([0, 8], np.int32), np.array([9, 8], np.int32)]
    samples = [np.zeros((count, 4), np.float32) for count in (8, 0, 2)]

    def define() -> Any:
        size = fn.external_source(name="sizes", ndim=1)
        return fn.decode_boxes(fn.external_source(name="boxes", ndim=2), form="distances", size=size, strides=[8])

    received = outputs(define, boxes=samples, sizes=sizes)[0]
    assert [own.tolist() for own in received[1:]] == [[], [[4, 4, 4, 4], [4, 12, 4, 12]]]


def test_half_precision() -> None:
    sample = predictions(9, 0, 1).astype(np.float16)
    check(decoded([sample] * 2)[0], corners(sample[:, :2].astype(np.float32), sample[:, 2:].astype(np.float32)))


def test_numbers_that_are_none_stay_so() -> None:
    sample = predictions(2, 0, 1)
    sample[0, 0] = np.nan
    assert np.isnan(decoded([sample] * 2)[0][0]).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("sample", "arguments", "told"),
    [
        (np.zeros((3, 5), np.float32), {}, r"shape \(boxes, 4\)\. Got: \[3, 5\]"),
        (np.zeros(4, np.float32), {}, r"shape \(boxes, 4\)\. Got: \[4\]"),
        (np.zeros((3, 4), np.int32), {}, "must be FLOAT or FLOAT16"),
        (predictions(3), {"form": "anchors"}, "Pass anchors exactly once"),
        (predictions(3), {"anchors": [0, 0, 1, 1]}, "Pass anchors exactly once"),
        (predictions(3), {"form": "anchors", "anchors": [0, 0, 1, 1]}, "1 anchors, but 3 boxes"),
        (predictions(3), {"form": "anchors", "anchors": [0, 0, 1]}, "four numbers"),
        (predictions(3), {"form": "grid"}, "needs `size`"),
        (predictions(3), {"form": "grid", "size": [16, 16]}, "have 6 cells, but there are 3 boxes"),
        (predictions(3), {"form": "distances"}, "needs `size`"),
        (np.zeros((4, 5), np.float32), {"form": "distances", "size": [8, 8]}, r"\(boxes, 4 \* logits\)"),
        (predictions(3), {"form": "distances", "size": [16, 16]}, "have 6 cells, but there are 3 boxes"),
        (predictions(3), {"clip": [1, 2, 3]}, "`clip` must be a width and a height"),
        (predictions(3), {"scale": [1, 2, 3]}, "`scale` must be one number, or one for x and one for y"),
        (predictions(3), {"form": "boxes"}, "`form` must be one of"),
        (predictions(3), {"stds": [1.0]}, "`stds` must have 4 values"),
        (predictions(3), {"strides": [0]}, "`strides` must be 1 or more"),
    ],
)
def test_what_is_refused(sample: np.ndarray, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=told):
        decoded([sample] * 2, **arguments)


def test_a_bad_sample_fails_alone() -> None:
    good = predictions(3)
    received, failures = isolated(
        lambda: fn.decode_boxes(fn.external_source(name="boxes", dtype=types.FLOAT, ndim=2)),
        boxes=[good, np.zeros((2, 3), np.float32), good],
    )
    assert list(failures) == [1]
    check(received[0][2], corners(good[:, :2], good[:, 2:]))
