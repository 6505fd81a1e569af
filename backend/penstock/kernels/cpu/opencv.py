"""OpenCV, for operators defined by one of its functions. It releases the GIL."""

from __future__ import annotations

import functools
from types import ModuleType

import numpy as np


@functools.cache
def opencv() -> ModuleType:
    """OpenCV's module; raises ImportError with installation advice if it is missing."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("OpenCV is needed for this operator: pip install opencv-python-headless") from error
    return cv2


def border(name: str) -> int:
    """OpenCV's constant for a border: ``constant``, ``replicate``, ``reflect``, ``reflect_101`` or ``wrap``."""
    return int(getattr(opencv(), f"BORDER_{name.upper()}"))


def images(array: np.ndarray, layout: str) -> list[np.ndarray]:
    """Views of an HW, HWC or CHW array as images for OpenCV: single planes if channels come first."""
    return list(array) if layout.startswith("C") else [array]


def keep(result: np.ndarray, target: np.ndarray) -> None:
    """Copies a function's result to ``target``, unless it was written there already."""
    if not np.may_share_memory(result, target):
        target[...] = result.reshape(target.shape)
