"""Transforms that convert images to tensors, and back."""

from __future__ import annotations

import numpy as np

from penstock.plugin.torchvision._conversion import pil_to_tensor, to_image, to_pil_image, to_tensor
from penstock.plugin.torchvision._kinds import kind_of
from penstock.plugin.torchvision._pixels import Pixels
from penstock.plugin.torchvision._typing import Leaf, Nested, Params
from penstock.plugin.torchvision.transforms.v2._transform import BuiltinTransform


class PILToTensor(BuiltinTransform):
    """Converts a PIL image to a tensor (C, H, W) of the same type."""

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        return [kind_of(leaf) == "pixels" and not isinstance(leaf, np.ndarray) for leaf in leaves]

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return pil_to_tensor(inpt)


class ToImage(BuiltinTransform):
    """Converts a PIL image, an array (H, W, C) or a tensor to a `tv_tensors.Image`."""

    kinds = frozenset({"pixels", "tensor"})

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        return [want or isinstance(leaf, np.ndarray) for leaf, want in zip(leaves, super().wanted(leaves))]

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return to_image(inpt)


class ToTensor(BuiltinTransform):
    """Converts a PIL image or an array (H, W, C) to a tensor (C, H, W); uint8 becomes floats from 0 to 1.

    Deprecated in torchvision, which names `ToImage()` and `ToDtype(torch.float32, scale=True)` instead.
    """

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        return [kind_of(leaf) == "pixels" or isinstance(leaf, np.ndarray) for leaf in leaves]

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return to_tensor(inpt)


class ToPILImage(BuiltinTransform):
    """Converts a tensor (C, H, W) or an array (H, W, C) to a PIL image.

    Args:
        mode: the mode of the PIL image; by default derived from the number of channels and the type.
    """

    kinds = frozenset({"tensor", "image"})

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        return [want or isinstance(leaf, np.ndarray) for leaf, want in zip(leaves, super().wanted(leaves))]

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return to_pil_image(inpt, self.mode)

    def run(self, sample: Nested) -> Nested:
        # An array that is the whole sample is passed as an array, not in the form of an image.
        return super().run(sample.array if isinstance(sample, Pixels) and sample.as_array else sample)


class ToPureTensor(BuiltinTransform):
    """Converts a `tv_tensors` value to a plain tensor."""

    kinds = frozenset({"image", "video", "mask", "boxes", "points"})

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        import torch

        return inpt.as_subclass(torch.Tensor)
