"""Plans are cached for samples with equal shapes and arguments, and for no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import fn, pipeline_def
from penstock.operators.image.resize import Resize


def test_batches_that_are_alike_are_planned_once(monkeypatch: Any) -> None:
    made = []
    infer_batch = Resize.infer_batch

    def counted(self: Resize, samples: Any) -> Any:
        made.extend(map(tuple, samples.shapes().tolist()))
        return infer_batch(self, samples)

    monkeypatch.setattr(Resize, "infer_batch", counted)
    shapes = [(8, 8, 3), (9, 8, 3), (8, 8, 3), (9, 8, 3)]
    images = [np.zeros(shape, np.uint8) for shape in shapes]

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def definition() -> Any:
        return fn.resize(fn.external_source(lambda: images, layout="HWC"), size=(4, 4))

    pipe = definition()
    for _ in range(3):
        pipe.run()
    assert made == shapes


def test_arguments_tell_samples_apart() -> None:
    image = np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def definition() -> Any:
        data = fn.external_source(name="data", layout="HWC")
        return fn.crop(data, crop=(2, 2), crop_pos_x=fn.external_source(name="place"), crop_pos_y=0.0)

    pipe = definition()
    for places in ([0.0, 1.0], [1.0, 0.5], [0.0, 1.0]):
        pipe.feed_input("data", [image] * 2)
        pipe.feed_input("place", [np.float32(place) for place in places])
        (output,) = pipe.run()
        for sample, place in zip(output, places):
            left = round(place * 4)
            np.testing.assert_array_equal(np.asarray(sample), image[:2, left : left + 2])


def test_failures_are_not_kept() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def definition() -> Any:
        return fn.crop(fn.external_source(name="data"), crop=(4, 4))

    pipe = definition()
    small, large = np.zeros((2, 2, 3), np.uint8), np.ones((5, 5, 3), np.uint8)
    for data, fits in ((small, False), (small, False), (large, True), (small, False)):
        pipe.feed_input("data", [data], layout="HWC")
        try:
            (output,) = pipe.run()
        except RuntimeError:
            assert not fits
        else:
            assert fits
            assert np.asarray(output[0]).all()
