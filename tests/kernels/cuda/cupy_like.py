"""Makes arrays on the emulated GPU, with the names of CuPy's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import emulation
import numpy as np


def put(array: Any) -> emulation.DeviceArray:
    """Return a copy of a host array on the emulated GPU."""
    return np.array(array).view(emulation.DeviceArray)


def empty(shape: Sequence[int], dtype: Any = np.uint8) -> emulation.DeviceArray:
    """Return an array with undefined contents."""
    return emulation.empty(tuple(shape), dtype)
