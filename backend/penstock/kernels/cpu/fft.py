"""Power spectra of many frames at once: a Fourier transform whose vectors hold the same element of 16 frames.

That needs no shuffling of lanes, whatever the transform's size, and the intermediate results stay in the cache. For
sizes that are powers of two.

Source: Stockham's self-sorting transform, radix 4, of half the size: a real frame's even and odd elements are taken
for real and imaginary parts, and the two spectra are told apart by their symmetry (Cooley, Lewis and Welch, 1970).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from penstock.kernels.cpu import simd
from penstock.kernels.cpu.audio import reflected
from penstock.kernels.cpu.simd import FloatVector

_LANES = 16

load: Any = simd.load
store: Any = simd.store


def _elementwise(instruction: str) -> Any:
    """An LLVM instruction on two vectors."""

    def operate(_context: Any, a: Any, b: Any) -> Any:
        return a(a, b), lambda _c, builder, _signature, args: getattr(builder, instruction)(*args)

    return intrinsic(operate)


def _overload_operator(function: Callable[..., Any], instruction: str) -> None:
    operate = _elementwise(instruction)

    @overload(function, inline="always")
    def _on_vectors(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, FloatVector) and isinstance(b, FloatVector):
            return lambda a, b: operate(a, b)
        return None


_overload_operator(operator.add, "fadd")
_overload_operator(operator.sub, "fsub")
_overload_operator(operator.mul, "fmul")


def _spread_in(_context: Any, value: Any) -> Any:
    """A vector with ``value`` in all lanes."""
    vector = FloatVector(_LANES)

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        undefined = ir.Constant(ir.VectorType(ir.FloatType(), _LANES), ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), _LANES), None))

    return vector(types.float32), generate


_spread: Any = intrinsic(_spread_in)


@cache
def roots_of_unity(count: int) -> np.ndarray:
    """``exp(-2 pi i k / count)`` as float32: the real parts, and in a second row the imaginary ones."""
    angles = -2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


@njit(nogil=True, cache=True)
def _gather(
    signal: np.ndarray, window: np.ndarray, step: int, start: int, frames: int, reflect: bool, out: np.ndarray
) -> None:
    """The windowed frames' even elements in ``out[0]``, the odd ones in ``out[1]``; lanes past ``frames`` are zero."""
    out[:] = 0
    for lane in range(frames):
        first = start + lane * step
        inside = first >= 0 and first + window.size <= signal.size
        for k in range(window.size):
            index = first + k
            if inside or 0 <= index < signal.size:
                value = signal[index]
            else:
                value = signal[reflected(index, signal.size)] if reflect else np.float32(0)
            out[k & 1, (k >> 1) * _LANES + lane] = value * window[k]


@njit(nogil=True, cache=True)
def _transform(x: np.ndarray, y: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """The transform of the complex numbers in ``x``; ``y`` is room for intermediate results. Gives that which holds it."""
    xr, xi, yr, yi = x[0], x[1], y[0], y[1]
    wr, wi = roots[0], roots[1]
    total = roots.shape[1]
    n, block = xr.size // _LANES, _LANES
    while n >= 4:
        quarter = n // 4 * block
        turn = total // n
        for p in range(n // 4):
            w1r, w1i = _spread(wr[p * turn]), _spread(wi[p * turn])
            w2r, w2i = _spread(wr[2 * p * turn]), _spread(wi[2 * p * turn])
            w3r, w3i = _spread(wr[3 * p * turn]), _spread(wi[3 * p * turn])
            for q in range(0, block, _LANES):
                i = q + p * block
                o = q + 4 * p * block
                ar, ai = load(xr, i, 16), load(xi, i, 16)
                br, bi = load(xr, i + quarter, 16), load(xi, i + quarter, 16)
                cr, ci = load(xr, i + 2 * quarter, 16), load(xi, i + 2 * quarter, 16)
                dr, di = load(xr, i + 3 * quarter, 16), load(xi, i + 3 * quarter, 16)
                pr, pi, mr, mi = ar + cr, ai + ci, ar - cr, ai - ci
                sr, si, tr, ti = br + dr, bi + di, br - dr, bi - di
                store(yr, o, pr + sr)
                store(yi, o, pi + si)
                er, ei = mr + ti, mi - tr
                store(yr, o + block, er * w1r - ei * w1i)
                store(yi, o + block, er * w1i + ei * w1r)
                er, ei = pr - sr, pi - si
                store(yr, o + 2 * block, er * w2r - ei * w2i)
                store(yi, o + 2 * block, er * w2i + ei * w2r)
                er, ei = mr - ti, mi + tr
                store(yr, o + 3 * block, er * w3r - ei * w3i)
                store(yi, o + 3 * block, er * w3i + ei * w3r)
        x, y = y, x
        xr, xi, yr, yi = yr, yi, xr, xi
        n //= 4
        block *= 4
    if n == 2:
        for i in range(0, block, _LANES):
            ar, ai = load(xr, i, 16), load(xi, i, 16)
            br, bi = load(xr, i + block, 16), load(xi, i + block, 16)
            store(yr, i, ar + br)
            store(yi, i, ai + bi)
            store(yr, i + block, ar - br)
            store(yi, i + block, ai - bi)
        return y
    return x


@njit(nogil=True, cache=True)
def _power(half: np.ndarray, roots: np.ndarray, out: np.ndarray) -> None:
    """The squared magnitudes of the real frames' spectra, times 4, from the transform of half the size."""
    zr, zi = half[0], half[1]
    wr, wi = roots[0], roots[1]
    count = zr.size
    for k in range(0, count + 1, _LANES):
        i = k % count
        j = (count - k) % count
        ar, ai, br, bi = load(zr, i, 16), load(zi, i, 16), load(zr, j, 16), load(zi, j, 16)
        even_r, even_i = ar + br, ai - bi
        odd_r, odd_i = ai + bi, br - ar
        cos, sin = _spread(wr[k // _LANES]), _spread(wi[k // _LANES])
        re = even_r + (odd_r * cos - odd_i * sin)
        im = even_i + (odd_r * sin + odd_i * cos)
        store(out, k, re * re + im * im)


@njit(nogil=True, cache=True)
def power_spectra(
    signal: np.ndarray,
    window: np.ndarray,
    step: int,
    start: int,
    reflect: bool,
    magnitude: bool,
    roots: np.ndarray,
    out: np.ndarray,
) -> None:
    """The power (or the magnitude) spectra of overlapping, windowed frames of a float32 signal.

    ``out[f, t]`` is of frequency ``f`` in the frame that begins at ``start + t * step``; ``roots`` are those of the
    transform's size. Past the signal's ends there is its reflection, or silence.
    """
    bins, frames = out.shape
    half = bins - 1
    x, y = np.empty((2, half * _LANES), np.float32), np.empty((2, half * _LANES), np.float32)
    power = np.empty(bins * _LANES, np.float32)
    quarter = np.float32(0.25)
    for first in range(0, frames, _LANES):
        count = min(_LANES, frames - first)
        _gather(signal, window, step, start + first * step, count, reflect, x)
        _power(_transform(x, y, roots), roots, power)
        for f in range(bins):
            for lane in range(count):
                value = power[f * _LANES + lane] * quarter
                out[f, first + lane] = np.sqrt(value) if magnitude else value
