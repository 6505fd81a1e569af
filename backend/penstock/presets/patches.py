"""Image processors that cut images, nearly in their own aspect ratio, into patches: Qwen-VL, GLM-4V, PaddleOCR-VL, SigLIP 2, Pixtral."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import Fit, SizeArguments, fitted
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Features,
    FloatFamily,
    ImageFamily,
    PresetError,
    Values,
    as_floats,
    extended,
    fitted_sizes,
    fused_floats,
    image_sizes,
    in_corner,
    named,
    size_of,
)
from penstock.presets.fixed import NO_CROP, NO_PAD, OPENAI

_GRID, _MERGES = "image_grid_thw", "image_merge_sizes"
# The rules for which the bounds in `size` are numbers of pixels of all frames in a patch together.
_TWO_FRAMES = ("glm4v", "qwen3-vl-video")
_BOTH_EDGES = frozenset({"shortest_edge", "longest_edge"})


@dataclass(frozen=True, kw_only=True)
class PatchFamily(FloatFamily):
    """Image processors that resize to whole patches, so that an image has about as many pixels as before, within bounds.

    Attributes:
        rule: the rule of :func:`fn.fitted_size` that computes sizes.
        size: `shortest_edge` and `longest_edge`, which are the smallest and the largest number of pixels of an image.
        min_pixels, max_pixels: older names of these two numbers, which take precedence; 0: not set.
        patch_size: the side of a patch, in pixels.
        temporal_patch_size: the number of frames in a patch.
        merge_size: the side, in patches, of the squares of patches that become one token.
        patch_expand_factor: a further factor of the number to whose multiples sides are rounded.
        flat: whether a patch is returned as a row of values; otherwise, as an image.
        grouped: whether the patches of a token follow each other; otherwise, patches are in the order of rows.
        channels_last: whether the values of a patch have the layout HWC instead of CHW.
        tells_merges: whether there is an output `image_merge_sizes`.
    """

    rule: str = "qwen2-vl"
    resample: int = 3
    size: Mapping[str, int]
    min_pixels: int = 0
    max_pixels: int = 0
    patch_size: int = 14
    temporal_patch_size: int = 2
    merge_size: int = 2
    patch_expand_factor: int = 1
    flat: bool = True
    grouped: bool = True
    channels_last: bool = False
    tells_merges: bool = False

    names: ClassVar[tuple[str, ...]] = (PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)
    hidden = ImageFamily.hidden | {"rule", "flat", "grouped", "channels_last", "tells_merges"}

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.names, *(_MERGES,) * self.tells_merges)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if not isinstance(settings["size"], Mapping):
            raise PresetError(f"`size` must have `shortest_edge` and `longest_edge`. Got: {settings['size']!r}")
        size = dict(settings["size"])
        for key, older in (("shortest_edge", "min_pixels"), ("longest_edge", "max_pixels")):
            if settings[older]:
                size.pop(older, None)
                size[key], settings[older] = settings[older], 0
        settings["size"] = size_of(size, False, "`size`", _BOTH_EDGES)
        for key in ("patch_size", "temporal_patch_size", "merge_size", "patch_expand_factor"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.patch_expand_factor > 1 and (self.rule not in _TWO_FRAMES or backend == "pil"):
            raise PresetError("`patch_expand_factor` is supported only for GLM, in torchvision's arithmetic")
        if self.channels_last and self.temporal_patch_size > 1:
            raise PresetError(f"`temporal_patch_size` must be 1. Got: {self.temporal_patch_size}")
        if self.rule in _TWO_FRAMES and self.temporal_patch_size != 2:
            raise PresetError(f"`temporal_patch_size` must be 2 if sizes depend on it. Got: {self.temporal_patch_size}")

    def fit(self, height: int, width: int) -> Fit:
        """Return the size to which an image is resized, and the size of its canvas."""
        return fitted(self.rule, height, width, self.bounds)

    @property
    def bounds(self) -> SizeArguments:
        """The arguments of the rule that computes sizes."""
        factor, unit = self.patch_size * self.merge_size * self.patch_expand_factor, self.temporal_patch_size
        return SizeArguments(factor, self.size["shortest_edge"], self.size["longest_edge"], tile=(unit, unit))

    @property
    def frames_in_patch(self) -> int:
        """The number of frames in a patch."""
        return self.temporal_patch_size

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        pixels, grid, *_ = self.names
        images = data
        if self.do_resize:
            size, canvas = fitted_sizes(data, self.rule, self.bounds)
            images = self.on_canvas(self.resized(data, backend, size), canvas)
        patches, grids = fn.image_patches(
            images,
            patch=self.patch_size,
            merge=self.merge_size if self.grouped else 1,
            temporal=self.frames_in_patch,
            channels_last=self.channels_last,
            **self.normalizing(backend),
        )
        merges = (fn.constant(idata=[self.merge_size], shape=[], dtype=types.INT64, name=_MERGES),)
        rest = (named(grids, grid, 1), *merges * self.tells_merges)
        if self.flat:
            return (named(patches, pixels, 2), *rest)
        side = self.patch_size
        shape = [-1, CHANNELS * self.frames_in_patch, side, side]
        return (fn.reshape(patches, shape=shape, name=pixels), *rest)

    def on_canvas(self, images: DataNode, canvas: DataNode) -> DataNode:
        """Return resized images on the canvases that are cut into patches; by default, the images themselves."""
        return images

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = self.fit(height, width) if self.do_resize else Fit(height, width, height, width)
        token = self.patch_size * self.merge_size
        return (fit.canvas_height // token) * (fit.canvas_width // token)


@dataclass(frozen=True, kw_only=True)
class FixedBoundsFamily(PatchFamily):
    """Patches of classes that read `min_pixels` and `max_pixels` only when a processor is created; calls can change `size`."""

    unchanged = frozenset({"min_pixels", "max_pixels"})


QWEN2_VL = PatchFamily(size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}, **OPENAI)
GLM4V = FixedBoundsFamily(rule="glm4v", size={"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000}, **OPENAI)
GLM_IMAGE = PatchFamily(rule="glm-image", size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}, **OPENAI)
PADDLEOCR_VL = PatchFamily(
    rule="paddleocr-vl",
    size={"shortest_edge": 384 * 384, "longest_edge": 1536 * 1536},
    temporal_patch_size=1,
    flat=False,
    grouped=False,
    **OPENAI,
)
ERNIE45_VL = FixedBoundsFamily(
    size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 6177}, temporal_patch_size=1, **OPENAI
)
MINIMAX_M3_VL = PatchFamily(size={"shortest_edge": 56 * 56, "longest_edge": 672 * 672}, torchvision_only=True, **OPENAI)
VIDEO_LLAMA3 = PatchFamily(
    size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
    temporal_patch_size=1,
    merge_size=1,
    tells_merges=True,
)
COSMOS3_EDGE = FixedBoundsFamily(
    rule="cosmos3",
    size={"shortest_edge": 1 << 16, "longest_edge": 1 << 24},
    patch_size=16,
    temporal_patch_size=1,
    channels_last=True,
)


@dataclass(frozen=True, kw_only=True)
class HunYuanFamily(PatchFamily):
    """HunYuan-VL, which always uses the bicubic filter."""

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 1 << 18, "longest_edge": 1 << 22})
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    patch_size: int = 16
    temporal_patch_size: int = 1
    grouped: bool = False

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.resample != 3:
            raise PresetError(f"`resample` must be 3. Got: {self.resample}")


HUNYUAN_V4 = HunYuanFamily(torchvision_only=True)


@dataclass(frozen=True, kw_only=True)
class MuseImageFamily(FloatFamily):
    """Muse Glimmer: patches whose values are repeated, as if each had several frames.

    Attributes:
        patch_size: the side of a patch, in pixels.
        temporal_patch_size: how many times the values of a patch occur.
        merge_size: the side, in patches, of the squares of patches that become one token.
        max_image_tokens: the largest number of tokens of an image.
    """

    resample: int = 1
    patch_size: int = 14
    temporal_patch_size: int = 2
    merge_size: int = 2
    max_image_tokens: int = 4096
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"size"}

    names: ClassVar[tuple[str, ...]] = (PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for key in ("patch_size", "temporal_patch_size", "merge_size", "max_image_tokens"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        return settings

    @property
    def _bounds(self) -> SizeArguments:
        return SizeArguments(self.patch_size * self.merge_size, most=self.max_image_tokens)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            bounds = self._bounds
            size, _ = fn.fitted_size(data, rule="muse-glimmer", factor=bounds.factor, most=bounds.most)
            images = self.resized(data, backend, size)
        patches, grids = fn.image_patches(images, patch=self.patch_size, **self.normalizing(backend))
        repeated = fn.cat(*[patches] * self.temporal_patch_size, axis=1) if self.temporal_patch_size > 1 else patches
        return named(repeated, PIXELS, 2), named(grids, _GRID, 1)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        bounds = self._bounds
        fit = fitted("muse-glimmer", height, width, bounds) if self.do_resize else Fit(height, width, height, width)
        return (fit.height // bounds.factor) * (fit.width // bounds.factor)


@dataclass(frozen=True, kw_only=True)
class NeoFamily(FloatFamily):
    """NeoMME: images in their original size, unless they exceed bounds, in the upper left corner of a black canvas of whole patches.

    Attributes:
        size: `min_pixels` and `max_pixels`; empty: no bounds.
        max_side: the greatest length of a side in pixels; 0: no limit.
        patch_size: the side of a patch, in pixels.
    """

    size: Mapping[str, int] = field(default_factory=dict)
    max_side: int = 0
    patch_size: int = 32
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "image_grid_hw")
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(
            settings["size"], False, "`size`", frozenset({"min_pixels", "max_pixels"}), frozenset()
        )
        if settings["patch_size"] < 1 or settings["max_side"] < 0:
            raise PresetError("`patch_size` must be positive, and `max_side` must not be negative")
        return settings

    @property
    def _bounds(self) -> SizeArguments:
        sides = ((self.max_side, self.max_side),) if self.max_side else ()
        return SizeArguments(self.patch_size, self.size.get("min_pixels", 0), self.size.get("max_pixels", 0), sides)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        bounds, rule = self._bounds, "neomme" if self.do_resize else "on-canvas"
        size, canvas = fn.fitted_size(
            data,
            rule=rule,
            factor=bounds.factor,
            least=bounds.least,
            most=bounds.most,
            canvases=[side for each in bounds.canvases for side in each],
        )
        images = self.resized(data, backend, size) if self.do_resize else data
        patches, grids = fn.image_patches(
            in_corner(images, canvas), patch=self.patch_size, channels_last=True, **self.normalizing(backend)
        )
        return named(patches, PIXELS, 2), named(grids[1:], self.names[1], 1)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("neomme" if self.do_resize else "on-canvas", height, width, self._bounds)
        return (fit.canvas_height // self.patch_size) * (fit.canvas_width // self.patch_size)


# The value, before normalization, of the parts of patches that are outside of the image.
_INKLING_BESIDE = -1.0


@dataclass(frozen=True, kw_only=True)
class InklingFamily(ImageFamily):
    """Inkling 2, for opaque images: patches of the image in its original size, each in the layout HWC.

    Attributes:
        size: `height` and `width` of a patch.
    """

    do_resize: bool = False
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 40, "width": 40})
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)
    hidden = ImageFamily.hidden | {"do_resize", "resample"}

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"height", "width"}))
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_rescale and self.do_normalize) or len(set(self.image_mean) | set(self.image_std)) > 2:
            raise PresetError("Inkling 2 is supported only where it rescales and normalizes, all channels alike")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        factor = np.float32(1.0 / self.rescale_factor)
        mean, std = (np.float32(each[0]) * factor for each in (self.image_mean, self.image_std))
        tile = [self.size["height"], self.size["width"]]
        fill = float((np.float32(_INKLING_BESIDE) - mean) / std)
        tiles = fn.image_tiles(data, tile=tile, fill_value=fill, **self.normalizing(backend))
        sides = (data.shape()[:2] + types.Constant([side - 1 for side in tile], dtype=types.INT64)) // types.Constant(
            tile, dtype=types.INT64
        )
        one = fn.constant(idata=[1], shape=[1], dtype=types.INT64)
        return fn.transpose(tiles, perm=[0, 2, 3, 1], name=PIXELS), fn.cat(one, sides, name=_GRID)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        return -(-height // self.size["height"]) * -(-width // self.size["width"])


@dataclass(frozen=True, kw_only=True)
class FirstInklingFamily(FloatFamily):
    """Inkling 1: patches of the image in its original size, each twice and in the layout HWC.

    Each row of patches has one patch more than whole patches fit the image's width.

    Attributes:
        size: `height` and `width` of a patch, which must be equal.
        rescale_image_frac: must be unset.
        rescale_image_max_upscaled_long_edge: accepted without effect: it is read only with `rescale_image_frac`.
    """

    resample: int = 1
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 40, "width": 40})
    rescale_image_frac: float = 0.0
    torchvision_only: bool = True
    ignored: frozenset[str] = (
        NO_CROP | NO_PAD | {"default_to_square", "resample", "rescale_image_max_upscaled_long_edge"}
    )

    names: ClassVar[tuple[str, ...]] = (PIXELS, "num_patches")
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], False, "`size`", frozenset({"height", "width"}))
        if len(set(settings["size"].values())) > 1:
            raise PresetError(f"`size` must be square. Got: {settings['size']}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_resize and self.do_rescale) or self.rescale_image_frac:
            raise PresetError(
                "Inkling is supported only where it rescales, with `do_resize` and without `rescale_image_frac`"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        side = self.size["height"]
        extents = data.shape(dtype=types.INT32)
        rows, columns = (extents[0] + (side - 1)) // side, extents[1] // side + 1
        padded = fn.slice(
            as_floats(data),
            start=[0, 0],
            shape=fn.stack(rows * side, columns * side),
            axes=[1, 2],
            out_of_bounds_policy="pad",
            fill_values=[_INKLING_BESIDE],
        )
        values = fused_floats(padded, self, False, None)
        cells = fn.reshape(values, shape=fn.stack(CHANNELS, rows, side, columns, side))
        patches = fn.reshape(fn.transpose(cells, perm=[1, 3, 2, 4, 0]), shape=[-1, 1, side, side, CHANNELS])
        count = fn.cast(rows * columns, dtype=types.INT64, name=self.names[1])
        return fn.cat(patches, patches, axis=1, name=PIXELS), count

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        side = self.size["height"]
        return -(-height // side) * (width // side + 1)


@dataclass(frozen=True, kw_only=True)
class KimiFamily(FloatFamily):
    """Kimi K2.5: images that are never enlarged, and padded to whole tokens.

    Attributes:
        size: `max_height` and `max_width`, which must be equal: the largest number of patches along a side.
        patch_size: the side of a patch, in pixels.
        merge_size: the side, in patches, of the squares of patches that become one token.
        max_patches: the largest number of patches of an image.
    """

    resample: int = 3
    size: Mapping[str, int] = field(default_factory=lambda: {"max_height": 512, "max_width": 512})
    patch_size: int = 14
    merge_size: int = 2
    max_patches: int = 16384
    torchvision_only: bool = True

    names: ClassVar[tuple[str, ...]] = (PIXELS, _GRID)
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"max_height", "max_width"}))
        for key in ("patch_size", "merge_size", "max_patches"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        if settings["size"]["max_height"] != settings["size"]["max_width"]:
            raise PresetError(f"`size` must have equal bounds. Got: {settings['size']}")
        return settings

    @property
    def _bounds(self) -> SizeArguments:
        side = self.patch_size
        return SizeArguments(side * self.merge_size, self.size["max_height"], self.max_patches, (), (side, side))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            bounds = self._bounds
            size, canvas = fn.fitted_size(
                data,
                rule="kimi",
                factor=bounds.factor,
                least=bounds.least,
                most=bounds.most,
                tile=list(bounds.tile),
            )
            images = in_corner(self.resized(data, backend, size), canvas)
        patches, grids = fn.image_patches(images, patch=self.patch_size, **self.normalizing(backend))
        shape = [-1, CHANNELS, self.patch_size, self.patch_size]
        return fn.reshape(patches, shape=shape, name=self.names[0]), named(grids, self.names[1], 1)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        bounds = self._bounds
        _, _, rows, columns = fitted("kimi", height, width, bounds) if self.do_resize else (0, 0, height, width)
        return (rows // bounds.factor) * (columns // bounds.factor)


@dataclass(frozen=True, kw_only=True)
class NemotronOmniFamily(FloatFamily):
    """Nemotron Omni, which resizes float images.

    Attributes:
        patch_size: the side of a patch, in pixels.
        downsample_ratio: the number of tokens per patch along a side.
        min_num_patches, max_num_patches: the bounds of an image's number of patches.
        max_model_len: the context length of the model in tokens, all but four of which can be used for images.
        norm_mean, norm_std: older names of `image_mean` and `image_std`.
    """

    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    patch_size: int = 16
    downsample_ratio: float = 0.5
    min_num_patches: int = 1024
    max_num_patches: int = 13312
    max_model_len: int = 16384
    norm_mean: Sequence[float] = ()
    norm_std: Sequence[float] = ()
    torchvision_only: bool = True
    ignored: frozenset[str] = frozenset({"size", "_downsample_factor"}) | NO_CROP | NO_PAD

    names: ClassVar[tuple[str, ...]] = (PIXELS, "image_grid_hw")
    concatenated: ClassVar[tuple[str, ...]] = (PIXELS,)
    unchanged = frozenset({"norm_mean", "norm_std"})

    def converted(self, values: Values) -> Values:
        settings = dict(values)
        for key, older in (("image_mean", "norm_mean"), ("image_std", "norm_std")):
            if settings[older]:
                settings[key], settings[older] = settings[older], ()
        for key in ("patch_size", "downsample_ratio", "min_num_patches", "max_num_patches", "max_model_len"):
            if settings[key] <= 0:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        return super().converted(settings)

    def check(self, backend: str) -> None:
        super().check(backend)
        max_patches = (self.max_model_len - 4) * round(1 / self.downsample_ratio) ** 2
        if not self.min_num_patches <= self.max_num_patches <= max_patches:
            raise PresetError(
                f"`max_num_patches` must be from `min_num_patches` to {max_patches}: above that, an image's size would depend on the "
                f"other images of a call. Got: {self.max_num_patches}"
            )
        if self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    @property
    def _bounds(self) -> SizeArguments:
        unit = round(1 / self.downsample_ratio)
        return SizeArguments(self.patch_size, self.min_num_patches, self.max_num_patches, tile=(unit, unit))

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        size, _ = fitted_sizes(data, "nemotron", self._bounds)
        images = fused_floats(self.resized(as_floats(data), backend, size), self, False, None)
        side = self.patch_size
        rows, columns = (images.shape(dtype=types.INT32)[axis] // side for axis in (1, 2))
        cells = fn.reshape(images, shape=fn.stack(CHANNELS, rows, side, columns, side))
        patches = fn.reshape(fn.transpose(cells, perm=[1, 3, 0, 2, 4]), shape=[-1, CHANNELS * side**2], name=PIXELS)
        return patches, fn.cast(fn.stack(rows, columns), dtype=types.INT64, name=self.names[1])

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("nemotron", height, width, self._bounds)
        return fit.height * fit.width // (self.patch_size * round(1 / self.downsample_ratio)) ** 2


@dataclass(frozen=True, kw_only=True)
class Glm5Family(PatchFamily):
    """GLM-5: images in the upper left corner of a canvas of whole patches, enlarged only if they have fewer pixels than the minimum.

    Attributes:
        min_image_tokens, max_image_tokens: the bounds of an image's number of tokens.
    """

    rule: str = "glm5"
    size: Mapping[str, int] = field(default_factory=dict)
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    min_image_tokens: int = 16
    max_image_tokens: int = 8000
    ignored: frozenset[str] = frozenset({"size"}) | NO_CROP | NO_PAD

    hidden = PatchFamily.hidden | {"min_pixels", "max_pixels"}

    def converted(self, values: Values) -> Values:
        side = values["patch_size"] * values["merge_size"] * values["patch_expand_factor"]
        lowest, highest = (values[f"{bound}_image_tokens"] for bound in ("min", "max"))
        if not 1 <= lowest <= highest:
            raise PresetError(
                f"`min_image_tokens` must be at least 1, and at most `max_image_tokens`. Got: {lowest} and {highest}"
            )
        return super().converted(
            {**values, "size": {"shortest_edge": lowest * side**2, "longest_edge": highest * side**2}}
        )

    def check(self, backend: str) -> None:
        FloatFamily.check(self, backend)
        if self.patch_expand_factor > 1 and backend == "pil":
            raise PresetError("`patch_expand_factor` is supported only in torchvision's arithmetic")

    def on_canvas(self, images: DataNode, canvas: DataNode) -> DataNode:
        return in_corner(images, canvas)


_SOFT_TOKENS = (70, 140, 280, 560, 1120)


@dataclass(frozen=True, kw_only=True)
class Gemma4Family(FloatFamily):
    """Gemma 4: patches and their positions, padded to a fixed number of patches.

    Attributes:
        patch_size: the side of a patch, in pixels.
        max_soft_tokens: the largest number of tokens of an image.
        pooling_kernel_size: the side, in patches, of the squares of patches that become one token.
    """

    image_mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    image_std: tuple[float, ...] = (1.0, 1.0, 1.0)
    resample: int = 3
    do_normalize: bool = False
    patch_size: int = 16
    max_soft_tokens: int = 280
    pooling_kernel_size: int = 3

    names: ClassVar[tuple[str, ...]] = (PIXELS, "image_position_ids", "num_soft_tokens_per_image")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if settings["max_soft_tokens"] not in _SOFT_TOKENS:
            counts = ", ".join(map(str, _SOFT_TOKENS))
            raise PresetError(f"`max_soft_tokens` must be one of {counts}. Got: {settings['max_soft_tokens']}")
        for key in ("patch_size", "pooling_kernel_size"):
            if settings[key] < 1:
                raise PresetError(f"`{key}` must be positive. Got: {settings[key]}")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.resample == 0 and backend == "torchvision":
            raise PresetError("`resample`: Gemma 4's presets do not support the nearest filter")

    @property
    def _bounds(self) -> SizeArguments:
        side, pooled = self.patch_size, self.pooling_kernel_size
        return SizeArguments(side * pooled, most=self.max_soft_tokens * pooled**2, tile=(side, side))

    @property
    def _cut(self) -> tuple[int, int]:
        """The side, in pixels, of the pieces that an image is cut into, and the number of pieces to which images are padded."""
        return self.patch_size, self._bounds.most

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        bounds, images = self._bounds, data
        if self.do_resize:
            size, _ = fn.fitted_size(
                data, rule="gemma4", factor=bounds.factor, most=bounds.most, tile=list(bounds.tile)
            )
            images = self.resized(data, backend, size)
        side, length = self._cut
        patches, grid, mask = fn.image_patches(
            images, patch=side, channels_last=True, length=length, **self.normalizing(backend)
        )
        numbers = types.Constant(list(range(length)), dtype=types.INT64, shape=[length])
        rows = numbers // grid[2]
        positions_of_patches = fn.stack(numbers - rows * grid[2], rows, axis=1)
        is_valid = fn.expand_dims(fn.cast(mask, dtype=types.INT64), axes=[1])
        # Pieces that are padding get the position -1.
        positions = (positions_of_patches + 1) * is_valid - 1
        tokens = grid[1] * grid[2] * side**2 // self._bounds.factor**2
        return (
            named(patches, self.names[0], 2),
            named(positions, self.names[1], 2),
            fn.copy(tokens, name=self.names[2]),
        )

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("gemma4", height, width, self._bounds) if self.do_resize else Fit(height, width, height, width)
        patches = (fit.height // self.patch_size) * (fit.width // self.patch_size)
        return patches // self.pooling_kernel_size**2

    def joined(self, images: Sequence[Features]) -> Values:
        tokens = self.names[2]
        return super().joined(images) | {tokens: [int(image[tokens]) for image in images]}


@dataclass(frozen=True, kw_only=True)
class UnifiedFamily(Gemma4Family):
    """Gemma 4 with a unified encoder, for which each piece of the image becomes one token."""

    torchvision_only: bool = True
    ignored: frozenset[str] = frozenset({"size"}) | NO_CROP | NO_PAD

    @property
    def _cut(self) -> tuple[int, int]:
        return self.patch_size * self.pooling_kernel_size, self.max_soft_tokens


@dataclass(frozen=True, kw_only=True)
class SigLIP2Family(FloatFamily):
    """SigLIP 2 for images of any aspect ratio (NaFlex): patches, padded to a fixed number of patches.

    Attributes:
        patch_size: the side of a patch, in pixels.
        max_num_patches: the largest number of patches of an image, to which images are padded.
    """

    patch_size: int = 16
    max_num_patches: int = 256

    names = (PIXELS, "pixel_attention_mask", "spatial_shapes")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            size, _ = fn.fitted_size(data, rule="siglip2", factor=self.patch_size, most=self.max_num_patches)
            images = self.resized(data, backend, size)
        patches, grid, mask = fn.image_patches(
            images,
            patch=self.patch_size,
            channels_last=True,
            length=self.max_num_patches,
            **self.normalizing(backend),
        )
        outputs = (patches, 2), (mask, 1), (grid[1:], 1)
        return tuple(named(node, name, ndim) for name, (node, ndim) in zip(self.names, outputs))

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        fit = fitted("siglip2", height, width, SizeArguments(self.patch_size, most=self.max_num_patches))
        return (fit.height // self.patch_size) * (fit.width // self.patch_size)


@dataclass(frozen=True, kw_only=True)
class PixtralFamily(ImageFamily):
    """Pixtral: images resized to whole patches, but not cut into patches.

    Attributes:
        size: `longest_edge`: the greatest length of a side, in pixels.
        patch_size: `height` and `width`, which must be equal.
    """

    resample: int = 3
    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 1024})
    patch_size: Mapping[str, int] = field(default_factory=lambda: {"height": 16, "width": 16})
    do_pad: bool = True

    names = (PIXELS, "image_sizes")
    tells_by = ("spatial_merge_size",)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"longest_edge"}))
        settings["patch_size"] = size_of(settings["patch_size"], True, "`patch_size`", frozenset({"height", "width"}))
        if settings["patch_size"]["height"] != settings["patch_size"]["width"]:
            raise PresetError(f"`patch_size` is supported only where it is square. Got: {settings['patch_size']}")
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            patch = self.patch_size["height"]
            size, _ = fn.fitted_size(data, rule="pixtral", factor=patch, most=self.size["longest_edge"])
            images = self.resized(data, backend, size)
        return self.normalized(images, backend), image_sizes(images, "image_sizes")

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        patch = self.patch_size["height"]
        fit = fitted("pixtral", height, width, SizeArguments(patch, most=self.size["longest_edge"]))
        rows, columns = (side // (patch * model["spatial_merge_size"]) for side in fit[:2])
        # Each row of tokens is followed by an end-of-row token.
        return rows * (columns + 1)

    def joined(self, images: Sequence[Features]) -> Values:
        values = [image[PIXELS] for image in images]
        return {
            PIXELS: extended(values, (1, 2)) if self.do_pad else values,
            "image_sizes": np.stack([image["image_sizes"] for image in images]),
        }
