"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment and AugMix, with torchvision's random draws."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from penstock.plugin.torchvision import tv_tensors
from penstock.plugin.torchvision._conversion import pil_to_tensor, to_pil_image
from penstock.plugin.torchvision._kinds import call, kind_of, leaves_of, size_of
from penstock.plugin.torchvision._on_tensors.dtypes import max_value_of
from penstock.plugin.torchvision._pixels import Pixels, has_pixel_mode, held, is_pil
from penstock.plugin.torchvision._random import happens, numbers, torch
from penstock.plugin.torchvision._settings import fills_of
from penstock.plugin.torchvision._typing import Fill, Fills, Function, Interpolation, Leaf, Nested, Tensor
from penstock.plugin.torchvision.transforms.v2._transform import BuiltinTransform, fill_for

_PARAMETER_MAX = 10


class AutoAugmentPolicy(enum.Enum):
    """The data set for which a policy was found."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# The pairs of each policy. An operation consists of its name, probability and magnitude out of ten (-: none).
_POLICIES = {
    "imagenet": """
        Posterize .4 8, Rotate .6 9; Solarize .6 5, AutoContrast .6 -; Equalize .8 -, Equalize .6 -;
        Posterize .6 7, Posterize .6 6; Equalize .4 -, Solarize .2 4; Equalize .4 -, Rotate .8 8;
        Solarize .6 3, Equalize .6 -; Posterize .8 5, Equalize 1 -; Rotate .2 3, Solarize .6 8;
        Equalize .6 -, Posterize .4 6; Rotate .8 8, Color .4 0; Rotate .4 9, Equalize .6 -; Equalize 0 -, Equalize .8 -;
        Invert .6 -, Equalize 1 -; Color .6 4, Contrast 1 8; Rotate .8 8, Color 1 2; Color .8 8, Solarize .8 7;
        Sharpness .4 7, Invert .6 -; ShearX .6 5, Equalize 1 -; Color .4 0, Equalize .6 -; Equalize .4 -, Solarize .2 4;
        Solarize .6 5, AutoContrast .6 -; Invert .6 -, Equalize 1 -; Color .6 4, Contrast 1 8; Equalize .8 -, Equalize .6 -
    """,
    "cifar10": """
        Invert .1 -, Contrast .2 6; Rotate .7 2, TranslateX .3 9; Sharpness .8 1, Sharpness .9 3;
        ShearY .5 8, TranslateY .7 9; AutoContrast .5 -, Equalize .9 -; ShearY .2 7, Posterize .3 7;
        Color .4 3, Brightness .6 7; Sharpness .3 9, Brightness .7 9; Equalize .6 -, Equalize .5 -;
        Contrast .6 7, Sharpness .6 5; Color .7 7, TranslateX .5 8; Equalize .3 -, AutoContrast .4 -;
        TranslateY .4 3, Sharpness .2 6; Brightness .9 6, Color .2 8; Solarize .5 2, Invert 0 -;
        Equalize .2 -, AutoContrast .6 -; Equalize .2 -, Equalize .6 -; Color .9 9, Equalize .6 -;
        AutoContrast .8 -, Solarize .2 8; Brightness .1 3, Color .7 0; Solarize .4 5, AutoContrast .9 -;
        TranslateY .9 9, TranslateY .7 9; AutoContrast .9 -, Solarize .8 3; Equalize .8 -, Invert .1 -;
        TranslateY .7 9, AutoContrast .9 -
    """,
    "svhn": """
        ShearX .9 4, Invert .2 -; ShearY .9 8, Invert .7 -; Equalize .6 -, Solarize .6 6; Invert .9 -, Equalize .6 -;
        Equalize .6 -, Rotate .9 3; ShearX .9 4, AutoContrast .8 -; ShearY .9 8, Invert .4 -; ShearY .9 5, Solarize .2 6;
        Invert .9 -, AutoContrast .8 -; Equalize .6 -, Rotate .9 3; ShearX .9 4, Solarize .3 3; ShearY .8 8, Invert .7 -;
        Equalize .9 -, TranslateY .6 6; Invert .9 -, Equalize .6 -; Contrast .3 3, Rotate .8 4; Invert .8 -, TranslateY 0 2;
        ShearY .7 6, Solarize .4 8; Invert .6 -, Rotate .8 4; ShearY .3 7, TranslateX .9 3; ShearX .1 6, Invert .6 -;
        Solarize .7 2, TranslateY .6 7; ShearY .8 4, Invert .8 -; ShearX .7 9, TranslateY .8 3; ShearY .8 5, AutoContrast .7 -;
        ShearX .7 2, Invert .1 -
    """,
}


class _Choice(NamedTuple):
    """An operation of a policy, with its probability and magnitude."""

    name: str
    probability: float
    magnitude: int | None


def _policy(text: str) -> list[list[_Choice]]:
    def choice(words: str) -> _Choice:
        name, probability, magnitude = words.split()
        return _Choice(name, float(probability), None if magnitude == "-" else int(magnitude))

    return [[choice(words) for words in pair.split(",")] for pair in text.split(";")]


class _Range(NamedTuple):
    """The magnitudes of an operation.

    Attributes:
        first, last: the range of the magnitudes; if ``by_side`` is set, as fractions of the image's height or width.
        signed: whether the magnitude is negated at random.
        by_side: 0: magnitudes are relative to the height; 1: to the width; None: absolute.
        drops: for `Posterize`, whose magnitudes are numbers of bits: by how many bits they decrease.
    """

    first: float
    last: float
    signed: bool = True
    by_side: int | None = None
    drops: float = 0.0

    def values(self, bins: int, extents: tuple[int, int]) -> np.ndarray:
        """Return ``bins`` magnitudes for an image, rounded like those of `torch.linspace`."""
        if self.drops:
            steps = np.arange(bins).astype(np.float32) / np.float32((bins - 1) / self.drops)
            return np.round(np.float32(self.first) - steps)
        last = self.last if self.by_side is None else self.last * extents[self.by_side]
        return levels(self.first, last, bins)


def levels(first: float, last: float, count: int) -> np.ndarray:
    """Return ``count`` evenly spaced numbers in single precision, each computed from the nearer end, as PyTorch does."""
    low, high = np.float32(first), np.float32(last)
    if count == 1:
        return np.array([low], np.float32)
    step = np.float64((high - low) / np.float32(count - 1))
    positions = np.arange(count)
    up = np.float64(low) + step * positions
    down = np.float64(high) - step * (count - 1 - positions)
    return np.where(positions < count // 2, up, down).astype(np.float32)


_PLAIN = {"AutoContrast": None, "Equalize": None}
_LOOKS = ("Brightness", "Color", "Contrast", "Sharpness")
Space = Mapping[str, _Range | None]


def _space(
    shear: float, across: _Range, down: _Range, turn: float, look: float, bits: _Range
) -> dict[str, _Range | None]:
    return {
        "ShearX": _Range(0.0, shear),
        "ShearY": _Range(0.0, shear),
        "TranslateX": across,
        "TranslateY": down,
        "Rotate": _Range(0.0, turn),
        **{name: _Range(0.0, look) for name in _LOOKS},
        "Posterize": bits,
        "Solarize": _Range(1.0, 0.0, signed=False),
        **_PLAIN,
    }


_MAX_TRANSLATE_FRACTION = 150.0 / 331.0
_RANDAUGMENT = _space(
    0.3,
    _Range(0.0, _MAX_TRANSLATE_FRACTION, by_side=1),
    _Range(0.0, _MAX_TRANSLATE_FRACTION, by_side=0),
    30.0,
    0.9,
    _Range(8, 0, False, drops=4),
)
_WIDE = _space(0.99, _Range(0.0, 32.0), _Range(0.0, 32.0), 135.0, 0.99, _Range(8, 0, False, drops=6))
_ONE_THIRD = 1.0 / 3.0
# AugMix's first nine operations do not change brightness or colour; the operations after them do.
_AUGMIX = _space(
    0.3, _Range(0.0, _ONE_THIRD, by_side=1), _Range(0.0, _ONE_THIRD, by_side=0), 30.0, 0.9, _Range(4, 0, False, drops=4)
)
_AUGMIX_WITHOUT_COLOURS = {name: known for name, known in _AUGMIX.items() if name not in _LOOKS}
_AUGMIX_ALL = {**_AUGMIX_WITHOUT_COLOURS, **{name: _AUGMIX[name] for name in _LOOKS}}


def _sheared(axis: int) -> Function:
    def shear(image: Leaf, magnitude: float, interpolation: Interpolation, fill: Fill) -> Leaf:
        angles = [0.0, 0.0]
        angles[axis] = math.degrees(math.atan(magnitude))
        return call("affine", image, 0.0, [0, 0], 1.0, angles, interpolation, fill, center=[0, 0])

    return shear


def _translated(axis: int) -> Function:
    def translate(image: Leaf, magnitude: float, interpolation: Interpolation, fill: Fill) -> Leaf:
        distances = [0, 0]
        distances[axis] = int(magnitude)
        return call("affine", image, 0.0, distances, 1.0, [0.0, 0.0], interpolation, fill)

    return translate


def _solarized(image: Leaf, magnitude: float, **_how: object) -> Leaf:
    white = 255.0 if kind_of(image) == "pixels" else max_value_of(image.dtype)
    return call("solarize", image, threshold=white * magnitude)


def _adjusted(name: str) -> Function:
    return lambda image, magnitude, **_how: call(f"adjust_{name}", image, 1.0 + magnitude)


_AUGMENTATIONS: Mapping[str, Function] = {
    "Identity": lambda image, magnitude, **_how: image,
    "ShearX": _sheared(0),
    "ShearY": _sheared(1),
    "TranslateX": _translated(0),
    "TranslateY": _translated(1),
    "Rotate": lambda image, magnitude, **how: call("rotate", image, magnitude, **how),
    "Brightness": _adjusted("brightness"),
    "Color": _adjusted("saturation"),
    "Contrast": _adjusted("contrast"),
    "Sharpness": _adjusted("sharpness"),
    "Posterize": lambda image, magnitude, **_how: call("posterize", image, bits=int(magnitude)),
    "Solarize": _solarized,
    "AutoContrast": lambda image, magnitude, **_how: call("autocontrast", image),
    "Equalize": lambda image, magnitude, **_how: call("equalize", image),
    "Invert": lambda image, magnitude, **_how: call("invert", image),
}


class AutomaticAugmentation(BuiltinTransform):
    """Augments the image of a sample, which must be the only one, without boxes, masks or points.

    Args:
        interpolation: `nearest`, `bilinear`, or, for PIL images only, `bicubic`.
        fill: the value of pixels from outside the image; as for `Pad`.
    """

    def __init__(self, interpolation: Interpolation = "nearest", fill: Fills = None) -> None:
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_of(fill)

    def augmented(self, image: Leaf, extents: tuple[int, int]) -> Leaf:
        """Return an augmented image."""
        raise NotImplementedError

    def run(self, sample: Nested) -> Nested:
        leaves, rebuilt = leaves_of(sample)
        wanted = self.wanted(leaves)
        kinds = [kind_of(leaf) if want else None for leaf, want in zip(leaves, wanted)]
        if set(kinds) & {"mask", "boxes", "points"}:
            raise TypeError(f"{type(self).__name__} is for images, and not for masks, boxes and points")
        positions = [index for index, kind in enumerate(kinds) if kind is not None]
        if len(positions) != 1:
            raise TypeError(f"{type(self).__name__} needs one image or video. The sample holds {len(positions)}")
        image = leaves[positions[0]]
        leaves[positions[0]] = self.augmented(image, size_of(image))
        return rebuilt(leaves)

    def applied(self, image: Leaf, name: str, magnitude: float) -> Leaf:
        """Apply the augmentation ``name`` to an image."""
        how = {"interpolation": self.interpolation, "fill": fill_for(self._fill, image)}
        return _AUGMENTATIONS[name](image, magnitude, **how)

    def drawn(self, image: Leaf, space: Space, bins: int, extents: tuple[int, int], level: Callable[[], int]) -> Leaf:
        """Apply an augmentation drawn at random from ``space``; ``level`` returns the index of its magnitude's bin."""
        name = list(space)[numbers().below(0, len(space))]
        return self.applied(image, name, _magnitude(space[name], bins, extents, level))


def _magnitude(known: _Range | None, bins: int, extents: tuple[int, int], level: Callable[[], int]) -> float:
    if known is None:
        return 0.0
    magnitude = float(known.values(bins, extents)[level()])
    return -magnitude if known.signed and happens(0.5) else magnitude


class AutoAugment(AutomaticAugmentation):
    """Applies a random pair of augmentations from a learned policy.

    Args:
        policy: a member of `AutoAugmentPolicy`.
        interpolation, fill: the interpolation of warps, and the value of pixels from outside the image.
    """

    def __init__(
        self,
        policy: enum.Enum | str = AutoAugmentPolicy.IMAGENET,
        interpolation: Interpolation = "nearest",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation, fill)
        name = getattr(policy, "value", policy)
        if name not in _POLICIES:
            raise ValueError(f"`policy` must be one of {', '.join(_POLICIES)}. Got: {policy!r}")
        self.policy = policy
        self._pairs = _policy(_POLICIES[name])

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """Return the random index of a pair, and two random probabilities and signs, for torchvision's first version."""
        library = torch()
        return int(library.randint(transform_num, (1,))), library.rand((2,)), library.randint(2, (2,))

    def augmented(self, image: Leaf, extents: tuple[int, int]) -> Leaf:
        space: Space = {**_RANDAUGMENT, "Invert": None}
        for choice in self._pairs[numbers().below(0, len(self._pairs))]:
            if happens(choice.probability):
                level = choice.magnitude or 0
                magnitude = _magnitude(space[choice.name], _PARAMETER_MAX, extents, functools.partial(int, level))
                image = self.applied(image, choice.name, magnitude)
        return image


class RandAugment(AutomaticAugmentation):
    """Applies several random augmentations, all with the same magnitude.

    Args:
        num_ops: the number of augmentations.
        magnitude: the index of the magnitude.
        num_magnitude_bins: the number of magnitudes.
        interpolation, fill: the interpolation of warps, and the value of pixels from outside the image.
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"`num_ops` must be a non-negative integer. Got: {num_ops!r}")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def augmented(self, image: Leaf, extents: tuple[int, int]) -> Leaf:
        space: Space = {"Identity": None, **_RANDAUGMENT}
        for _ in range(self.num_ops):
            image = self.drawn(image, space, self.num_magnitude_bins, extents, lambda: self.magnitude)
        return image


class TrivialAugmentWide(AutomaticAugmentation):
    """Applies one random augmentation with a random magnitude.

    Args:
        num_magnitude_bins: the number of magnitudes.
        interpolation, fill: the interpolation of warps, and the value of pixels from outside the image.
    """

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: Interpolation = "nearest", fill: Fills = None
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def augmented(self, image: Leaf, extents: tuple[int, int]) -> Leaf:
        bins = self.num_magnitude_bins
        return self.drawn(image, {"Identity": None, **_WIDE}, bins, extents, lambda: numbers().below(0, bins))


class AugMix(AutomaticAugmentation):
    """Mixes chains of random augmentations with each other and with the image. Needs PyTorch.

    Args:
        severity: the largest index of a magnitude, from 1 to 10.
        mixture_width: the number of chains.
        chain_depth: the number of augmentations in a chain; negative: a random number from 1 to 3.
        alpha: the parameter of the distributions from which the proportions of the mixture are drawn.
        all_ops: whether to include augmentations that change brightness, colours, contrast and sharpness.
        interpolation, fill: the interpolation of warps, and the value of pixels from outside the image.
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Interpolation = "bilinear",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not 1 <= severity <= _PARAMETER_MAX:
            raise ValueError(f"`severity` must be from 1 to {_PARAMETER_MAX}. Got: {severity}")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def augmented(self, image: Leaf, extents: tuple[int, int]) -> Leaf:
        library = torch()
        kind = kind_of(image)
        tensor = pil_to_tensor(image) if kind == "pixels" else image.as_subclass(library.Tensor)
        axes = 5 if kind == "video" else 4
        batch = tensor.reshape([1] * max(axes - tensor.ndim, 0) + list(tensor.shape))
        ones = [len(batch)] + [1] * (batch.ndim - 1)
        both, shares = (
            library._sample_dirichlet(  # private: torchvision draws with it
                library.tensor([self.alpha] * count).expand(len(batch), -1)
            )
            for count in (2, self.mixture_width)
        )
        shares = shares * both[:, 1:2]
        space = _AUGMIX_ALL if self.all_ops else _AUGMIX_WITHOUT_COLOURS
        mixed = both[:, 0].reshape(ones) * batch
        for chain in range(self.mixture_width):
            result = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else numbers().below(1, 4)):
                result = self.drawn(result, space, _PARAMETER_MAX, extents, self._level)
            mixed.add_(shares[:, chain].reshape(ones) * result)
        whole = mixed.reshape(tensor.shape).to(tensor.dtype)
        if kind == "pixels" and is_pil(image) and not has_pixel_mode(image):
            return to_pil_image(whole)
        if kind == "pixels":
            pixels = held(image).in_same_form(np.ascontiguousarray(whole.permute(1, 2, 0).numpy()))
            return pixels if isinstance(image, Pixels) else pixels.released()
        return whole if kind == "tensor" else tv_tensors.classes().wrap(whole, like=image)

    def _level(self) -> int:
        return numbers().below(0, self.severity)
