"""Compares Penstock's versions of Pillow's functions with Pillow's, by random calls of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from penstock.kernels import pillow

FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}


def image_of(rng: np.random.Generator, channels: int) -> np.ndarray:
    height, width = (int(extent) for extent in rng.integers(1, 60, 2))
    image = rng.integers(0, 256, (height, width, channels), np.uint8)
    kind = rng.integers(4)
    if kind == 1:
        return image // np.uint8(64) * np.uint8(85)
    return np.full_like(image, image[0, 0]) if kind == 2 else image


def pil_of(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)


def pixels_of(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


def _factor(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, rng.uniform(0, 1), rng.uniform(1, 3)]))


def _colour(rng: np.random.Generator, channels: int) -> Any:
    values = tuple(int(value) for value in rng.integers(0, 256, channels))
    return values if channels > 1 else values[0]


def hued(image: Image.Image, factor: float) -> Image.Image:
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
    return pillow.adjust_hue(array, factor), hued(image, factor)


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


# For each function, the numbers of channels that it supports, and a function that calls both versions with random arguments.
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


def calls(name: str, count: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield ``count`` pairs of Penstock's and Pillow's results, for random images and arguments."""
    rng = np.random.default_rng([seed, len(name)])
    channels, compare = COMPARED[name]
    for case in range(count):
        array = image_of(rng, channels[case % len(channels)])
        got, expected = compare(rng, array, pil_of(array))
        yield got, pixels_of(expected)
