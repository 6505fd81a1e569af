"""Keys that distinguish generators of random numbers."""

from __future__ import annotations

import numpy as np

Key = np.uint64 | tuple[np.uint64, np.uint64]
"""A seed; or a seed and the upper two bits of the first block's number, if these are not 0: positions of draws only reach 2**62
blocks.
"""
