"""Operators that split samples into parts and join parts again: which parts belong to which sample, also in errors."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def
from penstock.errors import OperatorError
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU

RNG = np.random.default_rng(3)
IMAGES = [RNG.integers(0, 256, (20 + 7 * number, 31, 3), np.uint8) for number in range(3)]
BOXES = [
    np.array([[0, 0, 10, 10], [2.5, 3.5, 29.6, 18]], np.float32),
    np.zeros((0, 4), np.float32),
    np.array([[-4, -2, 5, 9], [20, 30, 40, 40], [0, 0, 31, 34]], np.float32),
]


def built(define: Callable[[], Any], batch_size: int = 3) -> Pipeline:
    def defined() -> Any:
        result = define()
        return tuple(result) if isinstance(result, list) else result

    return pipeline_def(defined, batch_size=batch_size, num_threads=2, device_id=None, prefetch_queue_depth=1)()


def outputs(define: Callable[[], Any], **inputs: Any) -> list[list[np.ndarray]]:
    pipeline = built(define)
    result = [[np.array(sample) for sample in batch] for batch in pipeline.run(**inputs)]
    pipeline.close()
    return result


def images_and_boxes() -> tuple[Any, Any]:
    return fn.external_source(name="images", layout="HWC"), fn.external_source(name="boxes", ndim=2)


def pil_crops(image: np.ndarray, boxes: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(Image.fromarray(image).crop(tuple(box))) for box in boxes.tolist()]


def test_boxes_are_cut_as_pil_cuts_them() -> None:
    crops, counts = outputs(
        lambda: fn.crop_boxes(*images_and_boxes(), out_of_bounds_policy="pad"), images=IMAGES, boxes=BOXES
    )
    expected = [crop for image, boxes in zip(IMAGES, BOXES) for crop in pil_crops(image, boxes)]
    assert [int(count) for count in counts] == [2, 0, 3]
    assert len(crops) == len(expected)
    for crop, pil in zip(crops, expected):
        np.testing.assert_array_equal(crop, pil)


def test_boxes_beyond_the_image_are_trimmed() -> None:
    crops, _ = outputs(lambda: fn.crop_boxes(*images_and_boxes()), images=IMAGES, boxes=BOXES)
    np.testing.assert_array_equal(crops[2], IMAGES[2][:9, :5])
    np.testing.assert_array_equal(crops[3], IMAGES[2][30:34, 20:31])


@pytest.mark.parametrize(
    ("arguments", "box"),
    [
        ({"box_form": "xyWH"}, [4, 5, 6, 7]),
        ({"normalized": True}, [4 / 31, 5 / 20, 10 / 31, 12 / 20]),
        ({"normalized": True, "box_form": "xyWH"}, [4 / 31, 5 / 20, 6 / 31, 7 / 20]),
    ],
)
def test_forms_of_boxes(arguments: dict[str, Any], box: list[float]) -> None:
    given = [np.array([box], np.float64)]
    crops, _ = outputs(lambda: fn.crop_boxes(*images_and_boxes(), **arguments), images=IMAGES[:1], boxes=given)
    np.testing.assert_array_equal(crops[0], IMAGES[0][5:12, 4:10])


def test_planes_are_cut_as_pixels() -> None:
    def define() -> Any:
        images, boxes = fn.external_source(name="images", layout="CHW"), fn.external_source(name="boxes", ndim=2)
        return fn.crop_boxes(images, boxes, out_of_bounds_policy="pad", fill_values=[1, 2, 3])

    planes = [image.transpose(2, 0, 1).copy() for image in IMAGES]
    crops, _ = outputs(define, images=planes, boxes=BOXES)
    filled = crops[2].transpose(1, 2, 0)
    assert filled[0].tolist() == [[1, 2, 3]] * 9
    np.testing.assert_array_equal(filled[2:, 4:], IMAGES[2][:9, :5])


@pytest.mark.parametrize(
    ("boxes", "arguments", "told"),
    [
        ([[0, 0, 5]], {}, r"shape \(boxes, 4\)\. Got: \[1, 3\]"),
        ([[0, 0, 5, 5], [3, 3, 3, 9]], {}, r"Box 1, from \(3, 3\) to \(3, 9\), holds no pixel"),
        ([[40, 0, 50, 5]], {}, "holds no pixel of its image of 31 x 20"),
        ([[0, 0, 32, 5]], {"out_of_bounds_policy": "error"}, "reaches outside of its image"),
        ([[0, float("nan"), 5, 5]], {}, "Box 0 has an edge that is infinite or not a number"),
        ([[0, 0, 1e9, 1e9]], {"out_of_bounds_policy": "pad"}, "more than 16 times as large"),
    ],
)
def test_boxes_that_are_refused(boxes: list[list[float]], arguments: dict[str, Any], told: str) -> None:
    pipeline = built(lambda: fn.crop_boxes(*images_and_boxes(), **arguments))
    with pytest.raises(OperatorError, match=told):
        pipeline.run(images=[IMAGES[0], IMAGES[0]], boxes=[np.array(boxes, np.float32)] * 2)
    pipeline.close()


@pytest.mark.parametrize("arguments", [{"box_form": "XYxy"}, {"out_of_bounds_policy": "wrap"}])
def test_unknown_choices_are_refused(arguments: dict[str, str]) -> None:
    with pytest.raises((ValueError, RuntimeError), match="must be one of"):
        built(lambda: fn.crop_boxes(*images_and_boxes(), **arguments)).build()


def test_parts_are_processed_across_images_and_collected() -> None:
    def define() -> Any:
        images, boxes = images_and_boxes()
        crops, counts = fn.crop_boxes(images, boxes)
        small = fn.resize(crops, size=[8, 9], reference="pil")
        turned = fn.rotate(small, angle=fn.spread(fn.external_source(name="angles", ndim=0), counts=counts))
        return small, fn.collect(small, counts=counts), fn.collect(turned, counts=counts)

    angles = [np.float32(angle) for angle in (0, 0, 180)]
    pipeline = built(define)
    small, collected, turned = pipeline.run(images=IMAGES, boxes=BOXES, angles=angles)
    assert small.positions == [0, 0, 2, 2, 2]
    assert collected.positions is None
    assert collected.layout() == "NHWC"
    assert collected.shape() == [(2, 8, 9, 3), (0, 8, 9, 3), (3, 8, 9, 3)]
    np.testing.assert_array_equal(np.array(collected[2]), np.stack([np.array(small[i]) for i in (2, 3, 4)]))
    np.testing.assert_array_equal(np.array(turned[0]), np.array(collected[0]))
    np.testing.assert_array_equal(
        np.array(turned[2])[:, 1:-1, 1:-1], np.array(collected[2])[:, 1:-1, 1:-1][:, ::-1, ::-1]
    )
    pipeline.close()


def test_a_batch_without_any_part() -> None:
    def define() -> Any:
        crops, counts = fn.crop_boxes(*images_and_boxes())
        return fn.collect(fn.resize(crops, size=[8, 9]), counts=counts), counts

    none = [np.zeros((0, 4), np.float32)] * 3
    collected, counts = outputs(define, images=IMAGES, boxes=none)
    assert [sample.shape[0] for sample in collected] == [0, 0, 0]
    assert [int(count) for count in counts] == [0, 0, 0]


def test_slices_share_memory_and_come_back() -> None:
    def define() -> Any:
        frames, counts = fn.expand(fn.external_source(name="videos", layout="FHWC"))
        return fn.collect(frames, counts=counts), fn.collect(frames, counts=counts, join="cat"), frames

    videos = [RNG.integers(0, 256, (count, 4, 5, 3), np.uint8) for count in (2, 3)]
    again, joined, frames = outputs(define, videos=videos)
    assert len(frames) == 5
    for video, sample, rows in zip(videos, again, joined):
        np.testing.assert_array_equal(sample, video)
        np.testing.assert_array_equal(rows, video.reshape(-1, 5, 3))


def test_parts_of_parts() -> None:
    def define() -> Any:
        frames, frame_counts = fn.expand(fn.external_source(name="videos", layout="FHWC"))
        tiles, _, tile_counts = fn.cut_tiles(frames, tile=[2, 3])
        return fn.collect(fn.collect(tiles, counts=tile_counts), counts=frame_counts), tiles

    videos = [RNG.integers(0, 256, (count, 4, 6, 3), np.uint8) for count in (2, 1)]
    pipeline = built(define, 2)
    collected, tiles = pipeline.run(videos=videos)
    assert tiles.positions == [0] * 8 + [1] * 4
    assert collected.shape() == [(2, 4, 2, 3, 3), (1, 4, 2, 3, 3)]
    np.testing.assert_array_equal(np.array(collected[0])[1, 3], videos[0][1, 2:, 3:])
    pipeline.close()


@pytest.mark.parametrize(
    ("arguments", "corners"),
    [
        (
            {},
            [[0, 0], [0, 8], [0, 16], [0, 24], [8, 0], [8, 8], [8, 16], [8, 24], [16, 0], [16, 8], [16, 16], [16, 24]],
        ),
        ({"edge": "drop"}, [[0, 0], [0, 8], [0, 16], [8, 0], [8, 8], [8, 16]]),
        ({"edge": "shift", "stride": [12, 12]}, [[0, 0], [0, 12], [0, 23], [12, 0], [12, 12], [12, 23]]),
    ],
)
def test_tiles(arguments: dict[str, Any], corners: list[list[int]]) -> None:
    tiles, places, counts = outputs(
        lambda: fn.cut_tiles(fn.external_source(name="images", layout="HWC"), tile=[8, 8], fill_value=7, **arguments),
        images=IMAGES[:1],
    )
    assert [place.tolist() for place in places] == corners
    assert int(counts[0]) == len(corners)
    padded = np.full((40, 40, 3), 7, np.uint8)
    padded[:20, :31] = IMAGES[0]
    for tile, (top, left) in zip(tiles, corners):
        np.testing.assert_array_equal(tile, padded[top : top + 8, left : left + 8])


@pytest.mark.parametrize("arguments", [{"tile": [0, 4]}, {"tile": [4]}, {"tile": [4, 4], "edge": "mirror"}])
def test_tiles_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"two positive numbers|must be one of"):
        built(lambda: fn.cut_tiles(fn.external_source(name="images", layout="HWC"), **arguments)).build()


def test_what_belongs_to_samples_does_not_fit_parts() -> None:
    def define() -> Any:
        crops, _ = fn.crop_boxes(*images_and_boxes())
        return fn.rotate(crops, angle=fn.external_source(name="angles", ndim=0))

    pipeline = built(define)
    with pytest.raises(OperatorError, match=r"Batch size clash.*`fn\.spread`"):
        pipeline.run(images=IMAGES, boxes=BOXES, angles=[np.float32(0)] * 3)
    pipeline.close()


def test_counts_of_other_parts_are_refused() -> None:
    def define() -> Any:
        images, boxes = images_and_boxes()
        crops, _ = fn.crop_boxes(images, boxes)
        _, _, others = fn.cut_tiles(images, tile=[8, 8])
        return fn.collect(crops, counts=others)

    pipeline = built(define)
    with pytest.raises(OperatorError, match="were they returned by different operators"):
        pipeline.run(images=IMAGES, boxes=BOXES)
    pipeline.close()


def test_parts_that_differ_cannot_be_one_tensor() -> None:
    def define() -> Any:
        crops, counts = fn.crop_boxes(*images_and_boxes())
        return fn.collect(crops, counts=counts)

    pipeline = built(define)
    with pytest.raises(OperatorError, match=r"differ in shape(?s:.)*sample #0"):
        pipeline.run(images=IMAGES, boxes=BOXES)
    pipeline.close()


def _encoded(image: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def test_a_part_that_fails_fails_its_sample_alone() -> None:
    def define() -> Any:
        images, boxes = images_and_boxes()
        crops, counts = fn.crop_boxes(images, boxes)
        cut = fn.slice(crops, start=[0, 0], shape=[6, 6], axis_names="HW")
        return cut, fn.collect(cut, counts=counts), fn.copy(images)

    boxes = [np.array([[0, 0, 9, 9]]), np.array([[0, 0, 9, 9], [0, 0, 3, 3]]), np.array([[1, 1, 9, 9], [0, 0, 8, 8]])]
    pipeline = built(define)
    pipeline.build()
    fed = {"images": TensorListCPU(IMAGES, "HWC"), "boxes": TensorListCPU([each.astype(np.float32) for each in boxes])}
    result = PipelineRunner(pipeline).run(fed, 3)
    assert set(result.failures) == {1}
    assert result.failures[1].sample == 1
    parts, collected, _ = result.outputs
    assert parts.made_of(2, 3) == (3, 5)
    np.testing.assert_array_equal(collected.samples[2][0], IMAGES[2][1:7, 1:7])
    pipeline.close()


def test_a_sample_that_failed_before_has_no_parts() -> None:
    def define() -> Any:
        images = fn.decoders.image(fn.external_source(name="files"), device="cpu")
        tiles, _, counts = fn.cut_tiles(images, tile=[8, 8])
        frames, _ = fn.expand(images)
        return tiles, fn.collect(tiles, counts=counts), frames

    files = [_encoded(IMAGES[0]), np.frombuffer(b"no image at all", np.uint8), _encoded(IMAGES[1])]
    pipeline = built(define)
    pipeline.build()
    result = PipelineRunner(pipeline).run({"files": TensorListCPU(files)}, 3)
    assert set(result.failures) == {1}
    tiles, collected, frames = result.outputs
    assert tiles.positions == [0] * 12 + [2] * 16
    assert collected.shapes[2] == (16, 8, 8, 3)
    assert frames.positions == [0] * 20 + [2] * 27
    pipeline.close()


def test_skipped_samples_take_their_parts_along() -> None:
    def define() -> Any:
        images = fn.decoders.image(fn.external_source(name="files"), device="cpu", on_error="skip")
        tiles, _, counts = fn.cut_tiles(images, tile=[8, 8])
        return tiles, counts

    files = [np.frombuffer(b"no image at all", np.uint8), _encoded(IMAGES[0]), _encoded(IMAGES[1])]
    pipeline = built(define)
    tiles, counts = pipeline.run(files=files)
    assert tiles.positions == [0] * 12 + [1] * 16
    assert [int(np.array(count)) for count in counts] == [12, 16]
    pipeline.close()


def test_what_is_saved_means_the_same(tmp_path: Any) -> None:
    def define() -> Any:
        crops, counts = fn.crop_boxes(*images_and_boxes(), out_of_bounds_policy="pad", fill_values=[4])
        return fn.collect(fn.resize(crops, size=[8, 9]), counts=counts, name="crops")

    pipeline = built(define)
    pipeline.save(str(tmp_path / "model.json"))
    again = Pipeline.load(str(tmp_path / "model.json"), prefetch_queue_depth=1)
    one, other = (each.run(images=IMAGES, boxes=BOXES)[0] for each in (pipeline, again))
    for sample, same in zip(one, other):
        np.testing.assert_array_equal(np.array(sample), np.array(same))
