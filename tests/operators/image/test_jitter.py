"""What `jitter` does to a sample, apart from the GPU on which it does it."""

from __future__ import annotations

import numpy as np

from penstock.kernels.random_streams import sample_stream
from penstock.operators.image.jitter import displaced, displacements


def test_displacements_are_even_within_half_the_degree() -> None:
    offsets = displacements(sample_stream(5, 0, 0), 90, 70, 4)
    assert offsets.shape == (90, 70, 2)
    values, counts = np.unique(offsets, return_counts=True)
    np.testing.assert_array_equal(values, [-2, -1, 0, 1, 2])
    assert counts.max() - counts.min() < 0.1 * counts.mean()
    np.testing.assert_array_equal(offsets, displacements(sample_stream(5, 0, 0), 90, 70, 4))
    assert not np.array_equal(offsets, displacements(sample_stream(5, 0, 1), 90, 70, 4))


def test_pixels_come_from_where_they_are_displaced_to() -> None:
    source = np.arange(2 * 3, dtype=np.uint8).reshape(2, 3, 1)
    offsets = np.zeros((2, 3, 2), np.int32)
    offsets[0, 0] = 1, 2
    offsets[1, 2] = 0, 1
    expected = source.copy()
    expected[0, 0], expected[1, 2] = source[1, 2], 7
    result = displaced(np, source, offsets, 7.9)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, expected)


def test_degree_zero_changes_nothing() -> None:
    assert not displacements(sample_stream(5, 0, 0), 4, 4, 0).any()
