"""The argument `device` of DALI's transforms."""

from __future__ import annotations


def check_device(device: str) -> str:
    """Return a device: results are the same on both. Tensors are computed on the device that holds them.

    Raises:
        ValueError: the device is neither `cpu` nor `gpu`.
    """
    if device not in ("cpu", "gpu"):
        raise ValueError(f"`device` is cpu or gpu. Got: {device!r}")
    return device
