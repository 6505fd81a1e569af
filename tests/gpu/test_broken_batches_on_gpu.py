"""Runs a thousand batches with broken images on a real GPU."""

from __future__ import annotations

import pytest
import tested_gpu
from broken_batches import check_broken_batches
from process_memory import taken_by_us


@pytest.mark.timeout(300)
def test_errors_and_pixels_are_right_and_no_memory_is_kept() -> None:
    check_broken_batches(tested_gpu.device(), taken_by_us)
