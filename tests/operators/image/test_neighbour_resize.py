"""`neighbour_resize` resizes by the nearest pixels."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import DataNode, fn, pipeline_def, types

DTYPES = {"float32": types.FLOAT, "int16": types.INT16, "uint8": types.UINT8}


def resized(image: np.ndarray, size: list[float]) -> np.ndarray:
    dtype = DTYPES[str(image.dtype)]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> DataNode:
        images = fn.external_source(name="images", dtype=dtype, layout="HWC")
        return fn.neighbour_resize(images, size=size)

    (batch,) = pipeline().run(images=[image])
    return np.array(batch[0])


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)


def interpolated(image: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Interpolate the image bilinearly at the given rows and columns, in double precision."""
    for axis, places in enumerate((rows, columns)):
        below = np.clip(np.floor(places).astype(int), 0, image.shape[axis] - 1)
        above = np.minimum(below + 1, image.shape[axis] - 1)
        rest = np.clip(places - below, 0, 1).reshape([-1, 1, 1] if axis == 0 else [1, -1, 1])
        image = np.take(image, below, axis) * (1 - rest) + np.take(image, above, axis) * rest
    return image


@pytest.mark.parametrize("size", [(5, 9), (31, 40), (300, 17), (1, 1), (23, 31)])
def test_outermost_pixels_keep_their_places(size: tuple[int, int]) -> None:
    image = noise(23, 31).astype(np.float32)
    own = resized(image, list(size))
    places = [np.linspace(0, side - 1, count) for side, count in zip(image.shape, size)]
    np.testing.assert_allclose(own, interpolated(image.astype(np.float64), *places), atol=2e-3)
    np.testing.assert_array_equal(own[0, 0], image[0, 0])
    if min(size) > 1:
        np.testing.assert_allclose(own[-1, -1], image[-1, -1], rtol=1e-5)
    if size == image.shape[:2]:
        np.testing.assert_array_equal(own, image)


@pytest.mark.parametrize("size", [(5, 9), (31, 40), (300, 17), (1, 1), (23, 31)])
def test_weights_of_fixed_point(size: tuple[int, int]) -> None:
    image = noise(23, 31)
    own = resized(image, list(size))
    places = [(np.arange(count) + 0.5) * side / count - 0.5 for side, count in zip(image.shape, size)]
    expected = interpolated(image.astype(np.float64), *(np.clip(each, 0, None) for each in places))
    # Weights are rounded to 1/2048.
    np.testing.assert_allclose(own, expected, atol=0.5 + 2 * 255 / 2048)
    np.testing.assert_array_equal(resized(np.full((1, 1, 3), 7, np.uint8), [2, 3]), 7)


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Images must be float or uint8"):
        resized(noise(4, 5).astype(np.int16), [3, 3])
    with pytest.raises(ValueError, match="positive height and width"):
        resized(noise(4, 5), [3, 0])
