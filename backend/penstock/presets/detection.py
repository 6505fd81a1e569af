"""Image processors of detectors and segmenters that mostly preserve an image's aspect ratio: DETR, RT-DETR, RF-DETR, SAM, YOLO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock import fn, types
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments
from penstock.presets.family import (
    PIXELS,
    Family,
    ImageFamily,
    PresetError,
    Values,
    image_sizes,
    size_of,
)
from penstock.presets.fixed import IMAGENET, NO_CROP, FixedFamily

_WHITE = 255
_SQUARE, _WITHIN = frozenset({"height", "width"}), frozenset({"max_height", "max_width"})


@dataclass(frozen=True, kw_only=True)
class DetectionFamily(FixedFamily):
    """DETR and related models, which return masks that distinguish the image from padding.

    Attributes:
        max_size: the longest edge, as older configurations state it.
        longest: the longest edge if `size` is a single number, the shortest edge, as in older configurations; 0: that form is not
            supported.
        multiple: images that are resized to a shortest and longest edge get sides that are multiples of this number.
    """

    image_mean: tuple[float, ...] = IMAGENET["image_mean"]
    image_std: tuple[float, ...] = IMAGENET["image_std"]
    size: Mapping[str, int] = field(default_factory=lambda: {"shortest_edge": 800, "longest_edge": 1333})
    default_to_square: bool = False
    do_pad: bool = True
    max_size: int = 0
    longest: int = 1333
    multiple: int = 1
    tells_masks: bool = True
    ignored: frozenset[str] = NO_CROP

    hidden = FixedFamily.hidden | {"longest", "multiple"}
    older_settings = {"pad_and_return_pixel_mask": "do_pad"}
    tells_by = ()
    forms: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"shortest_edge", "longest_edge"}), _SQUARE, _WITHIN)

    def converted(self, values: Values) -> Values:
        settings = dict(values)
        size = settings["size"]
        if self.longest and (settings["max_size"] or isinstance(size, int)):
            # Older configurations state the shortest edge as a single number, and the longest edge as `max_size`.
            shortest = size if isinstance(size, int) else dict(size).get("shortest_edge")
            settings["size"] = {"shortest_edge": shortest, "longest_edge": settings["max_size"] or self.longest}
        elif settings["max_size"]:
            raise PresetError("no preset follows the setting `max_size` of this class")
        settings["max_size"] = 0
        return super().converted(settings)

    @property
    def rule(self) -> tuple[str, SizeArguments]:
        rule, bounds = super().rule
        return ("yolos" if rule == "detr" and self.multiple > 1 else rule), bounds._replace(factor=self.multiple)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Detectors do not tell how many tokens an image becomes")


@dataclass(frozen=True, kw_only=True)
class RfDetrFamily(DetectionFamily):
    """RF-DETR, which rescales values first, and then resizes float images without antialiasing."""

    antialias: bool = False
    torchvision_only: bool = True

    def check(self, backend: str) -> None:
        super().check(backend)
        if not (self.do_resize and self.do_rescale) or self._pads_each:
            raise PresetError("RF-DETR is supported only where it resizes and rescales, and without a `pad_size`")
        if self.filter_of(backend) == "lanczos":
            raise PresetError("`resample`: presets cannot resize float images with lanczos")

    def fuses_factor(self, backend: str) -> bool:
        return False

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        floats = fn.rescale_normalize(data, divisor=self.divisor(), output_layout="CHW")
        return self.resized(floats, backend, self.target(data))

    def finished(self, images: DataNode, backend: str) -> DataNode:
        return self.normalized_floats(images)


@dataclass(frozen=True, kw_only=True)
class SamFamily(ImageFamily):
    """SAM, which resizes the longer side to a length and pads with zeros below and to the right.

    Attributes:
        size: `longest_edge`, the length of the longer side.
        do_pad, pad_size: whether to pad images, and the `height` and `width` to which they are padded.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"longest_edge": 1024})
    do_pad: bool = True
    pad_size: Mapping[str, int] = field(default_factory=lambda: {"height": 1024, "width": 1024})

    names = (PIXELS, "original_sizes", "reshaped_input_sizes")

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", frozenset({"longest_edge"}))
        settings["pad_size"] = size_of(settings["pad_size"], True, "`pad_size`", _SQUARE)
        return settings

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()
        if not (self.do_resize and self.do_pad) or min(self.pad_size.values()) < self.size["longest_edge"]:
            raise PresetError("SAM is supported only where it resizes, and pads to at least the longest edge")

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
    """YOLO's letterbox, as in Ultralytics: images are resized to fit with OpenCV's linear filter, padded with gray, and divided by 255.

    Attributes:
        size: `height` and `width` of the result.
        padding_value: the gray value around the image.
        auto: make the result as much smaller as padding can be left out in whole multiples of `stride`.
        stride: the model's stride, in pixels.
        scale_fill: stretch the image to fill the result, unless `auto` is set.
        scaleup: whether images may be enlarged.
        center: put the image in the middle of the result instead of in the upper left corner.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 640, "width": 640})
    padding_value: int = 114
    auto: bool = False
    stride: int = 32
    scale_fill: bool = False
    scaleup: bool = True
    center: bool = True

    names = (PIXELS, "original_sizes")
    ignores_unknown = False

    @property
    def on_host(self) -> bool:
        return True

    def converted(self, values: Values) -> Values:
        settings = super().converted(values)
        settings["size"] = size_of(settings["size"], True, "`size`", _SQUARE)
        if not 0 <= settings["padding_value"] <= _WHITE:
            raise PresetError(f"`padding_value` must be from 0 to 255. Got: {settings['padding_value']}")
        if settings["stride"] < 1:
            raise PresetError(f"`stride` must be positive. Got: {settings['stride']}")
        return settings

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        bounds = [self.size["height"], self.size["width"]]
        size, canvas = fn.fitted_size(
            data,
            rule="letterbox",
            canvases=bounds,
            factor=self.stride if self.auto else 1,
            most=0 if self.scaleup else 1,
        )
        stretches = self.scale_fill and not self.auto
        images = fn.resize(data, size=bounds if stretches else size, reference="opencv", interpolation="linear")
        extents, position = fn.cast(canvas, dtype=types.FLOAT), 0.5 if self.center else 0.0
        boxes = fn.crop(
            images,
            crop_h=extents[0],
            crop_w=extents[1],
            crop_pos_x=position,
            crop_pos_y=position,
            rounding="truncate",
            out_of_bounds_policy="pad",
            fill_values=[float(self.padding_value)],
        )
        values = fn.rescale_normalize(boxes, divisor=float(_WHITE), mean=[0.0] * 3, std=[1.0] * 3, name=PIXELS)
        return values, image_sizes(data, "original_sizes")
