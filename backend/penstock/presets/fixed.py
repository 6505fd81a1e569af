"""Image processors that resize, crop and normalize: CLIP, SigLIP, ViT, DINOv2 and v3, Gemma 3 and many others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypedDict

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments, fitted
from penstock.kernels.pan_and_scan import PanAndScan
from penstock.presets.family import (
    PIXELS,
    Features,
    ImageFamily,
    PresetError,
    Values,
    extended,
    image_sizes,
    named,
    size_of,
)

_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


class Normalization(TypedDict):
    """Mean and deviation of each channel."""

    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]


OPENAI: Normalization = {"image_mean": _CLIP_MEAN, "image_std": _CLIP_STD}
IMAGENET: Normalization = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}
_CROPS, _MASK = "num_crops", "pixel_mask"
_SQUARE = frozenset({"height", "width"})
NO_CROP, NO_PAD = frozenset({"do_center_crop", "crop_size"}), frozenset({"do_pad", "pad_size"})
"""The settings that classes without cropping ignore, and those that classes without padding ignore."""


@dataclass(frozen=True, kw_only=True)
class FixedFamily(ImageFamily):
    """Image processors that resize, crop, rescale, normalize and pad.

    Attributes:
        size: `height` and `width`; `shortest_edge`; `shortest_edge` and `longest_edge`; or `max_height` and `max_width`.
        do_center_crop, crop_size: whether to crop the centre, and the crop's `height` and `width`.
        default_to_square: whether a size that is one number means both height and width; otherwise, it is the shorter side.
        do_pad: whether to pad images with zeros, below and to the right, to the largest height and width of a call.
        pad_size: the `height` and `width` to which images are padded instead.
        antialias: whether torchvision applies antialiasing when it reduces images.
        tells_sizes: whether there is an output `original_sizes`.
        tells_masks: whether there is a mask of the pixels that are not padding, if images are padded.
    """

    size: Mapping[str, int]
    do_center_crop: bool = False
    crop_size: Mapping[str, int] = field(default_factory=dict)
    default_to_square: bool = True
    do_pad: bool = False
    pad_size: Mapping[str, int] = field(default_factory=dict)
    antialias: bool = True
    tells_sizes: bool = False
    tells_masks: bool = False

    tells_by: ClassVar[tuple[str, ...]] = ("patch_size",)
    hidden = ImageFamily.hidden | {"antialias", "tells_sizes", "tells_masks"}
    forms: ClassVar[tuple[frozenset[str], ...]] = (
        _SQUARE,
        frozenset({"shortest_edge"}),
        frozenset({"shortest_edge", "longest_edge"}),
        frozenset({"max_height", "max_width"}),
    )

    @property
    def outputs(self) -> tuple[str, ...]:
        masks = self.tells_masks and self._pads_each
        return (PIXELS, *(_MASK,) * masks, *("original_sizes",) * self.tells_sizes)

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], bool(settings["default_to_square"]), "`size`", *self.forms)
        for key, flag in (("crop_size", "do_center_crop"), ("pad_size", "do_pad")):
            settings[key] = size_of(settings[key], True, f"`{key}`", _SQUARE, frozenset()) if settings[flag] else {}
        if settings["do_center_crop"] and not settings["crop_size"]:
            raise PresetError("`do_center_crop` needs a `crop_size`")
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        if self._pads_each:
            self.check_floats()

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = self.prepared(data, backend)
        masks = (self._mask(images),) if _MASK in self.outputs else ()
        sizes = (image_sizes(data, "original_sizes"),) if self.tells_sizes else ()
        return (self.finished(images, backend), *masks, *sizes)

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        """Return images resized and cropped, but with unchanged values."""
        images = self.fitted(data, backend) if self.do_resize else data
        return self.cropped(images, backend, self.crop_size) if self.do_center_crop else images

    def fitted(self, images: DataNode, backend: str) -> DataNode:
        """Return images resized to the requested size."""
        if set(self.size) == {"shortest_edge"}:
            return self.shortened(images, backend, self.size["shortest_edge"])
        return self.resized(images, backend, self.target(images))

    def target(self, images: DataNode) -> DataNode | list[int]:
        """Return the size to which images are resized. `size` must not be a shortest edge alone."""
        if "height" in self.size:
            return [self.size["height"], self.size["width"]]
        rule, bounds = self.rule
        canvases = [extent for canvas in bounds.canvases for extent in canvas]
        target, _ = fn.fitted_size(
            images, rule=rule, factor=bounds.factor, least=bounds.least, most=bounds.most, canvases=canvases
        )
        return target

    def shortened(self, images: DataNode, backend: str, edge: int) -> DataNode:
        """Return images resized so that the shorter side has this length."""
        return fn.resize(images, resize_shorter=edge, **self._filtering(backend))

    def resized(self, images: DataNode, backend: str, size: DataNode | list[int]) -> DataNode:
        return fn.resize(images, size=size, **self._filtering(backend))

    def _filtering(self, backend: str) -> Values:
        """Return the arguments of :func:`fn.resize` other than the size."""
        arguments = {"reference": backend, "interpolation": self.filter_of(backend)}
        return arguments if self.antialias else arguments | {"antialias": False}

    @property
    def rule(self) -> tuple[str, SizeArguments]:
        """The rule of `kernels.fitted_sizes` for a size that consists of bounds, and its arguments."""
        if "max_height" in self.size:
            return "within", SizeArguments(canvases=((self.size["max_height"], self.size["max_width"]),))
        return "detr", SizeArguments(least=self.size["shortest_edge"], most=self.size["longest_edge"])

    def cropped(self, images: DataNode, backend: str, size: Mapping[str, int]) -> DataNode:
        """Return the centre crops of images; where a crop is larger than the image, it is black."""
        crop, rounding = [size["height"], size["width"]], "floor" if backend == "pil" else "truncate"
        return fn.crop(images, crop=crop, rounding=rounding, out_of_bounds_policy="pad", fill_values=[0])

    @property
    def _pads_each(self) -> bool:
        """Whether each image is padded to `pad_size`, which does not depend on other images."""
        return self.do_pad and bool(self.pad_size)

    def finished(self, images: DataNode, backend: str) -> DataNode:
        """Return the output from images that are resized and cropped: rescale, normalize and pad them."""
        if not self._pads_each:
            return self.normalized(images, backend)
        canvas = [self.pad_size["height"], self.pad_size["width"]]
        padded = fn.image_tiles(images, tile=canvas, canvas=canvas, fill_value=0.0, **self.normalizing(backend))
        return fn.squeeze(padded, axes=[0], name=PIXELS)

    def normalized_floats(self, images: DataNode) -> DataNode:
        """Return the output from rescaled float images in the layout CHW: normalize them."""
        if not self.do_normalize:
            return named(images, PIXELS, 3)
        mean, std = (
            types.Constant(list(each), dtype=types.FLOAT, shape=[3, 1, 1]) for each in (self.image_mean, self.image_std)
        )
        return named((images - mean) / std, PIXELS, 3)

    def _mask(self, images: DataNode) -> DataNode:
        channel = images[:, :, 0]
        shape = [self.pad_size["height"], self.pad_size["width"]]
        return fn.pad(fn.cast(channel == channel, dtype=types.INT64), axes=[0, 1], shape=shape, name=_MASK)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        rows, columns = (extent // model["patch_size"] for extent in self.extents(height, width))
        return rows * columns

    def extents(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width of the result for an image of this height and width."""
        size = self.pad_size if self._pads_each else self.crop_size if self.do_center_crop else self.size
        if not self.do_resize and size is self.size:
            return height, width
        if "height" in size:
            return size["height"], size["width"]
        if set(size) == {"shortest_edge"}:
            edge = size["shortest_edge"]
            longer = int(edge * max(height, width) / min(height, width))
            return (longer, edge) if width <= height else (edge, longer)
        rule, bounds = self.rule
        return fitted(rule, height, width, bounds)[:2]

    def joined(self, images: Sequence[Features]) -> Values:
        if not self.do_pad or self._pads_each:
            return super().joined(images)
        values = [image[PIXELS] for image in images]
        rest = {name: np.stack([image[name] for image in images]) for name in self.outputs[1:]}
        if self.tells_masks:
            rest[_MASK] = extended([np.ones(value.shape[1:], np.int64) for value in values], (0, 1))
        return {PIXELS: extended(values, (1, 2)), **rest}


CLIP = FixedFamily(
    size={"shortest_edge": 224},
    resample=3,
    do_center_crop=True,
    crop_size={"height": 224, "width": 224},
    default_to_square=False,
    **OPENAI,
)


@dataclass(frozen=True, kw_only=True)
class SquareClipFamily(FixedFamily):
    """CLIP, whose class also accepts a setting of KOSMOS-2.

    Attributes:
        use_square_size: whether to resize images to a square of the processor's default size, whatever `size` says.
    """

    size: Mapping[str, int] = field(default_factory=lambda: dict(CLIP.size))
    use_square_size: bool = False

    def converted(self, values: Values) -> Values:
        if not values["use_square_size"]:
            return super().converted(values)
        side = CLIP.size["shortest_edge"]
        return super().converted({**values, "use_square_size": False, "size": {"height": side, "width": side}})


DOC_LAYOUT = FixedFamily(
    size={"height": 800, "width": 800},
    resample=3,
    image_mean=(0.0, 0.0, 0.0),
    image_std=(1.0, 1.0, 1.0),
    antialias=False,
    torchvision_only=True,
)


@dataclass(frozen=True, kw_only=True)
class GemmaFamily(FixedFamily):
    """Gemma 3, which can add crops of elongated images ("pan and scan").

    The last three attributes have the defaults of `Gemma3Processor`.

    Attributes:
        do_pan_and_scan: whether to add crops; the pictures of all images of a call are then concatenated, each image before its crops.
        pan_and_scan_min_ratio_to_activate: images are cropped if the longer side is at least this many times the shorter one.
        pan_and_scan_max_num_crops: the largest number of crops of an image.
        pan_and_scan_min_crop_size: the smallest size of a crop.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    ignored: frozenset[str] = NO_CROP | NO_PAD
    do_pan_and_scan: bool = False
    pan_and_scan_min_ratio_to_activate: float = 1.2
    pan_and_scan_max_num_crops: int = 4
    pan_and_scan_min_crop_size: int = 256

    tells_by = ("mm_tokens_per_image",)

    @property
    def outputs(self) -> tuple[str, ...]:
        return PIXELS, _CROPS

    @property
    def concatenated(self) -> tuple[str, ...]:
        return (PIXELS,) if self.do_pan_and_scan else ()

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_pan_and_scan and not self.do_resize:
            raise PresetError("`do_pan_and_scan` is supported only where images are resized")
        if min(self.pan_and_scan_max_num_crops, self.pan_and_scan_min_crop_size) < 1:
            raise PresetError("`pan_and_scan_max_num_crops` and `pan_and_scan_min_crop_size` must be positive")
        ratio = self.pan_and_scan_min_ratio_to_activate
        if float(str(np.float32(ratio))) != ratio:
            raise PresetError(
                f"`pan_and_scan_min_ratio_to_activate` is supported with up to six digits. Got: {ratio!r}"
            )

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        if not self.do_pan_and_scan:
            none = fn.constant(idata=[0], shape=[], dtype=types.INT64, name=_CROPS)
            return (*super().process(data, backend), none)
        pictures, counts = fn.crop_boxes(data, fn.pan_and_scan(data, **self._scanning._asdict()))
        values = self.normalized(self.fitted(pictures, backend), backend, None)
        crops = fn.cast(counts - 1, dtype=types.INT64, name=_CROPS)
        return fn.collect(values, counts=counts, name=PIXELS), crops

    @property
    def _scanning(self) -> PanAndScan:
        return PanAndScan(
            self.pan_and_scan_min_ratio_to_activate, self.pan_and_scan_max_num_crops, self.pan_and_scan_min_crop_size
        )

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        pictures = len(self._scanning.boxes(height, width)) if self.do_pan_and_scan else 1
        return pictures * model["mm_tokens_per_image"]


@dataclass(frozen=True, kw_only=True)
class TipsFamily(FixedFamily):
    """TIPS v2, which does not normalize by default, and has no default mean."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 448, "width": 448})
    do_normalize: bool = False
    torchvision_only: bool = True

    hidden = FixedFamily.hidden | {"do_normalize"}


@dataclass(frozen=True, kw_only=True)
class RescaledFamily(FixedFamily):
    """DINOv3 and others that rescale values first, and then resize the float images."""

    torchvision_only: bool = True

    forms = (_SQUARE,)

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_resize and self.do_rescale) or self.do_center_crop or self.do_pad:
            raise PresetError(
                "This class resizes float images, and neither crops nor pads them: set `do_resize` and `do_rescale` only"
            )
        if self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    def fuses_factor(self, backend: str) -> bool:
        return False

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        return (self.normalized_floats(self.resized_floats(data, backend)),)

    def resized_floats(self, data: DataNode, backend: str) -> DataNode:
        """Return images first rescaled, then resized, in the layout CHW."""
        floats = fn.rescale_normalize(data, divisor=self.divisor(), output_layout="CHW")
        return self.resized(floats, backend, self.target(data))


@dataclass(frozen=True, kw_only=True)
class DepthProFamily(FixedFamily):
    """Depth Pro, which resizes after normalizing, without antialiasing."""

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 1536, "width": 1536})
    antialias: bool = False
    torchvision_only: bool = True
    ignored: frozenset[str] = NO_CROP | NO_PAD

    tells_by = ()
    forms = (_SQUARE,)

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if self.do_resize and self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        floats = self.normalized(data, backend, None)
        return (named(self.resized(floats, backend, self.target(data)) if self.do_resize else floats, PIXELS, 3),)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Models of depth do not tell how many tokens an image becomes")
