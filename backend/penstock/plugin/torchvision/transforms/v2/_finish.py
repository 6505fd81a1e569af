"""Converts pixels to a normalized tensor, the last steps of most transforms, by one lookup in a table of 256 values."""

from __future__ import annotations

import numpy as np

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._kinds import kind_of, leaves_of
from penstock.plugin.torchvision._pixels import Pixels
from penstock.plugin.torchvision._random import torch
from penstock.plugin.torchvision._typing import Function, Nested, Tensor
from penstock.plugin.torchvision.transforms.v2._misc import ConvertImageDtype, Normalize, ToDtype
from penstock.plugin.torchvision.transforms.v2._transform import BuiltinTransform, Transform
from penstock.plugin.torchvision.transforms.v2._type_conversion import PILToTensor, ToImage, ToTensor


def scaling_of(steps: list[Function]) -> tuple[int, str, bool] | None:
    """Return how many of the first ``steps`` convert a PIL image to floats, the corresponding `reference` of
    `fn.rescale_normalize`, and whether the result is a `tv_tensors.Image`; None if the first steps do not do that.
    """
    if steps and type(steps[0]) is ToTensor:
        return 1, "to_tensor", False
    if len(steps) < 2 or type(steps[0]) not in (ToImage, PILToTensor):
        return None
    second = steps[1]
    if type(second) is ConvertImageDtype or (type(second) is ToDtype and second.scale):
        return (2, "to_dtype", type(steps[0]) is ToImage) if str(second.dtype).endswith("float32") else None
    return None


class Finish(BuiltinTransform):
    """Converts pixels to a normalized tensor in one step.

    Args:
        steps: the transforms that this one replaces; they run instead if a sample contains other values to transform.
        reference: the library whose arithmetic to follow; see `fn.rescale_normalize`.
        as_image: whether the result is a `tv_tensors.Image`.
        normalize: the last of the steps, if it is a `Normalize`; otherwise None.
    """

    def __init__(self, steps: list[Function], reference: str, as_image: bool, normalize: Normalize | None) -> None:
        from penstock.operators.image._normalizing import factors_of, table_of  # private: the operator's table

        self._steps = steps
        self._of_default_type = reference == "to_tensor"
        self._as_image = as_image
        mean, std = (normalize.mean, normalize.std) if normalize is not None else ((), ())
        self._table = table_of(reference, 255.0, mean, std)
        self._factors = factors_of(self._table, 255.0, mean, reference, std)

    def run(self, sample: Nested) -> Nested:
        leaves, rebuilt = leaves_of(sample)
        pixels = [position for position, leaf in enumerate(leaves) if isinstance(leaf, Pixels)]
        transformed = [position for position, leaf in enumerate(leaves) if kind_of(leaf) is not None]
        suits = pixels == transformed and len(pixels) == 1 and len(self._table) in (1, leaves[pixels[0]].channels)
        if not suits or (self._of_default_type and torch().get_default_dtype() != torch().float32):
            for step in self._steps:
                assert isinstance(step, Transform)
                sample = step.run(sample)
            return sample
        leaves[pixels[0]] = self._finished(leaves[pixels[0]])
        return rebuilt(leaves)

    def _finished(self, pixels: Pixels) -> Tensor:
        from penstock.operators.image.rescale_normalize import look_up

        result = np.empty((pixels.channels, *pixels.size), np.float32)
        look_up(pixels.array, self._table, result, (2, 0, 1), self._factors)
        tensor = torch().from_numpy(result)
        return tv_tensors.classes().Image(tensor) if self._as_image else tensor


def finishing(steps: list[Function]) -> list[Function]:
    """Return steps in which those that make a normalized tensor are merged into one."""
    for position in range(len(steps)):
        found = scaling_of(steps[position:])
        if found is None:
            continue
        count, reference, as_image = found
        following = steps[position + count] if position + count < len(steps) else None
        normalize = following if type(following) is Normalize and all(following.std) else None
        end = position + count + (normalize is not None)
        return [*steps[:position], Finish(steps[position:end], reference, as_image, normalize), *steps[end:]]
    return steps
