"""The image decoders in pipelines."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types


def _photo(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 3, y * 5, x + y], -1).astype(np.uint8)


def _saved(kind: str, height: int = 48, width: int = 64, **options: object) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(_photo(height, width)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _run(encoded: Sequence[np.ndarray], define: Callable[[Any], Any], **options: Any) -> list[Any]:
    settings = {
        "batch_size": len(encoded),
        "num_threads": 2,
        "device_id": None,
        "exec_async": False,
        "exec_pipelined": False,
    }

    @pipeline_def(**(settings | options))
    def pipeline() -> Any:
        return define(fn.external_source(name="encoded"))

    running = pipeline()
    running.build()
    running.feed_input("encoded", list(encoded))
    return [list(map(np.array, batch)) for batch in running.run()]


def test_a_batch_of_different_formats_and_sizes() -> None:
    (images,) = _run([_saved("PNG"), _saved("BMP", 30, 20), _saved("JPEG", 10, 90)], fn.decoders.image)
    np.testing.assert_array_equal(images[0], _photo(48, 64))
    np.testing.assert_array_equal(images[1], _photo(30, 20))
    assert images[2].shape == (10, 90, 3)


def test_layout_and_source_infos_travel() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(name="encoded"))

    running = pipeline()
    running.build()
    running.feed_input("encoded", [_saved("PNG")])
    assert running.run()[0].layout() == "HWC"


@pytest.mark.parametrize(
    ("crop", "expected"),
    [
        (lambda x: fn.decoders.image_crop(x, crop=(20, 30)), (slice(14, 34), slice(17, 47))),
        (lambda x: fn.decoders.image_crop(x, crop_h=20, crop_w=0, crop_pos_y=1.0), (slice(28, 48), slice(None))),
        (lambda x: fn.decoders.image_slice(x, start=[4, 8], end=[14, 28]), (slice(8, 28), slice(4, 14))),
        (
            lambda x: fn.decoders.image_slice(x, rel_start=[0.25, 0.5], rel_shape=[0.5, 0.5]),
            (slice(24, 48), slice(16, 48)),
        ),
        (lambda x: fn.decoders.image_slice(x, start=[4], shape=[10], axis_names="H"), (slice(4, 14), slice(None))),
    ],
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_windows_are_parts_of_the_whole(crop: Callable[[Any], Any], expected: tuple[slice, slice], kind: str) -> None:
    part, whole = _run([_saved(kind)], lambda x: (crop(x), fn.decoders.image(x)))
    np.testing.assert_array_equal(part[0], whole[0][expected])


def test_random_windows_are_those_of_random_resized_crops_generator() -> None:
    # The windows that DALI 2.4 draws for seed 5; see tests/conformance/test_decoders.py.
    parts, wholes = _run(
        [_saved("PNG", 100, 120)] * 3, lambda x: (fn.decoders.image_random_crop(x, seed=5), fn.decoders.image(x))
    )
    for part, whole in zip(parts, wholes):
        assert _position(part, whole) is not None
    assert len({part.shape for part in parts}) > 1


def _position(part: np.ndarray, whole: np.ndarray) -> tuple[int, int] | None:
    rows, columns = part.shape[:2]
    for y in range(whole.shape[0] - rows + 1):
        for x in range(whole.shape[1] - columns + 1):
            if np.array_equal(whole[y : y + rows, x : x + columns], part):
                return y, x
    return None


@pytest.mark.parametrize(
    "define",
    [
        lambda x: fn.decoders.image_crop(x, crop=(100, 20)),
        lambda x: fn.decoders.image_slice(x, start=[-1, 0], end=[5, 5]),
        lambda x: fn.decoders.image_slice(x),
        lambda x: fn.decoders.image_crop(x, crop_h=5),
        lambda x: fn.decoders.image(x, dtype=types.INT64),
    ],
)
def test_impossible_requests(define: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError):
        _run([_saved("JPEG")], define)


def test_the_failing_sample_is_named() -> None:
    with pytest.raises(ValueError, match=r"Truncated JPEG(.|\n)*sample #1"):
        _run([_saved("JPEG"), _saved("JPEG")[:60]], fn.decoders.image)


@pytest.mark.parametrize("dtype", [types.INT32, types.UINT32, types.INT64, types.UINT64, types.FLOAT, types.FLOAT64])
def test_peek_tells_the_decoded_shape(dtype: types.DALIDataType) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    shapes, images = _run(
        [_saved("JPEG"), _saved("JPEG", exif=exif)],
        lambda x: (fn.peek_image_shape(x, dtype=dtype), fn.decoders.image(x)),
    )
    assert [shape.tolist() for shape in shapes] == [list(image.shape) for image in images]
    assert shapes[0].dtype == types.to_numpy_type(dtype)


def test_peek_does_not_need_the_data() -> None:
    (shapes,) = _run([_saved("JPEG", 100, 200)[:700]], fn.peek_image_shape)
    assert shapes[0].tolist() == [100, 200, 3]


def test_numpy_arrays() -> None:
    arrays = [np.arange(12, dtype=np.float32).reshape(3, 4), np.asfortranarray(np.ones((2, 5), np.float32))]
    encoded = []
    for array in arrays:
        buffer = io.BytesIO()
        np.save(buffer, array)
        encoded.append(np.frombuffer(buffer.getvalue(), np.uint8))
    same, integers = _run(encoded, lambda x: (fn.decoders.numpy(x), fn.decoders.numpy(x, dtype=types.INT32)))
    for array, result, rounded in zip(arrays, same, integers):
        np.testing.assert_array_equal(result, array)
        assert rounded.dtype == np.int32
        np.testing.assert_array_equal(rounded, array)


@pytest.mark.parametrize("window", [{"crop": (100, 10000)}, {"crop": (10, 65), "crop_pos_x": 0.5}])
def test_window_outside_of_the_image(window: dict[str, Any]) -> None:
    message = r"cropping window \[.*\.\..*\] is not valid for image dimensions \[48 x 64\]"
    with pytest.raises(RuntimeError, match=message):
        _run([_saved("JPEG")], lambda encoded: fn.decoders.image_crop(encoded, **window))


def test_jpeg_of_too_many_scans() -> None:
    scans = np.tile(np.frombuffer(b"\xff\xda\0\x08\1\0\0\0\0\x10", np.uint8), 300)
    encoded = np.concatenate([_saved("JPEG"), scans])
    with pytest.raises(RuntimeError, match=r"Failed to decode.*number of scans \(257\) during progressive decoding"):
        _run([encoded], fn.decoders.image)
