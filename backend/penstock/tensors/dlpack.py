"""DLPack capsules, which older libraries exchange in place of objects with ``__dlpack__``."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.tensors.cuda import require_cupy

_CPU, _CUDA = 1, 2


class Capsule:
    """Wraps a DLPack capsule in an object with ``__dlpack__``, the form that array libraries accept."""

    def __init__(self, capsule: object, device: tuple[int, int] = (_CPU, 0)) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def is_capsule(value: object) -> bool:
    """Return whether a value is a capsule, such as DLPack's."""
    return type(value).__name__ == "PyCapsule"


def to_capsule(array: Any) -> Any:
    """Return a DLPack capsule of a NumPy or CuPy array; a read-only array is copied."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        array = array.copy()
    return array.__dlpack__()


def from_dlpack(value: object, on_gpu: bool) -> Any:
    """Return the array of a DLPack capsule, or of an object with ``__dlpack__``; raise TypeError for anything else."""
    if is_capsule(value):
        value = Capsule(value, (_CUDA, require_cupy().cuda.Device().id) if on_gpu else (_CPU, 0))
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"The function must return DLPack capsules or tensors, got a {type(value).__name__}")
    return require_cupy().from_dlpack(value) if on_gpu else np.from_dlpack(value)
