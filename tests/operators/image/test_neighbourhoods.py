"""Median, dilation and erosion, which DALI has on the GPU only, compared with their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock
from penstock import fn

RNG = np.random.default_rng(0)
BORDERS = {"replicate": "edge", "reflect": "symmetric", "reflect_101": "reflect", "wrap": "wrap"}


def run(operator: str, image: np.ndarray, layout: str, **given: Any) -> np.ndarray:
    @penstock.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        data = fn.external_source(lambda: [image], layout=layout)
        return getattr(fn.experimental, operator)(data, **given)

    pipeline = define()
    pipeline.build()
    return np.array(pipeline.run()[0][0])


def windows(image: np.ndarray, size: tuple[int, int], anchor: tuple[int, int], mode: str, **pad: Any) -> np.ndarray:
    """Return the windows around all pixels of an image (H, W), of shape (H, W, height, width); ``size`` is (width, height)."""
    (width, height), (x, y) = size, anchor
    padded = np.pad(image, [(y, height - 1 - y), (x, width - 1 - x)], mode, **pad)
    return np.lib.stride_tricks.sliding_window_view(padded, (height, width))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float32])
@pytest.mark.parametrize("size", [(3, 3), (5, 1), (7, 5), (3, 13), (31, 15)])
def test_median_blur(dtype: Any, size: tuple[int, int]) -> None:
    image = RNG.integers(0, 200, (9, 11)).astype(dtype)
    middle = (size[0] // 2, size[1] // 2)
    expected = np.median(windows(image, size, middle, "edge"), axis=(2, 3)).astype(dtype)
    assert np.array_equal(run("median_blur", image, "HW", window_size=list(size)), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_median_blur_of_many_values(dtype: Any) -> None:
    """The kernel counts values in groups of 64 and 4096; the median of these images moves up and down between groups."""
    image = (RNG.random((70, 90)) * 250 * np.linspace(0.1, 1, 90)).astype(dtype)
    image[:, 40:45] = image[:, 40:45] // 8
    expected = np.median(windows(image, (9, 7), (4, 3), "edge"), axis=(2, 3)).astype(dtype)
    assert np.array_equal(run("median_blur", image, "HW", window_size=[9, 7]), expected)


@pytest.mark.parametrize(("layout", "axis"), [("HWC", -1), ("CHW", 0)])
def test_median_blur_of_channels(layout: str, axis: int) -> None:
    planes = [RNG.integers(0, 200, (6, 7)).astype(np.uint8) for _ in range(3)]
    expected = np.stack([run("median_blur", plane, "HW") for plane in planes], axis)
    assert np.array_equal(run("median_blur", np.stack(planes, axis), layout), expected)


def test_median_blur_of_frames() -> None:
    frames = RNG.integers(0, 200, (2, 6, 7, 1)).astype(np.uint8)
    expected = np.stack([run("median_blur", frame, "HWC", window_size=5) for frame in frames])
    assert np.array_equal(run("median_blur", frames, "FHWC", window_size=5), expected)


@pytest.mark.parametrize("size", [[4, 3], [0, 3], [3, 3, 3]])
def test_median_blur_refuses_windows(size: list[int]) -> None:
    with pytest.raises(RuntimeError, match="window_size"):
        run("median_blur", np.zeros((4, 4), np.uint8), "HW", window_size=size)


@pytest.mark.parametrize("operator", ["dilate", "erode"])
@pytest.mark.parametrize("border", ["constant", *BORDERS])
@pytest.mark.parametrize(("size", "anchor"), [((3, 3), (1, 1)), ((4, 2), (0, 1)), ((1, 5), (0, 4))])
def test_morphology(operator: str, border: str, size: tuple[int, int], anchor: tuple[int, int]) -> None:
    image = RNG.uniform(0, 1, (8, 9)).astype(np.float32)
    extreme, outside = (np.max, -1.0) if operator == "dilate" else (np.min, 2.0)
    pad = {"constant_values": outside} if border == "constant" else {}
    expected = extreme(windows(image, size, anchor, BORDERS.get(border, "constant"), **pad), axis=(2, 3))
    given = {"mask_size": list(size), "anchor": list(anchor), "border_mode": border}
    assert np.array_equal(run(operator, image, "HW", **given), expected)


@pytest.mark.parametrize("operator", ["dilate", "erode"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize(("layout", "axis"), [("HWC", -1), ("CHW", 0)])
def test_morphology_of_channels(operator: str, dtype: Any, layout: str, axis: int) -> None:
    planes = [RNG.integers(0, 200, (6, 7)).astype(dtype) for _ in range(5)]
    expected = np.stack([run(operator, plane, "HW", mask_size=[5, 3]) for plane in planes], axis)
    assert np.array_equal(run(operator, np.stack(planes, axis), layout, mask_size=[5, 3]), expected)


@pytest.mark.parametrize("operator", ["dilate", "erode"])
def test_iterations_repeat(operator: str) -> None:
    image = RNG.integers(0, 200, (12, 13)).astype(np.uint8)
    given = {"mask_size": [3, 2], "anchor": [0, 1]}
    once = run(operator, image, "HW", **given)
    assert np.array_equal(run(operator, image, "HW", iterations=2, **given), run(operator, once, "HW", **given))


def test_morphology_refuses_anchors() -> None:
    with pytest.raises(RuntimeError, match="anchor"):
        run("dilate", np.zeros((4, 4), np.uint8), "HW", anchor=[3, 0])
