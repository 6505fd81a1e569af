"""Parts of images on a real or emulated GPU: the same bytes as on the CPU, and numbers that stay on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, dynamic, fn, pipeline_def
from penstock.errors import OperatorError
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.tensors import TensorListCPU, TensorListGPU

pytestmark = pytest.mark.usefixtures("with_gpu")

RNG = np.random.default_rng(3)
SHAPES = [(20, 31, 3), (27, 31, 3), (9, 14, 3), (20, 31, 3)]
BOXES = [
    np.array([[0, 0, 10, 10], [2.5, 3.5, 29.6, 18], [30, 19, 31, 20]], np.float32),
    np.zeros((0, 4), np.float32),
    np.array([[-4, -2, 5, 9], [3, 4, 40, 40], [20, 20, 22, 23], [-9, -9, -1, -2], [-3, -3, 17, 12]], np.float32),
    np.array([[0, 0, 31, 20]], np.float32),
]
TRIMMED = [BOXES[0], BOXES[1], BOXES[2][:2], BOXES[3]]
# Fill values, some of which float32 cannot represent.
TYPES: dict[Any, list[float]] = {
    np.uint8: [7],
    np.int8: [-7, 300, 2],
    np.uint16: [65535],
    np.float16: [0.1, 2, -1],
    np.int32: [2**24 + 1],
    np.float32: [0.1],
    np.int64: [2**40 + 1, 3, 5],
    np.float64: [0.1, 0.2, 0.3],
    np.bool_: [1],
}


def pictures(dtype: Any = np.uint8) -> list[np.ndarray]:
    values = [RNG.integers(0, 256, shape) for shape in SHAPES]
    return [(value % 2 == 0) if dtype is np.bool_ else value.astype(dtype) for value in values]


def built(define: Callable[[str], Any], device: str, batch_size: int = len(SHAPES)) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def pipeline() -> Any:
        result = define(device)
        return tuple(result) if isinstance(result, list) else result

    return pipeline()


def source(device: str, name: str = "images", layout: str = "HWC") -> Any:
    data = fn.external_source(name=name, layout=layout)
    return data.gpu() if device == "gpu" else data


def check_equal(define: Callable[[str], Any], on_gpu: Sequence[bool], **inputs: Any) -> None:
    """Raise AssertionError unless both devices return the same.

    ``on_gpu`` tells for each output whether it is on the GPU if the images are.
    """
    results = {}
    for device in ("cpu", "gpu"):
        pipeline = built(define, device)
        # In the second batch, kernels are not compiled again, and memory is reused.
        for _ in range(2):
            results[device] = pipeline.run(**inputs)
        pipeline.close()
    assert [isinstance(batch, TensorListGPU) for batch in results["gpu"]] == list(on_gpu)
    for ours, theirs in zip(results["gpu"], results["cpu"], strict=True):
        assert ours.positions == theirs.positions
        assert (ours.dtype, ours.layout(), ours.shape()) == (theirs.dtype, theirs.layout(), theirs.shape())
        for one, other in zip(ours.as_cpu(), theirs, strict=True):
            assert np.array(one).tobytes() == np.array(other).tobytes()


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", TYPES)
def test_boxes(dtype: Any, layout: str) -> None:
    def define(device: str) -> Any:
        return fn.crop_boxes(
            source(device, layout=layout), fn.external_source(name="boxes", ndim=2), out_of_bounds_policy="pad",
            fill_values=TYPES[dtype],
        )  # fmt: skip

    images = [image if layout == "HWC" else image.transpose(2, 0, 1).copy() for image in pictures(dtype)]
    check_equal(define, (True, False), images=images, boxes=BOXES)


def test_trimmed_boxes_from_the_gpu() -> None:
    """`trim_boxes` works with boxes on the GPU, where a detector returns them."""
    inside = [np.array([[1, 2, 9, 8]], np.float32), np.array([[0, 0, 40, 9], [-3, 3, 8, 50]], np.float32)] * 2

    def define(device: str) -> Any:
        boxes = fn.external_source(name="boxes", ndim=2)
        return fn.crop_boxes(source(device), boxes.gpu() if device == "gpu" else boxes)

    check_equal(define, (True, False), images=pictures(), boxes=inside)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("edge", ["pad", "shift", "drop"])
def test_tiles(edge: str, layout: str) -> None:
    def define(device: str) -> Any:
        return fn.cut_tiles(source(device, layout=layout), tile=[12, 10], stride=[8, 9], edge=edge, fill_value=7.5)

    images = [image if layout == "HWC" else image.transpose(2, 0, 1).copy() for image in pictures()]
    check_equal(define, (True, False, False), images=images)


@pytest.mark.parametrize("join", ["stack", "cat"])
def test_parts_are_processed_and_collected(join: str) -> None:
    def define(device: str) -> Any:
        crops, counts = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        small = fn.resize(crops, size=[8, 9], reference="pil")
        angles = fn.external_source(name="angles", ndim=0)
        turned = fn.rotate(small, angle=fn.spread(angles, counts=counts), keep_size=True, interp_type=0)
        return fn.collect(small, counts=counts, join=join), fn.collect(turned, counts=counts, join=join), counts

    boxes = [np.array([[0, 0, 9, 9]] * count, np.float32).reshape(-1, 4) for count in (2, 0, 3, 1)]
    angles = [np.float32(angle) for angle in (0, 0, 180, 90)]
    check_equal(define, (True, True, False), images=pictures(), boxes=boxes, angles=angles)


def test_parts_of_different_lengths_are_joined() -> None:
    def define(device: str) -> Any:
        crops, counts = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        return fn.collect(crops, counts=counts, join="cat")

    boxes = [np.array([[0, 0, 7, height] for height in heights], np.float32) for heights in ([3, 9], [5], [1, 2], [4])]
    check_equal(define, (True,), images=pictures(np.float16), boxes=boxes)


def test_no_parts_at_all() -> None:
    def define(device: str) -> Any:
        crops, counts = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        return crops, fn.collect(crops, counts=counts)

    check_equal(define, (True, True), images=pictures(), boxes=[np.zeros((0, 4), np.float32)] * len(SHAPES))


def test_slices_and_what_belongs_to_them() -> None:
    def define(device: str) -> Any:
        videos = source(device, "videos", "FHWC")
        frames, counts = fn.expand(videos)
        return frames, fn.collect(frames, counts=counts), fn.spread(videos, counts=counts), counts

    videos = [RNG.integers(0, 256, (count, 4, 5, 3), np.uint8) for count in (2, 3, 1, 1)]
    check_equal(define, (True, True, True, False), videos=videos)


def test_a_box_that_is_refused_fails_its_image_alone() -> None:
    def define(device: str) -> Any:
        crops, counts = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        return crops, fn.collect(crops, counts=counts)

    boxes = [np.array([box], np.float32) for box in ([0, 0, 9, 9], [0, 0, 0, 9], [1, 1, 9, 9], [2, 2, 3, 3])]
    images, pipeline = pictures(), built(define, "gpu")
    pipeline.build()
    result = PipelineRunner(pipeline).run({"images": TensorListCPU(images, "HWC"), "boxes": TensorListCPU(boxes)}, 4)
    assert set(result.failures) == {1}
    crops, collected = result.outputs
    assert crops.positions == [0, 2, 3]
    np.testing.assert_array_equal(np.array(collected.as_cpu()[2])[0], images[2][1:9, 1:9])
    pipeline.close()


def test_counts_of_other_parts_are_refused() -> None:
    def define(device: str) -> Any:
        crops, _ = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        return fn.collect(crops, counts=fn.cut_tiles(source(device, "others"), tile=[8, 8])[2])

    pipeline = built(define, "gpu")
    with pytest.raises(OperatorError, match="were they returned by different operators"):
        pipeline.run(images=pictures(), others=pictures(), boxes=TRIMMED)
    pipeline.close()


def test_what_is_saved_means_the_same(tmp_path: Path) -> None:
    """In a loaded pipeline, counts that an operator on the GPU returns on the CPU can still be used on both devices."""

    def define(device: str) -> Any:
        crops, counts = fn.crop_boxes(source(device), fn.external_source(name="boxes", ndim=2))
        return fn.collect(fn.resize(crops, size=[8, 9]), counts=counts, name="crops"), counts, counts.gpu() + 1

    pipeline = built(define, "gpu")
    for name in ("model.json", "model.dali"):
        pipeline.save(str(tmp_path / name))
        again = Pipeline.load(str(tmp_path / name), prefetch_queue_depth=1)
        results = [each.run(images=pictures(), boxes=TRIMMED) for each in (pipeline, again)]
        assert [isinstance(batch, TensorListGPU) for batch in results[1]] == [True, False, True]
        counts = [[int(np.array(count)) for count in batch.as_cpu()] for batch in results[1][1:]]
        assert counts == [[3, 0, 2, 1], [4, 1, 3, 2]]
        assert [batch.shape() for batch in results[0]] == [batch.shape() for batch in results[1]]
        again.close()
    pipeline.close()


def test_results_of_calls_tell_where_they_are() -> None:
    images = dynamic.batch(pictures(), layout="HWC", device="gpu")
    tiles, corners, counts = dynamic.cut_tiles(images, tile=[8, 8])
    assert [value.device.device_type for value in (tiles, corners, counts)] == ["gpu", "cpu", "cpu"]
    assert [int(np.asarray(count)) for count in counts] == [12, 16, 4, 12]
