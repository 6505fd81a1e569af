"""`frame_signal` cuts signals as numpy's sliding windows do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_batch import outputs

from penstock import fn
from penstock.errors import PenstockError


def frames(*signals: np.ndarray, **arguments: Any) -> list[np.ndarray]:
    (found,) = outputs(
        lambda: fn.frame_signal(fn.external_source(name="signals", ndim=signals[0].ndim), **arguments), signals=signals
    )
    return found


def expected(signal: np.ndarray, length: int, step: int, before: int, pad_end: bool, fill: float) -> np.ndarray:
    """Frame a signal by definition: pad it, and take every window that begins at a multiple of the step."""
    if not len(signal):
        return np.zeros((0, length, *signal.shape[1:]), signal.dtype)
    edge = [(0, 0)] * (signal.ndim - 1)
    count, behind = len(signal) + before, 0
    while pad_end and (count + behind < length or (count + behind - length) % step):
        behind += 1
    if behind >= length:  # the last frame would consist of padding only
        behind = 0
    filled = np.pad(signal, [(before, behind), *edge], constant_values=fill)
    if len(filled) < length:
        return np.zeros((0, length, *signal.shape[1:]), signal.dtype)
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(filled, length, axis=0)[::step], -1, 1)


@pytest.mark.parametrize("before", [0, 3, 64])
@pytest.mark.parametrize("pad_end", [True, False])
@pytest.mark.parametrize(("length", "step"), [(1, 1), (5, 5), (5, 2), (3, 7), (576, 512)])
def test_frames_are_windows(length: int, step: int, before: int, pad_end: bool) -> None:
    signals = [np.arange(1, count + 1, dtype=np.float32) for count in (0, 1, 2, 3, 4, 5, 6, 7, 20, 511, 512, 513, 1500)]
    found = frames(*signals, frame_length=length, step=step, pad_begin=before, pad_end=pad_end, fill_value=-1.0)
    for signal, own in zip(signals, found, strict=True):
        np.testing.assert_array_equal(own, expected(signal, length, step, before, pad_end, -1.0))


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.float64, np.float16])
def test_types_and_further_dimensions(dtype: type[np.generic]) -> None:
    signal = np.arange(66).reshape(11, 3, 2).astype(dtype)
    (found,) = frames(signal, frame_length=4, step=3)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected(signal, 4, 3, 0, True, 0))


def test_the_step_is_the_length_by_default() -> None:
    (found,) = frames(np.arange(10, dtype=np.float32), frame_length=4)
    assert found.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"frame_length": 0}, "`frame_length` must be 1 or more. Got: 0"),
        ({"frame_length": 4, "step": 0}, "`step` must be 1 or more. Got: 0"),
        ({"frame_length": 4, "pad_begin": -1}, "`pad_begin` must be 0 or more. Got: -1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, int], reason: str) -> None:
    with pytest.raises((PenstockError, ValueError), match=reason):
        frames(np.zeros(4, np.float32), **arguments)


def test_truth_values_and_numbers_are_no_signals() -> None:
    with pytest.raises(PenstockError, match="Signals must be numbers, got"):
        frames(np.zeros(4, bool), frame_length=2)
    with pytest.raises(PenstockError, match="at least one dimension: time"):
        frames(np.array(1.0, np.float32), frame_length=2)
