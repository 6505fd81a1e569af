"""Memory that a thread reuses from sample to sample."""

from __future__ import annotations

import math
import threading

import numpy as np


class ThreadBuffers:
    """One buffer per thread, as large as the largest array requested so far."""

    def __init__(self) -> None:
        self._local = threading.local()

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return this thread's buffer as an uninitialized array of ``shape``."""
        size = math.prod(shape) * dtype.itemsize
        held = getattr(self._local, "held", None)
        if held is None or held.size < size:
            held = self._local.held = np.empty(size, np.uint8)
        return held[:size].view(dtype).reshape(shape)
