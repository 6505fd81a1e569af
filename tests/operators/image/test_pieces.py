"""Patches and tiles of images, compared with numpy; and the sizes that models require, compared with their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.errors import OperatorError
from penstock.kernels.fitted_sizes import RULES, SizeArguments, fitted
from penstock.operators.image._lookup_store import look_up
from penstock.operators.image._normalizing import REFERENCES, factors_of, table_of
from penstock.operators.image._pieces_cpu import fill_patches, fill_tiles

RNG = np.random.default_rng(11)
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.5]


def run(work: Callable[[Any], Any], *images: np.ndarray, layout: str = "HWC") -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=len(images), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        result = work(fn.external_source(name="images", layout=layout))
        return tuple(result) if isinstance(result, list) else result

    pipeline = define()
    outputs = [[np.array(sample) for sample in batch] for batch in pipeline.run(images=list(images))]
    pipeline.close()
    return outputs


def normal(image: np.ndarray) -> np.ndarray:
    """Normalize as torchvision does."""
    mean, std = (np.array(each, np.float32) * np.float32(255) for each in (MEAN, STD))
    return (image.astype(np.float32) - mean) / std


@pytest.mark.parametrize("width", [5, 16, 37])
@pytest.mark.parametrize(("mean", "std"), [([], []), ([0.5], [0.25]), (MEAN, STD)])
@pytest.mark.parametrize("reference", REFERENCES)
def test_values_are_those_of_the_table(reference: str, mean: list[float], std: list[float], width: int) -> None:
    image = RNG.integers(0, 256, (20, width, 3), np.uint8)
    arguments: dict[str, Any] = {"mean": mean, "std": std, "reference": reference}
    table = np.broadcast_to(table_of(reference, 255.0, mean, std), (3, 256))
    expected = np.stack([table[c][image[:, :, c]] for c in range(3)])
    ((planes,),) = run(lambda x: fn.rescale_normalize(x, **arguments), image)
    np.testing.assert_array_equal(planes, expected)
    ((tiles,),) = run(lambda x: fn.image_tiles(x, tile=[20, width], **arguments), image)
    np.testing.assert_array_equal(tiles[0], expected)


@pytest.mark.parametrize("rows", [1, 6])
def test_a_strip_of_planes_is_filled_and_nothing_beside_it(rows: int) -> None:
    image = np.random.default_rng(rows).integers(0, 256, (rows, 19, 3), np.uint8)
    settings: dict[str, Any] = {
        "divisor": 255.0,
        "mean": [0.5, 0.4, 0.3],
        "reference": "torchvision",
        "std": [0.2, 0.25, 0.3],
    }
    table = table_of(settings["reference"], settings["divisor"], settings["mean"], settings["std"])
    planes = np.full((3, rows + 7, 19), 9, np.float32)
    look_up(image, table, planes[:, 4 : 4 + rows], (2, 0, 1), factors_of(table, **settings))
    values = table[np.arange(3)[:, None, None], image.transpose(2, 0, 1)]
    np.testing.assert_array_equal(planes[:, 4 : 4 + rows], values)
    assert (np.delete(planes, np.s_[4 : 4 + rows], axis=1) == 9).all()


@pytest.mark.parametrize(("patch", "merge", "temporal"), [(3, 1, 1), (4, 2, 2), (8, 1, 2), (14, 2, 1)])
def test_patches_of_images(patch: int, merge: int, temporal: int) -> None:
    side = patch * merge
    images = [RNG.integers(0, 256, (side * rows, side * columns, 3), np.uint8) for rows, columns in ((2, 3), (1, 1))]
    patches, grids = run(
        lambda x: fn.image_patches(x, patch=patch, merge=merge, temporal=temporal, mean=MEAN, std=STD), *images
    )
    for image, values, grid in zip(images, patches, grids):
        rows, columns = image.shape[0] // patch, image.shape[1] // patch
        assert grid.tolist() == [1, rows, columns]
        expected = [
            np.repeat(cut.transpose(2, 0, 1)[:, None], temporal, axis=1).ravel()
            for top in range(0, rows, merge)
            for left in range(0, columns, merge)
            for y in range(top, top + merge)
            for x in range(left, left + merge)
            for cut in [normal(image)[y * patch : (y + 1) * patch, x * patch : (x + 1) * patch]]
        ]
        np.testing.assert_array_equal(values, np.stack(expected))


@pytest.mark.parametrize(("patch", "channels_last", "temporal"), [(1, False, 1), (14, False, 2), (16, True, 1)])
@pytest.mark.parametrize("offset", [0, 1, 15])
def test_large_outputs_have_their_patches_anywhere_in_memory(
    patch: int, channels_last: bool, temporal: int, offset: int
) -> None:
    image = np.random.default_rng(patch).integers(0, 256, (1, 448, 560, 3), np.uint8)
    settings: dict[str, Any] = {"divisor": 255.0, "mean": MEAN, "reference": "torchvision", "std": STD}
    values = table_of(settings["reference"], settings["divisor"], settings["mean"], settings["std"])
    out = np.full(image.size * temporal + 64, 9, np.float32)
    begin = -out.ctypes.data // 4 % 16 + offset
    end = begin + image.size * temporal
    order = patch, 1, temporal, channels_last
    fill_patches(image, 0, 0, 448, 560, values, factors_of(values, **settings), *order, True, out[begin:end])
    cut = normal(image[0]).reshape(448 // patch, patch, 560 // patch, patch, 3).transpose(0, 2, 1, 3, 4)
    if not channels_last:
        cut = np.repeat(cut.transpose(0, 1, 4, 2, 3)[:, :, :, None], temporal, axis=3)
    np.testing.assert_array_equal(out[begin:end], cut.ravel())
    assert (np.delete(out, np.s_[begin:end]) == 9).all()


@pytest.mark.parametrize("width", [512, 520])
def test_large_planes_and_tiles_are_those_of_the_table(width: int) -> None:
    image = RNG.integers(0, 256, (480, width, 3), np.uint8)
    settings: dict[str, Any] = {"mean": MEAN, "std": STD}
    ((planes,),) = run(lambda x: fn.rescale_normalize(x, **settings), image)
    np.testing.assert_array_equal(planes, normal(image).transpose(2, 0, 1))
    # The image fills the tiles, but not the canvases: 32 columns more, and 36, of which half are to the left of the image.
    ((tiles,),) = run(lambda x: fn.image_tiles(x, tile=[240, width // 2], **settings), image)
    halves = normal(image).reshape(2, 240, 2, width // 2, 3).transpose(0, 2, 4, 1, 3).reshape(tiles.shape)
    np.testing.assert_array_equal(tiles, halves)
    for beside in (32, 36):
        canvas = [480, width + beside]
        placed: dict[str, Any] = {"tile": canvas, "canvas": canvas, "centred": True, "fill_value": 7.0, **settings}
        ((tiles,),) = run(partial(fn.image_tiles, **placed), image)
        expected = np.full((1, 3, *canvas), 7, np.float32)
        expected[0, :, :, beside // 2 : beside // 2 + width] = normal(image).transpose(2, 0, 1)
        np.testing.assert_array_equal(tiles, expected)


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_patches_of_videos(frames: int) -> None:
    video = RNG.integers(0, 256, (frames, 8, 12, 3), np.uint8)
    patches, grids = run(lambda x: fn.image_patches(x, patch=4, temporal=2), video, layout="FHWC")
    times = (frames + 1) // 2
    assert grids[0].tolist() == [times, 2, 3]
    padded = np.concatenate([video, video[-1:]])[: times * 2].astype(np.float32) * np.float32(1 / 255)
    blocks = padded.reshape(times, 2, 2, 4, 3, 4, 3).transpose(0, 2, 4, 6, 1, 3, 5)
    np.testing.assert_array_equal(patches[0], blocks.reshape(times * 6, -1))


def test_patches_are_padded() -> None:
    image = RNG.integers(0, 256, (8, 12, 3), np.uint8)
    patches, grids, masks = run(
        lambda x: fn.image_patches(x, patch=4, channels_last=True, length=9, mean=MEAN, std=STD), image
    )
    expected = normal(image).reshape(2, 4, 3, 4, 3).transpose(0, 2, 1, 3, 4).reshape(6, -1)
    np.testing.assert_array_equal(patches[0][:6], expected)
    assert not patches[0][6:].any()
    assert masks[0].tolist() == [1] * 6 + [0] * 3
    assert grids[0].tolist() == [1, 2, 3]


def patches_of(image: np.ndarray, patch: int) -> np.ndarray:
    """Return the patches of an image, of shape (patches, patch, patch, C), row by row."""
    rows, columns = image.shape[0] // patch, image.shape[1] // patch
    cut = normal(image).reshape(rows, patch, columns, patch, 3).transpose(0, 2, 1, 3, 4)
    return cut.reshape(-1, patch, patch, 3)


def tiles_of(image: np.ndarray, tile: tuple[int, int], stride: tuple[int, int]) -> list[np.ndarray]:
    starts = (range(0, extent - size + 1, step) for extent, size, step in zip(image.shape, tile, stride))
    return [image[top : top + tile[0], left : left + tile[1]] for top, left in itertools.product(*starts)]


def with_whole(work: Callable[..., Any], image: np.ndarray, whole: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of ``work`` for two inputs: an image, and ``whole``, a smaller picture of all of it."""
    both = np.zeros((max(len(image), len(whole)), image.shape[1] + whole.shape[1], 3), np.uint8)
    both[: len(image), : image.shape[1]], both[: len(whole), image.shape[1] :] = image, whole

    def define(images: Any) -> Any:
        large, small = (
            fn.slice(images, start=[0, left], shape=part.shape[:2], axis_names="HW")
            for left, part in ((0, image), (image.shape[1], whole))
        )
        return work(large, small)

    return [output[0] for output in run(define, both)]


@pytest.mark.parametrize("whole_at", ["first", "last"])
@pytest.mark.parametrize("stride", [None, [4, 12]])
def test_patches_of_tiles_and_of_the_whole(stride: list[int] | None, whole_at: str) -> None:
    image, whole = (RNG.integers(0, 256, (*size, 3), np.uint8) for size in ((16, 36), (8, 4)))
    settings: dict[str, Any] = {"patch": 4, "tile": [8, 12], "stride": stride, "mean": MEAN, "std": STD}
    shown = tiles_of(image, (8, 12), (4, 12) if stride else (8, 12))
    shown.insert(0 if whole_at == "first" else len(shown), whole)

    def work(images: Any, small: Any) -> Any:
        longer = fn.image_patches(images, small, whole_at=whole_at, channels_last=True, length=7, **settings)
        return [*fn.image_patches(images, small, whole_at=whole_at, **settings), *longer]

    patches, grids, padded, also_grids, masks = with_whole(work, image, whole)
    cut = [patches_of(picture, 4) for picture in shown]
    np.testing.assert_array_equal(patches, np.concatenate(cut).transpose(0, 3, 1, 2).reshape(len(patches), -1))
    assert grids.tolist() == [[1, len(picture) // 4, picture.shape[1] // 4] for picture in shown]
    np.testing.assert_array_equal(grids, also_grids)
    assert padded.shape == (len(shown), 7, 48)
    for own, values, mask in zip(cut, padded, masks, strict=True):
        np.testing.assert_array_equal(values[: len(own)], own.reshape(len(own), -1))
        assert not values[len(own) :].any()
        assert mask.tolist() == [1] * len(own) + [0] * (7 - len(own))


@pytest.mark.parametrize(("patch", "tile"), [(4, (8, 12)), (14, (448, 560)), (14, (280, 42)), (3, (9, 15))])
def test_patches_beside_each_other(patch: int, tile: tuple[int, int]) -> None:
    image = RNG.integers(0, 256, (2 * tile[0], 3 * tile[1], 3), np.uint8)
    whole = RNG.integers(0, 256, (3 * patch, 5 * patch, 3), np.uint8)
    settings: dict[str, Any] = {"patch": patch, "beside": True, "mean": MEAN, "std": STD}

    def work(images: Any, small: Any) -> Any:
        return [*fn.image_patches(images, small, tile=tile, **settings), fn.image_patches(images, **settings)[0]]

    pixels, grids, alone = with_whole(work, image, whole)
    shown = [whole, *tiles_of(image, tile, tile)]
    expected = np.concatenate([patches_of(picture, patch) for picture in shown])
    np.testing.assert_array_equal(pixels, expected.transpose(3, 1, 0, 2).reshape(3, patch, -1))
    assert len(grids) == 7
    np.testing.assert_array_equal(alone, patches_of(image, patch).transpose(3, 1, 0, 2).reshape(3, patch, -1))


@pytest.mark.parametrize(
    ("tile", "whole_from", "shown"),
    [([0, 0], 9, "w"), ([8, 12], 1, "wt"), ([8, 12], 2, "t"), ([8, 6], 2, "wtt"), ([8, 6], 3, "tt")],
)
def test_where_the_whole_is_shown(tile: list[int], whole_from: int, shown: str) -> None:
    image, whole = (RNG.integers(0, 256, (*size, 3), np.uint8) for size in ((8, 12), (4, 2)))
    _, grids = with_whole(
        lambda x, y: list(fn.image_patches(x, y, patch=2, tile=tile, whole_from=whole_from)), image, whole
    )
    kinds = {"w": [1, 2, 1], "t": [1, 4, tile[1] // 2]}
    assert grids.tolist() == [kinds[kind] for kind in shown]


def test_nothing_is_shown_of_an_image_without_tiles_alone() -> None:
    patches, grids, mask = run(
        lambda x: fn.image_patches(x, patch=4, tile=[0, 0], length=3), np.zeros((8, 12, 3), np.uint8)
    )
    assert (patches[0].shape, grids[0].shape, mask[0].shape) == ((0, 3, 48), (0, 3), (0, 3))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tile": [8, 5]}, "cannot be divided into whole tiles of 5 x 8"),
        ({"tile": [8, 6]}, "sides must be multiples of 4"),
        ({"tile": [16, 12]}, "cannot be divided into whole tiles of 12 x 16"),
        ({"tile": [8]}, "or 0 and 0"),
        ({"tile": [8, 0]}, "or 0 and 0"),
        ({"tile": [4, 4], "stride": [3, 4]}, "cannot be divided into whole tiles of 4 x 4"),
        ({"tile": [4, 4], "stride": [0, 4]}, "`stride` must be positive numbers"),
        ({"tile": [4, 4], "whole_at": "middle"}, "`first` or `last`"),
        ({"tile": [4, 4], "beside": True, "length": 9}, "without `channels_last` and `length`"),
        ({"beside": True, "merge": 2}, "`merge=1`"),
    ],
)
def test_patches_of_tiles_that_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((OperatorError, ValueError), match=told):
        run(lambda x: fn.image_patches(x, patch=4, **arguments), np.zeros((8, 12, 3), np.uint8))


def test_a_whole_that_does_not_belong_there_is_refused() -> None:
    image = np.zeros((8, 12, 3), np.uint8)
    with pytest.raises(OperatorError, match="the whole image, needs `tile`"):
        run(lambda x: fn.image_patches(x, x, patch=4), image)
    with pytest.raises(OperatorError, match="`tile` is not supported for videos"):
        run(lambda x: fn.image_patches(x, patch=4, tile=[4, 4]), image[None], layout="FHWC")
    with pytest.raises(OperatorError, match="as many channels as the image"):
        run(lambda x: fn.image_patches(x, fn.slice(x, start=[0], end=[2], axis_names="C"), patch=4, tile=[4, 4]), image)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"patch": 5}, "sides must be multiples of 5"),
        ({"patch": 4, "length": 5}, "6 patches: more than `length`, 5"),
        ({"patch": 4, "mean": [0.5, 0.5], "std": [1, 1]}, "2 values, but the image has 3 channels"),
        ({"patch": 0}, "`patch` must be at least 1"),
        ({"patch": 4, "channels_last": True, "temporal": 2}, "patches of one frame"),
        ({"patch": 4, "mean": [0.5], "std": []}, "equally many values"),
        ({"patch": 4, "std": [0.0], "mean": [0.0]}, "must not be 0"),
        ({"patch": 4, "reference": "jax"}, "`reference` must be one of"),
    ],
)
def test_patches_that_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((OperatorError, ValueError), match=told):
        run(lambda x: fn.image_patches(x, **arguments), np.zeros((8, 12, 3), np.uint8))


def test_tiles_with_a_picture_of_the_whole() -> None:
    image = RNG.integers(0, 256, (10, 13, 3), np.uint8)

    def work(images: Any) -> Any:
        whole = fn.slice(images, start=[0, 0], shape=[6, 5], axis_names="HW")
        common: dict[str, Any] = {"tile": [6, 5], "mean": MEAN, "std": STD}
        return (
            fn.image_tiles(images, whole, canvas=[18, 20], centred=True, **common),
            fn.image_tiles(images, whole, whole_at="last", fill_value=7.0, **common),
            fn.image_tiles(whole, whole, alone=False, **common),
        )

    centred, corner, single = (outputs[0] for outputs in run(work, image))
    canvas = np.broadcast_to(normal(np.zeros((1, 1, 3), np.uint8)), (18, 20, 3)).copy()
    canvas[4:14, 3:16] = normal(image)
    tiles = canvas.reshape(3, 6, 4, 5, 3).transpose(0, 2, 4, 1, 3).reshape(12, 3, 6, 5)
    np.testing.assert_array_equal(centred[1:], tiles)
    np.testing.assert_array_equal(centred[0], normal(image)[:6, :5].transpose(2, 0, 1))
    canvas = np.full((12, 15, 3), 7, np.float32)
    canvas[:10, :13] = normal(image)
    np.testing.assert_array_equal(
        corner[:-1], canvas.reshape(2, 6, 3, 5, 3).transpose(0, 2, 4, 1, 3).reshape(6, 3, 6, 5)
    )
    np.testing.assert_array_equal(corner[-1], centred[0])
    assert single.shape == (1, 3, 6, 5)


@pytest.mark.parametrize("whole_at", ["first", "last"])
def test_a_whole_of_float_is_a_tile_already(whole_at: str) -> None:
    image, whole = (RNG.integers(0, 256, (*size, 3), np.uint8) for size in ((10, 13), (6, 5)))
    settings: dict[str, Any] = {"mean": MEAN, "std": STD}

    def work(images: Any, small: Any) -> Any:
        return [
            fn.image_tiles(images, each, tile=[6, 5], whole_at=whole_at, **settings)
            for each in (small, fn.rescale_normalize(small, **settings))
        ]

    np.testing.assert_array_equal(*with_whole(work, image, whole))


def test_wholes_that_are_no_tiles_are_refused() -> None:
    image = np.zeros((4, 12, 3), np.uint8)
    for whole in (lambda x: fn.cast(x, dtype=types.FLOAT), lambda x: fn.transpose(x, perm=[2, 0, 1])):
        with pytest.raises(OperatorError, match="must be uint8 with layout HWC, or float with layout CHW"):
            run(lambda x, make=whole: fn.image_tiles(x, make(x), tile=[4, 12]), image)
    with pytest.raises(OperatorError, match=r"must have the shape of a tile, \(3, 4, 4\)\. Got: \(3, 4, 12\)"):
        run(lambda x: fn.image_tiles(x, fn.rescale_normalize(x), tile=[4, 4]), image)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("corner", [(0, 0), (5, 13), (200, 400)])
def test_large_tiles_of_any_width_on_canvases(channels: int, corner: tuple[int, int]) -> None:
    image = RNG.integers(0, 256, (700, 900, channels), np.uint8)
    canvas = np.zeros((735, 1029 * 4 // channels + 1, channels), np.float32)
    columns = canvas.shape[1] // 49 * 49
    canvas = canvas[:, :columns]
    image = np.ascontiguousarray(image[: 735 - corner[0], : columns - corner[1]])
    out = np.full((15 * columns // 49, channels, 49, 49), 9, np.float32)
    table = table_of("torchvision", 255.0, [0.5], [0.25])
    factors = factors_of(table, 255.0, [0.5], "torchvision", [0.25])
    fill_tiles(image, table, factors, *corner, columns // 49, np.full(channels, 7, np.float32), out)
    canvas[:] = 7
    canvas[corner[0] : corner[0] + len(image), corner[1] : corner[1] + image.shape[1]] = table[0][image]
    expected = canvas.reshape(15, 49, columns // 49, 49, channels).transpose(0, 2, 4, 1, 3)
    np.testing.assert_array_equal(out, expected.reshape(out.shape))


def test_tiles_up_to_a_number() -> None:
    image = np.random.default_rng(3).integers(0, 256, (10, 13, 3), np.uint8)

    def tiled(images: Any, length: int) -> Any:
        return fn.image_tiles(images, tile=[6, 5], length=length)

    (plain,), (longer,) = (run(lambda x, n=length: tiled(x, n), image)[0] for length in (0, 9))
    assert longer.shape == (9, 3, 6, 5)
    np.testing.assert_array_equal(longer[:6], plain)
    assert not longer[6:].any()
    with pytest.raises(OperatorError, match="The image has 6 tiles: more than `length`, 5"):
        run(lambda x: tiled(x, 5), image)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tile": [4]}, "positive height and width"),
        ({"tile": [4, 4], "whole_at": "middle"}, "`first` or `last`"),
        ({"tile": [4, 4], "canvas": [10, 12]}, "cannot be divided into whole tiles of 4 x 4"),
        ({"tile": [4, 4], "canvas": [4, 12]}, "does not fit on a canvas of 12 x 4"),
        ({"tile": [4, 4], "mean": [0.5, 0.5], "std": [1, 1]}, "2 values, but the image has 3 channels"),
    ],
)
def test_tiles_that_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((OperatorError, ValueError), match=told):
        run(lambda x: fn.image_tiles(x, **arguments), np.zeros((8, 12, 3), np.uint8))


def test_a_whole_of_another_size_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"must have the shape of a tile, \(4, 4, 3\)\. Got: \(8, 12, 3\)"):
        run(lambda x: fn.image_tiles(x, x, tile=[4, 4]), np.zeros((8, 12, 3), np.uint8))


def test_bfloat16_rounds_each_step() -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    values = run(lambda x: fn.rescale_normalize(x, mean=[0.5], std=[0.25], reference="bfloat16"), image)[0][0].ravel()
    assert not (values.view(np.uint32) & 0xFFFF).any()
    exact = (np.arange(256) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(values, exact, atol=2**-6)
    assert values[0] == -2
    assert values[255] == 2


@pytest.mark.parametrize(
    ("rule", "size", "arguments", "expected"),
    [
        ("qwen2-vl", (853, 1280), {"factor": 28, "least": 3136, "most": 1003520}, (812, 1204)),
        ("qwen2-vl", (1, 1), {"factor": 28, "least": 3136, "most": 1003520}, (56, 56)),
        ("qwen2-vl", (42, 42), {"factor": 28, "least": 1, "most": 1003520}, (56, 56)),
        ("glm4v", (10, 100), {"factor": 28, "least": 12544, "most": 10**7}, (28, 280)),
        ("qwen3-vl-video", (100, 200), {"factor": 28, "least": 12544, "most": 10**7, "frames": 4}, (112, 196)),
        ("qwen3-vl-video", (100, 200), {"factor": 28, "least": 1, "most": 40000, "frames": 4}, (56, 140)),
        ("paddleocr-vl", (10, 100), {"factor": 28, "least": 1, "most": 10**7}, (28, 280)),
        ("siglip2", (100, 200), {"factor": 16, "most": 256}, (176, 352)),
        ("pixtral", (2048, 1000), {"factor": 16, "most": 1024}, (1024, 512)),
        ("detr", (480, 640), {"least": 800, "most": 1333}, (800, 1066)),
        ("detr", (100, 1000), {"least": 800, "most": 1333}, (133, 1333)),
        ("longest", (100, 400), {"most": 1024}, (256, 1024)),
        ("within", (100, 400), {"canvases": ((50, 50),)}, (12, 50)),
        ("llava-next", (300, 700), {"canvases": ((336, 672), (672, 672))}, (288, 672)),
        ("internvl", (100, 300), {"least": 1, "most": 12, "tile": (448, 448)}, (448, 1344)),
        ("idefics3", (100, 300), {"most": 1000}, (334, 1000)),
        ("idefics3-tiles", (334, 1000), {"factor": 364}, (364, 1092)),
        ("lfm2", (100, 300), {"factor": 32, "least": 65536, "most": 262144}, (160, 448)),
        ("lfm2", (853, 1280), {"factor": 32, "least": 65536, "most": 262144}, (416, 608)),
        (
            "lfm2-tiles",
            (853, 1280),
            {"factor": 32, "most": 524288, "canvases": ((2, 10),), "tile": (512, 16)},
            (1024, 1536),
        ),
        ("lfm2-tiles", (100, 300), {"factor": 32, "most": 524288, "canvases": ((2, 10),), "tile": (512, 16)}, (16, 16)),
        ("llama4", (100, 300), {"most": 16, "tile": (336, 336)}, (112, 336)),
        ("letterbox", (100, 300), {"canvases": ((640, 640),)}, (213, 640)),
        ("aria", (100, 300), {"least": 336, "most": 980}, (336, 980)),
        ("aria", (300, 100), {"least": 99, "most": 490}, (490, 163)),
        ("cohere2", (100, 300), {"most": 12, "tile": (512, 512)}, (512, 512)),
        ("cosmos3", (10, 100), {"factor": 32, "least": 1, "most": 10**7}, (32, 320)),
        ("down", (100, 300), {"factor": 32}, (96, 288)),
        ("up", (100, 300), {"factor": 32}, (128, 320)),
        ("dpt", (100, 300), {"factor": 14, "least": 1, "canvases": ((518, 518),)}, (168, 518)),
        ("dpt", (100, 300), {"factor": 14, "canvases": ((518, 518),)}, (518, 518)),
        ("gemma4", (853, 1280), {"factor": 48, "most": 2520, "tile": (16, 16)}, (624, 960)),
        ("gemma4", (10, 2000), {"factor": 48, "most": 2520, "tile": (16, 16)}, (48, 11328)),
        ("gemma4", (10, 3000), {"factor": 48, "most": 2520, "tile": (16, 16)}, (48, 13440)),
        ("glm-image", (853, 1280), {"factor": 28, "least": 3136, "most": 1003520}, (336, 504)),
        ("glm-image", (40, 100), {"factor": 28, "least": 3136, "most": 1003520}, (28, 56)),
        ("glm5", (853, 1280), {"factor": 28, "least": 12544, "most": 784000}, (709, 1064)),
        ("glm5", (30, 70), {"factor": 28, "least": 12544, "most": 784000}, (84, 196)),
        ("idefics2", (100, 1300), {"least": 378, "most": 980}, (378, 980)),
        ("janus", (100, 300), {"least": 14, "most": 384}, (128, 384)),
        ("kimi", (853, 1280), {"factor": 28, "least": 512, "most": 1000, "tile": (14, 14)}, (365, 547)),
        ("maskformer", (480, 640), {"least": 800, "most": 1333, "factor": 32}, (800, 1088)),
        ("mllama", (100, 300), {"most": 4, "tile": (560, 560)}, (186, 560)),
        ("minicpm", (853, 1280), {"factor": 56, "least": 9, "most": 448}, (392, 560)),
        ("minicpm", (100, 300), {"factor": 56, "least": 9, "most": 448}, (280, 784)),
        ("minicpm-slices", (853, 1280), {"factor": 56, "least": 9, "most": 448, "tile": (14, 14)}, (896, 1344)),
        ("minicpm-slices", (100, 300), {"factor": 56, "least": 9, "most": 448, "tile": (14, 14)}, (14, 14)),
        ("molmo2", (853, 1280), {"most": 8, "tile": (266, 112)}, (644, 1176)),
        ("molmo2", (90, 300), {"most": 8, "tile": (266, 112)}, (378, 378)),
        ("ovis2", (853, 1280), {"most": 9, "tile": (448, 448)}, (1344, 896)),
        ("perceiver", (100, 300), {"canvases": ((224, 224), (256, 256))}, (87, 87)),
        ("perception-lm", (853, 1280), {"most": 36, "tile": (448, 448)}, (2240, 3136)),
        ("perception-lm", (853, 1280), {"most": 3, "tile": (448, 448)}, (448, 448)),
        ("phi4", (853, 1280), {"most": 36, "tile": (448, 448)}, (895, 1344)),
        ("phi4", (853, 1280), {"most": 3, "tile": (448, 448)}, (448, 672)),
        ("shortest-up", (100, 300), {"least": 50, "factor": 32}, (64, 160)),
        ("thumbnail", (300, 100), {"canvases": ((150, 120),)}, (150, 50)),
        ("thumbnail", (100, 110), {"canvases": ((150, 120),)}, (100, 110)),
        ("tiles-of-large", (100, 300), {"least": 2, "most": 6, "tile": (90, 90)}, (90, 270)),
        ("tiles-of-large", (100, 300), {"least": 2, "most": 6, "tile": (300, 300)}, (1, 1)),
        ("vilt", (480, 640), {"least": 384, "most": 639, "factor": 32}, (384, 512)),
        ("yolos", (480, 640), {"least": 512, "most": 1333, "factor": 16}, (512, 672)),
        # This case and the next three are recorded from detectron2 02b5c4e2.
        ("detectron2", (333, 500), {"least": 800, "most": 1333}, (800, 1201)),
        ("detectron2", (100, 1000), {"least": 800, "most": 1333}, (133, 1333)),
        ("detectron2", (427, 640), {"least": 800, "most": 1333}, (800, 1199)),
        ("detectron2", (31, 62), {"least": 25, "most": 49}, (25, 49)),
        ("around-rounded", (100, 300), {"canvases": ((224, 224),)}, (224, 672)),
        ("granite-docling", (100, 300), {"least": 1, "most": 12, "tile": (512, 512)}, (512, 1536)),
        ("hunyuan-v4-video", (100, 300), {"factor": 32, "least": 10**7, "most": 10**7}, (96, 288)),
        ("hunyuan-v4-video", (100, 300), {"factor": 32, "least": 6144, "most": 10**7}, (32, 160)),
        ("idefics3-capped", (100, 300), {"factor": 512, "least": 4, "most": 2048}, (512, 1536)),
        ("longest-cut", (100, 400), {"most": 90}, (22, 90)),
        ("muse-glimmer", (100, 300), {"factor": 10, "most": 12}, (20, 60)),
        ("neomme", (100, 300), {"factor": 32, "most": 10**4}, (57, 173)),
        ("next", (96, 300), {"factor": 32}, (128, 320)),
        ("on-canvas", (100, 300), {"factor": 32}, (100, 300)),
        ("pp-ocr", (100, 300), {"most": 200, "canvases": ((4000, 4000),)}, (64, 192)),
        ("pp-ocr", (100, 300), {"least": 1, "most": 200, "canvases": ((320, 320),)}, (96, 320)),
        ("shortest-rounded", (100, 301), {"least": 50, "factor": 16}, (64, 160)),
        ("text-line", (30, 400), {"most": 3200, "canvases": ((48, 320),)}, (48, 640)),
        ("text-line", (30, 4000), {"most": 3200, "canvases": ((48, 320),)}, (48, 3200)),
        ("within-rounded", (100, 300), {"canvases": ((224, 224),)}, (75, 224)),
        ("within-or-less", (100, 300), {"canvases": ((224, 224),)}, (74, 224)),
        ("within-or-less", (100, 120), {"canvases": ((224, 224),)}, (100, 120)),
        (
            "glm5-video",
            (853, 1280),
            {"factor": 28, "least": 12544, "most": 784000, "tile": (2, 2), "frames": 4},
            (354, 532),
        ),
        ("longest-rounded", (100, 301), {"most": 150}, (50, 150)),
        ("mirrored", (100, 300), {}, (142, 372)),
        ("nemotron", (100, 300), {"factor": 16, "least": 4, "most": 100, "tile": (2, 2)}, (96, 256)),
        ("nemotron", (853, 1280), {"factor": 16, "least": 4, "most": 100, "tile": (2, 2)}, (128, 192)),
        ("nemotron-video", (100, 300), {"factor": 16, "most": 100, "tile": (2, 2)}, (96, 256)),
        ("nemotron-video", (100, 300), {"factor": 16, "least": 1, "most": 100, "tile": (2, 2)}, (160, 160)),
        ("qwen2-vl-video", (100, 300), {"factor": 28, "least": 3136, "most": 10**6, "frames": 4}, (112, 308)),
        ("step3-whole", (100, 1300), {"most": 1000, "tile": (364, 252)}, (76, 1000)),
        ("step3-windows", (853, 1280), {"most": 1000, "tile": (364, 252)}, (756, 1008)),
        ("step3-windows", (100, 100), {"most": 1000, "tile": (364, 252)}, (1, 1)),
        ("zoedepth", (100, 300), {"factor": 32, "least": 1, "canvases": ((384, 512),), "tile": (1, 1)}, (160, 512)),
        ("zoedepth", (100, 300), {"factor": 32, "canvases": ((384, 512),), "tile": (1, 1)}, (384, 512)),
    ],
)
def test_sizes(rule: str, size: tuple[int, int], arguments: dict[str, Any], expected: tuple[int, int]) -> None:
    assert fitted(rule, *size, SizeArguments(**arguments))[:2] == expected


def test_all_rules_are_tried() -> None:
    mark = next(mark for mark in test_sizes.pytestmark if mark.name == "parametrize")
    assert {case[0] for case in mark.args[1]} == RULES.keys()


@pytest.mark.parametrize(
    ("rule", "size", "arguments", "told"),
    [
        (
            "qwen2-vl",
            (1, 201),
            {"factor": 28, "least": 3136, "most": 10**6},
            "an aspect ratio of 201: the maximum is 200",
        ),
        ("qwen2-vl", (0, 5), {"factor": 28, "least": 3136, "most": 10**6}, "is empty"),
        ("qwen3-vl-video", (9, 9), {"factor": 28, "most": 10**7}, "at least 2 frames"),
        (
            "gemma4",
            (100, 100),
            {"factor": 64, "most": 9, "tile": (16, 16)},
            "would be resized to nothing: 0 x 0 pixels",
        ),
        ("longest", (1, 500), {"most": 100}, "would be resized to nothing: 100 x 0 pixels"),
    ],
)
def test_sizes_that_are_refused(rule: str, size: tuple[int, int], arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        fitted(rule, *size, SizeArguments(**arguments))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"rule": "qwen3"}, "`rule` must be one of"),
        ({"rule": "letterbox"}, "needs `canvases`"),
        ({"rule": "pixtral"}, "needs `most`"),
        ({"rule": "within", "canvases": [3]}, "one width for each height"),
        ({"rule": "pixtral", "most": 9, "factor": 0}, "must be positive"),
        ({"rule": "pixtral", "most": -9}, "must be positive"),
    ],
)
def test_rules_that_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises((OperatorError, ValueError), match=told):
        run(lambda x: fn.fitted_size(x, **arguments), np.zeros((8, 12, 3), np.uint8))


def test_an_image_that_a_rule_refuses_fails_alone() -> None:
    images = [np.zeros((8, 12, 3), np.uint8), np.zeros((1, 700, 3), np.uint8)]
    with pytest.raises(OperatorError, match=r"ratio of 700: the maximum is 200(?s:.)*sample #1"):
        run(lambda x: fn.fitted_size(x, rule="qwen2-vl", factor=4, least=16, most=100), *images)
