"""The GPU to test on: 0 unless selected (``pytest tests/gpu --device 1``)."""

from __future__ import annotations

_devices = [0]


def device() -> int:
    """Return the number of the GPU."""
    return _devices[-1]


def choose(number: int) -> None:
    """Make all tests run on this GPU."""
    _devices.append(number)
