"""Penstock's versions of Pillow's functions give the same results as Pillow, bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from penstock import fn, pipeline_def, types
from penstock.kernels import pillow

sys.path.insert(0, str(Path(__file__).parents[2] / "parity"))

from pillow_functions import COMPARED, calls, hued, pil_of, pixels_of

CASES = 60


@pytest.mark.every_case
@pytest.mark.parametrize("name", COMPARED)
def test_equal_pillow(name: str) -> None:
    for case, (got, expected) in enumerate(calls(name, CASES)):
        np.testing.assert_array_equal(got, expected, f"case {case}")


def test_hues_of_many_colours() -> None:
    colours = np.stack(np.meshgrid(*[np.arange(0, 256, 5, np.uint8)] * 3), axis=-1).reshape(-1, 52, 3)
    for factor in (-0.31, 0.0, 0.2):
        np.testing.assert_array_equal(pillow.adjust_hue(colours, factor), pixels_of(hued(pil_of(colours), factor)))


def test_modes_of_images() -> None:
    """Changing the hue of a grey image only makes it opaque; other functions refuse transparency with an error of Pillow's class."""
    grey = np.random.default_rng(0).integers(0, 256, (9, 11, 2), np.uint8)
    np.testing.assert_array_equal(pillow.adjust_hue(grey, 0.2), pixels_of(hued(pil_of(grey), 0.2)))
    calls: list[tuple[Callable[[np.ndarray], np.ndarray], Callable[[Image.Image], Image.Image]]] = [
        (pillow.invert, ImageOps.invert),
        (pillow.equalize, ImageOps.equalize),
        (lambda image: pillow.posterize(image, 3), lambda image: ImageOps.posterize(image, 3)),
        (lambda image: pillow.solarize(image, 9), lambda image: ImageOps.solarize(image, 9)),
        (pillow.autocontrast, ImageOps.autocontrast),
    ]
    for own, theirs in calls:
        with pytest.raises(OSError, match="LA"):
            theirs(pil_of(grey))
        with pytest.raises(OSError, match=r"requires an image of mode L or RGB\. Got: LA") as refused:
            own(grey)
        assert isinstance(refused.value, ValueError)


def test_filters() -> None:
    """Filters equal sums in double precision; tests/plugin/torchvision compares them with PyTorch's."""
    rng = np.random.default_rng(0)
    for channels, rows, columns in ((3, 5, 3), (2, 1, 7), (4, 9, 9)):
        image, kernel = (
            rng.integers(0, 256, (31, 20, channels), np.uint8),
            rng.random((rows, columns)).astype(np.float32),
        )
        kernel /= kernel.sum()
        wider = np.pad(image.astype(np.float64), ((rows // 2,) * 2, (columns // 2,) * 2, (0, 0)), mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(wider, (rows, columns), axis=(0, 1))
        expected = np.einsum("yxcij,ij->yxc", windows, kernel.astype(np.float64))
        assert np.abs(pillow.convolve(image, kernel) - expected).max() <= 0.5 + 1e-3
    with pytest.raises(ValueError, match="at least two channels"):
        pillow.convolve(image[:, :, :1], kernel)


def test_in_pipelines() -> None:
    images = [np.random.default_rng(k).integers(0, 256, (20 + k, 30, 3), np.uint8) for k in range(3)]
    calls: list[tuple[dict[str, Any], Callable[[Image.Image], Image.Image]]] = [
        ({"function": "adjust_contrast", "arguments": [1.7]}, lambda image: ImageEnhance.Contrast(image).enhance(1.7)),
        ({"function": "equalize", "arguments": []}, ImageOps.equalize),
        ({"function": "grayscale", "arguments": [1]}, lambda image: image.convert("L")),
        (
            {"function": "rotate", "arguments": [33, 1], "interpolation": "bicubic", "fill": [1, 2, 3]},
            lambda image: image.rotate(33, 3, True, fillcolor=(1, 2, 3)),
        ),
        (
            {"function": "pad", "arguments": [1, 2, 3, 4], "fill": [9]},
            lambda i: ImageOps.expand(i, (1, 2, 3, 4), (9,) * 3),
        ),
    ]

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def functions() -> tuple[Any, ...]:
        source = fn.external_source(name="images", layout="HWC", dtype=types.UINT8)
        return tuple(fn.pillow_function(source, **arguments) for arguments, _ in calls)

    pipeline = functions()
    for (_, expected), results in zip(calls, pipeline.run(images=images)):
        for image, result in zip(images, results):
            np.testing.assert_array_equal(np.array(result), pixels_of(expected(pil_of(image))))
    pipeline.close()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"function": "blur", "arguments": []}, "`function` must be one of"),
        ({"function": "adjust_hue", "arguments": []}, "`arguments` of `adjust_hue` must be: factor. Got: 0 values"),
        ({"function": "rotate", "arguments": [3, 0], "interpolation": "box"}, "`interpolation` must be one of nearest"),
        (
            {"function": "pad", "arguments": [1, 2, 3, 4], "padding_mode": "wrap"},
            "`padding_mode` must be one of constant",
        ),
        ({"function": "posterize", "arguments": [9]}, "1 to 8 bits"),
        ({"function": "convolve", "arguments": [3, 3, 1, 2]}, "and 2 weights"),
        ({"function": "convolve", "arguments": [1, 17, *[1.0] * 17]}, r"A filter of shape \(17, 1\) is too large"),
        ({"function": "pad", "arguments": [-30, 0, -30, 0]}, "does not support images of shape"),
        ({"function": "rotate", "arguments": [3, 0], "fill": [1, 2]}, r"one for each of 3 channels\. Got: 2 values"),
    ],
)
def test_bad_calls(arguments: dict[str, Any], told: str) -> None:
    def function() -> Any:
        return fn.pillow_function(
            fn.external_source(lambda: [np.zeros((8, 9, 3), np.uint8)], layout="HWC"), **arguments
        )

    def run() -> None:
        pipeline_def(function, batch_size=1, num_threads=1, device_id=None)().run()

    with pytest.raises((RuntimeError, ValueError), match=told):
        run()
