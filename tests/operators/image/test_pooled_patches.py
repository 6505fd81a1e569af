"""`pooled_patches`: numbers of patches, compared with a plain loop over crops; `tests/parity` compares them with Molmo 2."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import fn, pipeline_def


def pooled(size: tuple[int, int], **arguments: object) -> tuple[np.ndarray, list[int]]:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def found() -> object:
        canvases = fn.external_source([[np.zeros((*size, 1), np.uint8)]], layout="HWC", cycle=True)
        return tuple(fn.pooled_patches(canvases, **arguments))

    pipeline = found()
    indices, grid = (np.array(batch[0]) for batch in pipeline.run())
    pipeline.close()
    return indices, grid.tolist()


def test_each_patch_of_a_canvas_is_once_in_a_token() -> None:
    # Two crops of 4 x 4 patches, of which the second begins 2 patches after the first. Where they overlap, each provides the patches
    # that are not in its margin, one patch wide.
    indices, grid = pooled((8, 12), crop=8, patch=2, margins=[1, 1])
    assert grid == [4, 4, 4, 6]
    np.testing.assert_array_equal(indices[:16, 0], np.arange(16))
    crops = np.arange(16, 48).reshape(2, 4, 4)
    np.testing.assert_array_equal(indices[16:, 0], np.concatenate([crops[0, :, :3], crops[1, :, 1:]], axis=1).ravel())


def test_patches_are_in_the_middle_of_tokens() -> None:
    indices, grid = pooled((3, 3), crop=3, patch=1, pool=[1, 2])
    assert grid == [3, 2, 3, 2]
    assert indices[:6].tolist() == [[0, 1], [2, -1], [3, 4], [5, -1], [6, 7], [8, -1]]
    indices, _ = pooled((3, 3), crop=3, patch=1, pool=[5, 1])
    assert indices[:3].tolist() == [[-1, 0, 3, 6, -1], [-1, 1, 4, 7, -1], [-1, 2, 5, 8, -1]]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"crop": 5, "patch": 1, "margins": [1, 1]},
            "A canvas of 4 x 4 patches cannot be divided into whole crops of 5, 3 apart",
        ),
        (
            {"crop": 3, "patch": 1, "margins": [1, 0]},
            "A canvas of 4 x 4 patches cannot be divided into whole crops of 3, 2 apart",
        ),
        ({"crop": 2, "patch": 1, "margins": [1, 1]}, "`margins` leave no patches of a crop of 2"),
        ({"crop": 2, "patch": 0}, "must be positive"),
        ({"crop": 2, "patch": 1, "pool": [2]}, "the two numbers of `pool` must be positive"),
    ],
)
def test_what_is_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pooled((4, 4), **arguments)
