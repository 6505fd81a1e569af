"""Image processors that make all images equally large: CLIP, SigLIP, ViT, DINOv2 and v3, ConvNeXT and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.pan_and_scan import PanAndScan
from penstock.presets.family import PIXELS, ImageFamily, PresetError, Values, image_sizes, named, size_of

_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALVES = (0.5, 0.5, 0.5)


class Normalization(TypedDict):
    """Mean and deviation of each channel."""

    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]


OPENAI: Normalization = {"image_mean": _CLIP_MEAN, "image_std": _CLIP_STD}
IMAGENET: Normalization = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}
# Below this size, ConvNeXT crops what it has resized.
_CONVNEXT_CROPS = 384
_CROPS = "num_crops"


@dataclass(frozen=True, kw_only=True)
class FixedFamily(ImageFamily):
    """Resizes, crops, rescales and normalizes.

    Attributes:
        size: `height` and `width`, or `shortest_edge`.
        do_center_crop, crop_size: whether the middle is taken; its `height` and `width`.
        default_to_square: a size that is one number means both sides, not the shorter one.
        crop_pct: which part of the resized image ConvNeXT keeps.
        tells_sizes: there is an output `original_sizes`.
    """

    size: Mapping[str, int]
    do_center_crop: bool = False
    crop_size: Mapping[str, int] = field(default_factory=dict)
    default_to_square: bool = True
    crop_pct: float | None = None
    tells_sizes: bool = False

    tells_by = ("patch_size",)
    hidden = frozenset({"tells_sizes"})

    @property
    def outputs(self) -> tuple[str, ...]:
        return (PIXELS, *("original_sizes",) * self.tells_sizes)

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        if own["crop_pct"] != self.crop_pct and not self.crop_pct:
            raise PresetError(f"no preset follows the setting `crop_pct` ({own['crop_pct']!r})")
        own["size"] = size_of(own["size"], bool(own["default_to_square"]), "`size`")
        own["crop_size"] = size_of(own["crop_size"], True, "`crop_size`")
        if own["do_center_crop"] and "height" not in own["crop_size"]:
            raise PresetError("`do_center_crop` needs a `crop_size`")
        return own

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.tells_sizes and backend != "torchvision":
            raise PresetError("SAM 2 has no variant of `pil`")
        if self.do_center_crop:
            self._check_crop(self.crop_size["height"], self.crop_size["width"], backend)

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = self._resized(data, backend) if self.do_resize else data
        if self.do_center_crop:
            images = self._cropped(images, self.crop_size["height"], self.crop_size["width"])
        sizes = (image_sizes(data, "original_sizes"),) if self.tells_sizes else ()
        return (self._normalized(images, backend), *sizes)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        rows, columns = (extent // model["patch_size"] for extent in self._extents(height, width))
        return rows * columns

    def _extents(self, height: int, width: int) -> tuple[int, int]:
        """Of the result."""
        if self.do_center_crop:
            return self.crop_size["height"], self.crop_size["width"]
        if not self.do_resize:
            return height, width
        if "shortest_edge" not in self.size:
            return self.size["height"], self.size["width"]
        edge = self.size["shortest_edge"]
        if self.crop_pct is not None:
            return edge, edge
        longer = int(edge * max(height, width) / min(height, width))
        return (longer, edge) if width <= height else (edge, longer)

    def _resized(self, images: DataNode, backend: str) -> DataNode:
        if "shortest_edge" not in self.size:
            return self.resized(images, backend, [self.size["height"], self.size["width"]])
        edge, name = self.size["shortest_edge"], self.filter_of(backend)
        if self.crop_pct is None:
            return fn.resize(images, resize_shorter=edge, reference=backend, interpolation=name)
        if edge >= _CONVNEXT_CROPS:
            return self.resized(images, backend, [edge, edge])
        shorter = int(edge / self.crop_pct)
        images = fn.resize(images, resize_shorter=shorter, reference=backend, interpolation=name)
        return self._cropped(images, edge, edge)

    def _check_crop(self, height: int, width: int, backend: str) -> None:
        """Raises PresetError for a crop that is larger than what it is taken from, which PIL's variant places elsewhere
        where the distance to the border is odd."""
        size = self.size
        shortest = size.get("shortest_edge", 0)
        least = size.get("height", shortest), size.get("width", shortest)
        if backend == "pil" and (not self.do_resize or any(a < b for a, b in zip(least, (height, width)))):
            raise PresetError(
                f"No preset of `pil` crops more ({(height, width)}) than the resized image has for sure ({least})"
            )

    def _cropped(self, images: DataNode, height: int, width: int) -> DataNode:
        """The middle; where it is larger than the image, there is black around it."""
        return fn.crop(images, crop=[height, width], rounding="truncate", out_of_bounds_policy="pad", fill_values=[0])

    def _normalized(self, images: DataNode, backend: str, name: str | None = PIXELS) -> DataNode:
        if not (self.do_rescale or self.do_normalize):
            return fn.transpose(images, perm=[2, 0, 1], name=name)
        return fn.rescale_normalize(images, **self.normalizing(backend), name=name)


CLIP = FixedFamily(
    size={"shortest_edge": 224},
    resample=3,
    do_center_crop=True,
    crop_size={"height": 224, "width": 224},
    default_to_square=False,
    **OPENAI,
)


@dataclass(frozen=True, kw_only=True)
class GemmaFamily(FixedFamily):
    """Gemma 3, which may show parts of long images beside them ("pan and scan").

    Attributes:
        do_pan_and_scan: whether it does; then the pictures of all images are joined, each image before its parts.
        pan_and_scan_min_ratio_to_activate: by how much an image's longer side must exceed the shorter one to be cut.
        pan_and_scan_max_num_crops: so many parts at the most.
        pan_and_scan_min_crop_size: how large parts must be. By default, these have the values of `Gemma3Processor`.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
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
            raise PresetError("`do_pan_and_scan` is followed where images are resized")
        if min(self.pan_and_scan_max_num_crops, self.pan_and_scan_min_crop_size) < 1:
            raise PresetError("`pan_and_scan_max_num_crops` and `pan_and_scan_min_crop_size` are positive")
        ratio = self.pan_and_scan_min_ratio_to_activate
        if float(str(np.float32(ratio))) != ratio:
            raise PresetError(f"`pan_and_scan_min_ratio_to_activate` is followed with up to six digits. Got: {ratio!r}")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        if not self.do_pan_and_scan:
            none = fn.constant(idata=[0], shape=[], dtype=types.INT64, name=_CROPS)
            return (*super().process(data, backend), none)
        pictures, counts = fn.crop_boxes(data, fn.pan_and_scan(data, **self._scanning._asdict()))
        values = self._normalized(self._resized(pictures, backend), backend, None)
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
class DinoFamily(FixedFamily):
    """DINOv3, which rescales first: it resizes images of float."""

    def check(self, backend: str) -> None:
        super().check(backend)
        if backend != "torchvision":
            raise PresetError("DINOv3 has no variant of `pil`")
        if not (self.do_resize and self.do_rescale) or "height" not in self.size or self.do_center_crop:
            raise PresetError("DINOv3 is followed where it resizes to `height` and `width`, and rescales")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        floats = fn.rescale_normalize(data, divisor=self.divisor(), output_layout="CHW")
        resized = self.resized(floats, backend, [self.size["height"], self.size["width"]])
        if not self.do_normalize:
            return (named(resized, PIXELS, 3),)
        mean, std = (
            types.Constant(list(each), dtype=types.FLOAT, shape=[3, 1, 1]) for each in (self.image_mean, self.image_std)
        )
        return (named((resized - mean) / std, PIXELS, 3),)
