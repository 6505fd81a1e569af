"""Transforms that change colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.plugin.torchvision._random import numbers, occurs
from penstock.plugin.torchvision._typing import Floats, Leaf, Params
from penstock.plugin.torchvision.transforms.v2._transform import (
    Applied,
    BuiltinTransform,
    RandomlyApplied,
    common_dimensions,
)

_FACTORS = ("brightness", "contrast", "saturation", "hue")


class Grayscale(Applied):
    """Removes the colours.

    Args:
        num_output_channels: 1, or 3 for three equal channels.
    """

    function = "rgb_to_grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"num_output_channels": self.num_output_channels}


class RandomGrayscale(RandomlyApplied):
    """Removes the colours with a probability; the number of channels does not change."""

    function = "rgb_to_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"num_output_channels": common_dimensions(flat_inputs)[0]}


class RGB(Applied):
    """Converts images to three channels."""

    function = "grayscale_to_rgb"


class ColorJitter(BuiltinTransform):
    """Multiplies brightness, contrast and saturation by random factors, and rotates the hue, in random order.

    Args:
        brightness, contrast, saturation: a number x for factors from 1 - x to 1 + x, or the range of factors.
        hue: a number x, up to 0.5 (half a circle), for rotations from -x to x, or a range within [-0.5, 0.5].
    """

    def __init__(
        self,
        brightness: Floats | None = None,
        contrast: Floats | None = None,
        saturation: Floats | None = None,
        hue: Floats | None = None,
    ) -> None:
        self.brightness = _range(brightness, "brightness")
        self.contrast = _range(contrast, "contrast")
        self.saturation = _range(saturation, "saturation")
        self.hue = _range(hue, "hue")

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[Any, float | None, float | None, float | None, float | None]:
        """Return the numbers 0 to 3 of the four changes in random order, and a random factor for each change; None: no change."""
        order = numbers().permutation(len(_FACTORS))
        return order, *(numbers().between(*each) if each else None for each in (brightness, contrast, saturation, hue))

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        order, *factors = self.get_params(*(getattr(self, name) for name in _FACTORS))
        return {"fn_idx": order, **{f"{name}_factor": factor for name, factor in zip(_FACTORS, factors)}}

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        for position in params["fn_idx"]:
            factor = f"{_FACTORS[int(position)]}_factor"
            if params[factor] is not None:
                inpt = self.call(f"adjust_{_FACTORS[int(position)]}", inpt, **{factor: params[factor]})
        return inpt


def _range(value: Floats | None, name: str) -> tuple[float, float] | None:
    """Return the range of factors; None: no change.

    Raises:
        TypeError, ValueError: the value is neither a number nor a range, or out of bounds.
    """
    if value is None:
        return None
    centre, min_value, max_value = (0.0, -0.5, 0.5) if name == "hue" else (1.0, 0.0, float("inf"))
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"`{name}`, if it is one number, must not be negative. Got: {value}")
        low, high = centre - value, centre + value
        low = low if name == "hue" else max(low, 0.0)
    elif isinstance(value, Sequence) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"`{name}` must be a number, or two. Got: {value!r}")
    if not min_value <= low <= high <= max_value:
        raise ValueError(f"`{name}` must be a range within {min_value:g} and {max_value:g}. Got: {low:g} to {high:g}")
    return None if low == high == centre else (float(low), float(high))


class RandomChannelPermutation(Applied):
    """Permutes the channels at random."""

    function = "permute_channels"

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        return {"permutation": numbers().shuffled(common_dimensions(flat_inputs)[0])}


class RandomPhotometricDistort(BuiltinTransform):
    """Applies the distortions with which the detector SSD was trained, each with a probability.

    Args:
        brightness, contrast, saturation, hue: the range of each factor.
        p: the probability of each distortion.
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        self.brightness, self.contrast, self.saturation, self.hue = brightness, contrast, saturation, hue
        self.p = p

    def make_params(self, flat_inputs: list[Leaf]) -> Params:
        channels = common_dimensions(flat_inputs)[0]
        params: Params = {}
        for name in _FACTORS:
            params[name] = numbers().between(*getattr(self, name)) if occurs(self.p) else None
        contrast_first = occurs(0.5)
        params["order"] = ["brightness", "contrast", "saturation", "hue"]
        if not contrast_first:
            params["order"] = ["brightness", "saturation", "hue", "contrast"]
        params["permutation"] = numbers().shuffled(channels) if occurs(self.p) else None
        return params

    def transform(self, inpt: Leaf, params: Params) -> Leaf:
        for name in params["order"]:
            if params[name] is not None:
                inpt = self.call(f"adjust_{name}", inpt, **{f"{name}_factor": params[name]})
        if params["permutation"] is not None:
            inpt = self.call("permute_channels", inpt, permutation=params["permutation"])
        return inpt


class RandomEqualize(RandomlyApplied):
    """Equalizes the histogram with a probability."""

    function = "equalize"


class RandomInvert(RandomlyApplied):
    """Inverts the image with a probability."""

    function = "invert"


class RandomAutocontrast(RandomlyApplied):
    """Stretches the values of each channel to the full range with a probability."""

    function = "autocontrast"


class RandomPosterize(RandomlyApplied):
    """Reduces each value to its highest ``bits`` bits with a probability."""

    function = "posterize"

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"bits": self.bits}


class RandomSolarize(RandomlyApplied):
    """Inverts values of at least ``threshold`` with a probability."""

    function = "solarize"

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"threshold": self.threshold}


class RandomAdjustSharpness(RandomlyApplied):
    """Sharpens by a factor, or softens if the factor is below 1, with a probability."""

    function = "adjust_sharpness"

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def arguments(self, inpt: Leaf, params: Params) -> Params:
        return {"sharpness_factor": self.sharpness_factor}
