"""Keys that distinguish generators of random numbers."""

from __future__ import annotations

import numpy as np

Key = np.uint64 | tuple[np.uint64, np.uint64]
"""A seed; with it, if the first block is beyond the 2**62 blocks that positions count, the upper two bits of its number."""
