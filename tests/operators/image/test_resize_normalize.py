"""A resize and the following step, fused and separate."""

from __future__ import annotations

import numpy as np

from penstock import fn, pipeline_def
from penstock.graph import DataNode


def test_a_crop_of_frames_is_kept() -> None:
    frames = [np.random.default_rng(0).integers(0, 255, (5, 20, 30, 3), np.uint8) for _ in range(2)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define(apart: bool) -> tuple[DataNode, ...]:
        resized = fn.resize(fn.external_source(lambda: frames, layout="FHWC"), size=(10, 12))
        cropped = fn.crop_mirror_normalize(resized, crop=(2, 8, 8), crop_pos_z=1.0, output_layout="FHWC")
        # With `apart`, the resized image is an output, too, so that the two steps cannot be fused.
        return (cropped, resized) if apart else (cropped,)

    (fused,), (apart, _) = define(False).run(), define(True).run()
    for one, other in zip(fused, apart):
        np.testing.assert_array_equal(np.array(one), np.array(other))
