"""The constants of the exponential function, which the CPU and the GPU compute in the same way."""

from __future__ import annotations

import math

import numpy as np

LOG2_E, LN2 = 1 / math.log(2), math.log(2)
ROUNDING = 1.5 * 2.0**52
"""Adding this to a double rounds it to an integer, as no bits are left for a fraction."""
LOWEST_POWER = -200.0
"""Lower powers are replaced by this one, whose exponential is 0 in float32."""
MAX_POWER = 200.0
"""Higher powers, where they may occur, are replaced by this one, whose exponential is infinite in float32."""
SECOND, THIRD, FOURTH = 0.49999993451708435, 0.1666652068983302, 0.04166838736126115
FIFTH, SIXTH = 0.008368709824171195, 0.0013814613260779772
"""Coefficients of the polynomial 1 + x + ... of degree 6 with the least relative error, 3.1e-9, between -log(2) / 2 and log(2) / 2
(Remez's algorithm).
"""
EXPONENTIAL: dict[str, np.generic] = {
    name: np.float64(value)
    for name, value in (
        *(("LOG2_E", LOG2_E), ("LN2", LN2), ("ROUNDING", ROUNDING), ("LOWEST_POWER", LOWEST_POWER)),
        *(("SECOND", SECOND), ("THIRD", THIRD), ("FOURTH", FOURTH), ("FIFTH", FIFTH), ("SIXTH", SIXTH)),
    )
}
"""The constants by their names in kernels."""
