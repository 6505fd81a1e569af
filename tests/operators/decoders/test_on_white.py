"""Images converted to RGB as with PIL: put on white, or by `convert`."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs import transparency

RNG = np.random.default_rng(2)
OPAQUE = Image.fromarray(RNG.integers(0, 256, (20, 30, 3), np.uint8))
TRANSPARENT = OPAQUE.convert("RGBA")
TRANSPARENT.putalpha(Image.fromarray(RNG.integers(0, 256, (20, 30), np.uint8)))


def file_of(image: Image.Image, kind: str, **options: object) -> bytes:
    held = io.BytesIO()
    image.save(held, kind, **options)
    return held.getvalue()


def deep(kind: str, *channels: int) -> bytes:
    """Return a file of an image with 16 bits per channel, written by OpenCV, as Pillow cannot write such images in colour."""
    return bytes(cv2.imencode(kind, RNG.integers(0, 600, (20, 30, *channels), np.uint16) ** 2 // 6)[1])


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[274] = 6
    return exif


CMYK = Image.fromarray(RNG.integers(0, 256, (20, 30, 4), np.uint8), "CMYK")
FILES = {
    "jpeg": file_of(OPAQUE, "JPEG"),
    "png": file_of(OPAQUE, "PNG"),
    "png with alpha": file_of(TRANSPARENT, "PNG"),
    "png with alpha, turned": file_of(TRANSPARENT, "PNG", exif=turned()),
    "gray with alpha": file_of(TRANSPARENT.convert("LA"), "PNG"),
    "palette": file_of(OPAQUE.quantize(20), "PNG"),
    "palette with alpha": file_of(OPAQUE.quantize(20), "PNG", transparency=3),
    "a transparent colour": file_of(OPAQUE, "PNG", transparency=OPAQUE.getpixel((0, 0))),
    "webp with alpha": file_of(TRANSPARENT, "WEBP", lossless=True),
    "webp": file_of(OPAQUE, "WEBP", lossless=True),
    "cmyk": file_of(CMYK, "JPEG"),
    "cmyk, turned": file_of(CMYK, "JPEG", exif=turned()),
    "tiff of cmyk": file_of(CMYK, "TIFF"),
    "tiff": file_of(OPAQUE, "TIFF"),
    "16 bits": deep(".png", 3),
    "16 bits with alpha": deep(".png", 4),
    "gray of 16 bits": deep(".png"),
    "tiff of 16 bits": deep(".tiff", 3),
    "tiff of gray of 16 bits": deep(".tiff"),
}
GIF = file_of(OPAQUE.quantize(20), "GIF", transparency=3)


def by_pil(data: bytes, drop_alpha: bool = False, upright: bool = True) -> np.ndarray:
    image = Image.open(io.BytesIO(data))
    image = ImageOps.exif_transpose(image) if upright else image
    if image.has_transparency_data and not drop_alpha:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return np.asarray(image.convert("RGB"))


def test_transparent_images_lie_on_white_and_others_stay() -> None:
    @pipeline_def(batch_size=len(FILES), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def define() -> object:
        files = fn.external_source(name="files")
        shown = fn.decoders.on_white(files)
        return shown, fn.crop(shown, crop=[9, 11])

    pipeline = define()
    shown, cropped = pipeline.run(files=[np.frombuffer(data, np.uint8) for data in FILES.values()])
    for number, (name, data) in enumerate(FILES.items()):
        expected = by_pil(data)
        np.testing.assert_array_equal(np.array(shown[number]), expected, name)
        top, left = (expected.shape[0] - 9) // 2, (expected.shape[1] - 11) // 2
        assert np.array(cropped[number]).tolist() in [
            expected[top + up : top + up + 9, left + right : left + right + 11].tolist()
            for up in (0, 1)
            for right in (0, 1)
        ]
    pipeline.close()


@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("drop_alpha", [True, False])
def test_alpha_and_orientation_are_dropped_where_that_is_wanted(drop_alpha: bool, upright: bool) -> None:
    @pipeline_def(batch_size=len(FILES) + 1, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def define() -> object:
        files = fn.external_source(name="files")
        return fn.decoders.on_white(files, drop_alpha=drop_alpha, adjust_orientation=upright)

    files = FILES | {"gif": GIF}
    pipeline = define()
    (shown,) = pipeline.run(files=[np.frombuffer(data, np.uint8) for data in files.values()])
    for number, (name, data) in enumerate(files.items()):
        np.testing.assert_array_equal(np.array(shown[number]), by_pil(data, drop_alpha, upright), name)
    pipeline.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output_type": types.GRAY}, "RGB of uint8 only. Got: GRAY"),
        ({"dtype": types.FLOAT}, "RGB of uint8 only. Got: RGB of float"),
    ],
)
def test_other_colours_and_types_are_refused(arguments: dict[str, object], message: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> object:
        return fn.decoders.on_white(fn.external_source(name="files"), **arguments)

    with pytest.raises(ValueError, match=message):
        define().build()


@pytest.mark.parametrize(
    ("isolation", "here"), [("all", set()), ("auto", {"png with alpha", "webp with alpha", "cmyk"})]
)
def test_files_are_decoded_where_the_pipeline_decodes(
    monkeypatch: pytest.MonkeyPatch, isolation: str, here: set[str]
) -> None:
    names = ["png with alpha", "webp with alpha", "gif", "cmyk"]
    files = [FILES.get(name, GIF) for name in names]
    decoded_here: list[bytes] = []

    def noted(encoded: np.ndarray, output: np.ndarray, **conversion: bool) -> bool:
        decoded_here.append(encoded.tobytes())
        return in_process(encoded, output, **conversion)

    in_process = transparency.decode_as_pillow_in_process
    monkeypatch.setattr(transparency, "decode_as_pillow_in_process", noted)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=1, isolate_decoders=isolation)
    def define() -> object:
        encoded = fn.external_source(name="files")
        return fn.decoders.on_white(encoded)

    pipeline = define()
    (shown,) = pipeline.run(files=[np.frombuffer(data, np.uint8) for data in files])
    for number, data in enumerate(files):
        np.testing.assert_array_equal(np.array(shown[number]), by_pil(data), names[number])
    assert set(decoded_here) == {FILES[name] for name in here}
    pipeline.close()
