"""Image processors of detectors and of SAM, which keep an image's shape: DETR, RT-DETR, SAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock import fn
from penstock.graph import DataNode
from penstock.presets.family import (
    PIXELS,
    Family,
    Features,
    ImageFamily,
    PresetError,
    Values,
    extended,
    image_sizes,
    size_of,
)
from penstock.presets.fixed import IMAGENET

_MASK = "pixel_mask"
_SIDES = frozenset({"shortest_edge", "longest_edge"})
_WHITE = 255
_SQUARE, _WITHIN = frozenset({"height", "width"}), frozenset({"max_height", "max_width"})


@dataclass(frozen=True, kw_only=True)
class DetectionFamily(ImageFamily):
    """DETR and its relatives.

    Attributes:
        size: `shortest_edge` and `longest_edge`, `max_height` and `max_width`, or `height` and `width`.
        do_pad: images are as large as the largest one, by zeros; then there is a mask of their own pixels.
        pad_size: `height` and `width` to which they are padded instead.
        max_size: the longest edge, as older configurations have it.
    """

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 800, "longest_edge": 1333})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=dict)
    max_size: int = 0

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        size = own["size"]
        if own["max_size"] or isinstance(size, int):
            # As older configurations have it.
            shortest = size if isinstance(size, int) else dict(size).get("shortest_edge")
            size = {"shortest_edge": shortest, "longest_edge": own["max_size"] or 1333}
            own["max_size"] = 0
        own["size"] = size_of(size, False, "`size`", _SIDES, _SQUARE, _WITHIN)
        own["pad_size"] = size_of(own["pad_size"], True, "`pad_size`", _SQUARE, frozenset())
        return own

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_pad and self.pad_size:
            raise PresetError("`pad_size`: no preset pads images to a size of its own")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        images = data
        if self.do_resize:
            images = self.resized(data, backend, self._target(data))
        return (fn.rescale_normalize(images, **self.normalizing(backend), name=PIXELS),)

    def _target(self, images: DataNode) -> DataNode | list[int]:
        size = self.size
        if "height" in size:
            return [size["height"], size["width"]]
        if "max_height" in size:
            return fn.fitted_size(images, rule="within", canvases=[size["max_height"], size["max_width"]])[0]
        return fn.fitted_size(images, rule="detr", least=size["shortest_edge"], most=size["longest_edge"])[0]

    def joined(self, images: Sequence[Features]) -> Values:
        values = [image[PIXELS] for image in images]
        if not self.do_pad:
            return super().joined(images)
        masks = [np.ones(value.shape[1:], np.int64) for value in values]
        return {PIXELS: extended(values, (1, 2)), _MASK: extended(masks, (0, 1))}


@dataclass(frozen=True, kw_only=True)
class SamFamily(ImageFamily):
    """SAM: the longer side fills a square, the rest of which is zero.

    Attributes:
        size: `longest_edge`.
        do_pad, pad_size: whether the rest is filled; `height` and `width` of the square.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 1024})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 1024})

    names = (PIXELS, "original_sizes", "reshaped_input_sizes")

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        own["size"] = size_of(own["size"], True, "`size`", frozenset({"longest_edge"}))
        own["pad_size"] = size_of(own["pad_size"], True, "`pad_size`", _SQUARE)
        return own

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_resize and self.do_pad) or min(self.pad_size.values()) < self.size["longest_edge"]:
            raise PresetError("SAM is followed where it resizes, and pads to at least the longest edge")

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        size, _ = fn.fitted_size(data, rule="longest", most=self.size["longest_edge"])
        images = self.resized(data, backend, size)
        square = [self.pad_size["height"], self.pad_size["width"]]
        padded = fn.image_tiles(images, tile=square, canvas=square, fill_value=0.0, **self.normalizing(backend))
        return (
            fn.squeeze(padded, axes=[0], name=PIXELS),
            image_sizes(data, "original_sizes"),
            image_sizes(images, "reshaped_input_sizes"),
        )


SAM = SamFamily(**IMAGENET)


@dataclass(frozen=True, kw_only=True)
class LetterboxFamily(Family):
    """YOLO as Ultralytics prepares it: as large as fits, by OpenCV's linear filter, upon gray, divided by 255.

    Attributes:
        size: `height` and `width` of the result.
        padding_value: the gray beside the image.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 640, "width": 640})
    padding_value: int = 114

    names = (PIXELS, "original_sizes")

    @property
    def on_host(self) -> bool:
        return True

    def converted(self, values: Values) -> Values:
        own = super().converted(values)
        own["size"] = size_of(own["size"], True, "`size`", _SQUARE)
        if not 0 <= own["padding_value"] <= _WHITE:
            raise PresetError(f"`padding_value` is from 0 to 255. Got: {own['padding_value']}")
        return own

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        canvas = [self.size["height"], self.size["width"]]
        size, _ = fn.fitted_size(data, rule="letterbox", canvases=canvas)
        images = fn.resize(data, size=size, reference="opencv", interpolation="linear")
        # In single precision, as is all that stands beside it.
        gray = float(np.float32(self.padding_value) / np.float32(_WHITE))
        boxes = fn.image_tiles(
            images,
            tile=canvas,
            canvas=canvas,
            centred=True,
            fill_value=gray,
            divisor=float(_WHITE),
            mean=[0.0],
            std=[1.0],
        )
        return fn.squeeze(boxes, axes=[0], name=PIXELS), image_sizes(data, "original_sizes")
