"""Pillow's functions, to the bit, beside Pillow's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from penstock import fn, pipeline_def, types
from penstock.kernels import pillow

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}
CASES = 60


def _image(rng: np.random.Generator, channels: int) -> np.ndarray:
    height, width = (int(extent) for extent in rng.integers(1, 60, 2))
    image = rng.integers(0, 256, (height, width, channels), np.uint8)
    kind = rng.integers(4)
    if kind == 1:
        return image // np.uint8(64) * np.uint8(85)
    return np.full_like(image, image[0, 0]) if kind == 2 else image


def _pil(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)


def _pixels(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


def _factor(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, rng.uniform(0, 1), rng.uniform(1, 3)]))


def _colour(rng: np.random.Generator, channels: int) -> Any:
    values = tuple(int(value) for value in rng.integers(0, 256, channels))
    return values if channels > 1 else values[0]


def _hued(image: Image.Image, factor: float) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    turned = np.array(hue) + np.int32(factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(image.mode)


Compare = Callable[[np.random.Generator, np.ndarray, Image.Image], tuple[np.ndarray, Image.Image]]


def _enhanced(name: str, own: Callable[[np.ndarray, float], np.ndarray]) -> Compare:
    def compare(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
        factor = _factor(rng)
        return own(array, factor), getattr(ImageEnhance, name)(image).enhance(factor)

    return compare


def _hue(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
    factor = float(rng.uniform(-0.5, 0.5))
    return pillow.adjust_hue(array, factor), _hued(image, factor)


def _operation(name: str, low: int | None = None, high: int = 0) -> Compare:
    def compare(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
        numbers = [] if low is None else [int(rng.integers(low, high))]
        return getattr(pillow, name)(array, *numbers), getattr(ImageOps, name)(image, *numbers)

    return compare


def _cropped(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
    top, left = (int(place) for place in rng.integers(-20, 60, 2))
    height, width = (int(extent) for extent in rng.integers(1, 60, 2))
    return pillow.crop(array, top, left, height, width), image.crop((left, top, left + width, top + height))


def _padded(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
    borders, fill = [int(border) for border in rng.integers(0, 9, 4)], _colour(rng, array.shape[2])
    values = fill if isinstance(fill, tuple) else (fill,)
    return pillow.pad(array, *borders, values), ImageOps.expand(image, tuple(borders), fill)


def _rotated(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
    name, fill = str(rng.choice(list(FILTERS))), _colour(rng, array.shape[2])
    angle, expand = float(rng.choice([rng.uniform(-400, 400), 0, 90, 180, 270])), bool(rng.integers(2))
    centre = None if rng.integers(2) else tuple(float(place) for place in rng.uniform(0, 50, 2))
    values = fill if isinstance(fill, tuple) else (fill,)
    rotated = pillow.rotate(array, angle, name, expand, centre, values)
    if centre is None:
        assert pillow.rotated_extents(*array.shape[:2], angle, expand) == rotated.shape[:2]
    return rotated, image.rotate(angle, FILTERS[name], expand, centre, fillcolor=fill)


def _warped(rng: np.random.Generator, array: np.ndarray, image: Image.Image) -> tuple[np.ndarray, Image.Image]:
    name, fill = str(rng.choice(list(FILTERS))), _colour(rng, array.shape[2])
    shears = [float(angle) for angle in rng.choice([0, 1], 2) * rng.uniform(-40, 40, 2)]
    angle, moved = float(rng.choice([0, rng.uniform(-180, 180)])), [float(place) for place in rng.integers(-9, 9, 2)]
    middle = (image.width / 2, image.height / 2)
    terms = pillow.inverse_affine(middle, angle, moved, float(rng.uniform(0.3, 3)), shears)
    kind = Image.Transform.AFFINE
    if rng.integers(2):
        terms, kind = terms + [float(term) for term in rng.uniform(-0.02, 0.02, 2)], Image.Transform.PERSPECTIVE
    values = fill if isinstance(fill, tuple) else (fill,)
    return pillow.affine(array, terms, name, values), image.transform(
        image.size, kind, terms, FILTERS[name], fillcolor=fill
    )


# The channels that each is for.
COMPARED: dict[str, tuple[tuple[int, ...], Compare]] = {
    "brightness": ((1, 2, 3, 4), _enhanced("Brightness", pillow.adjust_brightness)),
    "contrast": ((1, 2, 3, 4), _enhanced("Contrast", pillow.adjust_contrast)),
    "saturation": ((1, 2, 3, 4), _enhanced("Color", pillow.adjust_saturation)),
    "sharpness": ((1, 2, 3, 4), _enhanced("Sharpness", pillow.adjust_sharpness)),
    "hue": ((3, 4), _hue),
    "posterize": ((1, 3), _operation("posterize", 1, 9)),
    "solarize": ((1, 3), _operation("solarize", 0, 257)),
    "invert": ((1, 3), _operation("invert")),
    "autocontrast": ((1, 3), _operation("autocontrast")),
    "equalize": ((1, 3), _operation("equalize")),
    "grey": ((1, 2, 3, 4), lambda rng, array, image: (pillow.grey(array), image.convert("L"))),
    "crop": ((1, 2, 3, 4), _cropped),
    "pad": ((1, 2, 3, 4), _padded),
    "rotate": ((1, 2, 3, 4), _rotated),
    "warp": ((1, 2, 3, 4), _warped),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", COMPARED)
def test_equal_pillow(name: str) -> None:
    rng = np.random.default_rng(len(name))
    channels, compare = COMPARED[name]
    for case in range(CASES):
        array = _image(rng, channels[case % len(channels)])
        got, expected = compare(rng, array, _pil(array))
        np.testing.assert_array_equal(got, _pixels(expected), f"case {case}, of shape {array.shape}")


def test_hues_of_many_colours() -> None:
    colours = np.stack(np.meshgrid(*[np.arange(0, 256, 5, np.uint8)] * 3), axis=-1).reshape(-1, 52, 3)
    for factor in (-0.31, 0.0, 0.2):
        np.testing.assert_array_equal(pillow.adjust_hue(colours, factor), _pixels(_hued(_pil(colours), factor)))


def test_filters() -> None:
    """Against sums in double precision; PyTorch's own are compared in tests/plugin/torchvision."""
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
    with pytest.raises(ValueError, match="several channels"):
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
            np.testing.assert_array_equal(np.array(result), _pixels(expected(_pil(image))))
    pipeline.close()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"function": "blur", "arguments": []}, "`function` is one of"),
        ({"function": "adjust_hue", "arguments": []}, "`arguments` of `adjust_hue` are: factor. Got 0"),
        ({"function": "rotate", "arguments": [3, 0], "interpolation": "box"}, "`interpolation` is one of nearest"),
        ({"function": "pad", "arguments": [1, 2, 3, 4], "padding_mode": "wrap"}, "`padding_mode` is one of constant"),
        ({"function": "posterize", "arguments": [9]}, "1 to 8 bits"),
        ({"function": "convolve", "arguments": [3, 3, 1, 2]}, "has so many weights. Got 2"),
        ({"function": "convolve", "arguments": [1, 17, *[1.0] * 17]}, r"A filter of \(17, 1\) reaches over"),
        ({"function": "pad", "arguments": [-30, 0, -30, 0]}, "not for images of the shape"),
        ({"function": "rotate", "arguments": [3, 0], "fill": [1, 2]}, "2 values, but the image 3 channels"),
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
