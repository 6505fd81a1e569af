"""Types of transforms' arguments and results.

PyTorch's and Pillow's types are named for readers and type checkers only; neither library is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import PIL.Image
    import torch

Sample = TypeVar("Sample")
"""The type of a sample, which is also the type of a function's result: a PIL image, an array, a tensor, or a `TVTensor`."""

Nested: TypeAlias = Any
"""A sample: any nested containers with any values."""

Leaf: TypeAlias = Any
"""A value in a sample: an image, boxes, a label, or anything else. Other values pass through transforms unchanged."""

Function: TypeAlias = Callable[..., Any]
"""A function that is applied to a sample or a value."""

Params: TypeAlias = dict[str, Any]
"""The arguments of a function by name: both those drawn for a sample and fixed ones."""

PilImage: TypeAlias = "PIL.Image.Image"
Tensor: TypeAlias = "torch.Tensor"
DType: TypeAlias = "torch.dtype"
Device: TypeAlias = "torch.device | str"

Interpolation: TypeAlias = str | int | Enum
"""A filter: its name, Pillow's number, or a member of `InterpolationMode`, this package's or torchvision's."""

Fill: TypeAlias = float | Sequence[float] | None
"""A fill value for all channels, or one for each channel; None: zeros."""

Fills: TypeAlias = Fill | dict[type | str, Fill]
"""A :data:`Fill`, or a dictionary of them by type; the key `others` is for all other types."""

Size: TypeAlias = int | Sequence[int]
"""One number for both axes, or one for each."""

Floats: TypeAlias = float | Sequence[float]
"""One number, or several."""

Corners: TypeAlias = Sequence[Sequence[float]]
"""x and y of each corner."""

Canvas: TypeAlias = tuple[int, int]
"""The height and width of the image to which boxes or points belong."""

BoxFormat: TypeAlias = str | Enum
"""The name of a box format, or a member of `BoundingBoxFormat`, this package's or torchvision's."""
