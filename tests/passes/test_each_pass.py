"""Each pass, switched on and off, gives bit-identical results for many small pipelines."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import fn, math, pipeline_def, types
from penstock.passes import ordered_passes

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 255, (40 + 70 * i, 60 + 9 * i, 3), np.uint8) for i in range(4)]


def encoded(index: int) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(IMAGES[index]).save(buffer, ("JPEG", "PNG", "BMP", "JPEG")[index])
    return np.frombuffer(buffer.getvalue(), np.uint8)


SOUNDS = [np.cos(np.arange(2000 * 5**i, dtype=np.float32) ** 1.3) for i in range(4)]
ENCODED = [encoded(index) for index in range(4)]


def images() -> Any:
    return fn.external_source(lambda: IMAGES, layout="HWC")


def files() -> Any:
    return fn.external_source(lambda: ENCODED)


def resized_and_normalized() -> Any:
    image = fn.resize(images(), resize_shorter=fn.random.uniform(range=[25.0, 50.0]))
    return fn.crop_mirror_normalize(image, crop=(20, 22), mirror=fn.random.coin_flip(), mean=[120.0], std=[60.0])


def decoded_and_resized() -> Any:
    image = fn.resize(fn.decoders.image(files()), size=[30, 30])
    return fn.crop_mirror_normalize(image, crop=(20, 22))


def decoded_and_cropped() -> Any:
    image = fn.decoders.image(files(), output_type=types.GRAY)
    return fn.crop(image, crop=(20, 22), crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))


def decoded_and_sliced() -> Any:
    return fn.slice(fn.decoders.image(files()), start=[3, 5], shape=[20, 22]), fn.random.uniform()


def cropped_twice() -> Any:
    image = fn.decoders.image(files())
    return fn.crop(image, crop=(20, 22)), fn.crop(image, crop=(20, 22)), fn.crop(image, crop=(10, 12))


def repeated_expressions() -> Any:
    number = fn.random.uniform(range=[0.0, 1.0])
    image = fn.cast(images(), dtype=types.FLOAT)
    return image * number + image * number, fn.cast(images(), dtype=types.FLOAT) * number


def expressions_of_constants() -> Any:
    table = types.Constant(np.float32([1, 2, 3]), device="cpu")
    return images() * math.sqrt(table * 2) + 1, table * 2


def chains_of_points() -> Any:
    image = fn.brightness_contrast(images(), brightness=fn.random.uniform(range=[0.5, 1.5]), contrast=1.2)
    return fn.cast(image * 0.5 + 3, dtype=types.UINT8), fn.cast(-image, dtype=types.INT16) // 3


def warped() -> Any:
    turned = fn.transforms.rotation(angle=30.0)
    moved = fn.transforms.combine(turned, fn.transforms.translation(offset=[3.0, 4.0]))
    return fn.warp_affine(fn.warp_affine(images(), moved), matrix=moved, inverse_map=False)


def bands_of_sounds() -> Any:
    sound, outputs = fn.external_source(lambda: SOUNDS), []
    frames = {"window_length": 200, "window_step": 80}
    for arguments in ({"nfft": 256}, {"nfft": 256, "layout": "tf"}, {"nfft": 240, "power": 1}):
        bands = [fn.mel_filter_bank(fn.spectrogram(sound, **frames, **arguments), nfilter=20) for _ in range(3)]
        outputs += [bands[0], fn.to_decibels(bands[1]), fn.mfcc(fn.to_decibels(bands[2], reference=2.0))]
    return tuple(outputs)


def normalized_bands_of_sounds() -> Any:
    sound = fn.external_source(lambda: SOUNDS)
    outputs = []
    for arguments in (
        {"axes": [1], "epsilon": 1e-3},
        {"axes": [0], "shift": 3.0},
        {"mean": -20.0, "stddev": 5.0},
        {"batch": True},
        {"dtype": types.INT16, "scale": 100.0},
    ):
        spectra = fn.spectrogram(sound, nfft=256, window_length=200, window_step=80)
        outputs.append(fn.normalize(fn.to_decibels(fn.mel_filter_bank(spectra, nfilter=20)), **arguments))
    return tuple(outputs)


def unused() -> Any:
    fn.resize(images(), size=[5, 5])
    return fn.random.normal(shape=[2]), fn.flip(images())


def chosen_by_sample() -> Any:
    image = images()
    if fn.random.coin_flip():
        image = fn.crop_mirror_normalize(fn.resize(image, size=[20, 20]), dtype=types.UINT8, output_layout="HWC")
    else:
        image = fn.resize(fn.resize(image, size=[20, 20]), size=[20, 20])
    return fn.reductions.mean(image), types.Constant(1, device="cpu") * 2


PIPELINES = [
    resized_and_normalized,
    decoded_and_resized,
    decoded_and_cropped,
    decoded_and_sliced,
    cropped_twice,
    repeated_expressions,
    expressions_of_constants,
    chains_of_points,
    warped,
    bands_of_sounds,
    normalized_bands_of_sounds,
    unused,
    chosen_by_sample,
]


def outcome(define: Callable[[], Any], passes: list[str]) -> list[Any]:
    """Return all outputs of two runs of a pipeline with these passes."""
    pipeline = pipeline_def(define, batch_size=4, num_threads=2, seed=7, enable_conditionals=True)(passes=passes)
    batches = [batch for _ in range(2) for batch in pipeline.run()]
    return [
        (batch.dtype, batch.layout(), [(np.array(sample).shape, np.array(sample).tobytes()) for sample in batch])
        for batch in batches
    ]


@pytest.fixture(scope="module")
def plain() -> dict[str, list[Any]]:
    return {define.__name__: outcome(define, []) for define in PIPELINES}


@pytest.mark.parametrize("define", PIPELINES)
@pytest.mark.parametrize("name", ordered_passes())
def test_a_pass_changes_no_result(name: str, define: Callable[[], Any], plain: dict[str, list[Any]]) -> None:
    assert outcome(define, [name]) == plain[define.__name__]
    assert outcome(define, [other for other in ordered_passes() if other != name]) == plain[define.__name__]
