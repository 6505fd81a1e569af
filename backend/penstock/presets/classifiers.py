"""Image processors of classifiers and encoders with special rules for cropping or resizing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments, fitted
from penstock.presets.family import PIXELS, Family, Features, PresetError, Values, named
from penstock.presets.fixed import IMAGENET, NO_CROP, NO_PAD, OPENAI, FixedFamily

# If `size` is smaller than this, ConvNeXT resizes to a larger size and crops; otherwise it only resizes.
_CONVNEXT_MIN_UNCROPPED_SIDE = 384
_WHITE = 255
# The prefix of the settings and outputs of the larger of two pictures.
_HIGH_RES_PREFIX = "high_res_"
_SHORTEST, _SQUARE = frozenset({"shortest_edge"}), frozenset({"height", "width"})


@dataclass(frozen=True, kw_only=True)
class ConvNextFamily(FixedFamily):
    """ConvNeXT, which resizes to a larger size and crops the centre if the requested size is small.

    Attributes:
        crop_pct: the fraction of the resized image's shorter side that the crop covers.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 384})
    resample: int = 3
    default_to_square: bool = False
    ignored: frozenset[str] = NO_PAD
    crop_pct: float = 224 / 256

    forms = (_SHORTEST,)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.crop_pct <= 0:
            raise PresetError(f"`crop_pct` must be positive. Got: {self.crop_pct}")

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        edge = self.size["shortest_edge"]
        if edge >= _CONVNEXT_MIN_UNCROPPED_SIDE:
            return self.resized(images, backend, [edge, edge])
        images = self.shortened(images, backend, int(edge / self.crop_pct))
        return self.cropped(images, backend, {"height": edge, "width": edge})

    def extents(self, height: int, width: int) -> tuple[int, int]:
        if self.do_center_crop or not self.do_resize:
            return super().extents(height, width)
        return self.size["shortest_edge"], self.size["shortest_edge"]


@dataclass(frozen=True, kw_only=True)
class LevitFamily(FixedFamily):
    """LeViT, which resizes the shorter side to 256 / 224 of the requested length."""

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    default_to_square: bool = False

    forms = (_SHORTEST, _SQUARE)

    def shortened(self, images: DataNode, backend: str, edge: int) -> DataNode:
        return super().shortened(images, backend, int(256 / 224 * edge))

    def extents(self, height: int, width: int) -> tuple[int, int]:
        if self.do_resize and not self.do_center_crop and "shortest_edge" in self.size:
            raise PresetError("LeViT does not tell how many tokens an image becomes if it is not cropped")
        return super().extents(height, width)


@dataclass(frozen=True, kw_only=True)
class EfficientNetFamily(FixedFamily):
    """EfficientNet, which can divide by the standard deviation twice.

    Attributes:
        include_top: whether to divide by the standard deviation again after normalizing.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 346, "width": 346})
    resample: int = 3
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 289, "width": 289})
    ignored: frozenset[str] = NO_PAD
    include_top: bool = True

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if not self.include_top:
            return self.normalized(images, backend)
        deviation = types.Constant(list(self.image_std), dtype=types.FLOAT, shape=[3, 1, 1])
        return named(self.normalized(images, backend, None) / deviation, PIXELS, 3)


@dataclass(frozen=True, kw_only=True)
class MobileViTFamily(FixedFamily):
    """MobileViT, whose results are in BGR order and not normalized.

    Attributes:
        do_flip_channel_order: whether to convert to BGR order.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 256, "width": 256})
    default_to_square: bool = False
    do_normalize: bool = False
    ignored: frozenset[str] = NO_PAD | {"do_normalize", "image_mean", "image_std"}
    do_flip_channel_order: bool = True

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if self.do_flip_channel_order:
            images = fn.color_space_conversion(images, image_type=types.RGB, output_type=types.BGR)
        return self.normalized(images, backend)


@dataclass(frozen=True, kw_only=True)
class PerceiverFamily(FixedFamily):
    """Perceiver, which crops the centre of an image before resizing it."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 256, "width": 256})
    ignored: frozenset[str] = NO_PAD

    forms = (_SQUARE,)

    def check(self, backend: str) -> None:
        super().check(backend)
        if backend == "pil" and self.do_center_crop:
            raise PresetError(
                "`do_center_crop` is not supported with `backend='pil'`: Perceiver's class then makes thin images black"
            )

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        images = data
        if self.do_center_crop:
            parts = [self.size["height"], self.size["width"], self.crop_size["height"], self.crop_size["width"]]
            extents, _ = fn.fitted_size(data, rule="perceiver", canvases=parts)
            images = fn.crop(
                data,
                crop_h=extents[0],
                crop_w=extents[1],
                rounding="truncate",
                out_of_bounds_policy="pad",
                fill_values=[0],
            )
        return self.fitted(images, backend) if self.do_resize else images


@dataclass(frozen=True, kw_only=True)
class PoolFormerFamily(FixedFamily):
    """PoolFormer, which resizes to a larger size than its centre crop.

    Attributes:
        crop_pct: the fraction of the resized image's sides that `size` covers.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    default_to_square: bool = False
    crop_pct: float = 0.9

    forms = (_SHORTEST, _SQUARE)

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.crop_pct <= 0:
            raise PresetError(f"`crop_pct` must be positive. Got: {self.crop_pct}")

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        sides = [int(side / self.crop_pct) for side in self.size.values()]
        if len(set(sides)) == 1 and len(set(self.size.values())) == 1:
            return self.shortened(images, backend, sides[0])
        return self.resized(images, backend, [int(self.size[side] / self.crop_pct) for side in ("height", "width")])

    def extents(self, height: int, width: int) -> tuple[int, int]:
        if self.do_resize and not self.do_center_crop:
            raise PresetError("PoolFormer does not tell how many tokens an image becomes if it is not cropped")
        return super().extents(height, width)


@dataclass(frozen=True, kw_only=True)
class TextNetFamily(FixedFamily):
    """TextNet, which resizes to sides that are multiples of a number.

    Attributes:
        size_divisor: the sides of results are multiples of this number.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 640})
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    default_to_square: bool = False
    ignored: frozenset[str] = NO_PAD
    size_divisor: int = 32

    forms = (_SHORTEST,)

    def converted(self, values: Values) -> Values:
        if values["size_divisor"] < 1:
            raise PresetError(f"`size_divisor` must be positive. Got: {values['size_divisor']}")
        return super().converted(values)

    def shortened(self, images: DataNode, backend: str, edge: int) -> DataNode:
        target, _ = fn.fitted_size(images, rule="shortest-up", least=edge, factor=self.size_divisor)
        return self.resized(images, backend, target)

    def extents(self, height: int, width: int) -> tuple[int, int]:
        if self.do_center_crop or not self.do_resize:
            return super().extents(height, width)
        bounds = SizeArguments(self.size_divisor, self.size["shortest_edge"])
        return fitted("shortest-up", height, width, bounds)[:2]


# Settings for the codebook and for masking, both used in training only. The encoder's pixels do not depend on them.
_FLAVA_TRAINING = frozenset(
    {
        "codebook_crop_size",
        "codebook_do_center_crop",
        "codebook_do_map_pixels",
        "codebook_do_normalize",
        "codebook_do_rescale",
        "codebook_do_resize",
        "codebook_image_mean",
        "codebook_image_std",
        "codebook_resample",
        "codebook_rescale_factor",
        "codebook_size",
        "input_size_patches",
        "mask_group_max_aspect_ratio",
        "mask_group_max_patches",
        "mask_group_min_aspect_ratio",
        "mask_group_min_patches",
        "total_mask_patches",
    }
)


@dataclass(frozen=True, kw_only=True)
class FlavaFamily(FixedFamily):
    """FLAVA, without the outputs that only training needs.

    Attributes:
        return_codebook_pixels, return_image_mask: must be false.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    ignored: frozenset[str] = NO_PAD | _FLAVA_TRAINING
    return_codebook_pixels: bool = False
    return_image_mask: bool = False

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.return_codebook_pixels or self.return_image_mask:
            raise PresetError(
                "`return_codebook_pixels`, `return_image_mask`: presets do not return the outputs for FLAVA's training"
            )


@dataclass(frozen=True, kw_only=True)
class LlavaFamily(FixedFamily):
    """LLaVA 1.5.

    Attributes:
        do_pad: pad images to squares with the mean colour before resizing.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 224})
    resample: int = 3
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    default_to_square: bool = False
    ignored: frozenset[str] = frozenset({"pad_size"})

    def converted(self, values: Values) -> Values:
        if values["do_pad"] and not isinstance(values["image_mean"], (list, tuple)):
            raise PresetError(
                f"`image_mean` must have a value for each channel if `do_pad` is set. Got: {values['image_mean']}"
            )
        return super().converted(values)

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        return super().prepared(squared(data, self.image_mean) if self.do_pad else data, backend)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def extents(self, height: int, width: int) -> tuple[int, int]:
        side = max(height, width)
        return super().extents(*((side, side) if self.do_pad else (height, width)))


@dataclass(frozen=True, kw_only=True)
class JanusFamily(FixedFamily):
    """Janus and DeepSeek-VL.

    Attributes:
        size: `height` and `width`, which must be equal: the length of the longer side.
        min_size: the smallest length of the shorter side.
        do_pad: pad images to squares with the mean colour, after resizing.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    resample: int = 3
    do_pad: bool = True
    # transformers' processor saves `background_color` in configurations, but recomputes it from the mean when it is created.
    ignored: frozenset[str] = NO_CROP | {"pad_size", "background_color"}
    min_size: int = 14

    forms = (_SQUARE,)
    unchanged = frozenset({"image_mean", "background_color"})

    def converted(self, values: Values) -> Values:
        if not isinstance(values["image_mean"], (list, tuple)):
            raise PresetError(f"`image_mean` must have a value for each channel. Got: {values['image_mean']}")
        settings = super().converted(values)
        if settings["size"]["height"] != settings["size"]["width"] or settings["min_size"] < 0:
            raise PresetError("`size` must be square, and `min_size` must not be negative")
        return settings

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        target, _ = fn.fitted_size(images, rule="janus", least=self.min_size, most=self.size["height"])
        return self.resized(images, backend, target)

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if not self.do_pad:
            return self.normalized(images, backend)
        # The length of the resized image's longer side.
        side = max(self.size["height"], self.min_size) if self.do_resize else None
        return self.normalized(squared(images, self.image_mean, side), backend)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def extents(self, height: int, width: int) -> tuple[int, int]:
        fit = fitted("janus", height, width, SizeArguments(least=self.min_size, most=self.size["height"]))
        rows, columns = fit[:2] if self.do_resize else (height, width)
        return (max(rows, columns),) * 2 if self.do_pad else (rows, columns)


@dataclass(frozen=True, kw_only=True)
class HybridFamily(JanusFamily):
    """DeepSeek-VL with two encoders, the second of which gets a larger picture.

    Attributes:
        high_res_size, high_res_resample, high_res_image_mean, high_res_image_std: the settings of the larger picture, from which the
            smaller one is made; they have the same meaning as `size`, `resample`, `image_mean` and `image_std`.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    high_res_size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 1024})
    high_res_resample: int = 3
    high_res_image_mean: tuple[float, ...] = OPENAI["image_mean"]
    high_res_image_std: tuple[float, ...] = OPENAI["image_std"]
    ignored: frozenset[str] = JanusFamily.ignored | {"high_res_background_color"}

    unchanged = frozenset({"image_mean", "high_res_image_mean", "background_color", "high_res_background_color"})

    @property
    def outputs(self) -> tuple[str, ...]:
        return PIXELS, _HIGH_RES_PREFIX + PIXELS

    def converted(self, values: Values) -> Values:
        large = {name: values[_HIGH_RES_PREFIX + name] for name in self._doubled}
        settings = super().converted({**values, **large})
        doubled = {_HIGH_RES_PREFIX + name: settings[name] for name in self._doubled}
        return super().converted(values) | doubled

    _doubled: ClassVar[tuple[str, ...]] = ("size", "resample", "image_mean", "image_std")

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_resize and self.do_pad):
            raise PresetError("DeepSeek-VL of two encoders is supported only where it resizes and pads")
        self._large.filter_of(backend)

    @property
    def _large(self) -> JanusFamily:
        """A family with the settings of the larger picture."""
        high_res = {name: getattr(self, _HIGH_RES_PREFIX + name) for name in self._doubled}
        return replace(self, **high_res)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        large = self._large
        picture = squared(large.fitted(data, backend), large.image_mean)
        small = self.finished(self.fitted(picture, backend), backend)
        return small, large.normalized(picture, backend, self.outputs[1])


def squared(images: DataNode, means: Sequence[float], side: int | None = None) -> DataNode:
    """Return images centred on squares of the mean colour, 255 times ``means``; ``side`` is as for :func:`on_square`."""
    return on_square(images, [int(mean * _WHITE) for mean in means], side)


def on_square(images: DataNode, colour: Sequence[int], side: int | None = None) -> DataNode:
    """Return images centred on squares of a colour. ``side``: the side of the squares; None: each image's longer side."""
    length: DataNode | float = float(side or 0)
    if side is None:
        length = fn.cast(fn.reductions.max(images.shape()[:2]), dtype=types.FLOAT)
    values = [float(value) for value in colour]
    return fn.crop(
        images, crop_h=length, crop_w=length, rounding="truncate", out_of_bounds_policy="pad", fill_values=values
    )


FLAVA = FlavaFamily(**OPENAI)
LLAVA, JANUS = LlavaFamily(**OPENAI), JanusFamily(**OPENAI)
LEVIT, EFFICIENT_NET = LevitFamily(**IMAGENET), EfficientNetFamily()
