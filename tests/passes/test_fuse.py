"""Fused and unfused pipelines give bit-identical results and the same errors."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError
from penstock.passes import improve, ordered_passes

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 255, (40 + 7 * i, 60 - 5 * i, 3), np.uint8) for i in range(4)]


def built(fused: bool, data: Any, resize: dict[str, Any], crop: dict[str, Any]) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, seed=1, prefetch_queue_depth=1)
    def define() -> Any:
        image = fn.external_source(lambda: data, layout="HWC")
        image = fn.resize(image, resize_shorter=fn.random.uniform(range=[25.0, 50.0]), **resize)
        return fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(), **crop)

    pipeline = define(passes=None if fused else [name for name in ordered_passes() if name != "fuse"])
    pipeline.build()
    names = [step.node.schema.name for step in pipeline.executor.plan.operators]
    assert any(name.startswith("_fused") for name in names) is fused
    return pipeline


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize(
    ("resize", "crop"),
    [
        ({}, {"crop": (20, 22), "mean": [123.0, 116.0, 103.0], "std": [58.0, 57.0, 56.0]}),
        ({}, {"crop": (20, 22), "output_layout": "HWC", "crop_pos_x": 0.1}),
        ({}, {"crop": (20, 22), "dtype": types.UINT8, "scale": 0.5, "shift": 3.0}),
        ({}, {"crop": (20, 22), "dtype": types.FLOAT16, "pad_output": True}),
        ({"interp_type": types.INTERP_NN}, {"crop": (20, 22)}),
        ({"interp_type": types.INTERP_CUBIC, "antialias": False}, {}),
        ({"dtype": types.FLOAT}, {"crop": (20, 22)}),
        ({}, {"crop": (60, 22), "out_of_bounds_policy": "pad", "fill_values": [5.0]}),
        ({}, {"crop": (60, 22), "out_of_bounds_policy": "trim_to_shape"}),
    ],
)
def test_fused_equals_unfused(dtype: Any, resize: dict[str, Any], crop: dict[str, Any]) -> None:
    data = [image.astype(dtype) for image in IMAGES]
    one, other = (built(fused, data, resize, crop) for fused in (True, False))
    for _ in range(2):
        a, b = one.run()[0], other.run()[0]
        assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
        for x, y in zip(a, b):
            assert np.array_equal(np.array(x), np.array(y))


def test_errors_name_the_operator_that_is_at_fault() -> None:
    for fused in (True, False):
        with pytest.raises(RuntimeError, match=r"fn\.crop_mirror_normalize"):
            built(fused, IMAGES, {}, {"crop": (60, 22)}).run()
        with pytest.raises(RuntimeError, match=r"fn\.resize"):
            built(fused, [i.astype(np.int32) for i in IMAGES], {}, {"crop": (20, 22)}).run()


def test_an_operator_that_refuses_its_arguments_is_named_with_its_line() -> None:
    for fused in (True, False):
        pipeline = refused(passes=None if fused else [])
        with pytest.raises(OperatorError, match="crop_w") as caught:
            pipeline.build()
        assert caught.value.operator == "penstock.fn.crop_mirror_normalize"
        assert caught.value.origin[-1].function == "refused"


@pipeline_def(batch_size=4, num_threads=1)
def refused() -> Any:
    image = fn.resize(fn.external_source(lambda: IMAGES, layout="HWC"), size=[20, 20])
    return fn.crop_mirror_normalize(image, crop_h=10)


NAMED = {"first": "penstock.fn.crop", "last": "penstock.fn.crop_mirror_normalize"}


@pipeline_def(batch_size=5, num_threads=2, prefetch_queue_depth=1, enable_conditionals=True)
def failing(bad: dict[int, str], branched: bool) -> Any:
    """Define a pipeline of three steps for five samples; ``bad`` maps samples to the step in which they fail.

    A sample fails in the first or the last step because its window exceeds the image.
    """
    image = fn.external_source(lambda: [RNG.integers(0, 255, (40, 60, 3), np.uint8) for _ in range(5)], layout="HWC")

    def heights(step: str) -> Any:
        return fn.external_source(lambda: [np.float32(99 if bad.get(i) == step else 20) for i in range(5)])

    first, last = map(heights, NAMED)
    if not branched:
        return fn.crop_mirror_normalize(
            fn.resize(fn.crop(image, crop_h=first, crop_w=40), size=[30, 30]), crop_h=last, crop_w=20
        )
    # In this branch, samples 1, 3 and 4 have the indices 0, 1 and 2.
    if fn.external_source(lambda: [np.bool_(i in (1, 3, 4)) for i in range(5)]):
        image = fn.crop_mirror_normalize(
            fn.resize(fn.crop(image, crop_h=first, crop_w=40), size=[30, 30]), crop_h=last, crop_w=20
        )
    else:
        image = fn.crop_mirror_normalize(image, crop=(20, 20))
    return image


@pytest.mark.every_case
@pytest.mark.parametrize("branched", [False, True], ids=["", "branched"])
@pytest.mark.parametrize("bad", [{3: "first"}, {3: "last"}, {1: "last", 4: "first"}], ids=str)
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
def test_the_sample_that_fails_in_a_step_is_named_with_that_step(
    fused: bool, bad: dict[int, str], branched: bool
) -> None:
    passes = None if fused else [name for name in ordered_passes() if name != "fuse"]
    pipeline = failing(bad, branched, passes=passes)
    pipeline.build()
    names = [step.node.schema.name for step in pipeline.executor.plan.operators]
    assert any(name.startswith("_fused") for name in names) is fused
    with pytest.raises(OperatorError) as raised:
        pipeline.run()
    assert raised.value.sample in bad
    assert raised.value.operator == NAMED[bad[raised.value.sample]]
    assert raised.value.origin[-1].function == "failing"
    pipeline.reset()
    pipeline._session.feed_from_sources(pipeline.executor)
    failures = pipeline.executor.run_once(isolate=True).failures
    assert sorted(failures) == sorted(bad)
    for sample, error in failures.items():
        assert isinstance(error, OperatorError)
        assert (error.sample, error.operator) == (sample, NAMED[bad[sample]])
        assert f"while processing sample #{sample} of the batch" in str(error)


def test_failures_are_isolated() -> None:
    data = [*IMAGES[:3], IMAGES[3][:0]]
    pipeline = built(True, data, {}, {"crop": (20, 22)})
    pipeline._session.feed_from_sources(pipeline.executor)
    result = pipeline.executor.run_once(isolate=True)
    assert list(result.failures) == [3]
    assert [shape[0] for shape in result.outputs[0].shapes] == [3, 3, 3, 0]


def test_what_is_used_elsewhere_is_not_fused() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def define() -> Any:
        image = fn.resize(fn.external_source(lambda: IMAGES, layout="HWC"), size=[20, 20])
        return fn.crop_mirror_normalize(image), image

    pipeline = define()
    pipeline.build()
    assert not any(step.node.schema.name.startswith("_fused") for step in pipeline.executor.plan.operators)


def test_what_is_copied_to_the_gpu_is_fused_before() -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def define(also_resized: bool) -> Any:
        image = fn.resize(fn.external_source(lambda: IMAGES, layout="HWC"), size=[20, 20])
        normalized = fn.crop_mirror_normalize(image).gpu()
        return (normalized, image.gpu()) if also_resized else normalized

    def improved(also_resized: bool) -> list[str]:
        return [op.schema.name for op in improve(define(also_resized).graph).operators]

    assert improved(False) == ["ExternalSource", "_fused__Image"]
    assert improved(True) == ["ExternalSource", "Resize", "CropMirrorNormalize"]


def encoded_images() -> list[np.ndarray]:
    encoded = []
    for image, kind in zip(IMAGES, ("PNG", "JPEG", "BMP", "JPEG")):
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, kind)
        encoded.append(np.frombuffer(buffer.getvalue(), np.uint8))
    return encoded


def decoding(fused: bool, data: list[np.ndarray], **arguments: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
    def define() -> Any:
        image = fn.decoders.image(fn.external_source(lambda: data), **arguments)
        image = fn.resize(image, resize_shorter=30)
        return fn.crop_mirror_normalize(image, crop=(20, 22), mean=[120.0], std=[60.0])

    pipeline = define(passes=None if fused else [name for name in ordered_passes() if name != "fuse"])
    pipeline.build()
    names = [step.node.schema.name for step in pipeline.executor.plan.operators]
    assert ("_fused__Image" in names) is fused
    return pipeline


@pytest.mark.parametrize(
    "arguments", [{}, {"output_type": types.GRAY}, {"dtype": types.FLOAT}, {"output_type": types.BGR}]
)
def test_decoding_is_fused_too(arguments: dict[str, Any]) -> None:
    one, other = (decoding(fused, encoded_images(), **arguments) for fused in (True, False))
    for _ in range(2):
        a, b = one.run()[0], other.run()[0]
        assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
        assert np.array_equal(a.as_array(), b.as_array())


@pytest.mark.parametrize(
    "arguments", [{"alone": False}, {"length": 7}, {"whole_at": "last", "canvas": [64, 96], "centred": True}]
)
def test_tiles_are_cut_from_what_was_just_resized(arguments: dict[str, Any]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
    def define() -> Any:
        image = fn.external_source(lambda: IMAGES, layout="HWC")
        whole = fn.resize(image, size=[32, 32], reference="pil", interpolation="bicubic")
        image = fn.resize(image, resize_longer=60, reference="pil", interpolation="bicubic")
        return fn.image_tiles(image, whole, tile=[32, 32], mean=[0.5, 0.4, 0.3], std=[0.2, 0.25, 0.3], **arguments)

    one, other = define(), define(passes=[])
    for _ in range(2):
        a, b = one.run()[0], other.run()[0]
        assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
        assert all(np.array_equal(np.array(x), np.array(y)) for x, y in zip(a, b))
    fused = [step.operator for step in one.executor.plan.operators if step.node.schema.name == "_fused__Image"]
    assert [operator.take_counts() for operator in fused] == [{"fused": 8}]


def photographs() -> list[np.ndarray]:
    """Return JPEG files of various kinds, some of which can be decoded region by region for a crop."""
    encoded = []
    kinds: list[dict[str, Any]] = [
        *({"subsampling": number} for number in range(3)),
        *({"orientation": number} for number in (3, 6, 7)),
        {"progressive": True},
        {"restart_marker_blocks": 3},
    ]
    for number, options in enumerate(kinds):
        coarse = Image.fromarray(RNG.integers(0, 255, (12 + number, 30 - 2 * number, 3), np.uint8))
        exif = Image.Exif()
        exif[0x0112] = options.pop("orientation", 1)
        buffer = io.BytesIO()
        coarse.resize((coarse.width * 9, coarse.height * 9)).save(buffer, "JPEG", exif=exif.tobytes(), **options)
        encoded.append(np.frombuffer(buffer.getvalue(), np.uint8))
    return encoded


@pytest.mark.parametrize("output_type", [types.RGB, types.GRAY])
@pytest.mark.parametrize(
    "resizing",
    [
        {"resize_shorter": 80.0},
        {"size": [50, 300], "interp_type": types.INTERP_CUBIC},
        {"size": [60, 40], "roi_start": [0.9, 0.1], "roi_end": [0.3, 0.6], "roi_relative": True},
        {"size": [-60, 40], "mode": "stretch", "interp_type": types.INTERP_NN},
    ],
)
def test_decoding_what_the_crop_keeps_is_exact(resizing: dict[str, Any], output_type: types.DALIImageType) -> None:
    data = photographs()

    @pipeline_def(batch_size=len(data), num_threads=2, seed=5, prefetch_queue_depth=1)
    def define() -> Any:
        image = fn.decoders.image(fn.external_source(lambda: data), output_type=output_type)
        crop = {f"crop_pos_{axis}": fn.random.uniform(range=[0.0, 1.0]) for axis in "xy"}
        return fn.crop_mirror_normalize(
            fn.resize(image, **resizing), crop=(30, 25), mirror=fn.random.coin_flip(), mean=[99.0], **crop
        )

    one, other = define(), define(passes=[])
    for _ in range(3):
        assert np.array_equal(one.run()[0].as_array(), other.run()[0].as_array())


def test_a_corrupt_image_fails_alone_where_decoding_is_fused() -> None:
    data = encoded_images()
    data[1] = data[1][: len(data[1]) // 3]
    data[2] = np.zeros(10, np.uint8)
    pipeline = decoding(True, data)
    pipeline._session.feed_from_sources(pipeline.executor)
    result = pipeline.executor.run_once(isolate=True)
    assert sorted(result.failures) == [1, 2]
    for sample, error in result.failures.items():
        assert (error.sample, error.operator) == (sample, "penstock.fn.decoders.image")
    expected = decoding(False, encoded_images()).run()[0]
    for index in (0, 3):
        assert np.array_equal(result.outputs[0].samples[index], expected.at(index))


SOUNDS = [RNG.standard_normal(3000 + 5000 * i).astype(np.float32) for i in range(4)]


def sounding(fused: bool, **arguments: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
    def define() -> Any:
        spectra = fn.spectrogram(fn.external_source(lambda: SOUNDS), nfft=256, window_length=200, window_step=80)
        decibels = fn.to_decibels(fn.mel_filter_bank(spectra, sample_rate=16000.0, nfilter=20))
        return fn.normalize(decibels, **{name: value() for name, value in arguments.items()})

    pipeline = define(passes=None if fused else [])
    pipeline.build()
    return pipeline


def numbers(*shape: int) -> Any:
    return lambda: fn.external_source(lambda: [np.full(shape, 2, np.float32)] * 4)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"axes": lambda: [1]}, "NormalizedMelDecibels"),
        ({"mean": numbers(20, 1), "axes": lambda: [1]}, "NormalizedMelDecibels"),
        ({"batch": lambda: True}, "MelDecibels"),
        ({"dtype": lambda: types.INT32, "scale": lambda: 100.0}, "MelDecibels"),
    ],
)
def test_bands_are_fused_with_what_follows_in_single_precision(arguments: dict[str, Any], rule: str) -> None:
    one, other = (sounding(fused, **arguments) for fused in (True, False))
    assert f"_fused__{rule}" in [step.node.schema.name for step in one.executor.plan.operators]
    a, b = one.run()[0], other.run()[0]
    assert (a.layout(), a.dtype, a.shape()) == (b.layout(), b.dtype, b.shape())
    assert all(np.array_equal(np.array(x), np.array(y)) for x, y in zip(a, b))


@pytest.mark.parametrize("short", [0, 2])
def test_bands_of_one_frame_are_those_of_the_operator(short: int) -> None:
    sounds = [sound[:200] if index == short else sound for index, sound in enumerate(SOUNDS)]

    @pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
    def define() -> Any:
        sound = fn.external_source(lambda: sounds)
        spectra = fn.spectrogram(sound, nfft=256, window_length=200, window_step=80, center_windows=False)
        return fn.mel_filter_bank(spectra, sample_rate=16000.0, nfilter=20)

    one, other = define(), define(passes=[])
    a, b = one.run()[0], other.run()[0]
    assert "_fused__MelSpectrogram" in [step.node.schema.name for step in one.executor.plan.operators]
    assert b.shape()[short] == (20, 1)
    assert all(np.array_equal(np.array(x), np.array(y)) for x, y in zip(a, b))


def test_what_follows_the_bands_is_blamed_for_its_errors() -> None:
    for fused in (True, False):
        with pytest.raises(RuntimeError, match="parameter shape") as caught:
            sounding(fused, mean=numbers(19, 1), axes=lambda: [1]).run()
        assert caught.value.operator == "penstock.fn.normalize"
