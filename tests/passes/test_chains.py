"""Chains of image operators run as one operator, with bit-identical results and the same failures."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import OperatorError
from penstock.schema.fused import FusedOperator
from penstock.schema.image_chain import PixelSource

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 255, (90 + 130 * i, 420 - 80 * i, 3), np.uint8) for i in range(4)]
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def encoded(image: np.ndarray, kind: str = "JPEG", **options: Any) -> np.ndarray:
    buffer = io.BytesIO()
    coarse = Image.fromarray(image[::7, ::7])
    coarse.resize((image.shape[1], image.shape[0]), Image.Resampling.BICUBIC).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


FILES = [encoded(image, kind) for image, kind in zip(IMAGES, ("JPEG", "PNG", "JPEG", "JPEG"))]


def uniform(low: float, high: float) -> Any:
    return fn.random.uniform(range=[low, high])


def normalized(image: Any, **arguments: Any) -> Any:
    return fn.crop_mirror_normalize(image, mean=MEAN, std=STD, mirror=fn.random.coin_flip(), **arguments)


def rescaled(image: Any) -> Any:
    return fn.rescale_normalize(image, mean=[0.5, 0.4, 0.3], std=[0.2, 0.25, 0.3])


def floats_of_torchvision(image: Any, **arguments: Any) -> Any:
    return fn.resize(image, **{"size": [101, 130], "reference": "torchvision", "antialias": False, **arguments})


def matrix() -> Any:
    return fn.transforms.rotation(angle=uniform(-30.0, 30.0), center=[90.0, 90.0])


def letterboxed(image: Any) -> Any:
    image = fn.resize(image, size=(200, 200), mode="not_larger")
    return fn.crop_mirror_normalize(
        image, crop=(200, 200), out_of_bounds_policy="pad", fill_values=[114 / 255], mean=[0.0], std=[255.0]
    )


def boxed_with_pad(image: Any) -> Any:
    return fn.pad(fn.resize(image, size=(200, 200), mode="not_larger"), axis_names="HW", shape=[200, 200], fill_value=9)


def boxed_with_crop(image: Any) -> Any:
    image = fn.resize(image, size=(200, 200), mode="not_larger")
    return fn.crop(image, crop=(200, 200), out_of_bounds_policy="pad", fill_values=[1.0, 2.0, 3.0])


def boxed_with_paste(image: Any) -> Any:
    image = fn.resize(image, size=(200, 200), mode="not_larger")
    return fn.paste(image, ratio=1.0, min_canvas_size=200.0, fill_value=[1, 2, 3], paste_x=0.25)


# Chains of operators that almost every pipeline for classifiers and detectors contains.
CHAINS: dict[str, Callable[[Any], Any]] = {
    "random_resized_crop, crop_mirror_normalize": lambda x: normalized(fn.random_resized_crop(x, size=[120, 130])),
    "resize, flip": lambda x: fn.flip(fn.resize(x, size=[120, 130]), horizontal=fn.random.coin_flip(), vertical=1),
    "resize, crop": lambda x: fn.crop(fn.resize(x, resize_shorter=130.0), crop=(120, 110), crop_pos_x=uniform(0, 1)),
    "resize, brightness, crop_mirror_normalize": lambda x: normalized(
        fn.brightness(fn.resize(x, size=[300, 330]), brightness=uniform(0.5, 1.5)), crop=(280, 300)
    ),
    "letterbox": letterboxed,
    "letterbox by pad": boxed_with_pad,
    "letterbox by crop": boxed_with_crop,
    "letterbox by paste": boxed_with_paste,
    "resize, pad": lambda x: fn.pad(fn.resize(x, resize_longer=uniform(90.0, 150.0)), align=[32], axes=[0, 1]),
    "crop, flip, normalize": lambda x: normalized(fn.flip(fn.crop(x, crop=(70, 80), crop_pos_y=uniform(0, 1)))),
    "warp_affine, crop_mirror_normalize": lambda x: normalized(
        fn.warp_affine(x, matrix=matrix(), size=[400, 620], fill_value=3), crop=(330, 300), crop_pos_x=0.9
    ),
    "rotate, crop": lambda x: fn.crop(
        fn.rotate(x, angle=uniform(-40.0, 40.0), fill_value=7),
        crop=(90, 300),
        crop_pos_x=1.0,
        out_of_bounds_policy="pad",
    ),
    "resize, color_twist, crop_mirror_normalize": lambda x: normalized(
        fn.color_twist(fn.resize(x, resize_shorter=330.0), hue=uniform(-30, 30), saturation=1.3, contrast=0.9),
        crop=(300, 310),
    ),
    "slice, resize": lambda x: fn.resize(
        fn.slice(x, rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6], axis_names="HW"), size=[100, 120]
    ),
    "resize, pad, crop_mirror_normalize": lambda x: normalized(boxed_with_pad(x)),
    "resize, transpose, cast": lambda x: fn.cast(
        fn.transpose(fn.resize(x, size=[320, 300]), perm=[2, 0, 1]), dtype=types.FLOAT
    ),
    "resize, crop, rescale_normalize": lambda x: rescaled(
        fn.crop(fn.resize(x, resize_shorter=150, reference="torchvision", interpolation="bicubic"), crop=(144, 112))
    ),
    "letterbox, transpose, cast, arithmetic": lambda x: (
        fn.cast(fn.transpose(boxed_with_crop(x), perm=[2, 0, 1]), dtype=types.FLOAT) / 255.0
    ),
    "letterbox, arithmetic, transpose": lambda x: fn.transpose(boxed_with_pad(x) / 255, perm=[1, 2, 0]),
    "resize, cast, arithmetic": lambda x: fn.cast(fn.resize(x, size=[320, 300]), dtype=types.FLOAT) * (1 / 255) - 0.5,
}
# Chains of other operators, which are also combined at random.
FURTHER: dict[str, Callable[[Any], Any]] = {
    "resize to planes": lambda x: rescaled(fn.resize(x, size=[800, 640], reference="torchvision")),
    "resize to narrow planes": lambda x: rescaled(fn.resize(x, size=[90, 21], reference="pil")),
    "resize to planes of another order": lambda x: fn.rescale_normalize(
        fn.resize(x, size=[90, 95], reference="pil"), output_layout="HWC"
    ),
    "resize to planes, rows first": lambda x: rescaled(fn.resize(x, size=[20, 400], reference="pil")),
    "resize to the size of some": lambda x: fn.crop(
        fn.resize(x, size=[350, 260], reference="torchvision", interpolation="bicubic"),
        crop=(370, 256),
        out_of_bounds_policy="pad",
        fill_values=[1.0, 2.0, 3.0],
    ),
    "resize to the size of some, to planes": lambda x: rescaled(fn.resize(x, size=[350, 260], reference="torchvision")),
    "two resizes": lambda x: fn.flip(fn.resize(fn.crop(fn.resize(x, size=[300, 310]), crop=(200, 250)), size=[90, 95])),
    "maps before geometry": lambda x: fn.resize(fn.cast(x, dtype=types.FLOAT) / 3, size=[80, 90]),
    "crop of a pad": lambda x: fn.crop(boxed_with_pad(x), crop=(120, 190), crop_pos_y=1.0),
    "cast crop": lambda x: fn.flip(fn.crop(x, crop=(70, 80), dtype=types.FLOAT)),
    "transposed twice": lambda x: fn.transpose(fn.flip(fn.transpose(x, perm=[2, 0, 1])), perm=[2, 1, 0]),
    "a store in the middle": lambda x: (
        fn.crop_mirror_normalize(fn.resize(x, size=[90, 95]), mean=MEAN, std=STD, dtype=types.FLOAT) * 2 + 1
    ),
    "store with added channels": lambda x: fn.crop_mirror_normalize(
        fn.resize(x, size=[200, 200], mode="not_larger"),
        crop=(200, 190),
        pad_output=True,
        fill_values=[1.0, 2.0, 3.0, 4.0],
        out_of_bounds_policy="pad",
        output_layout="HWC",
        mirror=fn.random.coin_flip(),
    ),
    "halves": lambda x: fn.crop_mirror_normalize(
        fn.hsv(fn.resize(x, size=[300, 330]), hue=20.0, saturation=0.7), dtype=types.FLOAT16, std=STD
    ),
    "padded halves": lambda x: fn.crop_mirror_normalize(
        fn.resize(x, size=[100, 100], mode="not_larger"),
        crop=(120, 110),
        out_of_bounds_policy="pad",
        fill_values=[0.3],
        dtype=types.FLOAT16,
        std=STD,
    ),
    "channels cut": lambda x: fn.slice(
        fn.hue(fn.resize(x, size=[90, 95]), hue=30.0), start=[1], end=[2], axis_names="C"
    ),
    "positional windows": lambda x: fn.resize(
        fn.slice(fn.flip(x), np.float32([0.1, 0.2]), np.float32([0.5, 0.6])), size=[80, 90]
    ),
    "a matrix as input": lambda x: fn.crop(fn.warp_affine(fn.flip(x), matrix(), fill_value=0), crop=(50, 60)),
    "nearest": lambda x: normalized(fn.crop(fn.resize(x, size=[90, 95], interp_type=types.INTERP_NN), crop=(50, 60))),
    "cubic, growing": lambda x: fn.crop(
        fn.resize(x, size=[900, 495], interp_type=types.INTERP_CUBIC, antialias=False), crop=(700, 300)
    ),
    "values resized": lambda x: floats_of_torchvision(rescaled(x), interpolation="bilinear"),
    "values resized by cubes": lambda x: (
        floats_of_torchvision(rescaled(x), interpolation="bicubic", size=[200, 500]) * 2
    ),
    "values resized to few columns": lambda x: floats_of_torchvision(rescaled(x), size=[70, 9]),
    "values of a region resized": lambda x: floats_of_torchvision(rescaled(x), roi_start=[3, 4], roi_end=[80, 150]),
    "values resized, widened": lambda x: floats_of_torchvision(rescaled(x), antialias=True),
    "values resized, in bfloat16": lambda x: floats_of_torchvision(
        fn.rescale_normalize(x, mean=[0.5], std=[0.5], reference="bfloat16")
    ),
    "values of interleaved channels resized": lambda x: floats_of_torchvision(
        fn.rescale_normalize(x, output_layout="HWC")
    ),
    "values of a window resized to the size of some": lambda x: floats_of_torchvision(
        rescaled(fn.crop(x, crop=(90, 160))), size=[350, 260]
    ),
    "resized as floats": lambda x: rescaled(floats_of_torchvision(fn.crop(x, crop=(80, 150)), as_floats=True)),
    "nothing left": lambda x: fn.slice(fn.resize(x, size=[30, 35]), start=[4], end=[4], axis_names="H"),
}

# The keys of `counts_of` by chain: "fused", or the reason for computing samples operator by operator. By default, all are fused.
STEP_BY_STEP = {"nothing left": {"empty images"}}
# As above, for decoded images. Even if a chain uses no pixel of an image, its file must be decoded, as it may be invalid.
DECODED_STEP_BY_STEP = {**STEP_BY_STEP, "crop of a pad": {"fused", "empty images"}}


def images() -> Any:
    return fn.external_source(lambda: IMAGES, layout="HWC")


def decoded() -> Any:
    return fn.decoders.image(fn.external_source(lambda: FILES))


def pipeline_of(chain: Callable[[Any], Any], source: Callable[[], Any], **arguments: Any) -> Pipeline:
    @pipeline_def(batch_size=4, num_threads=2, seed=11, prefetch_queue_depth=1)
    def define() -> Any:
        return chain(source())

    pipeline: Pipeline = define(**arguments)
    pipeline.build()
    return pipeline


def counts_of(pipeline: Pipeline) -> dict[str, int]:
    """Return the number of samples that were computed fused, under "fused", and operator by operator, under the reason.

    There is one fused operator, or two if the first one decodes a window of the image.
    """
    operators = [step.operator for step in pipeline.executor.plan.operators]
    fused = [operator for operator in operators if isinstance(operator, FusedOperator)]
    assert 1 <= len(fused) <= 1 + isinstance(fused[0].operators[0], PixelSource)
    counts = pipeline.fusion_statistics().values()
    assert len(counts) == len(fused)
    return dict(sum(map(Counter, counts), Counter()))


def assert_equal(one: Any, other: Any) -> None:
    assert (one.layout(), one.dtype, one.shape()) == (other.layout(), other.dtype, other.shape())
    for x, y in zip(one, other):
        assert np.array(x).tobytes() == np.array(y).tobytes()


@pytest.mark.parametrize("source", [images, decoded])
@pytest.mark.parametrize("name", CHAINS)
def test_natural_chains_are_one_operator_with_equal_results(name: str, source: Callable[[], Any]) -> None:
    one, other = (pipeline_of(CHAINS[name], source, **passes) for passes in ({}, {"passes": []}))
    assert len(one.executor.plan.operators) < len(other.executor.plan.operators)
    for _ in range(3):
        assert_equal(one.run()[0], other.run()[0])
    assert set(counts_of(one)) == {"fused"}


@pytest.mark.parametrize("source", [images, decoded])
@pytest.mark.parametrize("name", FURTHER)
def test_chains_of_all_kinds_give_equal_results(name: str, source: Callable[[], Any]) -> None:
    one, other = (pipeline_of(FURTHER[name], source, **passes) for passes in ({}, {"passes": []}))
    for _ in range(2):
        assert_equal(one.run()[0], other.run()[0])
    step_by_step = DECODED_STEP_BY_STEP if source is decoded else STEP_BY_STEP
    assert set(counts_of(one)) == step_by_step.get(name, {"fused"})


@pytest.mark.parametrize("layout", ["FHWC", "CHW", "FCHW", None])
def test_stacks_and_planes_give_equal_results(layout: str | None) -> None:
    shapes = {"FHWC": (3, 60, 70, 3), "CHW": (3, 60, 70), "FCHW": (2, 3, 60, 70), None: (60, 70, 3)}
    data = [RNG.integers(0, 255, shapes[layout], np.uint8) for _ in range(4)]

    def chain(image: Any) -> Any:
        image = fn.crop(fn.resize(image, size=[100, 90]), crop=(80, 70), crop_pos_x=uniform(0, 1))
        return fn.crop_mirror_normalize(fn.flip(image), mean=MEAN, crop=(60, 50), output_layout=layout or "CHW")

    def source() -> Any:
        return fn.external_source(lambda: data, layout=layout)

    one, other = (pipeline_of(chain, source, **passes) for passes in ({}, {"passes": []}))
    assert_equal(one.run()[0], other.run()[0])
    assert set(counts_of(one)) == {"fused"}


def test_frames_and_volumes_are_computed_step_by_step_and_counted() -> None:
    frames = [RNG.integers(0, 255, (2, 40, 50, 3), np.uint8) for _ in range(4)]
    for layout, reason in (("FHWC", "frames"), ("DHWC", "volumes")):

        def source(layout: str = layout) -> Any:
            return fn.external_source(lambda: frames, layout=layout)

        def chain(image: Any, frames: bool = layout == "FHWC") -> Any:
            size = [30, 30] if frames else [2, 30, 30]
            return fn.crop(fn.brightness(fn.resize(image, size=size), brightness=1.2), crop=(20, 20))

        one, other = (pipeline_of(chain, source, **passes) for passes in ({}, {"passes": []}))
        assert_equal(one.run()[0], other.run()[0])
        assert set(counts_of(one)) == {reason}


def outcome(pipeline: Pipeline) -> tuple[list[Any], dict[int, str]]:
    """Run a pipeline; return the outputs of a batch, and the errors of failed samples by index."""
    pipeline._session.feed_from_sources(pipeline.executor)
    result = pipeline.executor.run_once(isolate=True)
    arrays = [(sample.shape, np.array(sample).tobytes()) for sample in result.outputs[0].samples]
    good = [array for index, array in enumerate(arrays) if index not in result.failures]
    return good, {index: str(error) for index, error in result.failures.items()}


def damaged(index: int) -> Callable[[], Any]:
    """Return a function that decodes image files, of which the one at ``index`` is damaged."""
    files = list(FILES)
    files[index] = files[index][: len(files[index]) // 2] if index != 1 else np.zeros(10, np.uint8)
    return lambda: fn.decoders.image(fn.external_source(lambda: files))


FAILING: dict[str, Callable[[Any], Any]] = {
    "a window outside of some": lambda x: fn.flip(fn.crop(fn.resize(x, resize_shorter=200.0), crop=(290, 100))),
    "extents of the batch": lambda x: fn.pad(fn.resize(x, resize_longer=uniform(90.0, 150.0))),
    "added channels": lambda x: fn.crop_mirror_normalize(
        x, crop=(250, 200), pad_output=True, fill_values=[9.0], out_of_bounds_policy="pad"
    ),
    "division by zero": lambda x: fn.cast(fn.resize(x, size=[90, 95]), dtype=types.INT32) // types.Constant(0),
    "a type": lambda x: fn.crop(fn.resize(fn.cast(x, dtype=types.INT32), size=[50, 60]), crop=(10, 10)),
    "fill values": lambda x: fn.crop(
        fn.flip(x), crop=(300, 90), out_of_bounds_policy="pad", fill_values=[1.0, 2.0], crop_pos_x=0.0
    ),
    "fill values that are cut off": lambda x: fn.crop(
        fn.crop(x, crop=(300, 90), out_of_bounds_policy="pad", fill_values=[1.0, 2.0]), crop=(20, 20)
    ),
}


@pytest.mark.parametrize("index", [0, 1, 3])
@pytest.mark.parametrize("name", FAILING)
def test_samples_fail_as_they_do_one_by_one(name: str, index: int) -> None:
    outcomes = []
    for passes in ({}, {"passes": []}):
        pipeline = pipeline_of(FAILING[name], damaged(index), **passes)
        try:
            outcomes.append(outcome(pipeline))
        except OperatorError as error:
            outcomes.append(([], {-1: str(error)}))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1]


@pytest.mark.parametrize("source", [images, decoded, damaged(0), damaged(3)])
@pytest.mark.parametrize("name", FAILING)
def test_batches_fail_as_they_do_one_by_one(name: str, source: Callable[[], Any]) -> None:
    messages = []
    for passes in ({}, {"passes": []}):
        pipeline = pipeline_of(FAILING[name], source, **passes)
        try:
            pipeline.run()
            messages.append("")
        except OperatorError as error:
            messages.append(f"{error.operator} {error.sample} {error.origin[-1].line} {error}")
    assert messages[0] == messages[1]


def test_checkpoints_are_those_of_the_operators_one_by_one() -> None:
    def chain(image: Any) -> Any:
        return fn.flip(fn.random_resized_crop(image, size=[50, 60]), horizontal=fn.random.coin_flip())

    def source() -> Any:
        return fn.external_source(lambda info: IMAGES[info.idx_in_batch], batch=False, layout="HWC")

    settings = {"enable_checkpointing": True}
    one, other = (pipeline_of(chain, source, **settings, **passes) for passes in ({}, {"passes": []}))
    for pipeline in (one, other):
        pipeline.run()
    for saved, passes in ((one.checkpoint(), {"passes": []}), (other.checkpoint(), {})):
        resumed = pipeline_of(chain, source, checkpoint=saved, **settings, **passes)
        assert_equal(resumed.run()[0], other.run()[0] if passes else one.run()[0])


def test_a_window_that_is_decoded_at_random_keeps_its_numbers() -> None:
    def source() -> Any:
        return fn.decoders.image_random_crop(fn.external_source(lambda: FILES))

    def chain(image: Any) -> Any:
        return normalized(fn.random_resized_crop(image, size=[50, 60])), fn.random.uniform()

    one, other = (pipeline_of(chain, source, **passes) for passes in ({}, {"passes": []}))
    for _ in range(3):
        for x, y in zip(one.run(), other.run()):
            assert_equal(x, y)
    assert set(counts_of(one)) == {"fused"}


def test_what_is_needed_elsewhere_or_kept_is_not_left_out() -> None:
    def used_twice(image: Any) -> Any:
        resized = fn.resize(image, size=[50, 60])
        return fn.flip(resized), resized

    def kept(image: Any) -> Any:
        return fn.flip(fn.resize(image, size=[50, 60], preserve=True))

    for chain in (used_twice, kept):
        operators = pipeline_of(chain, images).executor.plan.operators
        assert not any(isinstance(step.operator, FusedOperator) for step in operators)
