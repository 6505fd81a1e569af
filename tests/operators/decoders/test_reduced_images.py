"""`decoders.image(scale=...)`: images decoded at a smaller size, on request, or because a resize follows."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.operators.decoders.image import Image as ImageDecoder

RNG = np.random.default_rng(1)
SETTINGS: dict[str, Any] = {"num_threads": 2, "device_id": None, "exec_async": False, "exec_pipelined": False}


def photo(height: int, width: int, kind: str = "JPEG", mode: str = "RGB", **options: Any) -> np.ndarray:
    coarse = Image.fromarray(RNG.integers(0, 256, (height // 40 + 2, width // 40 + 2, 3), np.uint8))
    file = io.BytesIO()
    coarse.resize((width, height), Image.Resampling.BICUBIC).convert(mode).save(file, kind, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def draft(encoded: np.ndarray, scale: int) -> np.ndarray:
    image = Image.open(io.BytesIO(encoded.tobytes()))
    image.draft(image.mode, (image.width // scale, image.height // scale))
    return np.asarray(image.convert("RGB"))


def pipeline_of(define: Callable[[Any], Any], count: int, **options: Any) -> Pipeline:
    @pipeline_def(batch_size=count, **(SETTINGS | options))
    def pipeline() -> Any:
        return define(fn.external_source(name="encoded"))

    return pipeline()


def run(define: Callable[[Any], Any], encoded: Sequence[np.ndarray], **options: Any) -> list[list[np.ndarray]]:
    outputs = pipeline_of(define, len(encoded), **options).run(encoded=list(encoded))
    return [[np.array(sample) for sample in output] for output in outputs]


FILES = [photo(300, 401), photo(261, 290, progressive=True), photo(280, 333, subsampling=1), photo(270, 300, mode="L")]


@pytest.mark.parametrize("scale", [2, 4, 8])
def test_explicit_scales_have_the_pixels_of_pillows_draft(scale: int) -> None:
    (images,) = run(lambda encoded: fn.decoders.image(encoded, scale=f"1/{scale}"), FILES)
    for image, file in zip(images, FILES, strict=True):
        np.testing.assert_array_equal(image, draft(file, scale))


def test_explicit_scales_of_mixed_formats_types_and_colours() -> None:
    files = [photo(33, 47, "PNG"), photo(40, 120), photo(30, 50, "BMP")]
    (images,) = run(lambda encoded: fn.decoders.image(encoded, scale="1/4"), files)
    assert [image.shape for image in images] == [(9, 12, 3), (10, 30, 3), (8, 13, 3)]
    (floats,) = run(
        lambda encoded: fn.decoders.image(encoded, scale="1/4", dtype=types.FLOAT, output_type=types.GRAY), files
    )
    assert [image.shape for image in floats] == [(9, 12, 1), (10, 30, 1), (8, 13, 1)]
    for image, grey in zip(images, floats, strict=True):
        luma = image @ np.array([0.299, 0.587, 0.114], np.float32) / 255
        np.testing.assert_allclose(grey[..., 0], luma, atol=0.02)


def test_a_crop_of_an_image_at_a_smaller_scale() -> None:
    (images,) = run(
        lambda encoded: fn.crop(fn.decoders.image(encoded, scale="1/2"), crop=(50, 60), crop_pos_x=1, crop_pos_y=0),
        FILES,
    )
    for image, file in zip(images, FILES, strict=True):
        whole = draft(file, 2)
        np.testing.assert_array_equal(image, whole[:50, whole.shape[1] - 60 :])


def planes(images: Any) -> Any:
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[1, 2, 3], std=[50, 60, 70], output_layout="CHW")


RESIZES: list[tuple[dict[str, Any], bool]] = [
    ({"size": (64, 72)}, False),
    ({"size": (40, 48), "reference": "pil"}, True),
    ({"resize_shorter": 33, "reference": "torchvision"}, False),
    ({"resize_shorter": 41, "reference": "torchvision", "antialias": True}, True),
    ({"resize_longer": 50, "interp_type": types.INTERP_CUBIC, "roi_start": (10, 20), "roi_end": (250, 280)}, False),
]


@pytest.mark.parametrize(("arguments", "normalized"), RESIZES)
def test_fast_images_are_resized_to_nearly_the_same(arguments: dict[str, Any], normalized: bool) -> None:
    def define(encoded: Any, scale: str) -> Any:
        resized = fn.resize(fn.decoders.image(encoded, scale=scale), **arguments)
        return planes(resized) if normalized else resized

    exif = Image.Exif()
    exif[274] = 6
    files = [*FILES, photo(304, 400, exif=exif), photo(303, 401, exif=exif)]
    (exact,) = run(lambda encoded: define(encoded, "exact"), files)
    (fast,) = run(lambda encoded: define(encoded, "fast"), files)
    differ = 0
    for one, other in zip(exact, fast, strict=True):
        assert one.shape == other.shape
        unit = 50 if normalized else 1
        distance = np.abs(one.astype(float) - other) * unit
        assert distance.mean() < 1.5
        differ += bool(distance.any())
    # Only the rotated file with incomplete blocks (the last one) has the same pixels both ways.
    assert differ == len(files) - 1


def test_what_reads_more_than_a_resize_that_reduces_gets_exact_pixels() -> None:
    others: list[Callable[[Any], Any]] = [
        lambda images: images,
        lambda images: fn.resize(images, size=(150, 160)),
        lambda images: fn.resize(images, size=(40, 40), antialias=False),
        lambda images: fn.resize(images, size=(40, 40), interp_type=types.INTERP_NN),
        lambda images: (images, fn.resize(images, size=(40, 40))),
        lambda images: fn.resize(fn.crop(images, crop=(200, 200)), size=(40, 40)),
        lambda images: fn.resize(images, size=(40, 40), reference="opencv"),
    ]
    for follow in others:
        exact = run(lambda encoded, follow=follow: follow(fn.decoders.image(encoded)), FILES)
        fast = run(lambda encoded, follow=follow: follow(fn.decoders.image(encoded, scale="fast")), FILES)
        for one, other in zip(exact, fast, strict=True):
            for expected, sample in zip(one, other, strict=True):
                np.testing.assert_array_equal(sample, expected)


def test_fast_images_of_other_formats_are_exact() -> None:
    files = [photo(200, 300, "PNG"), photo(200, 300, "WEBP"), photo(200, 300, mode="CMYK")]
    (exact,) = run(lambda encoded: fn.resize(fn.decoders.image(encoded), size=(32, 40)), files)
    (fast,) = run(lambda encoded: fn.resize(fn.decoders.image(encoded, scale="fast"), size=(32, 40)), files)
    for one, other in zip(exact, fast, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_batch_is_the_same_as_its_samples_and_on_any_number_of_threads() -> None:
    def define(encoded: Any) -> Any:
        return planes(fn.resize(fn.decoders.image(encoded, scale="fast"), size=(40, 48), reference="pil"))

    (batch,) = run(define, FILES, num_threads=3)
    for file, sample in zip(FILES, batch, strict=True):
        ((alone,),) = run(define, [file], num_threads=1)
        np.testing.assert_array_equal(alone, sample)


def test_saved_pipelines() -> None:
    def define(encoded: Any) -> Any:
        return fn.resize(fn.decoders.image(encoded, scale="fast"), size=(40, 48))

    pipeline = pipeline_of(define, len(FILES))
    again = Pipeline.deserialize(pipeline.serialize(), **SETTINGS)
    (expected,), (output,) = pipeline.run(encoded=FILES), again.run(encoded=FILES)
    for one, other in zip(expected, output, strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other))


@pytest.mark.parametrize("scale", ["fast", "1/2"])
def test_damaged_images_are_named(scale: str) -> None:
    files = [FILES[0], FILES[0][:700]]
    with pytest.raises(RuntimeError, match=r"sample #1.*300x401"):
        run(lambda encoded: fn.resize(fn.decoders.image(encoded, scale=scale), size=(40, 48)), files)


def test_other_scales_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`scale` must be one of 'exact', 'fast', '1/2', '1/4', '1/8'\. Got: '1/3'"):
        run(lambda encoded: fn.decoders.image(encoded, scale="1/3"), FILES)


@pytest.mark.parametrize("scale", ["fast", "1/8"])
def test_gpu_decoders_refuse(scale: str) -> None:
    with pytest.raises(ValueError, match=f"`scale='{scale}'` needs `device='cpu'`"):
        ImageDecoder({"scale": scale}, device="mixed")
