"""Measures the GPU memory of this process, if the driver reports it."""

from __future__ import annotations

import os
import shutil
import subprocess

import cupy
import tested_gpu


def taken_by_us() -> int:
    """Return the bytes of GPU memory that this process uses; if the driver does not report them, those that all processes use on the
    tested GPU.
    """
    with cupy.cuda.Device(tested_gpu.device()) as device:
        device.synchronize()
        free, total = cupy.cuda.runtime.memGetInfo()
    # Tests in other processes use memory of the same GPU at the same time.
    rows = [row.replace(" ", "").split(",") for row in _told_by_driver().splitlines()]
    own = [int(taken) << 20 for process, taken in rows if process == str(os.getpid()) and taken.isdecimal()]
    return sum(own) or int(total - free)


def _told_by_driver() -> str:
    """Return the driver's report: a line for each process on each GPU, with the process id and its memory in MiB."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    query = [program, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout
