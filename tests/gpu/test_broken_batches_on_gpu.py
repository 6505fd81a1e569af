"""A thousand batches with broken images on a real GPU."""

from __future__ import annotations

import os
import shutil
import subprocess

import cupy
import pytest
import tested_gpu
from broken_batches import check_broken_batches


def taken_by_us() -> int:
    """Bytes that this process has on its GPUs; where the driver does not tell, those that all processes have on the one tested."""
    with cupy.cuda.Device(tested_gpu.device()) as device:
        device.synchronize()
        free, total = cupy.cuda.runtime.memGetInfo()
    # Tests in other processes take memory of the same GPU meanwhile.
    rows = [row.replace(" ", "").split(",") for row in told_by_driver().splitlines()]
    own = [int(taken) << 20 for process, taken in rows if process == str(os.getpid()) and taken.isdecimal()]
    return sum(own) or int(total - free)


def told_by_driver() -> str:
    """A line for each process on each GPU: its number, and the mebibytes that it has there."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    query = [program, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout


@pytest.mark.timeout(300)
def test_errors_and_pixels_are_right_and_no_memory_is_kept() -> None:
    check_broken_batches(tested_gpu.device(), taken_by_us)
