"""Windows and triangular mel bands in double precision, computed with numpy's functions so that they are rounded in the same way."""

from __future__ import annotations

import numpy as np

FORMULAS = ("slaney", "htk", "kaldi")
WINDOWS = ("hann", "single_hann", "symmetric_hann", "symmetric_hamming", "povey")
_POVEY = 0.85
# The Slaney scale is linear below this frequency, and logarithmic above.
_LINEAR_HZ, _LINEAR_MEL = 1000.0, 15.0


def window_values(name: str, length: int) -> np.ndarray:
    """Return the values of a window, one of :data:`WINDOWS`.

    `hann` and `single_hann` (the same in single precision) are periodic; the others are symmetric.
    """
    if name == "hann":
        return np.hanning(length + 1)[:-1]
    if name == "single_hann":
        values: np.ndarray = 0.5 * (1 - np.cos(2 * np.pi * np.arange(length, dtype=np.float32) / length))
        return values
    if name == "symmetric_hamming":
        return np.hamming(length)
    values = np.hanning(length)
    return np.power(values, _POVEY) if name == "povey" else values


def band_weights(
    bins: int, bands: int, low: float, high: float, rate: float, *, formula: str, area: bool, in_mel: bool
) -> np.ndarray:
    """Return the weight of each frequency in each band, of shape (bins, bands).

    Args:
        bins: the number of frequencies, from 0 to half the sampling rate.
        bands: the number of bands.
        low, high: start of the first band and end of the last, in Hz.
        rate: the sampling rate in Hz.
        formula: the mel scale, one of :data:`FORMULAS`.
        area: give all triangles the same area instead of the same height.
        in_mel: interpolate the sides of triangles linearly in mel instead of in Hz.
    """
    lowest, highest = _to_mel(np.array([low, high], np.float64), formula)
    mels = np.linspace(lowest, highest, bands + 2)
    edges = _to_hertz(mels, formula)
    if in_mel:
        width = rate / ((bins - 1) * 2)
        frequencies, corners = _to_mel(width * np.arange(bins), formula), mels
    else:
        frequencies, corners = np.linspace(0, rate // 2, bins), edges
    beyond = corners[None, :] - frequencies[:, None]
    gaps = np.diff(corners)
    weights: np.ndarray = np.maximum(0.0, np.minimum(-beyond[:, :-2] / gaps[:-1], beyond[:, 2:] / gaps[1:]))
    if area:
        weights *= 2.0 / (corners[2:] - corners[:-2])
    return weights


def _to_mel(hertz: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 2595.0 * np.log10(1.0 + hertz / 700.0)
    if formula == "kaldi":
        return 1127.0 * np.log(1.0 + hertz / 700.0)
    above = _LINEAR_MEL + np.log(np.maximum(hertz, _LINEAR_HZ) / _LINEAR_HZ) * (27.0 / np.log(6.4))
    return np.where(hertz >= _LINEAR_HZ, above, 3.0 * hertz / 200.0)


def _to_hertz(mels: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 700.0 * (np.power(10, mels / 2595.0) - 1.0)
    if formula == "kaldi":
        return 700.0 * (np.exp(mels / 1127.0) - 1.0)
    above = _LINEAR_HZ * np.exp(np.log(6.4) / 27.0 * (np.maximum(mels, _LINEAR_MEL) - _LINEAR_MEL))
    return np.where(mels >= _LINEAR_MEL, above, 200.0 * mels / 3.0)
