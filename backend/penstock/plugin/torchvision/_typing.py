"""Types of transforms' arguments and results.

PyTorch and Pillow are named for readers and type checkers alone: neither is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import PIL.Image
    import torch

Sample = TypeVar("Sample")
"""The type of a sample, which a function returns as it got it: a PIL image, an array, a tensor, or a `TVTensor`."""

Nested: TypeAlias = Any
"""A sample, of whatever containers and values a caller nests."""

Leaf: TypeAlias = Any
"""One value of a sample: an image, boxes, a label, or anything else, which passes unchanged."""

Function: TypeAlias = Callable[..., Any]
"""A function applied to a sample or a value: a caller's, or one declared for some kinds of values."""

Params: TypeAlias = dict[str, Any]
"""Arguments of a function by name: those drawn for a sample, and those that are fixed."""

PilImage: TypeAlias = "PIL.Image.Image"
Tensor: TypeAlias = "torch.Tensor"
DType: TypeAlias = "torch.dtype"
Device: TypeAlias = "torch.device | str"

Interpolation: TypeAlias = str | int | Enum
"""A filter by its name, by Pillow's number, or as an `InterpolationMode`, also torchvision's."""

Fill: TypeAlias = float | Sequence[float] | None
"""One value, or one for each channel; None: zeros."""

Fills: TypeAlias = Fill | dict[type | str, Fill]
"""As :data:`Fill`, or by type; `others` for types that are not named."""

Size: TypeAlias = int | Sequence[int]
"""One number for both axes, or one for each."""

Floats: TypeAlias = float | Sequence[float]
"""One number, or several."""

Corners: TypeAlias = Sequence[Sequence[float]]
"""x and y of each corner."""

Canvas: TypeAlias = tuple[int, int]
"""The height and width of the image that boxes or points belong to."""

BoxFormat: TypeAlias = str | Enum
"""The name of a format of boxes, or a `BoundingBoxFormat`, also torchvision's."""
