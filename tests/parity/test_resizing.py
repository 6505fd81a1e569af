"""`fn.resize` with a reference returns the same bytes as the library.

Pillow and OpenCV run here; torchvision's results are recorded (`record.py`). `make parity` compares all three in many
more cases.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import penstock
from penstock import fn, pipeline_def, types
from penstock.passes import apply_passes

sys.path.insert(0, str(Path(__file__).parent))

from record import CASES, MOST, RECORDED, SEED
from resizing import cases, different


def image(shape: tuple[int, ...] = (60, 80, 3)) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, shape, np.uint8)


def run(define: Any, passes: Any = None, device_id: int | None = None) -> list[np.ndarray]:
    pipeline = pipeline_def(define, batch_size=2, num_threads=1, device_id=device_id, passes=passes)()
    results = [np.array(sample) for sample in pipeline.run()[0].as_cpu()]
    pipeline.close()
    return results


def source(*samples: np.ndarray) -> Any:
    return fn.external_source(lambda: list(samples or [image(), image((300, 210, 3))]), layout="HWC")


def planes() -> Any:
    frames = [image((2, 3, 60, 80)), image((1, 3, 31, 17))]
    return fn.external_source(lambda: frames, layout="FCHW")


def translucent() -> Any:
    return source(image((60, 80, 4)), image((9, 50, 2)))


@pytest.mark.parametrize("library", ["pil", "opencv"])
def test_equals_the_library(library: str) -> None:
    wrong = [case for case in cases(library, 150, 200) if different(case)[1]]
    assert not wrong


def test_equals_what_torchvision_gave() -> None:
    with np.load(RECORDED) as recorded:
        listed = enumerate(cases("torchvision", CASES, MOST, SEED))
        wrong = [case for k, case in listed if different(case, recorded[str(k)])[1]]
    assert not wrong


@pytest.mark.parametrize("library", ["pil", "torchvision", "opencv"])
def test_chains_give_the_same_when_they_are_fused(library: str) -> None:
    def chain() -> Any:
        images = fn.resize(source(), resize_shorter=50, reference=library, interp_type=types.INTERP_CUBIC)
        return fn.crop_mirror_normalize(images, crop=(40, 33), mirror=1, mean=[120.0], std=[60.0], dtype=types.FLOAT)

    for fused, stepwise in zip(run(chain), run(chain, passes=[])):
        np.testing.assert_array_equal(fused, stepwise)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(47, 101), (90, 7), (300, 210), (400, 640)])
@pytest.mark.parametrize("shape", [(60, 80, 3), (33, 300, 1), (40, 9, 4)])
def test_bytes_are_resized_as_floats_and_rounded(
    shape: tuple[int, ...], size: tuple[int, int], interpolation: str, antialias: bool
) -> None:
    given = {"size": size, "reference": "torchvision", "interpolation": interpolation, "antialias": antialias}

    def rounded() -> Any:
        samples = source(image(shape), image((300, 210, shape[2])))
        return fn.resize(samples, as_floats=True, **given)

    def floats() -> Any:
        samples = source(image(shape), image((300, 210, shape[2])))
        return fn.resize(fn.cast(samples, dtype=types.FLOAT), **given)

    for bytes_, values in zip(run(rounded), run(floats), strict=True):
        assert bytes_.dtype == np.uint8
        np.testing.assert_array_equal(bytes_, np.clip(np.rint(values), 0, 255))


def test_what_is_not_resized_as_floats() -> None:
    with pytest.raises(Exception, match="`as_floats` needs `reference='torchvision'`"):
        run(lambda: fn.resize(source(), size=[9, 9], reference="pil", as_floats=True))
    with pytest.raises(Exception, match="lanczos is supported only for images of uint8, as bytes"):
        run(lambda: fn.resize(source(), size=[9, 9], reference="torchvision", interpolation="lanczos", as_floats=True))


@pytest.mark.parametrize("library", ["pil", "torchvision"])
def test_windows_that_begin_where_an_outer_weight_is_zero(library: str) -> None:
    # If an image is enlarged sevenfold, every seventh filter is centred on a pixel. Its outer weights are 0, so that it begins at a
    # later pixel than the filter after it.
    held = io.BytesIO()
    Image.fromarray(image((32, 53, 3))).save(held, "JPEG", subsampling=0)
    file = np.frombuffer(held.getvalue(), np.uint8)

    def define() -> Any:
        images = fn.decoders.image(fn.external_source(lambda: [file, file]), device="cpu")
        resized = fn.resize(images, resize_shorter=224, reference=library, interpolation="bicubic")
        return fn.crop(resized, crop=[224, 224], rounding="truncate")

    for fused, plain in zip(run(define), run(define, [])):
        np.testing.assert_array_equal(fused, plain)


@pytest.mark.parametrize("size", [(60, 80), (60, 33), (91, 80), (60, 3)])
def test_axes_that_stay_as_they_are(size: tuple[int, int]) -> None:
    """The pass along an axis whose extent stays the same is left out; a crop after the resize limits what is computed."""
    whole = image()
    expected = np.asarray(Image.fromarray(whole).resize(size[::-1], Image.Resampling.BICUBIC))

    def resized() -> Any:
        return fn.resize(source(whole, whole), size=list(size), reference="pil", interpolation="bicubic")

    np.testing.assert_array_equal(run(resized)[0], expected)
    window = {"crop_h": 51.0, "crop_w": 2.0, "crop_pos_x": 1.0, "crop_pos_y": 1.0, "rounding": "truncate"}
    cut = run(lambda: fn.crop(resized(), **window))[0]
    top, left = size[0] - 51, size[1] - 2
    np.testing.assert_array_equal(cut, expected[top : top + 51, left : left + 2])


@pytest.mark.parametrize(("library", "fused"), [("pil", True), ("torchvision", True), ("opencv", False)])
def test_what_follows_is_fused_if_the_arithmetic_is_ours(library: str, fused: bool) -> None:
    def chain() -> Any:
        images = fn.resize(source(), size=[50, 50], reference=library)
        return fn.crop(images, crop=(40, 33))

    pipeline = pipeline_def(chain, batch_size=2, num_threads=1, device_id=None)()
    changes = [change.what for applied in apply_passes(pipeline.graph) for change in applied.changes]
    assert ("fused" in changes) == fused


@pytest.mark.parametrize("library", ["pil", "torchvision", "opencv"])
def test_negative_sizes_mirror(library: str) -> None:
    plain = run(lambda: fn.resize(source(), resize_x=37, resize_y=41, reference=library))
    mirrored = run(lambda: fn.resize(source(), resize_x=-37, resize_y=41, reference=library))
    for one, other in zip(plain, mirrored):
        np.testing.assert_array_equal(one[:, ::-1], other)


@pytest.mark.parametrize("library", ["torchvision", "opencv"])
def test_regions_are_cut_out_before(library: str) -> None:
    whole = image()
    part = np.ascontiguousarray(whole[10:40, 5:66])
    cut = run(lambda: fn.resize(source(part, part), size=[20, 25], reference=library))
    region = run(
        lambda: fn.resize(source(whole, whole), size=[20, 25], roi_start=[10, 5], roi_end=[40, 66], reference=library)
    )
    np.testing.assert_array_equal(cut[0], region[0])


# Calls with GPU kernels, except those that follow OpenCV, or that reduce images first, which run on the CPU.
ON_GPU: dict[str, dict[str, Any]] = {
    "pil": {"reference": "pil", "size": [50, 70]},
    "pil-nearest": {"reference": "pil", "interpolation": "nearest", "size": [50, 70]},
    "pil-lanczos": {"reference": "pil", "interpolation": "lanczos", "resize_shorter": 13},
    "pil-region": {"reference": "pil", "size": [9, 80], "roi_start": [3.5, 40], "roi_end": [39.2, 5]},
    "pil-reduced": {"reference": "pil", "size": [7, 9], "reducing_gap": 2.0},
    "torchvision": {"reference": "torchvision", "size": [50, 70]},
    "torchvision-exact": {"reference": "torchvision", "interpolation": "nearest-exact", "size": [23, 91]},
    "torchvision-cubic": {"reference": "torchvision", "interpolation": "bicubic", "antialias": False, "size": [60, 20]},
    "torchvision-mirrored": {"reference": "torchvision", "resize_y": 31, "resize_x": -20},
    "opencv": {"reference": "opencv", "size": [50, 70]},
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", ON_GPU)
def test_on_gpu_it_is_the_same(name: str, with_gpu: None) -> None:
    for images in (source, planes, translucent):
        host = run(lambda images=images: fn.resize(images(), **ON_GPU[name]))
        device = run(lambda images=images: fn.resize(images().gpu(), **ON_GPU[name]), device_id=0)
        for one, other in zip(host, device):
            np.testing.assert_array_equal(one, other)


@pytest.mark.every_case
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize(
    "size",
    [
        {"size": [37, 51]},
        {"size": [200, 31]},
        {"size": [60, 80]},
        {"size": [-40, 33]},
        {"size": [20, -70], "roi_start": [5, 3], "roi_end": [30, 16]},
    ],
)
def test_floats_on_a_gpu(size: dict[str, Any], interpolation: str, with_gpu: None) -> None:
    arguments: dict[str, Any] = {**size, "reference": "torchvision", "interpolation": interpolation}

    def resized(images: Any) -> Any:
        return fn.resize(fn.cast(images, dtype=types.FLOAT) / 7.0, **arguments)

    for images in (source, planes):
        host, device = run(lambda x=images: resized(x())), run(lambda x=images: resized(x().gpu()), device_id=0)
        for ours, theirs in zip(host, device, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_follows_on_a_gpu(with_gpu: None) -> None:
    def chain(images: Any) -> Any:
        resized = fn.resize(images, resize_shorter=30, reference="pil", interpolation="bicubic")
        cropped = fn.crop(resized, crop=[24, 20], rounding="torchvision")
        return fn.rescale_normalize(cropped, mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.1], reference="to_dtype")

    host = run(lambda: chain(source()))
    device = run(lambda: chain(source().gpu()), device_id=0)
    for one, other in zip(host, device):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("side", range(1, 9))
def test_crops_whose_start_is_rounded_down(side: int) -> None:
    """As in transformers' classes for Pillow, the odd pixel of the margins around a smaller image is above, or to the left."""
    image = np.arange(1, side * side * 3 + 1, dtype=np.uint8).reshape(side, side, 3)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        given = fn.external_source(name="images", layout="HWC")
        return fn.crop(given, crop=[4, 4], rounding="floor", out_of_bounds_policy="pad", fill_values=[0])

    running = pipeline()
    (got,) = running.run(images=[image])
    start = (side - 4) // 2
    padded = np.pad(image, ((8, 8), (8, 8), (0, 0)))[8 + start : 12 + start, 8 + start : 12 + start]
    np.testing.assert_array_equal(np.array(got[0]), padded)
    running.close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"reference": "skimage"}, "`reference` must be one of dali, pil, torchvision, opencv"),
        ({"interpolation": "box"}, "needs a `reference`"),
        ({"reference": "pil", "interpolation": "area"}, "pil has nearest, box"),
        ({"reference": "torchvision", "interp_type": types.INTERP_GAUSSIAN}, "torchvision has no INTERP_GAUSSIAN"),
        ({"reference": "torchvision", "interpolation": "lanczos", "antialias": False}, "with `antialias`"),
        ({"reference": "pil", "antialias": False}, "pil always widens"),
        ({"reference": "opencv", "antialias": True}, "opencv never widens"),
        ({"reference": "pil", "min_filter": types.INTERP_NN}, "one filter for both axes"),
        ({"reference": "pil", "interpolation": "box", "interp_type": types.INTERP_NN}, "give one of them"),
        ({"reference": "opencv", "reducing_gap": 2.0}, "needs `reference='pil'`"),
        ({"reference": "pil", "reducing_gap": 0.5}, "at least 1"),
        ({"reference": "pil", "dtype": types.FLOAT}, "`dtype` must be that of the images"),
    ],
)
def test_what_no_library_does_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=told):
        run(lambda: fn.resize(source(), size=[20, 20], **arguments))


def test_images_of_other_types_are_refused() -> None:
    floats = image().astype(np.int16)
    with pytest.raises(RuntimeError, match=r"images must be uint8\. Got: int16"):
        run(lambda: fn.resize(source(floats, floats), size=[20, 20], reference="pil"))


def test_what_is_saved_means_the_same(tmp_path: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.resize(source(), size=[20, 20], reference="pil", interpolation="hamming", reducing_gap=2.0)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def fed() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        return fn.resize(images, size=[20, 20], reference="pil", interpolation="hamming", reducing_gap=2.0)

    fed().save(tmp_path / "resize.json")
    again = penstock.Pipeline.load(tmp_path / "resize.json")
    again.feed_input("images", [image(), image((300, 210, 3))])
    for one, other in zip(define().run()[0], again.run()[0]):
        np.testing.assert_array_equal(np.array(one), np.array(other))
