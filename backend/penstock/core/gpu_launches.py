"""Lists of calls that launch GPU kernels, built by the compiled core; `backend/core/core.h` defines the structs."""

from __future__ import annotations

import numpy as np

from penstock.core.loading import brief_core
from penstock.core.threads import CALL_WORDS

_MAX_ARGUMENTS = 12


def _record(*names: str) -> np.dtype:
    return np.dtype([(name, np.int64) for name in names])


GPU_ARGUMENT = _record("value", "sample_bytes")
"""``PenstockGpuArgument``: a value, and the increment to add for each sample that precedes the first one of a launch."""
GPU_KERNEL = _record(
    "function",
    "shared_bytes",
    "arguments",
    "argument_count",
    "blocks",
    "device_blocks",
    "descriptors",
    "descriptor_bytes",
)
"""``PenstockGpuKernel``: a kernel, and the parameters of its launch."""
GPU_STEP = _record("kernel", "first", "last")
"""``PenstockGpuStep``: the number of the kernel to launch, and the range of its samples."""
GPU_STREAM = _record("launch", "block_threads", "stream")
"""``PenstockGpuStream``: the address of the driver's function that launches kernels, the number of threads of a block, and the stream."""


def room_for_arguments(launches: int) -> np.ndarray:
    """Return memory for the arguments of ``launches`` launches."""
    return np.empty((launches, 2, _MAX_ARGUMENTS), np.int64)


def list_launches(
    stream: np.ndarray, kernels: np.ndarray, steps: np.ndarray, calls: np.ndarray, arguments: np.ndarray
) -> int:
    """Fill in calls that launch kernels; return their number, which does not include launches without blocks.

    Args:
        stream: one :data:`GPU_STREAM`.
        kernels: an array of :data:`GPU_KERNEL`. Each sample's number of blocks, in host memory, is replaced by its first block in the
            launch.
        steps: an array of :data:`GPU_STEP`. Among the steps for the same kernel, each sample must be in exactly one.
        calls: filled; a row of CALL_WORDS words for each step.
        arguments: memory from :func:`room_for_arguments`, for as many launches as there are steps; must live until the calls are made.
    """
    assert calls.shape == (len(steps), CALL_WORDS)
    pointers = [array.ctypes.data for array in (stream, kernels, steps)]
    made: int = brief_core().penstock_list_launches(*pointers, len(steps), calls.ctypes.data, arguments.ctypes.data)
    return made
