"""Image processors of models that predict a value for every pixel, such as masks and depth; and ViLT, which resizes in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock import fn, math, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments
from penstock.presets.detection import DetectionFamily
from penstock.presets.family import (
    CHANNELS,
    PIXELS,
    Family,
    Features,
    ImageFamily,
    PresetError,
    Values,
    fitted_sizes,
    named,
    size_of,
    stacked,
)
from penstock.presets.fixed import IMAGENET, NO_CROP, NO_PAD, OPENAI, FixedFamily

_SQUARE = frozenset({"height", "width"})
_OFFSETS = "patch_offsets"


@dataclass(frozen=True, kw_only=True)
class MaskFormerFamily(DetectionFamily):
    """MaskFormer and Mask2Former, which always pad, whatever `do_pad` is.

    Attributes:
        size_divisor: the sides of results are multiples of this number.
    """

    size_divisor: int = 32
    longest: int = 0

    forms = (frozenset({"shortest_edge", "longest_edge"}), _SQUARE)

    def converted(self, values: Values) -> Values:
        settings = super().converted({**values, "do_pad": True})
        divisor = settings["size_divisor"]
        if divisor < 1:
            raise PresetError(f"`size_divisor` must be positive. Got: {divisor}")
        if "height" in settings["size"]:
            settings["size"] = {key: -(-extent // divisor) * divisor for key, extent in settings["size"].items()}
        return settings

    @property
    def rule(self) -> tuple[str, SizeArguments]:
        return "maskformer", super().rule[1]._replace(factor=self.size_divisor)


@dataclass(frozen=True, kw_only=True)
class ViltFamily(DetectionFamily):
    """ViLT.

    Attributes:
        size: `shortest_edge`; the longer side becomes at most 1333 / 800 as long.
        size_divisor: the sides of results are multiples of this number.
    """

    image_mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    image_std: tuple[float, ...] = (0.5, 0.5, 0.5)
    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 384})
    resample: int = 3
    size_divisor: int = 32
    longest: int = 0
    ignored: frozenset[str] = NO_CROP | {"pad_size"}

    forms = (frozenset({"shortest_edge"}),)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if settings["size_divisor"] < 1:
            raise PresetError(f"`size_divisor` must be positive. Got: {settings['size_divisor']}")
        return settings

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        edge = self.size["shortest_edge"]
        longest = int(1333 / 800 * edge)
        target, _ = fn.fitted_size(images, rule="vilt", factor=self.size_divisor, least=edge, most=longest)
        return self.resized(images, backend, target)


@dataclass(frozen=True, kw_only=True)
class BridgeTowerFamily(ViltFamily):
    """BridgeTower, which resizes like ViLT and crops the centre.

    Attributes:
        crop_size: `shortest_edge`, the side of the square crop.
    """

    image_mean: tuple[float, ...] = OPENAI["image_mean"]
    image_std: tuple[float, ...] = OPENAI["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 288})
    do_center_crop: bool = True
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 288})
    ignored: frozenset[str] = frozenset({"pad_size"})

    def converted(self, values: Values) -> Values:
        if not isinstance(values["crop_size"], Mapping):
            raise PresetError(f"`crop_size` must have `shortest_edge`. Got: {values['crop_size']!r}")
        side = size_of(values["crop_size"], False, "`crop_size`", frozenset({"shortest_edge"}))["shortest_edge"]
        return super().converted({**values, "crop_size": side})


@dataclass(frozen=True, kw_only=True)
class OneFormerFamily(DetectionFamily):
    """OneFormer, whose model receives the task in words.

    Attributes:
        task_inputs: the task of each image, `semantic`, `instance` or `panoptic`: an argument of the
            processor's call, so no configuration file has it.
        class_info_file: accepted without effect: names of classes, used only for training.
    """

    do_pad: bool = True
    longest: int = 0
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"num_text", "repo_path"}
    task_inputs: Sequence[str] = ("panoptic",)
    class_info_file: str = ""

    forms = FixedFamily.forms

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if not isinstance(settings["class_info_file"], str):
            raise PresetError(f"`class_info_file` must be the name of a file. Got: {settings['class_info_file']!r}")
        return settings

    def joined(self, images: Sequence[Features]) -> Values:
        return super().joined(images) | {"task_inputs": [f"the task is {task}" for task in self.task_inputs]}


@dataclass(frozen=True, kw_only=True)
class SuperPointFamily(FixedFamily):
    """SuperPoint, which does not normalize.

    Attributes:
        do_grayscale: must be false.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 480, "width": 640})
    default_to_square: bool = False
    do_normalize: bool = False
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"image_mean", "image_std"}
    do_grayscale: bool = False

    tells_by = ()

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_grayscale or self.do_normalize:
            raise PresetError("`do_grayscale`, `do_normalize`: SuperPoint is supported only where neither is set")

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("SuperPoint does not tell how many tokens an image becomes")


# The weights of red, green and blue in a grey value, as in torchvision.
_GREY = (0.2989, 0.587, 0.114)


@dataclass(frozen=True, kw_only=True)
class MatchingFamily(FixedFamily):
    """LightGlue, SuperGlue and EfficientLoFTR, which compare two images.

    Attributes:
        do_grayscale: whether to convert images to grey.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 480, "width": 640})
    default_to_square: bool = False
    do_normalize: bool = False
    do_grayscale: bool = True
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD | {"do_normalize", "image_mean", "image_std"}

    tells_by = ()

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not self.do_resize:
            raise PresetError("`do_resize` must be true: images must have the same size to be compared")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = self.normalized(self.prepared(data, backend), backend, None)
        if not self.do_grayscale:
            return (named(images, PIXELS, 3),)
        red, green, blue = (images[channel] for channel in range(CHANNELS))
        grey = red * _GREY[0]
        for values, part in ((green, _GREY[1]), (blue, _GREY[2])):
            # Like PyTorch, round once after multiplication and addition.
            exact = fn.cast(values, dtype=types.FLOAT64) * types.Constant(float(np.float32(part)), dtype=types.FLOAT64)
            grey = fn.cast(exact + fn.cast(grey, dtype=types.FLOAT64), dtype=types.FLOAT)
        coloured = fn.reductions.max(fn.cast((red != green) | (green != blue), dtype=types.FLOAT))
        grey = grey * coloured + red * (1.0 - coloured)
        return (fn.stack(grey, grey, grey, name=PIXELS),)

    def joined(self, images: Sequence[Features]) -> Values:
        return self.joined_prompts([images])

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        if any(len(group) != 2 for group in groups):
            raise ValueError("Pass pairs of images: a list of two images, or a list of such lists")
        return {PIXELS: np.stack([np.stack([image[PIXELS] for image in group]) for group in groups])}

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models that compare images do not tell how many tokens one becomes")


@dataclass(frozen=True, kw_only=True)
class SapiensFamily(FixedFamily):
    """Sapiens 2.

    Attributes:
        size: `height` and `width`.
        do_pad: resize images without changing their aspect ratio, and centre them on a black canvas.
    """

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 768})
    crop_size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    torchvision_only: bool = True
    ignored: frozenset[str] = frozenset({"pad_size", "keypoint_heatmap_downscale_factor", "keypoint_heatmap_sigma"})

    forms = (_SQUARE,)
    tells_by = ()

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        if not self.do_pad:
            return super().fitted(images, backend)
        bounds = SizeArguments(canvases=((self.size["height"], self.size["width"]),))
        size, _ = fitted_sizes(images, "within", bounds)
        return self.cropped(self.resized(images, backend, size), backend, self.size)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of people do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class DptFamily(FixedFamily):
    """DPT and Depth Anything.

    Attributes:
        keep_aspect_ratio: resize without changing the aspect ratio, so that one side becomes nearly as long as requested.
        ensure_multiple_of: sides are resized to multiples of this number.
        do_pad, size_divisor: whether to pad images with zeros on all sides, to multiples of `size_divisor`.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 384})
    resample: int = 3
    keep_aspect_ratio: bool = False
    ensure_multiple_of: int = 1
    size_divisor: int = 0
    ignored: frozenset[str] = frozenset({"pad_size"})

    forms = (_SQUARE,)
    tells_by = ()

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if settings["ensure_multiple_of"] < 1 or settings["size_divisor"] < settings["do_pad"]:
            raise PresetError("`ensure_multiple_of` must be positive, and `size_divisor`, too, if `do_pad` is set")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_center_crop and backend == "pil":
            raise PresetError("`do_center_crop`: presets with `backend='pil'` do not crop after DPT's resizing")

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        canvas = [self.size["height"], self.size["width"]]
        target, _ = fn.fitted_size(
            images, rule="dpt", factor=self.ensure_multiple_of, least=int(self.keep_aspect_ratio), canvases=canvas
        )
        return self.resized(images, backend, target)

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if not self.do_pad:
            return self.normalized(images, backend)
        _, canvas = fn.fitted_size(images, rule="up", factor=self.size_divisor)
        values = self.normalized(images, backend, None)
        canvas = fn.cast(canvas, dtype=types.FLOAT)
        return fn.crop(
            values,
            crop_h=canvas[0],
            crop_w=canvas[1],
            rounding="truncate",
            out_of_bounds_policy="pad",
            fill_values=[0],
            name=PIXELS,
        )

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of depth do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class ZoeFamily(FixedFamily):
    """ZoeDepth, which rescales values, extends images by reflection at their edges, and then resizes them with aligned corners.

    Attributes:
        do_pad: whether to extend images by reflection.
        keep_aspect_ratio, ensure_multiple_of: as in :class:`DptFamily`; `ensure_multiple_of` may be a fraction.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 384, "width": 512})
    do_pad: bool = True
    keep_aspect_ratio: bool = True
    ensure_multiple_of: float = 1 / 32
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | {"pad_size"}

    forms = (_SQUARE,)
    tells_by = ()

    @property
    def on_host(self) -> bool:
        return self.do_resize

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.do_rescale or self.resample != 2:
            raise PresetError(
                "ZoeDepth is supported only where it rescales, and with the bilinear filter (`resample` is 2)"
            )
        numerator, denominator = self._multiple
        if not 0 < numerator < 1 << 16 or denominator >= 1 << 16:
            raise PresetError(f"`ensure_multiple_of` must be positive. Got: {self.ensure_multiple_of}")

    @property
    def _multiple(self) -> tuple[int, int]:
        return float(self.ensure_multiple_of).as_integer_ratio()

    def fuses_factor(self, backend: str) -> bool:
        return False

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = fn.rescale_normalize(data, divisor=self.divisor(), output_layout="HWC")
        if self.do_pad:
            size, beyond = fitted_sizes(data, "mirrored", SizeArguments())
            images = fn.slice(
                images,
                start=beyond * types.Constant(-1, dtype=types.INT32),
                shape=fn.cast(size, dtype=types.INT32),
                axes=[0, 1],
                out_of_bounds_policy="reflect_101",
            )
        if self.do_resize:
            factor, parts = self._multiple
            canvas = self.size["height"], self.size["width"]
            bounds = SizeArguments(factor, int(self.keep_aspect_ratio), canvases=(canvas,), tile=(parts, parts))
            size, _ = fitted_sizes(images, "zoedepth", bounds)
            images = fn.neighbour_resize(images, size=size)
        return (self.normalized_floats(fn.transpose(images, perm=[2, 0, 1])),)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of depth do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class GlpnFamily(ImageFamily):
    """GLPN, which resizes to sides that are multiples of a number, and does not normalize.

    Attributes:
        size_divisor: the sides of results are multiples of this number.
    """

    do_normalize: bool = False
    size_divisor: int = 32

    hidden = ImageFamily.hidden | {"do_normalize"}

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        if settings["size_divisor"] < 1:
            raise PresetError(f"`size_divisor` must be positive. Got: {settings['size_divisor']}")
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            target, _ = fn.fitted_size(data, rule="down", factor=self.size_divisor)
            images = self.resized(data, backend, target)
        return (self.normalized(images, backend),)


@dataclass(frozen=True, kw_only=True)
class SwinFamily(ImageFamily):
    """Swin2SR, which extends images by reflection at their edges, and does not normalize.

    Attributes:
        size_divisor: sides are extended to the next multiples of this number.
        do_pad: whether to extend images.
        pad_size: an older name of `size_divisor`.
    """

    do_resize: bool = False
    do_normalize: bool = False
    do_pad: bool = True
    size_divisor: int = 8
    pad_size: int = 0

    hidden = ImageFamily.hidden | {"do_normalize", "do_resize", "image_mean", "image_std", "resample"}

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size_divisor"], settings["pad_size"] = settings["pad_size"] or settings["size_divisor"], 0
        if settings["size_divisor"] < 1:
            raise PresetError(f"`size_divisor` must be positive. Got: {settings['size_divisor']}")
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_pad:
            _, canvas = fn.fitted_size(data, rule="next", factor=self.size_divisor, least=int(backend != "pil"))
            images = fn.slice(data, start=[0, 0], shape=canvas, axes=[0, 1], out_of_bounds_policy="reflect")
        return (self.normalized(images, backend),)


@dataclass(frozen=True, kw_only=True)
class EomtFamily(FixedFamily):
    """EoMT.

    Attributes:
        size: `shortest_edge` and `longest_edge`.
        do_pad: whether to put smaller images in the upper left corner of a black canvas of `size`.
        do_split_image: whether to cut images along the longer side into overlapping squares with sides of `shortest_edge`. The squares of
            all images of a call are joined, and `patch_offsets` contains their positions: in a pipeline the range of pixels, end
            exclusive, along the longer side; `ImageProcessor` adds the number of the image before the range.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 640, "longest_edge": 640})
    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    default_to_square: bool = False
    do_split_image: bool = False
    ignored: frozenset[str] = NO_CROP | {"pad_size"}

    tells_by = ()
    forms = (frozenset({"shortest_edge", "longest_edge"}), frozenset({"shortest_edge"}))

    @property
    def outputs(self) -> tuple[str, ...]:
        return (PIXELS, *(_OFFSETS,) * self.do_split_image)

    @property
    def concatenated(self) -> tuple[str, ...]:
        return (PIXELS,) if self.do_split_image else ()

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        if not self.do_split_image:
            return super().process(data, backend)
        images, side = self.prepared(data, backend), self.size["shortest_edge"]
        extents = images.shape(dtype=types.INT32)
        height, width = extents[0:1], extents[1:2]
        # Square images are cut along the width.
        is_high, is_wide = height > width, height <= width
        boxes = fn.tile_boxes(
            images, tile=fn.cat(is_high * side + is_wide * height, is_wide * side + is_high * width), spread=True
        )
        parts, counts = fn.crop_boxes(images, boxes)
        values = fn.collect(self.finished(parts, backend), counts=counts, name=PIXELS)
        # The start along the longer side is the maximum of both, because along the shorter side parts start at 0.
        starts = fn.cast(fn.reductions.max(boxes[:, :2], axes=[1], keep_dims=True), dtype=types.INT64)
        return values, fn.cat(starts, starts + side, axis=1, name=_OFFSETS)

    def finished(self, images: DataNode, backend: str) -> DataNode:
        name = None if self.do_split_image else PIXELS
        if not self.do_pad:
            return self.normalized(images, backend, name)
        sides = self.size["shortest_edge"], self.size.get("longest_edge", self.size["shortest_edge"])
        extents = images.shape(dtype=types.INT32)
        canvas = fn.cat(*(math.max(extents[axis : axis + 1], side) for axis, side in enumerate(sides)))
        padded = fn.slice(images, start=[0, 0], shape=canvas, axes=[0, 1], out_of_bounds_policy="pad", fill_values=[0])
        return self.normalized(padded, backend, name)

    def joined(self, images: Sequence[Features]) -> Values:
        if not self.do_split_image:
            return {**Family.joined(self, images), _OFFSETS: []}
        offsets = [
            [number, *offset] for number, image in enumerate(images) for offset in np.asarray(image[_OFFSETS]).tolist()
        ]
        parts = [part for image in images for part in image[PIXELS]]
        return {PIXELS: stacked(parts), _OFFSETS: offsets}

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of masks do not tell how many tokens an image becomes")
