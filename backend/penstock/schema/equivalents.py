"""Equivalents of operators in other libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A function or class of another library.

    Args:
        name: the qualified name: ``torchvision.transforms.v2.Resize``, ``PIL.Image.Image.resize``, ``cv2.resize``.
        differs: differences that matter when porting a program; empty if results agree.
    """

    name: str
    differs: str = ""
