"""What does the same as an operator in other libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A function or class of another library.

    Args:
        name: as it is imported: ``torchvision.transforms.v2.Resize``, ``PIL.Image.Image.resize``, ``cv2.resize``.
        differs: what to mind when moving from one to the other; empty where results agree.
    """

    name: str
    differs: str = ""
