"""JPEGs of which the CPU reads the coefficients, and the GPU makes the pixels: those that Pillow gives."""

from __future__ import annotations

import io
from typing import Any

import cupy_like as xp
import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs.image_codec import decode_to_coefficients
from penstock.kernels.codecs.image_header import read_header
from penstock.kernels.codecs.jpeg_baseline import coefficients_of, compiling_at_once, read_coefficients
from penstock.kernels.cuda import jpeg_pixels
from penstock.kernels.cuda.launch import Located, locate

RNG = np.random.default_rng(3)


def encoded(pixels: np.ndarray, **settings: Any) -> np.ndarray:
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "JPEG", **settings)
    return np.frombuffer(held.getvalue(), np.uint8)


def noise(height: int, width: int) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), np.uint8)


def read(file: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The coefficients and the quantizers."""
    header = read_header(file)
    coefficients = np.full(coefficients_of(header.height, header.width), -7, np.int16)
    return coefficients, read_coefficients(file, header, coefficients)


def by_pillow(file: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file.tobytes())).convert("RGB"))


@pytest.mark.every_case
@pytest.mark.parametrize("quality", [5, 60, 90, 100])
def test_pixels_are_those_of_pillow(quality: int) -> None:
    shapes = (64, 64), (33, 47), (16, 200), (1, 40), (95, 32), (2, 333)
    images = [noise(*shape) for shape in shapes]
    images += [np.where(image > 127, np.uint8(255), np.uint8(0)) for image in images]
    files = [encoded(image, quality=quality, restart_marker_blocks=k % 4) for k, image in enumerate(images)]
    jobs = []
    for file, image in zip(files, images, strict=True):
        coefficients, quantizers = read(file)
        assert quantizers is not None
        jobs.append(jpeg_pixels.Coefficients(locate(xp.put(coefficients)), locate(xp.empty(image.shape)), quantizers))
    jpeg_pixels.make_pixels(jobs)
    for job, file in zip(jobs, files, strict=True):
        np.testing.assert_array_equal(job.target.array(), by_pillow(file))


def test_no_image() -> None:
    jpeg_pixels.make_pixels([])


@pytest.mark.parametrize(
    "settings", [{"subsampling": 0}, {"subsampling": 1}, {"progressive": True}], ids=["4:4:4", "4:2:2", "progressive"]
)
def test_other_kinds_are_left(settings: dict[str, Any]) -> None:
    assert read(encoded(noise(48, 64), **settings))[1] is None


def test_damaged_files_are_left() -> None:
    file = encoded(noise(48, 64))
    assert read(file)[1] is not None
    assert read(file[: file.size // 2])[1] is None


def test_pixels_that_decoders_differ_about_are_left() -> None:
    """As where quantizers are larger than any encoder's: sums leave the bits that all decoders have."""
    black_and_white = np.where(RNG.integers(0, 2, (48, 64, 1)) > 0, np.uint8(255), np.uint8(0)).repeat(3, 2)
    file = encoded(black_and_white, quality=100).copy()
    tables = [k for k in range(file.size - 1) if file[k] == 0xFF and file[k + 1] == 0xDB]
    for place in tables:
        length = int(file[place + 2]) << 8 | int(file[place + 3])
        for start in range(place + 4, place + 2 + length, 65):
            file[start + 1 : start + 65] = 40
    assert read(file)[1] is None


def test_small_files_and_turned_ones_are_left() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    small, large = encoded(noise(48, 64)), noise(200, 300)
    with compiling_at_once():
        for file, taken in ((small, False), (encoded(large), True), (encoded(large, exif=exif), False)):
            header = read_header(file)
            output = np.empty(coefficients_of(header.height, header.width), np.int16)
            assert (decode_to_coefficients(file, header, output) is not None) == taken
            assert decode_to_coefficients(file, header, output, adjust_orientation=False) is not None or file is small


def test_in_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    settings: list[dict[str, Any]] = [{}, {"subsampling": 0}, {"progressive": True}, {"exif": exif}, {}, {"quality": 3}]
    files = [encoded(noise(200 + 3 * k, 301 - k), **own) for k, own in enumerate(settings)]
    finished: list[Located] = []
    make_pixels = jpeg_pixels.make_pixels

    def counted(jobs: list[jpeg_pixels.Coefficients]) -> None:
        finished.extend(job.target for job in jobs)
        make_pixels(jobs)

    monkeypatch.setattr(jpeg_pixels, "make_pixels", counted)

    def decoded(device: str) -> list[np.ndarray]:
        @pipeline_def(batch_size=len(files), num_threads=2, device_id=0, prefetch_queue_depth=1)
        def pipeline() -> Any:
            return fn.decoders.on_white(fn.external_source(name="images", dtype=types.UINT8, ndim=1), device=device)

        running = pipeline()
        (images,) = running.run(images=files)
        running.close()
        return [np.array(image) for image in images.as_cpu()]

    with compiling_at_once():
        for ours, theirs in zip(decoded("mixed"), decoded("cpu"), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(finished) == 2
