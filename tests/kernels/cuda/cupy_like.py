"""Arrays on the emulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import emulation
import numpy as np


def put(array: Any) -> emulation.DeviceArray:
    """Return a copy of a host array."""
    return np.array(array).view(emulation.DeviceArray)


def empty(shape: Sequence[int], dtype: Any = np.uint8) -> emulation.DeviceArray:
    """Return an array of undefined contents."""
    return emulation.empty(tuple(shape), dtype)
