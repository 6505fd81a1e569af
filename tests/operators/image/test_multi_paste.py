"""Regions that ``fn.multi_paste`` copies, at the edges of images and beyond them."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import Pipeline, fn

IMAGE = np.arange(1, 21, dtype=np.uint8).reshape(4, 5, 1)


def pasted(**regions: list[int]) -> np.ndarray:
    with Pipeline(batch_size=1, num_threads=1, device_id=None) as pipeline:
        paste = {name: np.array([numbers], np.int32) for name, numbers in regions.items()}
        images = fn.external_source(source=lambda: [IMAGE], batch=True)
        pipeline.set_outputs(fn.multi_paste(images, in_ids=np.array([0], np.int32), output_size=[6, 7], **paste))
    (output,) = pipeline.run()
    return np.asarray(output[0])[:, :, 0]


@pytest.mark.parametrize("corner", [(0, 0), (2, 2)])
def test_a_region_may_end_where_the_output_does(corner: tuple[int, int]) -> None:
    expected = np.zeros((6, 7), np.uint8)
    top, left = corner
    expected[top : top + 4, left : left + 5] = IMAGE[:, :, 0]
    np.testing.assert_array_equal(pasted(out_anchors=list(corner)), expected)


@pytest.mark.parametrize(("anchor", "shape"), [([0, 0], [4, 5]), ([3, 4], [1, 1]), ([1, 2], [0, 3])])
def test_a_region_may_end_where_its_image_does(anchor: list[int], shape: list[int]) -> None:
    expected = np.zeros((6, 7), np.uint8)
    (top, left), (height, width) = anchor, shape
    expected[:height, :width] = IMAGE[top : top + height, left : left + width, 0]
    np.testing.assert_array_equal(pasted(in_anchors=anchor, shapes=shape), expected)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ({"in_anchors": [-1, 0], "shapes": [2, 2]}, r"within the input's bounds.*anchor: \(-1, 0\)"),
        ({"in_anchors": [0, 4], "shapes": [2, 2]}, r"within the input's bounds.*input shape: 4 x 5"),
        ({"out_anchors": [0, -1]}, r"within the output's bounds.*anchor: \(0, -1\)"),
        ({"out_anchors": [3, 0]}, r"within the output's bounds.*output shape: 6 x 7"),
        ({"shapes": [-1, 2]}, r"region shape: \(-1, 2\)"),
    ],
)
def test_regions_beyond_the_edges_are_refused(regions: dict[str, list[int]], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        pasted(**regions)
