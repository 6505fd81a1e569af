"""Boxes of arrays, against numpy."""

from __future__ import annotations

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda.window import WindowCopy, copy_views, copy_windows, join

RNG = np.random.default_rng(5)


def pixels(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


def test_samples_of_different_shapes_in_one_launch() -> None:
    sources = [pixels(9, 7, 3), pixels(4, 300, 3), pixels(1, 1, 3)]
    targets = [xp.empty((4, 5, 3)), xp.empty((2, 290, 3)), xp.empty((1, 1, 3))]
    anchors = [(2, 1, 0), (1, 6, 0), (0, 0, 0)]
    copy_windows([WindowCopy(xp.put(s), t, anchor=a) for s, t, a in zip(sources, targets, anchors)])
    for source, target, (y, x, _) in zip(sources, targets, anchors):
        h, w, _ = target.shape
        np.testing.assert_array_equal(target, source[y : y + h, x : x + w])


def test_all_at_once() -> None:
    """Crop beyond the borders, mirror, normalize, pad channels, transpose and round."""
    source = pixels(6, 8, 3)
    mean, factor = np.float32([100, 50, 20]), np.float32([0.5, 1.5, 2])
    target = xp.empty((4, 9, 7), np.int8)
    copy = WindowCopy(
        xp.put(source), target, (2, 0, 1), (-2, 3, 0), [1], np.float32([1, 2, 3, 4]), 2, mean, factor, 1.0
    )
    copy_windows([copy])
    canvas = np.empty((9, 7, 4), np.float32)
    canvas[:] = (1, 2, 3, 4)
    canvas[2:8, 0:5, :3] = (source[0:6, 3:8].astype(np.float32) - mean) * factor + 1
    canvas = canvas[:, ::-1].transpose(2, 0, 1)
    expected = np.clip(np.trunc(canvas + np.copysign(0.5, canvas)), -128, 127)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("permutation", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)])
def test_transposed(permutation: tuple[int, ...]) -> None:
    source = pixels(3, 4, 5, 2)
    target = xp.empty([source.shape[axis] for axis in permutation])
    copy_windows([WindowCopy(xp.put(source), target, permutation)])
    np.testing.assert_array_equal(target, source.transpose(permutation))


def test_only_what_lies_outside_is_filled_where_there_is_no_source() -> None:
    target = xp.put(pixels(5, 6))
    before = np.array(target)
    nothing = xp.put(pixels(0, 0))
    copy_windows([WindowCopy(nothing, target, fill=[7.4], place=(1, 2), extents=(3, 2))])
    before[1:4, 2:4] = 7
    np.testing.assert_array_equal(target, before)


def test_joined() -> None:
    parts = [pixels(2, n, 3) for n in (1, 4, 0, 2)]
    target = xp.empty((2, 7, 3))
    join([[xp.put(part) for part in parts]], [target], 1)
    np.testing.assert_array_equal(target, np.concatenate(parts, 1))


def test_many_dimensions_that_lie_as_one() -> None:
    source = pixels(2, 1, 2, 1, 2, 1, 2, 3)
    target = xp.empty(source.shape, np.float32)
    copy_windows([WindowCopy(xp.put(source), target)])
    np.testing.assert_array_equal(target, source)


def test_too_many_dimensions() -> None:
    source = pixels(*(2,) * 8)
    with pytest.raises(RuntimeError, match="at most 6"):
        copy_windows([WindowCopy(xp.put(source), xp.empty(source.shape), tuple(range(8))[::-1])])


def test_views_of_any_strides() -> None:
    data = [pixels(7, 9, 3), pixels(4, 20, 2)]
    views = [xp.put(data[0])[::-1, 1::3, :2], xp.put(data[1])[2, ::-2, 1]]
    targets = [xp.empty(view.shape) for view in views]
    copy_views(views, targets)
    np.testing.assert_array_equal(targets[0], data[0][::-1, 1::3, :2])
    np.testing.assert_array_equal(targets[1], data[1][2, ::-2, 1])
