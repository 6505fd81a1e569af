"""Equivalents of an operator in other libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A function or class of another library.

    Args:
        name: the qualified name: ``torchvision.transforms.v2.Resize``, ``PIL.Image.Image.resize``, ``cv2.resize``.
        differs: differences to mind when porting; empty if results agree.
    """

    name: str
    differs: str = ""
