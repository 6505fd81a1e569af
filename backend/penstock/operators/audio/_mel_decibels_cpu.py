"""Mel bands in decibels, optionally normalized, computed in one pass whose intermediate results stay in the cache.

The results equal those of the separate kernels.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.audio import used_widths
from penstock.kernels.cpu.decibels import Logarithm, inverse_unit, scaled_decibels
from penstock.kernels.cpu.fft import TILE, Transform, TransformFields, band_tile, tile_scratch
from penstock.kernels.cpu.moments import Standard, standardize_row
from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.simd import load, store

# The types of the fields of `Logarithm` and of `Standard`.
_LogarithmFields = tuple[bool, np.float32, np.float32, np.float32]
_StandardFields = tuple[int, float, np.float32, np.float32]


@inner
def _fill_tiles(
    signal: np.ndarray,
    transform: TransformFields,
    starts: np.ndarray,
    weights: np.ndarray,
    frames: int,
    tiles: np.ndarray,
) -> None:
    """Fill ``tiles``, a flat array of shape (tiles, bands, ``TILE``), with the energies of bands; columns past the last frame with 0."""
    bands = starts, used_widths(starts.size, weights), weights
    scratch, size = tile_scratch(transform), starts.size * TILE
    # The last tile may have columns past the last frame, which the kernel does not write.
    tiles[tiles.size - size :] = 0
    for t in range(0, frames, TILE):
        band_tile(signal, transform, bands, t, min(TILE, frames - t), scratch, tiles[t * starts.size :])


@inner
def _gather_row(tiles: np.ndarray, band: int, bands: int, row: np.ndarray) -> None:
    """Fill ``row`` with the values of one band from all tiles."""
    for t in range(0, row.size, TILE):
        store(row, t, load(tiles, t * bands + band * TILE, TILE))


@kernel
def _decibels(
    signal: np.ndarray,
    transform: TransformFields,
    starts: np.ndarray,
    weights: np.ndarray,
    logarithm: _LogarithmFields,
    frames: int,
    tiles: np.ndarray,
    out: np.ndarray,
) -> None:
    _fill_tiles(signal, transform, starts, weights, frames, tiles)
    relative, reference, smallest, factor = logarithm
    scale, row = inverse_unit(tiles, relative, reference), np.empty(tiles.size // starts.size, np.float32)
    for band in range(starts.size):
        _gather_row(tiles, band, starts.size, row)
        scaled_decibels(row, scale, smallest, factor, out[band * frames : (band + 1) * frames])


@kernel
def _standardized(
    signal: np.ndarray,
    transform: TransformFields,
    starts: np.ndarray,
    weights: np.ndarray,
    logarithm: _LogarithmFields,
    standard: _StandardFields,
    frames: int,
    tiles: np.ndarray,
    out: np.ndarray,
) -> None:
    _fill_tiles(signal, transform, starts, weights, frames, tiles)
    relative, reference, smallest, factor = logarithm
    ddof, epsilon, gain, shift = standard
    scale, row = inverse_unit(tiles, relative, reference), np.empty(tiles.size // starts.size, np.float32)
    levels = np.empty(frames, np.float32)
    for band in range(starts.size):
        _gather_row(tiles, band, starts.size, row)
        scaled_decibels(row, scale, smallest, factor, levels)
        target = out[band * frames : (band + 1) * frames]
        standardize_row(levels, 0, frames, ddof, epsilon, gain, shift, target)


def tiles_size(bands: int, frames: int) -> int:
    """Return the size of the scratch memory that :func:`mel_decibels` needs, as a number of float32 values."""
    return bands * -(-frames // TILE) * TILE


def mel_decibels(
    signal: np.ndarray,
    transform: Transform,
    starts: np.ndarray,
    weights: np.ndarray,
    logarithm: Logarithm,
    standard: Standard | None,
    tiles: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill ``out`` with the bands of :func:`band_power` in decibels; normalize each row unless ``standard`` is None.

    Args:
        signal, transform, starts, weights: see :func:`~penstock.kernels.cpu.fft.band_power`.
        logarithm, standard: see :func:`~penstock.kernels.cpu.decibels.to_decibels` and ``standardize``.
        tiles: scratch memory, float32; its size is :func:`tiles_size`.
        out: float32 of shape (bands, frames), contiguous; output.
    """
    bands = signal, transform[:], starts, weights.reshape(-1), logarithm[:]
    if standard is None:
        _decibels(*bands, out.shape[1], tiles, out.reshape(-1))
    else:
        _standardized(*bands, standard[:], out.shape[1], tiles, out.reshape(-1))
