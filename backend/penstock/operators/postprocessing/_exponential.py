"""The constants of exponentials, which both devices compute alike."""

from __future__ import annotations

import math

import numpy as np

LOG2_E, LN2 = math.log2(math.e), math.log(2)
LOWEST_EXPONENT = -125 * LN2
THIRD, FOURTH, FIFTH, SIXTH, SEVENTH = (np.float32(1 / math.factorial(k)) for k in (3, 4, 5, 6, 7))
"""The factors of the Taylor series, from the third term on."""
EXPONENTIAL: dict[str, np.generic] = {
    "LOG2_E": np.float64(LOG2_E),
    "LN2": np.float64(LN2),
    "LOWEST_EXPONENT": np.float64(LOWEST_EXPONENT),
    "THIRD": THIRD,
    "FOURTH": FOURTH,
    "FIFTH": FIFTH,
    "SIXTH": SIXTH,
    "SEVENTH": SEVENTH,
}
"""All of them, by their names in kernels."""
