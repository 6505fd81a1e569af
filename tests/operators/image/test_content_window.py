"""`content_window` finds the content of a page."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import DataNode, fn, pipeline_def, types


def window(image: np.ndarray, threshold: int = 200) -> list[list[int]]:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> tuple[DataNode, DataNode]:
        images = fn.external_source(name="images", dtype=types.UINT8, layout="HWC")
        start, extents = fn.content_window(images, threshold=threshold)
        return start, extents

    return [np.array(batch[0]).tolist() for batch in pipeline().run(images=[image])]


def page() -> np.ndarray:
    image = np.full((20, 30, 3), 250, np.uint8)
    image[4:9, 7] = 10
    image[6, 7:21] = (180, 190, 170)
    return image


def test_what_is_dark() -> None:
    assert window(page()) == [[4, 7], [5, 14]]
    # After the image is scaled to 0 to 255, the grey line is brighter than 100.
    assert window(page(), 100) == [[4, 7], [5, 1]]


def test_values_are_spread() -> None:
    assert window(page() // 10 + 100) == [[4, 7], [5, 14]]
    assert window(np.full((9, 8, 3), 7, np.uint8)) == [[0, 0], [9, 8]]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="must have 3 channels"):
        window(np.zeros((9, 8, 1), np.uint8))
    with pytest.raises(ValueError, match="`threshold` must be from 1 to 255"):
        window(page(), 0)
