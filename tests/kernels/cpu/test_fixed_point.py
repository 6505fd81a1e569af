"""Fixed-point passes, with the instructions of this machine and of others, compared with plain sums of products."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.cpu import byte_products, fixed_point
from penstock.kernels.cpu.fixed_point import resample_image
from penstock.kernels.reference_filters import ReferenceAxis, ReferenceTaps, pil_taps, torch_taps

BITS = 14
# The largest weight that can be split into two signed bytes, the largest that fits in 16 bits, and a larger one.
LARGEST = {"two bytes": byte_products.MOST_WEIGHT, "16 bits": (1 << 15) - 1, "more": (1 << 20)}


def table(outputs: int, taps: int, size: int, largest: int, seed: int) -> ReferenceTaps:
    """Return taps with random weights, among them the largest and the smallest weight that is allowed."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-largest // 8, largest // 8, (outputs, taps)).astype(np.int32)
    weights[0, 0], weights[-1, -1] = largest, -largest - 1
    starts = np.sort(rng.integers(0, size - taps + 1, outputs)).astype(np.int32)
    return ReferenceTaps(starts, weights, BITS)


def by_definition(rows: np.ndarray, taps: ReferenceTaps) -> np.ndarray:
    """Apply the taps to the first axis; return the rounded and clamped sums."""
    sums = np.full((len(taps.starts), *rows.shape[1:]), 1 << (taps.bits - 1), np.int64)
    for y, (start, weights) in enumerate(zip(taps.starts, taps.weights)):
        part = rows[start : start + len(weights)].astype(np.int64)
        sums[y] += np.tensordot(weights.astype(np.int64), part, 1)
    return (sums >> taps.bits).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("largest", LARGEST)
@pytest.mark.parametrize("taps", range(1, 10))
@pytest.mark.parametrize("width", [16, 63, 64, 130])
def test_rows_are_summed(width: int, taps: int, largest: str) -> None:
    rows = np.random.default_rng(width).integers(0, 256, (20, width), np.uint8)
    vertical = table(17, taps, len(rows), LARGEST[largest], taps)
    expected = by_definition(rows, vertical)
    for kernel in (fixed_point.sum_rows, fixed_point._sum_rows):
        lines = np.empty((17, width), np.uint8)
        kernel(rows, *vertical, lines)
        np.testing.assert_array_equal(lines, expected)


@pytest.mark.parametrize("largest", LARGEST)
@pytest.mark.parametrize("taps", range(1, 10))
@pytest.mark.parametrize(("width", "channels"), [(16, 3), (17, 3), (41, 3), (70, 3), (40, 1), (23, 4)])
def test_columns_are_summed(width: int, channels: int, taps: int, largest: str) -> None:
    pixels = np.random.default_rng(width).integers(0, 256, (35, width, channels), np.uint8)
    horizontal = table(21, taps, width, LARGEST[largest], taps)
    expected = by_definition(pixels.transpose(1, 0, 2), horizontal).transpose(1, 0, 2)
    for kernel in (fixed_point.sum_columns, fixed_point._sum_columns):
        lines = np.empty((35, 21 * channels), np.uint8)
        kernel(pixels.reshape(35, -1), channels, *horizontal, lines)
        np.testing.assert_array_equal(lines.reshape(expected.shape), expected)


@pytest.mark.parametrize("number", range(60))
def test_images_are_resampled_axis_by_axis(number: int) -> None:
    rng = np.random.default_rng(number)
    height, width, rows, columns = (int(side) for side in rng.integers(3, 120, 4))
    kind, taps_of = ("bilinear", "bicubic", "lanczos")[number % 3], (torch_taps, pil_taps)[number % 2]
    image = rng.integers(0, 256, (height, width, 3), np.uint8)
    vertical = taps_of(ReferenceAxis(height, rows, 0.0, height, kind, True, True))
    horizontal = taps_of(ReferenceAxis(width, columns, 0.0, width, kind, True, True))
    result = np.empty((rows, columns, 3), np.uint8)
    resample_image(image, vertical, horizontal, result)
    between = by_definition(image.transpose(1, 0, 2), horizontal).transpose(1, 0, 2)
    np.testing.assert_array_equal(result, by_definition(between, vertical))


def test_no_weight_is_lost_in_two_bytes() -> None:
    weights = np.arange(byte_products.LEAST_WEIGHT, byte_products.MOST_WEIGHT + 1)
    high = (
        np.array([byte_products.high_byte.py_func(weight) for weight in weights.tolist()])
        .astype(np.uint8)
        .view(np.int8)
    )
    low = (
        np.array([byte_products.low_byte.py_func(weight) for weight in weights.tolist()]).astype(np.uint8).view(np.int8)
    )
    np.testing.assert_array_equal(256 * high.astype(np.int64) + low, weights)
