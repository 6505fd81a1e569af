"""Transforms that apply other transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.plugin.torchvision._kinds import leaves_of, released
from penstock.plugin.torchvision._pixels import Pixels, has_pixel_mode, held, is_picture, is_pil
from penstock.plugin.torchvision._random import numbers, occurs
from penstock.plugin.torchvision._settings import probability
from penstock.plugin.torchvision._typing import Function, Nested
from penstock.plugin.torchvision.transforms.v2._finish import finishing
from penstock.plugin.torchvision.transforms.v2._transform import BuiltinTransform, Transform


def _holding(sample: Nested) -> Nested:
    """Return a sample with PIL images converted to `Pixels`; an array is converted, too, if it is the whole sample."""
    if is_picture(sample):
        return held(sample)
    if is_pil(sample):
        return held(sample) if has_pixel_mode(sample) else sample
    if isinstance(sample, (Pixels, np.ndarray)):
        return sample
    leaves, rebuilt = leaves_of(sample)
    return rebuilt([held(leaf) if is_pil(leaf) and has_pixel_mode(leaf) else leaf for leaf in leaves])


def _released(sample: Nested) -> Nested:
    """Return the sample with images in their original form."""
    if isinstance(sample, Pixels):
        return sample.released()
    leaves, rebuilt = leaves_of(sample)
    return rebuilt([released(leaf) for leaf in leaves])


def _applied(step: Function, sample: Nested, several: bool) -> Nested:
    """Apply a transform to a sample whose images are `Pixels`."""
    if isinstance(step, Container):
        return step.run(sample, several)
    if isinstance(step, Transform) and step.takes_pixels:
        return step.run(sample)
    original = _released(sample)
    return _holding(step(*original) if several else step(original))


def _check_steps(transforms: Sequence[Function]) -> Sequence[Function]:
    if not isinstance(transforms, Sequence) and not hasattr(transforms, "__getitem__"):
        raise TypeError(f"`transforms` must be a sequence of callables. Got: {type(transforms).__name__}")
    if not len(transforms):
        raise ValueError("`transforms` is empty: pass at least one transform")
    return transforms


class Container(BuiltinTransform):
    """Base class of transforms that apply other transforms."""

    transforms: Sequence[Function]

    def forward(self, *inputs: Nested) -> Nested:
        sample = inputs if len(inputs) > 1 else inputs[0]
        return _released(self.run(_holding(sample), len(inputs) > 1))

    def run(self, sample: Nested, several: bool = False) -> Nested:
        for step in self.chosen():
            sample = _applied(step, sample, several)
        return sample

    def chosen(self) -> Sequence[Function]:
        """Return the transforms to apply this time, in order."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return "\n".join(f"    {step}" for step in self.transforms)


class Compose(Container):
    """Applies one transform after another.

    PIL images are stored as arrays between the steps. If an image is resized and then cropped, only the crop is computed;
    conversion to a tensor and normalization are done in one table lookup.

    Args:
        transforms: transforms of this package or of torchvision, or any callables.

    Example:
        >>> from penstock.plugin.torchvision.transforms import v2
        >>> transform = v2.Compose([v2.Resize(256), v2.CenterCrop(224)])
    """

    def __init__(self, transforms: Sequence[Function]) -> None:
        self.transforms = _check_steps(transforms)
        self._steps = finishing(list(transforms))

    def chosen(self) -> Sequence[Function]:
        return self._steps


class RandomApply(Container):
    """Applies all transforms with a probability.

    Args:
        transforms: callables.
        p: the probability.
    """

    def __init__(self, transforms: Sequence[Function], p: float = 0.5) -> None:
        self.transforms = _check_steps(transforms)
        self.p = probability(p)

    def chosen(self) -> Sequence[Function]:
        return self.transforms if occurs(self.p) else ()


class RandomChoice(Container):
    """Applies one of the transforms, chosen at random.

    Args:
        transforms: callables.
        p: the weights of the transforms; equal by default.
    """

    def __init__(self, transforms: Sequence[Function], p: Sequence[float] | None = None) -> None:
        self.transforms = _check_steps(transforms)
        weights = [1] * len(transforms) if p is None else list(p)
        if len(weights) != len(transforms):
            raise ValueError(f"`p` has {len(weights)} values for {len(transforms)} transforms")
        self.p = [weight / sum(weights) for weight in weights]

    def chosen(self) -> Sequence[Function]:
        return [self.transforms[numbers().choice(self.p)]]


class RandomOrder(Container):
    """Applies all transforms, in random order.

    Args:
        transforms: callables.
    """

    def __init__(self, transforms: Sequence[Function]) -> None:
        self.transforms = _check_steps(transforms)

    def chosen(self) -> Sequence[Function]:
        return [self.transforms[index] for index in numbers().shuffled(len(self.transforms))]
