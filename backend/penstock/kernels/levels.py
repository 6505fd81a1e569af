"""Conversion between integer audio samples and numbers between -1 and 1.

Silence is 0 in signed types and the middle of the range in unsigned ones.
"""

from __future__ import annotations

import numpy as np

_HALF = np.float32(0.5)


def to_unit(samples: np.ndarray, unsigned: bool = False) -> np.ndarray:
    """Return samples as float32 in [-1, 1]; with ``unsigned``, in [0, 1]."""
    if samples.dtype.kind == "f":
        unit = samples.astype(np.float32, copy=False)
    else:
        unit = samples.astype(np.float32) * np.float32(1 / np.iinfo(samples.dtype).max)
    if (samples.dtype.kind == "u") == unsigned:
        return unit
    return (unit + 1) * _HALF if unsigned else unit * 2 - 1


def from_unit(unit: np.ndarray, out: np.ndarray) -> None:
    """Undo :func:`to_unit`, rounding and saturating; for unsigned types, ``unit`` must be in [0, 1]."""
    from penstock.kernels.cpu.casting import cast

    if out.dtype.kind == "f":
        out[...] = unit
    else:
        cast(np.ascontiguousarray(unit * np.float32(np.iinfo(out.dtype).max)), out)
