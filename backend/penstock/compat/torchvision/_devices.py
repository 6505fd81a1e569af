"""The argument `device` of DALI's transforms."""

from __future__ import annotations


def check_device(device: str) -> str:
    """Return a device if it is valid. It has no other effect: results are the same on both devices, and tensors are
    processed on the device that holds them.

    Raises:
        ValueError: the device is neither `cpu` nor `gpu`.
    """
    if device not in ("cpu", "gpu"):
        raise ValueError(f"`device` must be cpu or gpu. Got: {device!r}")
    return device
