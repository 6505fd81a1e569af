"""Kernels of `kaldi_fbank`: windows and the energies of bands, summed in single precision and in Kaldi's order."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import kernel


@kernel
def extract_windows(
    signal: np.ndarray,
    window: np.ndarray,
    start: int,
    step: int,
    remove_offset: bool,
    preemphasis: float,
    frames: np.ndarray,
) -> None:
    """Fill ``frames`` with filtered windows of a signal, which is reflected at its ends.

    Args:
        signal: float32.
        window: the window's values, by which samples are multiplied, float32.
        start: the position of the first window's first sample; negative: before the signal.
        step: the distance between the starts of windows, in samples.
        remove_offset: subtract the mean of each window.
        preemphasis: the factor by which the previous sample is multiplied before it is subtracted.
        frames: float64 of shape (windows, n), with n of at least the window's length; output. Its values are float32 numbers, and
            columns beyond the window's length are not written.
    """
    count, factor = signal.size, np.float32(preemphasis)
    values = np.empty(window.size, np.float32)
    for frame in range(frames.shape[0]):
        total = np.float32(0)
        for k in range(window.size):
            place = start + frame * step + k
            while place < 0 or place >= count:
                place = -place - 1 if place < 0 else 2 * count - 1 - place
            values[k] = signal[place]
            total += signal[place]
        if remove_offset:
            mean = np.float32(total / np.float32(window.size))
            for k in range(window.size):
                values[k] -= mean
        if factor != 0:
            for k in range(window.size - 1, 0, -1):
                values[k] -= factor * values[k - 1]
            values[0] -= factor * values[0]
        for k in range(window.size):
            frames[frame, k] = values[k] * window[k]


@kernel
def sum_bands(
    spectra: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    weights: np.ndarray,
    magnitude: bool,
    floor: np.float32,
    logarithm: bool,
    out: np.ndarray,
) -> None:
    """Fill ``out``, of shape (windows, bands), with the energy of each band in each spectrum, or with its logarithm.

    Args:
        spectra: complex64 of shape (windows, frequencies).
        starts, widths, weights: for each band, the index of its first frequency, the number of its frequencies, and their weights.
        magnitude: sum magnitudes instead of powers.
        floor: the smallest energy whose logarithm is computed; smaller energies are replaced by it.
        logarithm: return logarithms.
    """
    powers = np.empty(spectra.shape[1], np.float32)
    for frame in range(spectra.shape[0]):
        for k in range(powers.size):
            real, imaginary = spectra[frame, k].real, spectra[frame, k].imag
            power = real * real + imaginary * imaginary
            powers[k] = math.sqrt(power) if magnitude else power
        for band in range(starts.size):
            energy = np.float32(0)
            for k in range(widths[band]):
                energy += weights[band, k] * powers[starts[band] + k]
            out[frame, band] = math.log(max(energy, floor)) if logarithm else energy
