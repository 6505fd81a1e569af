"""Image processors of PaddlePaddle's models: PP-OCR, PP-LCNet, PP-DocLayout v4, UVDoc, SLANeXt and PP-FormulaNet; and Nougat's, which
is similar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock import fn, math, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments, line_width
from penstock.presets.documents import DonutFamily
from penstock.presets.family import (
    PIXELS,
    Features,
    ImageFamily,
    PresetError,
    Values,
    as_floats,
    fitted_sizes,
    fused_floats,
    size_of,
)
from penstock.presets.fixed import IMAGENET, NO_CROP, NO_PAD, FixedFamily, RescaledFamily
from penstock.presets.nested import flipped

_SQUARE = frozenset({"height", "width"})
# ImageNet's means and deviations in BGR order. PaddleOCR's processors in transformers treat them as in RGB order, so that red is normalized
# with those of blue.
_BLUE_MEAN, _BLUE_STD = (0.406, 0.456, 0.485), (0.225, 0.224, 0.229)
_LIMITS = ("max", "min", "resize_long")


def _blue_first(images: DataNode) -> DataNode:
    return fn.color_space_conversion(images, image_type=types.RGB, output_type=types.BGR)


@dataclass(frozen=True, kw_only=True)
class TextDetectionFamily(ImageFamily):
    """PP-OCR's detectors, which resize float images, and whose results are in BGR order.

    Attributes:
        limit_side_len, limit_type: a length, and what it is: `max`: the greatest length of the longer side; `min`: the smallest length of
            the shorter side; `resize_long`: the length of the longer side.
        max_side_limit: the greatest length of the longer side in any case.
        size: accepted without effect: the processor in transformers does not read it.
    """

    image_mean: tuple[float, ...] = _BLUE_MEAN
    image_std: tuple[float, ...] = _BLUE_STD
    limit_side_len: int = 960
    limit_type: str = "max"
    max_side_limit: int = 4000
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"size"}

    @property
    def outputs(self) -> tuple[str, ...]:
        return (PIXELS, "target_sizes")

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if self.limit_type not in _LIMITS:
            raise PresetError(f"`limit_type` must be one of {', '.join(_LIMITS)}. Got: {self.limit_type!r}")
        if min(self.limit_side_len, self.max_side_limit) < 1:
            raise PresetError("`limit_side_len` and `max_side_limit` must be positive")
        if not self.do_resize:
            raise PresetError("`do_resize`: PP-OCR's detectors are supported only where they resize")
        if self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        size, _ = fn.fitted_size(
            data,
            rule="pp-ocr",
            most=self.limit_side_len,
            least=_LIMITS.index(self.limit_type),
            canvases=[self.max_side_limit] * 2,
        )
        floats = self.resized(as_floats(_blue_first(data)), backend, size)
        values = fused_floats(floats, self, True, PIXELS)
        return values, fn.cast(data.shape()[:2], dtype=types.FLOAT, name=self.outputs[1])


@dataclass(frozen=True, kw_only=True)
class TextLineFamily(ImageFamily):
    """PP-OCR's recognizers: lines of text, resized to one height and to the width that the widest line of a call requires.

    Attributes:
        size: the `height` of lines, and the `width` from which on a line's width is rounded down instead of up.
        pad_size: `height` and `width` to which narrow lines are padded with zeros.
        max_image_width: the greatest width of a line.
        character_list: accepted without effect: it is used after the model.
        line_width: the width of all lines of a call, which configuration files do not contain; 0: the width of each line follows from
            its own size.
        is_v6: resize uint8 images without antialiasing, and return channels in BGR order.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 48, "width": 320})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=lambda: {"height": 48, "width": 320})
    max_image_width: int = 3200
    character_list: object = None
    line_width: int = 0
    is_v6: bool = False
    torchvision_only: bool = True

    hidden = ImageFamily.hidden | {"is_v6"}

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        for key in ("size", "pad_size"):
            settings[key] = size_of(settings[key], True, f"`{key}`", _SQUARE)
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not (self.do_resize and self.do_pad):
            raise PresetError("`do_resize`, `do_pad`: PP-OCR's recognizers are supported only where both are set")
        if self.filter_of(backend) == "lanczos":
            raise PresetError(
                "`resample`: presets cannot resize float images, or resize without antialiasing, with lanczos"
            )
        if self.pad_size["height"] < self.size["height"] or self.max_image_width < 1:
            raise PresetError("`pad_size` must be at least as high as `size`, and `max_image_width` must be positive")

    def shared_settings(self, sizes: Sequence[tuple[int, int]]) -> Values:
        widest = max(sizes, key=lambda size: size[1])
        return {"line_width": self._width(*widest)}

    def _width(self, height: int, width: int) -> int:
        return line_width(height, width, (self.size["height"], self.size["width"]), self.max_image_width)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        high = self.size["height"]
        size: DataNode | list[int] = [high, self.line_width]
        if not self.line_width:
            size, _ = fn.fitted_size(
                data, rule="text-line", most=self.max_image_width, canvases=[high, self.size["width"]]
            )
        lines = _blue_first(data) if self.is_v6 else as_floats(data)
        lines = fn.resize(
            lines, size=size, reference=backend, interpolation=self.filter_of(backend), antialias=not self.is_v6
        )
        if self.is_v6:
            values = self.normalized(lines, backend, None)
        else:
            values = fused_floats(lines, self, False, None)
        # Lines that are at least as wide as `pad_size` are not padded in height either.
        extents = values.shape(dtype=types.INT32)[1:]
        narrow = fn.cast(extents[1:] < self.pad_size["width"], dtype=types.INT32)
        canvas = fn.cat(
            *(
                extents[axis : axis + 1] + narrow * (self.pad_size[name] - extents[axis : axis + 1])
                for axis, name in ((0, "height"), (1, "width"))
            )
        )
        return (fn.slice(values, start=[0, 0], shape=canvas, axes=[1, 2], out_of_bounds_policy="pad", name=PIXELS),)


@dataclass(frozen=True, kw_only=True)
class LcNetFamily(FixedFamily):
    """PP-LCNet, whose results are in BGR order.

    Attributes:
        resize_short: the length of the shorter side; if it is not set, `size` applies.
        size_divisor: the sides of results are multiples of this number.
    """

    image_mean: tuple[float, ...] = _BLUE_MEAN
    image_std: tuple[float, ...] = _BLUE_STD
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 256, "width": 256})
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    resize_short: int = 256
    size_divisor: int = 1
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_PAD

    tells_by = ()

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if min(self.resize_short, self.size_divisor) < 1:
            raise PresetError("`resize_short` and `size_divisor` must be positive")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return super().process(_blue_first(data), backend)

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        size, _ = fn.fitted_size(images, rule="shortest-rounded", least=self.resize_short, factor=self.size_divisor)
        return self.resized(images, backend, size)

    def normalizing(self, backend: str) -> Values:
        arguments = super().normalizing(backend)
        return arguments | flipped(arguments)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("PP-LCNet does not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class Layout4Family(RescaledFamily):
    """PP-DocLayout v4, which clips values above white."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 800, "width": 800})
    resample: int = 3
    image_mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    image_std: tuple[float, ...] = (1.0, 1.0, 1.0)
    antialias: bool = False

    tells_by = ()

    def resized_floats(self, data: DataNode, backend: str) -> DataNode:
        return math.clamp(super().resized_floats(data, backend), 0.0, 255.0 * self.rescale_factor)


@dataclass(frozen=True, kw_only=True)
class WarpFamily(FixedFamily):
    """UVDoc, which resizes float images with aligned corners, and whose results are in BGR order.

    The output `original_images` contains the float images in their original size.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 712, "width": 488})
    do_normalize: bool = False
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"resample", "image_mean", "image_std"}

    forms = (_SQUARE,)
    tells_by = ()
    names = (PIXELS, "original_images")
    unstacked = ("original_images",)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.names

    @property
    def on_host(self) -> bool:
        return self.do_resize

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_normalize or not self.do_rescale:
            raise PresetError("UVDoc is supported only where it rescales and does not normalize")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        floats = fn.rescale_normalize(_blue_first(data), divisor=self.divisor(), output_layout="HWC")
        planes = [2, 0, 1]
        resized = fn.neighbour_resize(floats, size=list(self.size.values())) if self.do_resize else floats
        return fn.transpose(resized, perm=planes, name=PIXELS), fn.transpose(floats, perm=planes, name=self.names[1])

    def joined(self, images: Sequence[Features]) -> Values:
        originals = self.names[1]
        return {**super().joined(images), originals: [image[originals] for image in images]}


@dataclass(frozen=True, kw_only=True)
class TableFamily(FixedFamily):
    """SLANeXt, which resizes the longer side to that of a square and pads images to the square with zeros."""

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 512, "width": 512})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=lambda: {"height": 512, "width": 512})
    torchvision_only: bool = True
    # transformers' processor saves these settings in configurations, but only its decoder reads them.
    ignored: frozenset[str] = frozenset({"resample", "bos_id", "character", "dict", "eos_id", "td_token"})

    forms = (_SQUARE,)
    tells_by = ()

    @property
    def on_host(self) -> bool:
        return self.do_resize

    def check(self, backend: str) -> None:
        super().check(backend)
        longest = max((self.crop_size if self.do_center_crop else self.size).values())
        if self.do_pad and (not self.do_resize or min(self.pad_size.values()) < longest):
            raise PresetError("`do_pad`: SLANeXt is supported only where it resizes or crops to at most `pad_size`")

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        size, _ = fitted_sizes(images, "longest-rounded", SizeArguments(most=max(self.size.values())))
        return fn.neighbour_resize(images, size=size)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of tables do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class MarginFamily(DonutFamily):
    """Nougat and PP-FormulaNet: pages like Donut's, but margins are cut off first.

    Attributes:
        size: `height` and `width` of a page.
        do_crop_margin: whether to cut off margins.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 896, "width": 672})
    do_crop_margin: bool = True
    torchvision_only: bool = True
    ignored: frozenset[str] = DonutFamily.ignored | NO_CROP

    @property
    def on_host(self) -> bool:
        # If margins are cut off, the sizes depend on the pixels, and the host must know the sizes.
        return self.do_crop_margin

    def converted(self, values: Values) -> Values:
        return FixedFamily.converted(self, values)

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        if self.do_crop_margin:
            start, extents = fn.content_window(data)
            data = fn.slice(data, start=start, shape=extents, axes=[0, 1])
        images = self.shortened(data, backend, min(self.size.values())) if self.do_resize else data
        if not self.do_thumbnail:
            return images
        # Thumbnails are always made with the bicubic filter, whatever `resample` is.
        size, _ = fn.fitted_size(images, rule="thumbnail", canvases=[self.size["height"], self.size["width"]])
        return fn.resize(images, size=size, reference=backend, interpolation="bicubic")
