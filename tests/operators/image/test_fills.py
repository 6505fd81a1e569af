"""The part of a window outside an image is filled with one value or one per channel, for any window, layout and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def

RNG = np.random.default_rng(0)


def sliced(image: np.ndarray, layout: str, start: list[int], shape: list[int], fills: list[float]) -> np.ndarray:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        data = fn.external_source(lambda: [image], layout=layout)
        return fn.slice(data, start=start, shape=shape, axis_names="HW", out_of_bounds_policy="pad", fill_values=fills)

    return np.array(define().run()[0][0])


def expected(image: np.ndarray, layout: str, start: list[int], shape: list[int], fills: list[float]) -> np.ndarray:
    planes = np.moveaxis(image, layout.index("C"), 0) if "C" in layout else image[None]
    values = fills if len(fills) > 1 else fills * len(planes)
    outer = [(abs(first) + length, abs(first) + length) for first, length in zip(start, shape)]
    filled = []
    for plane, value in zip(planes, values):
        padded = np.pad(plane, outer, constant_values=value)
        window = tuple(slice(before + first, before + first + n) for (before, _), first, n in zip(outer, start, shape))
        filled.append(padded[window])
    return np.stack(filled, layout.index("C")) if "C" in layout else filled[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW"])
def test_any_window(layout: str, dtype: Any) -> None:
    for channels in (1, 2, 3, 5):
        shape = {"H": 7, "W": 9, "C": channels}
        image = RNG.integers(0, 100, [shape[letter] for letter in layout]).astype(dtype)
        several = [float(value) for value in range(11, 11 + channels)]
        for start, extents in (
            ([-2, -3], [12, 15]),
            ([3, 4], [9, 9]),
            ([-20, 0], [10, 9]),
            ([2, 2], [3, 3]),
            ([0, -1], [7, 1]),
        ):
            for fills in ([0.0], [1.0], several) if "C" in layout else ([0.0], [1.0]):
                result = sliced(image, layout, start, extents, fills)
                np.testing.assert_array_equal(result, expected(image, layout, start, extents, fills))


@pytest.mark.parametrize("fills", [(0,), (7,), (1, 2, 3)])
def test_pad_and_paste(fills: tuple[int, ...]) -> None:
    image = RNG.integers(0, 256, (60, 80, 3)).astype(np.uint8)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        data = fn.external_source(lambda: [image], layout="HWC")
        return fn.paste(data, fill_value=list(fills) * (3 // len(fills)), ratio=1.5, paste_x=0.0, paste_y=1.0)

    result = np.array(define().run()[0][0])
    canvas = np.empty((90, 120, 3), np.uint8)
    canvas[:] = fills
    canvas[30:, :80] = image
    np.testing.assert_array_equal(result, canvas)
