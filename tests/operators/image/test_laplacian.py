"""`laplacian` of bytes with windows of three, computed in integers, compared with sums of shifted images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import outputs

from penstock import fn, types

RNG = np.random.default_rng(0)
SHAPES = [(1, 1, 3), (1, 5, 1), (5, 1, 3), (2, 2, 4), (37, 53, 3), (3, 64, 1)]


def expected(image: np.ndarray) -> np.ndarray:
    """Return the sum of both second derivatives of an image (rows, columns, channels), each smoothed along the other axis."""
    height, width, _ = image.shape
    wide = image.astype(np.int64)
    wide = np.pad(wide, [(1, 1), (0, 0), (0, 0)], "reflect") if height > 1 else wide.repeat(3, axis=0)
    wide = np.pad(wide, [(0, 0), (1, 1), (0, 0)], "reflect") if width > 1 else wide.repeat(3, axis=1)
    total = np.zeros(image.shape, np.int64)
    for y, x in np.ndindex(3, 3):
        weight = (1, -2, 1)[y] * (1, 2, 1)[x] + (1, 2, 1)[y] * (1, -2, 1)[x]
        total += weight * wide[y : y + height, x : x + width]
    return total


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize(
    ("arguments", "scale"), [({}, 1), ({"normalized_kernel": True}, 0.25), ({"scale": -0.5}, -0.5)], ids=str
)
def test_bytes(layout: str, arguments: dict[str, Any], scale: float) -> None:
    images = [RNG.integers(0, 2, shape).astype(np.uint8) * 255 for shape in SHAPES]
    images += [RNG.integers(0, 256, shape, np.uint8) for shape in SHAPES]
    given = [image if layout == "HWC" else np.ascontiguousarray(image.transpose(2, 0, 1)) for image in images]

    def define() -> Any:
        pixels = fn.external_source(name="images", layout=layout)
        return fn.laplacian(pixels, dtype=types.FLOAT, **arguments), fn.laplacian(pixels, **arguments)

    floats, whole = outputs(define, images=given)
    for image, exact, rounded in zip(images, floats, whole):
        wanted = expected(image) * scale
        wanted = wanted if layout == "HWC" else wanted.transpose(2, 0, 1)
        np.testing.assert_array_equal(exact, wanted)
        assert not np.signbit(exact[exact == 0]).any()
        np.testing.assert_array_equal(rounded, np.floor(wanted.clip(0, 255) + 0.5))
