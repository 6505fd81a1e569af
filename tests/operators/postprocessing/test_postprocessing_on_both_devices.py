"""Boxes, masks and drawings on a real or emulated GPU: the same bytes as on the CPU, and the same samples fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def
from penstock.errors import OperatorError
from penstock.tensors import TensorListGPU

pytestmark = pytest.mark.usefixtures("with_gpu")

RNG = np.random.default_rng(37)
IMAGES = [RNG.integers(0, 256, shape, np.uint8) for shape in ((40, 60, 3), (30, 31, 3), (25, 50, 3), (1, 1, 3))]
SIZE = [45, 67]  # not multiples of the strides
STRIDES = [8, 16, 64]
CELLS = sum(-(-SIZE[0] // stride) * -(-SIZE[1] // stride) for stride in STRIDES)
Define = Callable[..., Any]


def boxes(count: int) -> np.ndarray:
    corners = RNG.uniform(-10, 60, (count, 2))
    return np.hstack([corners, corners + RNG.uniform(0, 30, (count, 2))]).astype(np.float32)


BOXES = [boxes(count) for count in (3, 0, 300, 1)]


def built(define: Define, device: str, dims: dict[str, Any], batch_size: int) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        given = {name: fn.external_source(name=name, **own) for name, own in dims.items()}
        return define(**{name: node.gpu() if device == "gpu" else node for name, node in given.items()})

    return pipeline()


def dims_of(**inputs: list[np.ndarray]) -> dict[str, Any]:
    return {
        name: {"layout": "HWC"} if name == "images" else {"ndim": samples[0].ndim} for name, samples in inputs.items()
    }


def check_same(define: Define, **inputs: list[np.ndarray]) -> None:
    results = {}
    for device in ("cpu", "gpu"):
        pipeline = built(define, device, dims_of(**inputs), len(next(iter(inputs.values()))))
        # If launches can be recorded, the second batch repeats those of the first.
        for _ in range(2):
            (results[device],) = pipeline.run(**inputs)
        pipeline.close()
    ours, theirs = results["gpu"], results["cpu"]
    assert isinstance(ours, TensorListGPU)
    assert (ours.dtype, ours.layout(), ours.shape()) == (theirs.dtype, theirs.layout(), theirs.shape())
    for one, other in zip(ours.as_cpu(), theirs, strict=True):
        # Equal except for the bits of NaNs.
        np.testing.assert_array_equal(np.array(one), np.array(other))


def check_fails(define: Define, told: str, **inputs: list[np.ndarray]) -> None:
    for device in ("cpu", "gpu"):
        pipeline = built(define, device, dims_of(**inputs), len(next(iter(inputs.values()))))
        with pytest.raises(OperatorError, match=told):
            pipeline.run(**inputs)
        pipeline.close()


# -- decode_boxes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_centres(dtype: Any) -> None:
    predicted = [RNG.normal(0, 2, (count, 4)).astype(dtype) for count in (5, 0, 2000)]
    check_same(
        lambda predicted: fn.decode_boxes(predicted, scale=[2, 3], shift=[1, 2], clip=[5, 6]), predicted=predicted
    )


def test_boxes_of_images_of_different_sizes() -> None:
    predicted = [RNG.random((count, 4), np.float32) for count in (4, 9)]
    sizes = [np.array([640, 480], np.float32), np.array([32, 1000], np.float32)]

    def define(device: str) -> Any:
        given, size = fn.external_source(name="predicted", ndim=2), fn.external_source(name="sizes", ndim=1)
        return fn.decode_boxes(given.gpu() if device == "gpu" else given, scale=size, clip=size)

    found = []
    for device in ("cpu", "gpu"):
        pipeline = pipeline_def(batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=1)(define)(device)
        for own in (sizes, sizes[::-1]):
            found.append([np.array(sample) for sample in pipeline.run(predicted=predicted, sizes=own)[0].as_cpu()])
        pipeline.close()
    for one, other in zip(found[:2], found[2:]):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_offsets_from_anchors(dtype: Any) -> None:
    counts = (5, 0, 2000)
    predicted = [RNG.normal(0, 3, (count, 4)).astype(np.float32) for count in counts]
    settings = {"form": "anchors", "stds": [0.1, 0.1, 0.2, 0.2], "means": [0.0, 0.1, 0.2, 0.3]}
    check_same(
        lambda predicted, anchors: fn.decode_boxes(predicted, anchors, **settings),
        predicted=predicted,
        anchors=[boxes(count).astype(dtype) for count in counts],
    )
    shared = boxes(5).reshape(-1).tolist()
    check_same(
        lambda predicted: fn.decode_boxes(predicted, anchors=shared, **settings), predicted=[predicted[0], predicted[0]]
    )


@pytest.mark.parametrize("form", ["grid", "distances"])
def test_cells_of_grids(form: str) -> None:
    predicted = [RNG.normal(0, 2, (CELLS, 4)).astype(np.float32) for _ in range(3)]
    # Results that are infinite or NaN are the same, too.
    predicted[0][0] = [np.nan, 1, 200, -400]
    check_same(lambda predicted: fn.decode_boxes(predicted, form=form, size=SIZE, strides=STRIDES), predicted=predicted)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_logits_of_distances(dtype: Any) -> None:
    predicted = [RNG.normal(0, 3, (CELLS, 32)).astype(dtype) for _ in range(2)]
    check_same(
        lambda predicted: fn.decode_boxes(predicted, form="distances", size=SIZE, strides=STRIDES), predicted=predicted
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"form": "anchors", "anchors": [0.0, 0.0, 1.0, 1.0]}, "1 anchors, but 3 boxes"),
        ({"form": "grid", "size": [16, 16]}, "have 6 cells, but there are 3 boxes"),
        ({"clip": [1.0, 2.0, 3.0]}, "`clip` must be a width and a height"),
    ],
)
def test_predictions_that_are_refused(arguments: dict[str, Any], told: str) -> None:
    predicted = [np.zeros((3, 4), np.float32)] * 2
    check_fails(lambda predicted: fn.decode_boxes(predicted, **arguments), told, predicted=predicted)


# -- draw_boxes, draw_text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thickness", [1, 3, 500])
def test_outlines(thickness: int) -> None:
    labels = [np.arange(len(own), dtype=np.int32) - 5 for own in BOXES]
    colours = [255, 0, 0, 0, 160, 255]
    check_same(
        lambda images, boxes, labels: fn.draw_boxes(images, boxes, labels, colors=colours, thickness=thickness),
        images=IMAGES,
        boxes=BOXES,
        labels=labels,
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_outlines_of_boxes_of_other_types(dtype: Any) -> None:
    check_same(
        lambda images, boxes: fn.draw_boxes(images, boxes), images=IMAGES, boxes=[b.astype(dtype) for b in BOXES]
    )


def test_boxes_far_beyond_the_image() -> None:
    far = np.array([[1e9, 0, 2e9, np.inf], [-np.inf, -1e30, 20, 20], [20, 20, 10, 10]], np.float32)
    check_same(lambda images, boxes: fn.draw_boxes(images, boxes), images=IMAGES[:1], boxes=[far])


def test_images_of_several_numbers_of_channels() -> None:
    shapes = ((20, 30, 1), (20, 31, 3), (90, 201, 1), (20, 30, 4), (90, 121, 3))
    images = [RNG.integers(0, 256, shape, np.uint8) for shape in shapes]
    given = [boxes(4) for _ in images]
    check_same(lambda images, boxes: fn.draw_boxes(images, boxes, colors=[9] * 12), images=images, boxes=given)


@pytest.mark.parametrize("background", [None, [0, 0, 255, 7, 8, 9]])
def test_texts(background: list[int] | None) -> None:
    texts = [np.frombuffer("aé".encode().ljust(5, b"\0"), np.uint8).reshape(1, 5).repeat(len(own), 0) for own in BOXES]
    check_same(
        lambda images, boxes, texts: fn.draw_text(images, boxes, texts, background=background),
        images=IMAGES,
        boxes=BOXES,
        texts=[np.ascontiguousarray(own) for own in texts],
    )


def test_labels_with_scores_at_points() -> None:
    settings = {"names": ["cat", "dög"], "colors": [1, 2, 3, 4, 5, 6], "background": [9, 9, 9], "scale": 2}
    check_same(
        lambda images, points, labels, scores: fn.draw_text(images, points, labels, scores, **settings),
        images=IMAGES,
        points=[np.ascontiguousarray(own[:, :2]) for own in BOXES],
        labels=[np.arange(len(own), dtype=np.int32) % 2 for own in BOXES],
        scores=[RNG.random(len(own), np.float32) for own in BOXES],
    )


def test_drawings_that_are_refused() -> None:
    bad = BOXES[0].copy()
    bad[1, 2] = np.nan
    texts = [np.full((3, 2), 97, np.uint8)] * 2
    told = "Box 1 has a coordinate that is NaN"
    check_fails(lambda images, boxes: fn.draw_boxes(images, boxes), told, images=IMAGES[:2], boxes=[BOXES[0], bad])
    given = {"images": IMAGES[:2], "boxes": [BOXES[0], bad], "texts": texts}

    def texted(images: Any, boxes: Any, texts: Any) -> Any:
        return fn.draw_text(images, boxes, texts)

    check_fails(texted, "Position 1 has a coordinate that is NaN", **given)
    given = given | {"boxes": [BOXES[0]] * 2, "texts": [texts[0], np.full((3, 2), 0xFF, np.uint8)]}
    check_fails(texted, "Text 0 is not UTF-8", **given)


# -- paste_masks -------------------------------------------------------------------------------------------------------

OBJECTS = [
    np.array([[5, 6, 30.5, 25.25], [-20, -10, 15, 50], [55, 35, 90, 70], [10, 10, 10.2, 10.1]], np.float32),
    boxes(0),
    boxes(2000),
]


@pytest.mark.parametrize("threshold", [None, 0.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_masks(dtype: Any, threshold: float | None) -> None:
    check_same(
        lambda masks, boxes: fn.paste_masks(masks, boxes, size=[13, 21], threshold=threshold),
        masks=[RNG.random((len(own), 14, 11)).astype(dtype) for own in OBJECTS],
        boxes=OBJECTS,
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_masks_that_are_refused(value: float) -> None:
    bad = OBJECTS[0].copy()
    bad[2, 1] = value
    masks = [RNG.random((4, 7, 7), np.float32)] * 2
    told = "Box 2 has a coordinate that is not a number, or is far beyond any image"
    check_fails(
        lambda masks, boxes: fn.paste_masks(masks, boxes, size=[9, 9]), told, masks=masks, boxes=[OBJECTS[0], bad]
    )


def test_a_pipeline_of_detections_stays_on_the_gpu() -> None:
    predicted = [RNG.random((50, 4), np.float32) for _ in range(2)]
    scores = [RNG.random((50, 3), np.float32) for _ in range(2)]

    def define(images: Any, predicted: Any, scores: Any) -> Any:
        found = fn.decode_boxes(predicted, scale=[60.0, 40.0])
        kept, certain, labels, _ = fn.nms(found, scores, score_threshold=0.2, max_candidates=9, max_boxes=5)
        drawn = fn.draw_boxes(images, kept, labels, colors=[255, 0, 0, 0, 160, 255])
        return fn.draw_text(drawn, kept, labels, certain, names=["a", "b", "c"])

    check_same(define, images=IMAGES[:2], predicted=predicted, scores=scores)
