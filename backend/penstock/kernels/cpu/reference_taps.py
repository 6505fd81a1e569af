"""The taps of other libraries' filters, computed in double precision with the same order of operations as in these libraries."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel

_BOX, _LINEAR, _HAMMING, _CUBIC, _LANCZOS, _TORCH_CUBIC, _TORCH_SHARP_CUBIC = range(7)
# The number of each filter, and its support in samples.
PIL_FILTERS = {
    "box": (_BOX, 0.5),
    "bilinear": (_LINEAR, 1.0),
    "hamming": (_HAMMING, 1.0),
    "bicubic": (_CUBIC, 2.0),
    "lanczos": (_LANCZOS, 3.0),
}
TORCH_FILTERS = {
    ("bilinear", True): (_LINEAR, 1.0),
    ("bilinear", False): (_LINEAR, 1.0),
    ("bicubic", True): (_TORCH_CUBIC, 2.0),
    ("bicubic", False): (_TORCH_SHARP_CUBIC, 2.0),
    ("lanczos", True): (_LANCZOS, 3.0),
}
# DALI stores these constants in single precision.
_HAMMING_MEAN, _HAMMING_SWING = float(np.float32(0.54)), float(np.float32(0.46))


@inner
def _sinc(x: float) -> float:
    if x == 0.0:
        return 1.0
    x *= math.pi
    return math.sin(x) / x


@kernel
def _keys(x: float, a: float) -> float:
    """Return the value of the cubic convolution kernel, in PyTorch's order of operations."""
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    if x < 2.0:
        return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    return 0.0


@inner
def _filter(number: int, x: float) -> float:
    """Return the value of filter ``number`` at the distance ``x`` from its centre."""
    if number == _BOX:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    if number == _LANCZOS:
        return _sinc(x) * _sinc(x / 3) if -3.0 <= x < 3.0 else 0.0
    x = abs(x)
    if number == _LINEAR:
        return 1.0 - x if x < 1.0 else 0.0
    if number == _HAMMING:
        if x == 0.0 or x >= 1.0:
            return 1.0 if x == 0.0 else 0.0
        x *= math.pi
        return math.sin(x) / x * (_HAMMING_MEAN + _HAMMING_SWING * math.cos(x))
    if number == _CUBIC:
        if x < 1.0:
            return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1.0
        return (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5 if x < 2.0 else 0.0
    return _keys(x, -0.5 if number == _TORCH_CUBIC else -0.75)


@kernel
def antialiased(
    size: int, outputs: int, start: float, scale: float, number: int, support: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first tap and the weights of each output, for a filter that widens when the axis shrinks; the weights of an output add up
    to one.

    Args:
        size: the input's extent.
        outputs: the number of output positions.
        start, scale: the start of the region in the input, and the distance from one output position to the next.
        number: the filter's number.
        support: the filter's support, in samples.
    """
    wider = max(scale, 1.0)
    reach, inverse = support * wider, 1.0 / wider
    count = math.ceil(reach) * 2 + 1
    starts, weights = np.empty(outputs, np.int64), np.zeros((outputs, count))
    for i in range(outputs):
        centre = start + (i + 0.5) * scale
        first = max(int(centre - reach + 0.5), 0)
        taps = min(int(centre + reach + 0.5), size) - first
        total = 0.0
        for k in range(taps):
            weights[i, k] = _filter(number, (k + first - centre + 0.5) * inverse)
            total += weights[i, k]
        if total != 0.0:
            for k in range(taps):
                weights[i, k] /= total
        starts[i] = first
    return starts, weights


@kernel
def interpolated(size: int, outputs: int, number: int, support: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first tap and the weights of each output, for interpolation between neighbours as in PyTorch: the weights of taps beyond
    an edge are added to the weight of the edge.
    """
    scale, reach = size / outputs, int(support)
    count = 2 * reach
    starts, weights = np.empty(outputs, np.int64), np.zeros((outputs, count))
    for i in range(outputs):
        centre = scale * (i + 0.5) - 0.5
        if reach == 1:
            centre = max(centre, 0.0)
        below = min(math.floor(centre), size - 1)
        rest = min(max(centre - below, 0.0), 1.0)
        unbound = below - reach + 1
        first = max(unbound, 0)
        taps, place = min(below + reach + 1, size) - first, 0
        for k in range(count):
            if unbound + k <= 0:
                place = 0
            elif unbound + k >= size - 1:
                place = taps - 1
            weights[i, place] += _filter(number, k + 1 - reach - rest)
            place += 1
        starts[i] = first
    return starts, weights


@kernel
def tighten(starts: np.ndarray, weights: np.ndarray, size: int) -> int:
    """Trim zero weights at both ends, and shift windows so that all taps lie inside the input; return the number of columns of ``weights``
    in use.
    """
    outputs, count = weights.shape
    used = 1
    for i in range(outputs):
        low, high = 0, count
        while low < count - 1 and weights[i, low] == 0:
            low += 1
        while high > low + 1 and weights[i, high - 1] == 0:
            high -= 1
        for k in range(high - low):
            weights[i, k] = weights[i, low + k]
        for k in range(high - low, count):
            weights[i, k] = 0
        starts[i] += low
        used = max(used, high - low)
    for i in range(outputs):
        beyond = starts[i] + used - size
        if beyond > 0:
            for k in range(used - 1, -1, -1):
                weights[i, k] = weights[i, k - beyond] if k >= beyond else 0
            starts[i] -= beyond
    return used
