"""Images that nvImageCodec decodes on the GPU, beside those of the CPU."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types


def _saved(kind: str, height: int = 120, width: int = 160, **options: object) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([128 + 100 * np.sin(x / 20), 128 + 100 * np.cos(y / 15), (x + y) / 2 % 256], -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _turned(orientation: int) -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return _saved("JPEG", exif=exif, quality=95)


def _built(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], device: str) -> Any:
    @pipeline_def(batch_size=len(encoded), num_threads=2, device_id=0, exec_async=False, exec_pipelined=False)
    def pipeline() -> Any:
        return define(fn.external_source(name="encoded"), device)

    running = pipeline()
    running.build()
    running.feed_input("encoded", list(encoded))
    return running


def _run(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], device: str) -> list[np.ndarray]:
    (batch,) = _built(define, encoded, device).run()
    return [np.array(sample) for sample in batch.as_cpu()]


def _assert_close(define: Callable[[Any, str], Any], encoded: Sequence[np.ndarray], range_: float = 255) -> None:
    # The GPU's inverse DCT and chroma upsampling round in their own way; a wrong place or colour is far off.
    for ours, theirs in zip(_run(define, encoded, "mixed"), _run(define, encoded, "cpu")):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        assert np.abs(ours.astype(np.float64) - theirs).mean() <= 0.01 * range_


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA])
def test_every_format(output_type: types.DALIImageType) -> None:
    encoded = [_saved(kind) for kind in ("JPEG", "PNG", "BMP", "TIFF", "WEBP", "PPM", "GIF")]
    _assert_close(lambda x, device: fn.decoders.image(x, device=device, output_type=output_type), encoded)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    "define",
    [
        lambda x, device: fn.decoders.image(x, device=device),
        lambda x, device: fn.decoders.image(x, device=device, adjust_orientation=False),
        lambda x, device: fn.decoders.image_crop(x, device=device, crop=(50, 70), crop_pos_x=0.1, crop_pos_y=0.8),
        lambda x, device: fn.decoders.image_slice(x, device=device, start=[10, 20], end=[60, 90]),
        lambda x, device: fn.decoders.image_random_crop(x, device=device, seed=4),
    ],
)
def test_orientation_and_windows(define: Callable[[Any, str], Any], orientation: int) -> None:
    _assert_close(define, [_turned(orientation), _saved("JPEG", 200, 100), _saved("PNG")])


@pytest.mark.parametrize(("dtype", "range_"), [(types.FLOAT, 1.0), (types.UINT16, 65535), (types.INT8, 127)])
def test_types(dtype: types.DALIDataType, range_: float) -> None:
    _assert_close(
        lambda x, device: fn.decoders.image(x, device=device, dtype=dtype), [_saved("JPEG"), _saved("PNG")], range_
    )


def test_a_damaged_image_fails_alone() -> None:
    encoded = [_saved("JPEG"), _saved("JPEG")[:2000], _saved("PNG"), np.zeros(50, np.uint8)]
    running = _built(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")
    result = running.executor.run_once(isolate=True)
    assert sorted(result.failures) == [1, 3]
    assert result.outputs[0].shapes[0] == (120, 160, 3)
    assert result.outputs[0].shapes[2] == (120, 160, 3)
    with pytest.raises(ValueError, match="sample #"):
        _run(lambda x, device: fn.decoders.image(x, device=device), encoded, "mixed")


def test_what_follows_sees_the_pixels() -> None:
    def define(x: Any, device: str) -> Any:
        return fn.resize(fn.decoders.image(x, device=device), size=(32, 32))

    _assert_close(define, [_saved("JPEG"), _saved("JPEG", 300, 200)] * 8)


def test_cached_images_are_the_same(tmp_path: Any) -> None:
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.jpg"))
        _saved("JPEG", 100 + i, 80).tofile(paths[-1])

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=paths)
        return fn.decoders.image(encoded, device="mixed", cache_size=10, cache_type="threshold")

    running = pipeline()
    running.build()
    first, second = ([np.array(sample) for sample in running.run()[0].as_cpu()] for _ in range(2))
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)
