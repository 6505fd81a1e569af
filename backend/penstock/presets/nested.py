"""Image processors that take the frames of a video as a list of images, and image processors that always use PIL's arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments
from penstock.presets.family import (
    PIXELS,
    Features,
    FloatFamily,
    PresetError,
    Values,
    extended,
    fitted_sizes,
    image_sizes,
    named,
    size_of,
    stacked,
)
from penstock.presets.fixed import NO_PAD, OPENAI, FixedFamily

_SQUARE, _SHORTEST, _LONGEST = frozenset({"height", "width"}), frozenset({"shortest_edge"}), frozenset({"longest_edge"})
_SIDES_224 = {"height": 224, "width": 224}


@dataclass(frozen=True, kw_only=True)
class FramesFamily(FixedFamily):
    """VideoMAE's image processor: the images of a list are the frames of a video."""

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: dict(_SIDES_224))
    default_to_square: bool = False
    ignored: frozenset[str] = NO_PAD

    tells_by = ()

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        return {PIXELS: stacked([np.stack([image[PIXELS] for image in group]) for group in groups])}

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of videos do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class VivitFamily(FramesFamily):
    """ViViT, whose class always uses the arithmetic of PIL and numpy.

    Attributes:
        offset: whether to subtract 1 after rescaling.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 256})
    rescale_factor: float = 1 / 127.5
    offset: bool = True

    none_means_default = True
    forms = (_SQUARE, _SHORTEST)

    def check(self, backend: str) -> None:
        super().check("pil")
        if self.offset and not self.do_rescale:
            raise PresetError("`offset` needs `do_rescale`")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return super().process(data, "pil")

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if not self.offset:
            return self.normalized(images, backend)
        arguments = {**self.normalizing(backend), "mean": [1.0] * 3, "std": [1.0] * 3}
        return self.normalized_floats(fn.rescale_normalize(images, **arguments))


@dataclass(frozen=True, kw_only=True)
class TvpFamily(FramesFamily):
    """TVP, whose results are in BGR order.

    Attributes:
        size: `longest_edge`, or `height` and `width`.
        do_flip_channel_order: whether to convert to BGR order.
        constant_values: must be 0.
        pad_mode: accepted without effect: the processor in transformers always pads with a constant.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 448})
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 448, "width": 448})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=lambda: {"height": 448, "width": 448})
    do_flip_channel_order: bool = True
    constant_values: float = 0.0
    ignored: frozenset[str] = frozenset({"pad_mode"})

    forms = (_LONGEST, _SQUARE)

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if self.constant_values:
            raise PresetError(f"`constant_values` must be 0. Got: {self.constant_values}")
        if not self.do_pad or not self.pad_size:
            raise PresetError("`do_pad`: TVP is supported only where it pads")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        if self.do_flip_channel_order:
            # Reverse the order of channels first; `normalizing` reverses means and deviations, too.
            data = fn.color_space_conversion(data, image_type=types.RGB, output_type=types.BGR)
        return super().process(data, backend)

    def target(self, images: DataNode) -> DataNode | list[int]:
        if "longest_edge" not in self.size:
            return super().target(images)
        size, _ = fn.fitted_size(images, rule="longest-cut", most=self.size["longest_edge"])
        return size

    def normalizing(self, backend: str) -> Values:
        arguments = super().normalizing(backend)
        return arguments | flipped(arguments) if self.do_flip_channel_order else arguments


def flipped(arguments: Values) -> Values:
    """Return the arguments of normalizing with the means and deviations in BGR order."""
    return {name: arguments[name][::-1] for name in ("mean", "std")}


@dataclass(frozen=True, kw_only=True)
class IdeficsFamily(FixedFamily):
    """Idefics.

    Attributes:
        image_size: the height and the width, a single number, instead of `size`.
        image_num_channels: accepted without effect: the processor in transformers does not read it.
    """

    size: Mapping[str, int] = field(default_factory=lambda: dict(_SIDES_224))
    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    image_size: int = 0
    ignored: frozenset[str] = frozenset({"image_num_channels"})

    unchanged = frozenset({"image_size"})

    def converted(self, values: Values) -> Values:
        settings = {**values, "size": values["image_size"] or values["size"], "image_size": 0}
        return super().converted(settings)


@dataclass(frozen=True, kw_only=True)
class VideoLlavaFamily(FixedFamily):
    """Video-LLaVA's image processor, whose class always uses the arithmetic of PIL and numpy.

    Attributes:
        return_legacy_image_output: whether the output has its older name.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: dict(_SIDES_224))
    default_to_square: bool = False
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    ignored: frozenset[str] = NO_PAD
    return_legacy_image_output: bool = True

    none_means_default = True
    forms = (_SQUARE, _SHORTEST)

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("pixel_values_images" if self.return_legacy_image_output else PIXELS,)

    def check(self, backend: str) -> None:
        super().check("pil")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return super().process(data, "pil")

    def finished(self, images: DataNode, backend: str) -> DataNode:
        return self.normalized(images, backend, self.outputs[0])


@dataclass(frozen=True, kw_only=True)
class FuyuFamily(FixedFamily):
    """Fuyu: images that are never enlarged, in the upper left corner of a canvas. Sizes are returned only for the first image of a prompt.

    transformers' processor calls its output `images`. In a pipeline it is called `pixel_values`, as the input is called `images`.

    Attributes:
        size: `height` and `width` of the canvas.
        padding_value: the value of the canvas around the image, before rescaling; must be a whole number.
        padding_mode: must be `constant`.
        patch_size: without effect, as the preset does not cut the canvas into patches.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 1080, "width": 1920})
    do_pad: bool = True
    padding_value: float = 1.0
    padding_mode: str = "constant"
    torchvision_only: bool = True
    ignored: frozenset[str] = frozenset({"pad_size", "patch_size", "do_center_crop", "crop_size"})

    separate_prompts = True
    names = (PIXELS, "image_unpadded_heights", "image_unpadded_widths", "image_scale_factors", "image_sizes")
    forms = (_SQUARE,)
    tells_by = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.names

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not (self.do_pad and self.do_resize) or self.padding_mode != "constant":
            raise PresetError("Fuyu is supported only where it resizes and pads, with `padding_mode='constant'`")
        if self.padding_value not in range(256):
            raise PresetError(f"`padding_value` must be a whole number from 0 to 255. Got: {self.padding_value}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        canvas = self.size["height"], self.size["width"]
        size, _ = fitted_sizes(data, "within-or-less", SizeArguments(canvases=(canvas,)))
        padded = fn.slice(
            self.resized(data, backend, size),
            start=[0, 0],
            shape=list(canvas),
            axes=[0, 1],
            out_of_bounds_policy="pad",
            fill_values=[self.padding_value],
        )
        whole = fn.cast(size, dtype=types.INT64)
        was = fn.cast(data.shape()[:1], dtype=types.FLOAT64)
        scale = fn.cast(fn.cast(size[:1], dtype=types.FLOAT64) / was, dtype=types.FLOAT, name=self.names[3])
        return (
            self.normalized(padded, backend, self.names[0]),
            named(whole[:1], self.names[1], 1),
            named(whole[1:], self.names[2], 1),
            scale,
            image_sizes(data, self.names[4]),
        )

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([[image] for image in images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        if len({len(group) for group in groups}) > 1:
            raise ValueError("All prompts of a call must have the same number of images")
        return {
            "images": np.stack([np.stack([image[PIXELS] for image in group]) for group in groups]),
            **{name: np.stack([group[0][name] for group in groups]) for name in self.names[1:]},
        }

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Fuyu does not tell how many tokens an image becomes: its canvas is cut later")


@dataclass(frozen=True, kw_only=True)
class AreaFamily(FloatFamily):
    """Apertus: images resized to a number of pixels within bounds, and padded with zeros to the largest height and width of a call.

    Attributes:
        size: `min_pixels` and `max_pixels`, the bounds of an image's number of pixels.
        spatial_factor: sides are resized to multiples of this number.
        do_pad: whether to pad images.
    """

    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"min_pixels": 128 * 128, "max_pixels": 1400 * 1400})
    spatial_factor: int = 16
    do_pad: bool = True
    torchvision_only: bool = True

    names = (PIXELS, "image_sizes")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], False, "`size`", frozenset({"min_pixels", "max_pixels"}))
        if settings["spatial_factor"] < 1:
            raise PresetError(f"`spatial_factor` must be positive. Got: {settings['spatial_factor']}")
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            size, _ = fn.fitted_size(
                data,
                rule="qwen2-vl",
                factor=self.spatial_factor,
                least=self.size["min_pixels"],
                most=self.size["max_pixels"],
            )
            images = self.resized(data, backend, size)
        return self.normalized(images, backend), image_sizes(images, self.names[1])

    def joined(self, images: Sequence[Features]) -> Values:
        values = super().joined(images)
        if self.do_pad:
            values[PIXELS] = extended([image[PIXELS] for image in images], (1, 2))
        return values


@dataclass(frozen=True, kw_only=True)
class Emu3Family(AreaFamily):
    """Emu3, whose class always uses the arithmetic of PIL and numpy.

    Attributes:
        min_pixels, max_pixels: the range of an image's number of pixels; the processor in transformers does not read
            `size`.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    spatial_factor: int = 8
    min_pixels: int = 512 * 512
    max_pixels: int = 1024 * 1024
    torchvision_only: bool = False
    ignored: frozenset[str] = frozenset({"size"})

    none_means_default = True
    unchanged = frozenset({"min_pixels", "max_pixels", "spatial_factor"})

    def converted(self, values: Values) -> Values:
        return super().converted({**values, "size": {name: values[name] for name in ("min_pixels", "max_pixels")}})

    def check(self, backend: str) -> None:
        super().check("pil")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return super().process(data, "pil")
