"""Properties of randomly drawn windows and objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import fn, pipeline_def

LABELS = np.zeros((20, 30), np.int32)
LABELS[2:6, 3:9] = 1
LABELS[10:12, 20:29] = 2
LABELS[15, 1] = 2
BOXES = np.float32([[0.1, 0.1, 0.4, 0.5], [0.5, 0.2, 0.9, 0.9]])


def test_objects_are_bounded_tightly() -> None:
    @pipeline_def(batch_size=32, num_threads=1, device_id=None, seed=1)
    def pipeline() -> Any:
        maps = fn.external_source(lambda: [LABELS] * 32)
        return tuple(fn.segmentation.random_object_bbox(maps, format="start_end", output_class=True))

    starts, ends, classes = (np.array([np.array(t) for t in batch]) for batch in pipeline().run())
    assert set(classes.tolist()) == {1, 2}
    seen = {(*start, *end) for start, end in zip(starts.tolist(), ends.tolist())}
    assert seen == {(2, 3, 6, 9), (10, 20, 12, 29), (15, 1, 16, 2)}


def test_pixels_come_from_the_foreground() -> None:
    @pipeline_def(batch_size=16, num_threads=1, device_id=None, seed=1)
    def pipeline() -> Any:
        return fn.segmentation.random_mask_pixel(fn.external_source(lambda: [LABELS] * 16), foreground=1, value=2)

    (places,) = pipeline().run()
    assert all(LABELS[tuple(np.array(place))] == 2 for place in places)


def test_windows_overlap_the_boxes_enough() -> None:
    @pipeline_def(batch_size=16, num_threads=1, device_id=None, seed=1)
    def pipeline() -> Any:
        boxes = fn.external_source(lambda: [BOXES] * 16)
        return tuple(
            fn.random_bbox_crop(
                boxes,
                thresholds=[0.2],
                threshold_type="overlap",
                scaling=[0.3, 1.0],
                aspect_ratio=[0.5, 2.0],
                allow_no_crop=False,
                output_bbox_indices=True,
            )
        )

    anchors, shapes, kept, indices = pipeline().run()
    for anchor, shape, boxes, index in zip(*(map(np.array, batch) for batch in (anchors, shapes, kept, indices))):
        assert (anchor >= 0).all()
        assert (anchor + shape <= 1 + 1e-6).all()
        assert 0.5 <= shape[0] / shape[1] <= 2
        inside = np.clip(np.minimum(BOXES[:, 2:], anchor + shape) - np.maximum(BOXES[:, :2], anchor), 0, None).prod(
            axis=1
        )
        assert (inside / (BOXES[:, 2:] - BOXES[:, :2]).prod(axis=1) >= 0.2 - 1e-6).all()
        back = boxes.reshape(-1, 2, 2) * shape + anchor
        clipped = np.clip(BOXES[index].reshape(-1, 2, 2), anchor, anchor + shape)
        np.testing.assert_allclose(back, clipped, atol=1e-6)
