"""Neighbourhood operators, which run tile by tile, give the same results on GPU and CPU for any extents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.kernels.cuda.tiles import tiling_for

Define = Callable[[Any], Any]

RNG = np.random.default_rng(7)
# Several tiles; a single element; lines; no elements; and more channels than fit into a tile, as many as OpenCV accepts.
SHAPES = [(37, 290, 3), (1, 1, 3), (1, 83, 1), (70, 1, 4), (0, 4, 3), (40, 60, 3), (3, 5, 120)]
# All sums are exact, so they do not depend on the order of the terms.
WHOLE = RNG.integers(-3, 4, (5, 4)).astype(np.float32)
LARGE = (RNG.integers(-1, 2, (150, 151)) / 1024).astype(np.float32)
EXACT: dict[str, Define] = {
    "laplacian": lambda x: fn.laplacian(x, window_size=[5, 3], scale=[2.0, -0.5], dtype=types.FLOAT),
    "laplacian, smoothed along one axis": lambda x: fn.laplacian(x, window_size=3, smoothing_size=[1, 5]),
    **{
        f"filter, {border}": lambda x, b=border: fn.filter(x, WHOLE, border=b, anchor=[4, 0])
        for border in ("reflect_101", "reflect_1001", "clamp", "wrap", "constant")
    },
    "dilate": lambda x: fn.experimental.dilate(x, mask_size=[4, 5], border_mode="reflect"),
    "dilate, large": lambda x: fn.experimental.dilate(x, mask_size=[120, 130], border_mode="replicate"),
    "erode": lambda x: fn.experimental.erode(x, mask_size=[1, 9], anchor=[0, 8]),
    "median": fn.experimental.median_blur,
    "median, 5": lambda x: fn.experimental.median_blur(x, window_size=5),
    "median, wide": lambda x: fn.experimental.median_blur(x, window_size=[7, 1]),
}
CLOSE: dict[str, Define] = {
    "filter, large": lambda x: fn.filter(x, LARGE, dtype=types.FLOAT),
    "blur, small": lambda x: fn.gaussian_blur(x, window_size=[3, 5], dtype=types.FLOAT),
    "blur, large": lambda x: fn.gaussian_blur(x, window_size=[171, 33], dtype=types.FLOAT),
    "blur, different": lambda x: fn.gaussian_blur(
        x, sigma=fn.random.uniform(range=[0.3, 9.0], seed=1), dtype=types.FLOAT
    ),
}


def run(define: Define, samples: list[np.ndarray], layout: str, device: str) -> list[np.ndarray]:
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=0)
    def pipeline() -> Any:
        data = fn.external_source(lambda: samples, layout=layout)
        return define(data.gpu() if device == "gpu" else data)

    built = pipeline()
    built.build()
    return [np.array(tensor) for tensor in built.run()[0].as_cpu()]


def images(dtype: Any, name: str) -> list[np.ndarray]:
    # Filters reject empty images.
    shapes = [shape for shape in SHAPES if all(shape) or not name.startswith("filter")]
    return [RNG.integers(0, 200, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str, dtype: Any) -> None:
    samples = images(dtype, name)
    for expected, result in zip(
        run(EXACT[name], samples, "HWC", "cpu"), run(EXACT[name], samples, "HWC", "gpu"), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    samples = images(np.uint8, name)
    for expected, result in zip(
        run(CLOSE[name], samples, "HWC", "cpu"), run(CLOSE[name], samples, "HWC", "gpu"), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [("W", [(700,), (1,)]), ("FW", [(3, 50), (2, 1)]), ("DHW", [(5, 6, 90), (1, 2, 3)]), ("CDHW", [(2, 9, 1, 7)] * 2)],
)
def test_laplacian_of_other_ranks(layout: str, shapes: list[tuple[int, ...]]) -> None:
    def define(data: Any) -> Any:
        return fn.laplacian(data, window_size=5, dtype=types.FLOAT)

    samples = [RNG.integers(-100, 100, shape).astype(np.int16) for shape in shapes]
    for expected, result in zip(run(define, samples, layout, "cpu"), run(define, samples, layout, "gpu"), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_what_is_not_finite_spreads_no_further_than_the_window() -> None:
    image = np.zeros((30, 30, 1), np.float32)
    image[9, 20] = np.inf
    (result,) = run(lambda x: fn.gaussian_blur(x, window_size=[3, 7]), [image], "HWC", "gpu")
    expected = np.ones(image.shape, bool)
    expected[8:11, 17:24] = False
    np.testing.assert_array_equal(np.isfinite(result), expected)


def test_tiles_fit_into_shared_memory_or_there_are_none() -> None:
    for window in ((3, 3), (15, 15), (31, 31), (101, 3)):
        tiling = tiling_for((1, 480, 640, 3), window, 1, 0, 0)
        assert tiling is not None
        assert tiling.shared <= 64 * 1024
        assert tiling.grid[0] * tiling.rows >= 480
        assert tiling.grid[1] * tiling.columns >= 640
    assert tiling_for((1, 480, 640, 3), (301, 301), 1, 0, 0) is None
