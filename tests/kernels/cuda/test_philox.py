"""A random operator on the GPU fails as on the CPU; its numbers are compared in `test_both_devices.py`."""

from __future__ import annotations

import pytest

from penstock import fn, pipeline_def


def test_a_bad_argument_fails_its_sample() -> None:
    pipeline = pipeline_def(
        lambda: fn.random.uniform(device="gpu", range=[3.0, 1.0]), batch_size=2, num_threads=1, device_id=0
    )()
    pipeline.build()
    with pytest.raises(RuntimeError, match="Invalid range"):
        pipeline.run()
    pipeline.close()
