"""`pan_and_scan`: boxes of the whole image and of its parts. `tests/parity` compares them with Gemma 3's."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import fn, pipeline_def


def boxes(*sizes: tuple[int, int], **arguments: object) -> list[list[list[int]]]:
    images = [np.zeros((*size, 1), np.uint8) for size in sizes]

    @pipeline_def(batch_size=len(images), num_threads=1, device_id=None)
    def chosen() -> object:
        return fn.pan_and_scan(fn.external_source([images], layout="HWC", cycle=True), **arguments)

    pipeline = chosen()
    (result,) = pipeline.run()
    found = [np.array(each).tolist() for each in result]
    pipeline.close()
    return found


def test_long_images_are_divided_along_their_longer_side() -> None:
    wide, tall = boxes((10, 31), (31, 10), min_crop=5)
    assert wide == [[0, 0, 31, 10], [0, 0, 11, 10], [11, 0, 22, 10], [22, 0, 31, 10]]
    assert tall == [[b, a, d, c] for a, b, c, d in wide]


def test_a_ratio_that_is_just_reached_suffices() -> None:
    reached, missed = boxes((500, 600), (500, 599))
    assert (len(reached), len(missed)) == (3, 1)


@pytest.mark.parametrize(
    ("size", "arguments", "count"),
    [
        ((10, 100), {"min_crop": 5}, 5),
        ((10, 100), {"min_crop": 5, "max_crops": 1}, 2),
        ((10, 100), {"min_crop": 11}, 1),
        ((10, 29), {"min_crop": 10, "max_crops": 9}, 3),
        ((1, 1), {"min_crop": 1}, 1),
    ],
)
def test_parts_are_neither_too_many_nor_too_small(
    size: tuple[int, int], arguments: dict[str, object], count: int
) -> None:
    assert len(boxes(size, **arguments)[0]) == count


def test_what_cannot_be_followed_is_refused() -> None:
    with pytest.raises(ValueError, match="`max_crops` and `min_crop` must be positive"):
        boxes((4, 4), max_crops=0)
    with pytest.raises(ValueError, match=r"An image of 5 x 1 pixels cannot be cut into 4 parts of 2 pixels"):
        boxes((1, 5), min_crop=1)
