"""Transforms that erase, mix and compress."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._kinds import kind_of, leaves_of, size_of
from penstock.plugin.torchvision._random import numbers, torch
from penstock.plugin.torchvision._settings import several
from penstock.plugin.torchvision._typing import Floats, Leaf, Nested, Params, Tensor
from penstock.plugin.torchvision.transforms.v2._misc import LabelsGetter, labels_of
from penstock.plugin.torchvision.transforms.v2._transform import (
    Applied,
    BuiltinTransform,
    RandomlyApplied,
    common_dimensions,
    common_size,
)

_MAX_ATTEMPTS = 10
_IMAGES = ("tensor", "image", "video")


class RandomErasing(RandomlyApplied):
    """Overwrites a random region with a probability. Needs PyTorch.

    Args:
        p: the probability.
        scale: the range of the region's area, as a fraction of the image's.
        ratio: the range of the region's height divided by its width.
        value: the new value: a number, one for each channel, or `random` for noise.
        inplace: whether to change the tensor in place.
    """

    function = "erase"

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Floats | str = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        if not isinstance(value, (int, float, str, tuple, list)):
            raise TypeError(f"`value` must be a number, a sequence or 'random'. Got: {value!r}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"`value` must be 'random' if it is a string. Got: {value!r}")
        for name, bounds in (("scale", scale), ("ratio", ratio)):
            if not isinstance(bounds, Sequence):
                raise TypeError(f"`{name}` must be a sequence. Got: {bounds!r}")
            if bounds[0] > bounds[1]:
                warnings.warn(f"`{name}` goes from {bounds[0]} to {bounds[1]}, which is less", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError(f"`scale` must be within 0 and 1. Got: {scale}")
        self.scale, self.ratio, self.inplace = scale, ratio, inplace
        self.value: list[float] | None = None
        if not isinstance(value, str):
            self.value = [float(number) for number in (value if isinstance(value, (tuple, list)) else [value])]

    @staticmethod
    def get_params(
        img: Leaf, scale: Sequence[float], ratio: Sequence[float], value: list[float] | None = None
    ) -> tuple[int, int, int, int, Tensor]:
        """Return top, left, height and width of a random region, and the new values; if none fits, the image with its own values."""
        found = RandomErasing(1.0, scale, ratio, "random" if value is None else value).make_params([img])
        if not found:
            return 0, 0, *size_of(img), img
        return found["i"], found["j"], found["h"], found["w"], found["v"]

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        channels, height, width = common_dimensions(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(f"`value` has {len(self.value)} values for {channels} channels")
        for _ in range(_MAX_ATTEMPTS):
            area = height * width * numbers().between(*self.scale)
            ratio = numbers().exponential(*self.ratio)
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if h >= height or w >= width:
                continue
            if self.value is None:
                values = torch().empty([channels, h, w]).normal_()
            else:
                values = torch().tensor(self.value)[:, None, None]
            top = numbers().below(0, height - h + 1)
            return {"i": top, "j": numbers().below(0, width - w + 1), "h": h, "w": w, "v": values}
        return {}

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        if kind_of(inpt) in ("boxes", "mask", "points"):
            warnings.warn(
                f"RandomErasing is currently passing through inputs of type {type(inpt).__name__}", stacklevel=2
            )
        return self.call("erase", inpt, **params, inplace=self.inplace) if params else inpt


class _Mixing(BuiltinTransform):
    """Mixes each image of a batch with its predecessor, and the labels in the same proportion. Needs PyTorch.

    Args:
        alpha: the parameter of the beta distribution from which the proportion is drawn.
        num_classes: the number of classes, for labels that are numbers.
        labels_getter: a function that finds the labels in a sample, or a value of :data:`LabelsGetter`.
    """

    kinds = frozenset(_IMAGES)

    def __init__(
        self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: LabelsGetter = "default"
    ) -> None:
        self.alpha = float(alpha)
        self.num_classes = num_classes
        self._labels_of = labels_of(labels_getter)

    def _share(self) -> float:
        library = torch()
        return float(library.distributions.Beta(*[library.tensor([self.alpha])] * 2).sample(()))

    def mixed(self, image: Leaf, params: Params) -> Leaf:
        """Mix the images of a batch."""
        raise NotImplementedError

    def run(self, sample: Nested) -> Nested:
        leaves, rebuilt = leaves_of(sample)
        if any(kind_of(leaf) in ("pixels", "mask", "boxes", "points") for leaf in leaves):
            raise ValueError(f"{type(self).__name__} is for tensors, and not for PIL's images, masks, boxes and points")
        labels = self._labels_of(sample)
        self._check(labels)
        wanted = self.wanted(leaves)
        params = self.make_params([leaf for leaf, want in zip(leaves, wanted) if want])
        results = []
        for leaf, want in zip(leaves, wanted):
            if leaf is labels:
                results.append(self._mixed_labels(leaf, params["share"]))
            elif want:
                results.append(self._checked(leaf, len(labels), params))
            else:
                results.append(leaf)
        return rebuilt(results)

    def _check(self, labels: Tensor) -> None:
        if not isinstance(labels, torch().Tensor):
            raise ValueError(f"Labels must be a tensor. Got: {type(labels).__name__}")
        if labels.ndim not in (1, 2):
            raise ValueError(
                f"Labels must have shape (N,), for numbers, or (N, classes), for probabilities. Got the shape {tuple(labels.shape)}"
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("`num_classes` is needed where labels are numbers")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[1]):
            raise ValueError(f"`num_classes` is {self.num_classes}, but labels have {labels.shape[1]} probabilities")

    def _checked(self, image: Leaf, count: int, params: Params) -> Leaf:
        axes = 5 if kind_of(image) == "video" else 4
        if image.ndim != axes or len(image) != count:
            raise ValueError(f"Expected a batch of {count} with {axes} dimensions. Got the shape {tuple(image.shape)}")
        result = self.mixed(image.as_subclass(torch().Tensor), params)
        return result if kind_of(image) == "tensor" else tv_tensors.classes().wrap(result, like=image)

    def _mixed_labels(self, labels: Tensor, share: float) -> Tensor:
        if labels.ndim == 1:
            labels = torch().nn.functional.one_hot(labels, num_classes=self.num_classes)
        return _mixture(labels if labels.is_floating_point() else labels.float(), share)


def _mixture(values: Tensor, share: float) -> Tensor:
    return values.roll(1, 0).mul_(1.0 - share).add_(values.mul(share))


class MixUp(_Mixing):
    """Blends each image of a batch with its predecessor."""

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"share": self._share()}

    def mixed(self, image: Leaf, params: Params) -> Leaf:
        return _mixture(image, params["share"])


class CutMix(_Mixing):
    """Replaces a region of each image of a batch by the same region of its predecessor."""

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        share = self._share()
        height, width = common_size(flat_inputs)
        x, y = numbers().below(0, width), numbers().below(0, height)
        half = 0.5 * math.sqrt(1.0 - share)
        across, down = int(half * width), int(half * height)
        left, right = max(x - across, 0), min(x + across, width)
        top, bottom = max(y - down, 0), min(y + down, height)
        share = float(1.0 - (right - left) * (bottom - top) / (width * height))
        return {"place": (slice(top, bottom), slice(left, right)), "share": share}

    def mixed(self, image: Leaf, params: Params) -> Leaf:
        result, region = image.clone(), (..., *params["place"])
        result[region] = image.roll(1, 0)[region]
        return result


class JPEG(Applied):
    """Compresses images as JPEG, and decodes them again.

    Args:
        quality: the JPEG quality from 1 to 100, or the range from which it is drawn.
    """

    function = "jpeg"

    def __init__(self, quality: int | Sequence[int]) -> None:
        bounds = [quality, quality] if isinstance(quality, int) else several(quality, "quality")
        if any(not isinstance(bound, int) or isinstance(bound, bool) for bound in bounds):
            raise TypeError(f"`quality` must be a number, or two. Got: {quality!r}")
        if not 1 <= bounds[0] <= bounds[1] <= 100:
            raise ValueError(f"`quality` must be from 1 to 100. Got: {quality!r}")
        self.quality = bounds

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"quality": numbers().below(self.quality[0], self.quality[1] + 1)}
