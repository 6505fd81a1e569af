"""Decoding a region gives the same pixels and errors as decoding the whole image and cropping it, bit for bit."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError

RNG = np.random.default_rng(0)


def picture(height: int, width: int) -> Image.Image:
    """Return an image of smooth colours with noise, in which upsampled chroma at the edges of regions depends on pixels outside."""
    coarse = Image.fromarray(RNG.integers(0, 255, (height // 8 + 1, width // 8 + 1, 3), np.uint8))
    smooth = np.array(coarse.resize((width, height)), np.int16) + RNG.integers(-20, 20, (height, width, 3))
    return Image.fromarray(np.clip(smooth, 0, 255).astype(np.uint8))


def encoded(kind: str = "JPEG", orientation: int = 1, size: tuple[int, int] = (61, 45), **options: Any) -> np.ndarray:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    picture(*size).convert(options.pop("mode", "RGB")).save(buffer, kind, exif=exif.tobytes(), **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


FILES = [
    *(encoded(orientation=number) for number in range(1, 9)),
    *(encoded(subsampling=number, quality=40, orientation=6) for number in range(3)),
    encoded(progressive=True),
    encoded(restart_marker_blocks=2),
    encoded(mode="L"),
    encoded(mode="CMYK"),
    *(encoded(kind, orientation=6) for kind in ("PNG", "TIFF", "WEBP")),
    encoded("BMP"),
]
Window = Callable[[Any], Any]
WINDOWS: list[Window] = [
    lambda image: fn.crop(image, crop=(20, 22)),
    lambda image: fn.crop(image, crop=(20, 22), crop_pos_x=fn.random.uniform(range=[0.0, 1.0]), crop_pos_y=0.0),
    lambda image: fn.crop(image, crop_h=fn.random.uniform(range=[1.0, 30.0]), crop_w=1.0, crop_pos_x=0.0),
    lambda image: fn.crop(image, crop=(0, 0)),
    lambda image: fn.crop(image, crop=(20, 22), dtype=types.FLOAT),
    lambda image: fn.crop(image, crop=(50, 50), out_of_bounds_policy="pad", fill_values=[1.0, 2.0, 3.0]),
    lambda image: fn.crop(image, crop=(50, 50), out_of_bounds_policy="trim_to_shape"),
    lambda image: fn.slice(image, start=[3, 5], shape=[20, 22]),
    lambda image: fn.slice(image, rel_start=[0.1], rel_end=[0.7], axis_names="H"),
    lambda image: fn.slice(image, start=[1], end=[2], axis_names="C"),
    lambda image: fn.slice(image, start=[4], end=[4], axis_names="W"),
]


def pipeline_of(passes: list[str], files: list[np.ndarray], window: Window, **decoding: Any) -> Pipeline:
    @pipeline_def(batch_size=len(files), num_threads=2, seed=3, prefetch_queue_depth=1)
    def define() -> Any:
        return window(fn.decoders.image(fn.external_source(lambda: files), **decoding))

    pipeline: Pipeline = define(passes=passes)
    pipeline.build()
    names = [step.node.schema.name for step in pipeline.executor.plan.operators]
    assert ("_fused__Image" in names) is ("decode_regions" in passes)
    return pipeline


def samples_of(batch: Any) -> list[np.ndarray]:
    return [np.array(sample) for sample in batch]


def both(files: list[np.ndarray], window: Window, **decoding: Any) -> tuple[Pipeline, Pipeline]:
    one, other = (pipeline_of(passes, files, window, **decoding) for passes in (["decode_regions"], []))
    return one, other


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "decoding",
    [{}, {"output_type": types.YCbCr, "dtype": types.FLOAT}, {"adjust_orientation": False, "use_fast_idct": True}],
)
def test_regions_equal_crops(window: Window, decoding: dict[str, Any]) -> None:
    one, other = both(FILES, window, **decoding)
    for _ in range(2):
        a, b = one.run()[0], other.run()[0]
        assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
        for x, y in zip(samples_of(a), samples_of(b)):
            assert np.array_equal(x, y)


JPEG = encoded(size=(120, 100), restart_marker_blocks=4)
SCAN = JPEG.tobytes().index(b"\xff\xda")


def with_bytes(position: int, *values: int) -> np.ndarray:
    damaged = JPEG.copy()
    damaged[position : position + len(values)] = values
    return damaged


DAMAGED = {
    "cut short behind the region": JPEG[: len(JPEG) * 9 // 10],
    "cut short within it": JPEG[: SCAN + (len(JPEG) - SCAN) // 4],
    "without its end": JPEG[:-2],
    "no image": np.zeros(10, np.uint8),
    "empty": JPEG[:0],
    "a header cut short": JPEG[:100],
    "a PNG cut short": encoded("PNG")[:-200],
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=list(DAMAGED))
def test_damaged_images_fail_alike(damaged: np.ndarray) -> None:
    errors = []
    for pipeline in both([JPEG, damaged, JPEG], lambda image: fn.crop(image, crop=(20, 22), crop_pos_y=0.0)):
        with pytest.raises(OperatorError) as caught:
            pipeline.run()
        errors.append(caught.value)
        pipeline._session.feed_from_sources(pipeline.executor)
        result = pipeline.executor.run_once(isolate=True)
        assert list(result.failures) == [1]
        errors.append(result.failures[1])
    assert len({str(error) for error in errors}) == 1
    for error in errors:
        assert (error.operator, error.sample) == ("penstock.fn.decoders.image", 1)
        assert error.origin[-1].line.startswith("return window(fn.decoders.image(")


@pytest.mark.parametrize("position", range(SCAN + 20, len(JPEG) - 20, (len(JPEG) - SCAN) // 12))
def test_damage_in_the_scan_shows_alike(position: int) -> None:
    damages = [(0x12, 0x34, 0x56), (0xFF, 0xD3), (0xFF, 0x00), (0xFF, 0xC4, 0xFF, 0xFF)]
    files = [with_bytes(position, *damage) for damage in damages]
    one, other = both(files, lambda image: fn.crop(image, crop=(50, 60), crop_pos_y=0.3))
    for x, y in zip(samples_of(one.run()[0]), samples_of(other.run()[0])):
        assert np.array_equal(x, y)


def test_a_window_outside_of_the_image_is_blamed_on_the_crop() -> None:
    messages = []
    for pipeline in both([JPEG], lambda image: fn.crop(image, crop=(200, 22))):
        with pytest.raises(OperatorError, match="out of bounds") as caught:
            pipeline.run()
        assert caught.value.operator == "penstock.fn.crop"
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_images_that_are_used_elsewhere_are_decoded_as_a_whole() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def define() -> Any:
        image = fn.decoders.image(fn.external_source(lambda: [JPEG]))
        return fn.crop(image, crop=(20, 22)), fn.reductions.mean(image)

    pipeline = define()
    pipeline.build()
    assert "decoders__Image" in [step.node.schema.name for step in pipeline.executor.plan.operators]
