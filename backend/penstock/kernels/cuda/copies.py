"""Copies many arrays on the GPU with one call on the current stream."""

from __future__ import annotations

import numpy as np

from penstock.core.threads import CALL_WORDS, make_calls
from penstock.tensors.cuda import require_cupy
from penstock.tensors.driver import context_of, driver, driver_error


def copy_arrays(sources: np.ndarray, targets: np.ndarray, sizes: np.ndarray | int) -> None:
    """Copy arrays, in the order of CuPy's current stream.

    Args:
        sources, targets: addresses on the GPU, uint64.
        sizes: the size of each array in bytes, int64; or one size for all.
    """
    cuda, functions = require_cupy().cuda, driver()
    calls = np.zeros((1 + len(sources), CALL_WORDS), np.int64)
    calls[0, :2] = functions.set_context, context_of(cuda.Device().id)
    copies = calls[1:]
    copies[:, 0] = functions.copy
    copies[:, 1], copies[:, 2], copies[:, 3] = targets, sources, sizes
    copies[:, 4] = cuda.get_current_stream().ptr
    status = make_calls(calls.ctypes.data, len(calls))
    if status:
        raise driver_error(status)
