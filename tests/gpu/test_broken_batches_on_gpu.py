"""A thousand batches with broken images on a real GPU."""

from __future__ import annotations

import cupy
import pytest
import tested_gpu
from broken_batches import check_broken_batches


def taken_on_device() -> int:
    with cupy.cuda.Device(tested_gpu.device()) as device:
        device.synchronize()
        free, total = cupy.cuda.runtime.memGetInfo()
    return int(total - free)


@pytest.mark.timeout(300)
def test_errors_and_pixels_are_right_and_no_memory_is_kept() -> None:
    check_broken_batches(tested_gpu.device(), taken_on_device)
