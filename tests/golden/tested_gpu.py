"""The GPU on which tests run that need one: 0 unless pytest is told another (``pytest tests/gpu --device 1``)."""

from __future__ import annotations

_devices = [0]


def device() -> int:
    """The number of the GPU."""
    return _devices[-1]


def choose(number: int) -> None:
    """Has all tests run on this GPU."""
    _devices.append(number)
