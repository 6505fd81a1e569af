"""The filters of Pillow and PyTorch, bit for bit, so that results equal those of these libraries.

Sources: Pillow's `Resample.c` and `Geometry.c`; PyTorch's `UpSampleKernel.cpp`, which torchvision calls for tensors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_PIL_BITS = 22
_TORCH_BITS = 22
_TORCH_LIMIT = 1 << 15
TORCH_SMALL = 128


class ReferenceTaps(NamedTuple):
    """The taps of one axis.

    Attributes:
        starts: the first input position of each output position, int32 of shape (size_out,).
        weights: an array of shape (size_out, taps): int32 for uint8 images, where ``1 << bits`` stands for 1.0; float32 or float64 for
            float32 images.
        bits: the number of fractional bits of integer weights; 0 for other weights.
    """

    starts: np.ndarray
    weights: np.ndarray
    bits: int

    @property
    def span(self) -> tuple[int, int]:
        """The range of input positions that the taps read."""
        if not self.starts.size:
            return 0, 0
        # Starts need not be in order: outer weights of 0 are omitted, so an output position may begin to read after the next one does.
        return int(self.starts.min()), int(self.starts.max()) + self.weights.shape[1]

    def part(self, outputs: slice) -> ReferenceTaps:
        """Return the taps of some of the output positions."""
        return self._replace(starts=self.starts[outputs], weights=self.weights[outputs])

    def shifted(self, by: int) -> ReferenceTaps:
        """Return the taps for an input that begins ``by`` positions earlier."""
        return self._replace(starts=self.starts + np.int32(by)) if by else self


@dataclass(frozen=True)
class ReferenceAxis:
    """The parameters of the filter of one axis.

    Attributes:
        size_in, size_out: extents in samples.
        start, end: the region of the input that the output covers.
        filter: the filter's name in the library.
        antialias: whether the filter widens when the axis shrinks.
        whole: whether weights are integers.
        small: whether the output's extents add up to at most :data:`TORCH_SMALL`, for which PyTorch has other kernels.
    """

    size_in: int
    size_out: int
    start: float
    end: float
    filter: str
    antialias: bool
    whole: bool
    small: bool = False


@functools.lru_cache(maxsize=256)
def pil_taps(axis: ReferenceAxis) -> ReferenceTaps:
    """Return the taps of a filter of Pillow: `box`, `bilinear`, `hamming`, `bicubic`, `lanczos` or `nearest`."""
    from penstock.kernels.cpu import reference_taps

    # Pillow stores regions in single precision.
    start, end = np.float32(axis.start), np.float32(axis.end)
    if axis.filter == "nearest":
        steps = np.full(axis.size_out, float(end - start) / axis.size_out)
        steps[0] = float(start) + steps[0] * 0.5
        return _nearest(np.cumsum(steps).astype(np.int64), axis)
    number, support = reference_taps.PIL_FILTERS[axis.filter]
    starts, weights = reference_taps.antialiased(
        axis.size_in, axis.size_out, float(start), float(end - start) / axis.size_out, number, support
    )
    return _table(starts, weights, _PIL_BITS if axis.whole else 0, axis)


@functools.lru_cache(maxsize=256)
def torch_taps(axis: ReferenceAxis) -> ReferenceTaps:
    """Return the taps of a filter of PyTorch: `bilinear`, `bicubic`, `lanczos` (with antialiasing), `nearest` or `nearest-exact`."""
    from penstock.kernels.cpu import reference_taps

    if axis.filter.startswith("nearest"):
        return _torch_nearest(axis)
    number, support = reference_taps.TORCH_FILTERS[axis.filter, axis.antialias]
    if axis.antialias:
        scale = (axis.end - axis.start) / axis.size_out
        starts, weights = reference_taps.antialiased(axis.size_in, axis.size_out, axis.start, scale, number, support)
    else:
        starts, weights = reference_taps.interpolated(axis.size_in, axis.size_out, number, support)
    bits = _torch_bits(float(weights.max())) if axis.whole else 0
    return _table(starts, weights, bits, axis)


def _torch_bits(most: float) -> int:
    """Return the maximum number of fractional bits with which all weights fit in int16; ``most``: the largest weight."""
    return next(
        bits for bits in range(_TORCH_BITS + 1) if bits == _TORCH_BITS or int(0.5 + most * (2 << bits)) >= _TORCH_LIMIT
    )


def _torch_nearest(axis: ReferenceAxis) -> ReferenceTaps:
    places = np.arange(axis.size_out)
    scale = np.float32(axis.size_in) / np.float32(axis.size_out)
    if axis.filter == "nearest-exact":
        centres = (places + 0.5) * np.float64(scale)
        if not axis.small:
            # PyTorch rounds positions twice: first relative to the first pixel's centre, then relative to its edge.
            centres = (centres - 0.5).astype(np.float32) + np.float64(0.5)
        return _nearest(np.floor(centres.astype(np.float32)).astype(np.int64), axis)
    if axis.size_out == axis.size_in:
        return _nearest(places, axis)
    if axis.size_out == 2 * axis.size_in:
        return _nearest(places >> 1, axis)
    return _nearest(np.floor(places.astype(np.float32) * scale).astype(np.int64), axis)


def _nearest(positions: np.ndarray, axis: ReferenceAxis) -> ReferenceTaps:
    starts = np.minimum(positions, axis.size_in - 1).astype(np.int32)
    return ReferenceTaps(starts, np.ones((len(starts), 1), np.int32 if axis.whole else np.float32), 0)


def _table(starts: np.ndarray, weights: np.ndarray, bits: int, axis: ReferenceAxis) -> ReferenceTaps:
    if axis.whole:
        scaled = weights * (1 << bits)
        weights = np.where(scaled < 0, scaled - 0.5, scaled + 0.5).astype(np.int32)
    from penstock.kernels.cpu.reference_taps import tighten

    starts, weights = starts.astype(np.int32), np.ascontiguousarray(weights)
    used = tighten(starts, weights, axis.size_in)
    return ReferenceTaps(starts, np.ascontiguousarray(weights[:, :used]), bits)
