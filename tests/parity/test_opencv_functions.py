"""With `reference="opencv"`, operators give the same bytes as OpenCV. `make parity` compares many more calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

sys.path.insert(0, str(Path(__file__).parent))

from opencv_functions import COMPARED, compared

IMAGE = np.random.default_rng(5).integers(0, 256, (40, 60, 3), np.uint8)
SHEARED = [1.0, 0.2, 3.0, -0.1, 0.9, 2.0]
IDENTITY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def run(compute: Any, image: np.ndarray = IMAGE, layout: str = "HWC", passes: Any = None) -> np.ndarray:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, passes=passes)
    def pipeline() -> Any:
        return compute(fn.external_source(lambda: [image], layout=layout))

    running = pipeline()
    result = np.array(running.run()[0][0])
    running.close()
    return result


@pytest.mark.parametrize("name", COMPARED)
def test_equals_opencv(name: str) -> None:
    for got, expected in compared(name, 60):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.every_case
@pytest.mark.parametrize("name", COMPARED)
def test_equals_opencv_on_a_gpu(name: str, with_gpu: None) -> None:
    for got, expected in compared(name, 2, seed=3, device="gpu"):
        np.testing.assert_array_equal(got, expected)


def test_matrices_from_the_graph() -> None:
    matrix = np.array(SHEARED, np.float32).reshape(2, 3)
    constant = run(lambda images: fn.warp_affine(images, matrix=SHEARED, reference="opencv"))
    computed = run(lambda images: fn.warp_affine(images, types.Constant(matrix), reference="opencv"))
    np.testing.assert_array_equal(constant, computed)
    inverted = run(lambda images: fn.warp_affine(images, matrix=SHEARED, inverse_map=False, reference="opencv"))
    assert (constant != inverted).any()


def test_a_canvas_that_grows_holds_the_whole_image() -> None:
    turned = run(lambda images: fn.rotate(images, angle=90.0, reference="opencv"))
    np.testing.assert_array_equal(turned, np.rot90(IMAGE))
    grown = run(lambda images: fn.rotate(images, angle=30.0, fill_value=0, reference="opencv"))
    assert grown.shape == run(lambda images: fn.rotate(images, angle=30.0)).shape


def test_frames_share_a_canvas() -> None:
    frames, angles = np.stack([IMAGE] * 3), np.array([0, 30, 60], np.float32)

    def turned(images: Any) -> Any:
        angle = fn.per_frame(fn.external_source(lambda: [angles], name="angles"))
        return fn.rotate(images, angle=angle, fill_value=0, reference="opencv")

    result = run(turned, frames, "FHWC")
    assert result.shape[:1] == (3,)
    top, left = (result.shape[1] - 40) // 2, (result.shape[2] - 60) // 2
    np.testing.assert_array_equal(result[0, top : top + 40, left : left + 60], IMAGE)


def test_chains_are_left_as_they_are() -> None:
    def chain(images: Any) -> Any:
        return fn.crop(fn.warp_affine(images, matrix=SHEARED, reference="opencv"), crop=[20, 30])

    np.testing.assert_array_equal(run(chain), run(chain, passes=[]))


@pytest.mark.parametrize(
    ("compute", "told"),
    [
        (lambda x: fn.gaussian_blur(x, sigma=1.0, reference="pil"), "`reference` must be one of dali, opencv"),
        (
            lambda x: fn.gaussian_blur(x, sigma=1.0, reference="opencv", dtype=types.FLOAT),
            "`dtype` must be that of the images, uint8. Got: float",
        ),
        (
            lambda x: fn.rotate(x, angle=5.0, reference="opencv", dtype=types.FLOAT),
            "`dtype` must be that of the images, uint8. Got: float",
        ),
        (lambda x: fn.rotate(x, angle=5.0, interp_type=types.INTERP_CUBIC), "Unsupported interpolation"),
        (lambda x: fn.rotate(x, angle=5.0, interp_type=types.INTERP_LANCZOS3, reference="opencv"), "Unsupported"),
        (
            lambda x: fn.warp_affine(fn.cast(x, dtype=types.INT32), matrix=SHEARED, reference="opencv"),
            "images must be of one of uint8, int16, float. Got: int32",
        ),
        (
            lambda x: fn.experimental.warp_perspective(x, matrix=IDENTITY, pixel_origin="corner", reference="opencv"),
            "must be `center`",
        ),
        (
            lambda x: fn.experimental.warp_perspective(
                x, matrix=[*IDENTITY[:6], 0.1, -0.1, 1.0], border_mode="reflect", reference="opencv"
            ),
            "the horizon must not cross the output",
        ),
        (
            lambda x: fn.experimental.warp_perspective(
                x, matrix=[1e6, *IDENTITY[1:]], border_mode="reflect_101", reference="opencv"
            ),
            "farther beyond the image than 100 times",
        ),
        (lambda x: fn.filter(x, np.ones((3, 3), np.float32), border="wrap", reference="opencv"), "must be one of"),
        (
            lambda x: fn.filter(x, np.ones((3, 3), np.float32), np.uint8(3), border="constant", reference="opencv"),
            "constant borders are 0",
        ),
    ],
)
def test_what_opencv_does_not_do_is_refused(compute: Any, told: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=told):
        run(compute)


def test_volumes_are_refused() -> None:
    volume = np.zeros((3, 4, 5, 1), np.uint8)
    for compute in (
        lambda x: fn.gaussian_blur(x, sigma=1.0, reference="opencv"),
        lambda x: fn.rotate(x, angle=5.0, axis=[0.0, 0.0, 1.0], reference="opencv"),
    ):
        with pytest.raises(RuntimeError, match=r"images must have two axes\. Got: 3 axes"):
            run(compute, volume, "DHWC")


def test_too_many_channels_fail_alone() -> None:
    few, many = np.zeros((9, 9, 3), np.uint8), np.zeros((9, 9, 5), np.uint8)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline() -> Any:
        images = fn.external_source(lambda: [few, many], layout="HWC")
        return fn.rotate(images, angle=5.0, interp_type=types.INTERP_CUBIC, reference="opencv")

    running = pipeline()
    with pytest.raises(RuntimeError, match="channels"):
        running.run()
    running.close()
