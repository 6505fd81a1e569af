"""`experimental.remap`, which DALI has on the GPU only, compared with warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock
from penstock import fn, types

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 200, (10, 12, 3)).astype(np.uint8)
MATRIX = np.float32([[0.8, 0.3, 1.2], [-0.2, 1.1, 0.7]])


def run(define: Any) -> np.ndarray:
    pipeline = penstock.pipeline_def(define, batch_size=1, num_threads=1, device_id=None)()
    pipeline.build()
    return np.array(pipeline.run()[0][0])


def maps(height: int, width: int) -> list[np.ndarray]:
    """Return a map of x and a map of y: the positions in the image for the centres of output pixels, computed by the affine map.

    Position (0, 0) is the corner of the image.
    """
    y, x = np.mgrid[:height, :width].astype(np.float32) + np.float32(0.5)
    return [row[0] * x + row[1] * y + row[2] for row in MATRIX]


def remapped(mapx: np.ndarray, mapy: np.ndarray, image: np.ndarray = IMAGE, layout: str = "HWC", **given: Any) -> Any:
    return run(
        lambda: fn.experimental.remap(
            fn.external_source(lambda: [image], layout=layout),
            fn.external_source(lambda: [mapx]),
            fn.external_source(lambda: [mapy]),
            **given,
        )
    )


@pytest.mark.parametrize("kind", [types.INTERP_NN, types.INTERP_LINEAR])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_an_affine_map(kind: Any, dtype: Any) -> None:
    image = IMAGE.astype(dtype)
    expected = run(
        lambda: fn.warp_affine(
            fn.external_source(lambda: [image], layout="HWC"),
            matrix=MATRIX.reshape(-1).tolist(),
            size=[7, 9],
            fill_value=0.0,
            interp_type=kind,
        )
    )
    received = remapped(*maps(7, 9), image=image, interp=kind)
    assert received.dtype == dtype
    assert np.allclose(received, expected, atol=1 if dtype != np.float32 else 2e-3)


def test_the_origin_of_pixels() -> None:
    y, x = np.mgrid[:10, :12].astype(np.float32)
    assert np.array_equal(remapped(x, y, pixel_origin="center"), IMAGE)
    half = np.float32(0.5)
    assert np.array_equal(remapped(x + half, y + half, pixel_origin="corner"), IMAGE)


def test_beyond_the_border_and_nan_are_0() -> None:
    far = np.full((2, 3), 1e9, np.float32)
    assert not remapped(far, far).any()
    assert not remapped(far * np.nan, far).any()


def test_frames() -> None:
    frames = np.stack([IMAGE, IMAGE[::-1]])
    expected = np.stack([remapped(*maps(7, 9), image=frame) for frame in frames])
    assert np.array_equal(remapped(*maps(7, 9), image=frames, layout="FHWC"), expected)


def test_maps_of_different_shapes() -> None:
    with pytest.raises(RuntimeError, match="one shape"):
        remapped(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32))
