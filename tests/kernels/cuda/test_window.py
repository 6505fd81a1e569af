"""Boxes that are copied out of arrays, compared with NumPy."""

from __future__ import annotations

from typing import Any

import cupy_like as xp
import numpy as np
import pytest

from penstock.kernels.cuda import window
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
    """Crop beyond the borders, mirror, normalize, pad channels, transpose and round in one copy."""
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


def unaligned(array: np.ndarray, elements: int) -> Any:
    """Return the array on the GPU, ``elements`` elements after an aligned address, like a sample in the middle of a batch."""
    memory = xp.empty((array.size + elements,), array.dtype)
    memory[elements:] = array.reshape(-1)
    return memory[elements:].reshape(array.shape)


def cut_out(source: np.ndarray, copy: WindowCopy, extents: list[int], dtype: np.dtype) -> np.ndarray:
    """Return the contents of a box as NumPy computes them, in the target's order of dimensions."""
    permutation = list(copy.permutation or ())
    fill = np.asarray(copy.fill, dtype)
    box = np.empty([extents[permutation.index(axis)] for axis in range(source.ndim)], dtype)
    for place in np.ndindex(*box.shape):
        at = [n - 1 - p if axis in copy.mirrored else p for axis, (p, n) in enumerate(zip(place, box.shape))]
        at = [p + a for p, a in zip(at, copy.anchor or ())]
        inside = all(0 <= p < n for p, n in zip(at, source.shape))
        channel = place[copy.channel_axis or 0] if len(fill) > 1 else 0
        box[place] = source[tuple(at)] if inside else fill[channel]
    return box.transpose(permutation)


@pytest.mark.parametrize("dtypes", [(np.uint8, np.uint8), (np.uint8, np.float32), (np.int16, np.int16)])
@pytest.mark.parametrize("seed", range(60))
def test_boxes_of_any_kind(seed: int, dtypes: tuple[type, type]) -> None:
    rng = np.random.default_rng(seed)
    rank, kind = int(rng.integers(1, 5)), np.dtype(dtypes[1])
    shape = [int(n) for n in rng.choice([0, 1, 2, 3, 5, 17, 40], rank, p=[0.02, 0.1, 0.18, 0.2, 0.2, 0.2, 0.1])]
    permutation = [int(axis) for axis in (rng.permutation(rank) if rng.random() < 0.6 else range(rank))]
    whole = [bool(rng.random() < 0.6) for _ in shape]
    box = [n if same else int(rng.integers(0, n + 4)) for n, same in zip(shape, whole)]
    extents = [box[axis] for axis in permutation]
    place = [int(rng.choice([0, 0, 0, 1, 3])) for _ in extents]
    source = rng.integers(0, 100, shape).astype(dtypes[0])
    channels = int(rng.integers(rank)) if rng.random() < 0.5 else None
    fills = 1 if channels is None else max(box[channels], 1)
    target = rng.integers(0, 100, [p + n + int(rng.integers(3)) * (p > 0) for p, n in zip(place, extents)])
    target = target.astype(kind)
    copy = WindowCopy(
        unaligned(source, int(rng.integers(8))),
        unaligned(target, int(rng.integers(8))),
        permutation,
        anchor=[0 if same else int(rng.integers(-3, 3)) for same in whole],
        mirrored=[axis for axis in range(rank) if rng.random() < 0.3],
        fill=rng.integers(0, 100, fills).astype(np.float32),
        channel_axis=channels,
        place=place,
        extents=extents,
    )
    copy_windows([copy])
    target[tuple(slice(p, p + n) for p, n in zip(place, extents))] = cut_out(source, copy, extents, kind)
    np.testing.assert_array_equal(copy.target, target)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_boxes_of_many_elements(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """64-bit indices, which only large boxes need, are forced for small ones."""
    monkeypatch.setattr(window, "_INT32_INDEX_LIMIT", 0)
    test_boxes_of_any_kind(seed, (np.uint8, np.uint8))


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("width", [1, 7, 64, 333])
def test_normalized_with_more_channels(width: int, planar: bool) -> None:
    source = pixels(19, width, 3)
    mean, factor = np.float32([100, 50, 20]), np.float32([0.5, 1.5, 2])
    order = (2, 0, 1) if planar else (0, 1, 2)
    target = xp.empty([(19, width, 4)[axis] for axis in order], np.float32)
    copies = [WindowCopy(unaligned(source, 3), target, order, None, [1], [7.0], 2, mean, factor, 1.0)]
    copy_windows(copies)
    expected = np.full((19, width, 4), 7, np.float32)
    expected[..., :3] = (source[:, ::-1].astype(np.float32) - mean) * factor + 1
    np.testing.assert_array_equal(target, expected.transpose(order))


def test_more_elements_than_a_block_takes() -> None:
    sources = [pixels(120, 131, 3), pixels(1), pixels(3, 5000)]
    whole = xp.empty((sum(source.size for source in sources),), np.float32)
    ends = np.cumsum([source.size for source in sources])
    targets = [part.reshape(source.shape) for part, source in zip(np.split(whole, ends[:-1]), sources)]
    copy_windows([WindowCopy(unaligned(source, 1), target) for source, target in zip(sources, targets)])
    for source, target in zip(sources, targets):
        np.testing.assert_array_equal(target, source)
