"""`tile_boxes`: the tiles of images of different extents, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import fn, pipeline_def


def boxes(size: tuple[int, int], tile: list[int], spread: bool = False) -> list[list[int]]:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def found() -> object:
        images = fn.external_source([[np.zeros((*size, 1), np.uint8)]], layout="HWC", cycle=True)
        tiles = fn.external_source([[np.array(tile, np.int32)]], cycle=True)
        return fn.tile_boxes(images, tile=tiles, spread=spread)

    pipeline = found()
    (result,) = pipeline.run()
    told: list[list[int]] = np.array(result[0]).tolist()
    pipeline.close()
    return told


def test_tiles_follow_each_other_row_by_row() -> None:
    assert boxes((4, 6), [2, 3]) == [[0, 0, 3, 2], [3, 0, 6, 2], [0, 2, 3, 4], [3, 2, 6, 4]]
    assert boxes((4, 6), [4, 6]) == [[0, 0, 6, 4]]


def test_the_last_tiles_end_with_the_image() -> None:
    assert boxes((5, 4), [3, 3]) == [[0, 0, 3, 3], [3, 0, 4, 3], [0, 3, 3, 5], [3, 3, 4, 5]]
    assert boxes((2, 2), [9, 9]) == [[0, 0, 2, 2]]


def test_tiles_that_are_spread_overlap_evenly() -> None:
    assert boxes((4, 10), [4, 4], spread=True) == [[0, 0, 4, 4], [3, 0, 7, 4], [6, 0, 10, 4]]
    assert boxes((5, 6), [3, 3], spread=True) == [[0, 0, 3, 3], [3, 0, 6, 3], [0, 2, 3, 5], [3, 2, 6, 5]]
    assert boxes((2, 9), [4, 9], spread=True) == [[0, 0, 9, 2]]


@pytest.mark.parametrize(
    ("tile", "told"),
    [
        ([0, 3], r"`tile` must be a positive height and width\. Got: \[0, 3\]"),
        ([2], r"`tile` must be a positive height and width\. Got: \[2\]"),
    ],
)
def test_what_is_no_tile_is_refused(tile: list[int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        boxes((4, 6), tile)
