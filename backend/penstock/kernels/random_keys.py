"""Keys that distinguish generators of random numbers."""

from __future__ import annotations

import numpy as np

Key = np.uint64 | tuple[np.uint64, np.uint64]
"""A seed, or a seed with the upper two bits of the first block's number, if that is beyond the 2**62 blocks that
positions count.
"""
