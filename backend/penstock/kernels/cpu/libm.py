"""The C library's mathematical functions of arrays.

DALI calls them, so they give its results to the bit; numpy's vectorized functions differ in the last digits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np

from penstock.kernels.cpu.foreign import call_for_real
from penstock.kernels.cpu.options import kernel

# What this process has loaded, which includes the mathematical functions.
_LOADED = ctypes.CDLL(None)


@cache
def _address(name: str, kind: np.dtype) -> int:
    function = getattr(_LOADED, name + "f" if kind == np.float32 else name)
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


@kernel
def _of_one(address: int, a: np.ndarray, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = call_for_real(address, (a[i],))


@kernel
def _of_two(address: int, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    # A number is not repeated in memory.
    step_a, step_b = int(a.size > 1), int(b.size > 1)
    for i in range(out.size):
        out[i] = call_for_real(address, (a[i * step_a], b[i * step_b]))


def evaluate(name: str, operands: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Computes C's function of broadcast operands into an array of float32 or float64."""
    result = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    first, *second = (_flat(operand, result) for operand in operands)
    if second:
        _of_two(_address(name, out.dtype), first, second[0], result.reshape(-1))
    else:
        _of_one(_address(name, out.dtype), first, result.reshape(-1))
    if result is not out:
        out[...] = result


def _flat(operand: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The operand in the result's type and, unless it is a number, of as many elements."""
    if operand.size > 1 and operand.shape != result.shape:
        operand = np.broadcast_to(operand, result.shape)
    return np.ascontiguousarray(operand, result.dtype).reshape(-1)
