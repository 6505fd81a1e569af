"""The base classes of transforms."""

from __future__ import annotations

import enum
import importlib.util
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from penstock.plugin.torchvision._kinds import call, dimensions_of, is_user_subclass, kind_of, leaves_of, size_of
from penstock.plugin.torchvision._pixels import Pixels
from penstock.plugin.torchvision._random import occurs, torch
from penstock.plugin.torchvision._settings import probability
from penstock.plugin.torchvision._typing import Fill, Leaf, Nested, Params

EVERYTHING = frozenset({"pixels", "tensor", "image", "video", "mask", "boxes", "points"})


def _module() -> Any:
    """Return `torch.nn.Module`, or, without PyTorch, a class with the members that transforms use."""
    if importlib.util.find_spec("torch"):
        return torch().nn.Module
    return _Module


class _Module:
    """A substitute for `torch.nn.Module`; a call runs `forward`."""

    training = True

    def __call__(self, *inputs: Nested) -> Nested:
        return self.forward(*inputs)  # type: ignore[attr-defined]

    def train(self, mode: bool = True) -> _Module:
        """Set whether the transform is used in training, which has no effect."""
        self.training = mode
        return self

    def eval(self) -> _Module:
        """Call ``train(False)``."""
        return self.train(False)

    def __repr__(self) -> str:
        lines = self.extra_repr().split("\n")  # type: ignore[attr-defined]
        inside = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines) + "\n"
        return f"{type(self).__name__}({inside})"


class Transform(_module()):  # type: ignore[misc]
    """A transform of samples. A sample is an image, or any nested containers with images and other values.

    To write a transform, override :meth:`make_params` and :meth:`transform`. If a sample has no PIL image,
    `tv_tensors.Image` or `Video`, its first tensor is the image. A uint8 array (H, W, C) is an image only if it is
    the whole sample.
    """

    kinds: ClassVar[frozenset[str]] = EVERYTHING
    """The kinds of values that the transform changes; other values pass unchanged."""

    takes_pixels: ClassVar[bool] = False
    """Whether :meth:`transform` accepts images in the form in which `Compose` passes them from one transform to the next."""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        made = super().__new__(cls)
        # Initialized here, because the `__init__` of a subclass need not call `super().__init__`.
        super(Transform, made).__init__()
        return made

    def check_inputs(self, flat_inputs: list[Leaf]) -> None:
        """Raise an error if the transform does not accept the values of a sample."""

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        """Return the parameters for one sample; random ones are drawn here."""
        return {}

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        """Transform one value of the sample."""
        raise NotImplementedError(f"{type(self).__name__} does not implement `transform`")

    def forward(self, *inputs: Nested) -> Nested:
        """Return the transformed sample, which is passed as one argument or several."""
        return self.run(inputs if len(inputs) > 1 else inputs[0])

    def run(self, sample: Nested) -> Nested:
        """Return the transformed sample."""
        leaves, rebuilt = leaves_of(sample)
        self.check_inputs(leaves)
        if not self.applies():
            return sample
        wanted = self.wanted(leaves)
        params = self.make_params([leaf for leaf, want in zip(leaves, wanted) if want])
        return rebuilt([self.transform(leaf, params) if want else leaf for leaf, want in zip(leaves, wanted)])

    def applies(self) -> bool:
        """Return whether the transform is applied to the current sample."""
        return True

    def wanted(self, leaves: list[Leaf]) -> list[bool]:
        """Return, for each value of a sample, whether it is transformed."""
        found = [kind_of(leaf) for leaf in leaves]
        is_array = [isinstance(leaf, np.ndarray) for leaf in leaves]
        has_image = any(
            kind in ("image", "video") or (kind == "pixels" and not array) for kind, array in zip(found, is_array)
        )
        first = found.index("tensor") if "tensor" in found and not has_image else -1
        return [
            (kind in self.kinds or (kind is None and self.kinds is EVERYTHING and is_user_subclass(leaves[position])))
            and (position == first if kind == "tensor" else len(leaves) == 1 if is_array[position] else True)
            for position, kind in enumerate(found)
        ]

    def call(self, name: str, inpt: Leaf, *args: object, **kwargs: object) -> Leaf:
        """Apply a function of `functional` to a value; values that the function does not accept are returned unchanged."""
        return call(name, inpt, *args, or_pass=True, **kwargs)

    def extra_repr(self) -> str:
        """Return the transform's settings as text."""
        plain = (bool, int, float, str, tuple, list, enum.Enum)
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "training"}
        return ", ".join(f"{name}={value}" for name, value in public.items() if isinstance(value, plain))


class BuiltinTransform(Transform):
    """A transform of this package."""

    takes_pixels = True


class Applied(BuiltinTransform):
    """A transform of this package that applies its :attr:`function` to each value."""

    function: ClassVar[str] = ""

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        """Return the function's arguments."""
        return params

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        return self.call(self.function, inpt, **self.arguments(inpt, params))


class RandomlyApplied(Applied):
    """A transform of this package that is applied with probability ``p``.

    Args:
        p: the probability of being applied.
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = probability(p)

    def applies(self) -> bool:
        return occurs(self.p)


def fill_for(fills: Mapping[type | str, Fill], inpt: Leaf) -> Fill:
    """Return the fill value for the type of a value."""
    kind: type | str = type(inpt)
    if kind is Pixels:
        kind = next((known for known in fills if getattr(known, "__module__", "") == "PIL.Image"), kind)
    return fills.get(kind, fills.get("others"))


def common_size(leaves: list[Leaf]) -> tuple[int, int]:
    """Return the height and width, which all images, masks, boxes and points of a sample must share.

    Raises:
        TypeError: there are no such values.
        ValueError: the values differ in size.
    """
    found = {size_of(leaf) for leaf in leaves if kind_of(leaf) is not None}
    if not found:
        raise TypeError("The sample holds no image, video, mask, boxes or points")
    if len(found) > 1:
        raise ValueError(f"Images, masks and boxes of a sample must have the same size. Got: {sorted(found)}")
    return found.pop()


def common_dimensions(leaves: list[Leaf]) -> tuple[int, int, int]:
    """Return the number of channels, the height and the width, which all images of a sample must share.

    Raises:
        TypeError: there are no images.
        ValueError: the images differ in one of them.
    """
    images = ("pixels", "tensor", "image", "video")
    found = {dimensions_of(leaf) for leaf in leaves if kind_of(leaf) in images}
    if not found:
        raise TypeError("The sample holds no image or video")
    if len(found) > 1:
        raise ValueError(f"Images of a sample must have the same size and number of channels. Got: {sorted(found)}")
    return found.pop()
