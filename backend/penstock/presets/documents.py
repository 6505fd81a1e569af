"""Image processors of models that read documents: LayoutLM v2 and v3, Donut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock import fn, types
from penstock.graph import DataNode
from penstock.presets.family import PIXELS, Family, Features, PresetError, Values
from penstock.presets.fixed import NO_CROP, NO_PAD, FixedFamily


@dataclass(frozen=True, kw_only=True)
class LayoutFamily(FixedFamily):
    """LayoutLM v3, whose tokenizer receives the words and boxes.

    Attributes:
        apply_ocr: whether transformers' processor runs Tesseract to find words and boxes; must be false.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    ignored: frozenset[str] = NO_PAD | {"ocr_lang", "tesseract_config"}
    apply_ocr: bool = True

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.apply_ocr:
            raise PresetError(
                "`apply_ocr` must be false, as no preset reads words: pass the words and boxes to the tokenizer"
            )
        if self.do_center_crop and backend == "pil":
            raise PresetError("`do_center_crop`: presets with `backend='pil'` do not crop after LayoutLM's resizing")


@dataclass(frozen=True, kw_only=True)
class BlueLayoutFamily(LayoutFamily):
    """LayoutLM v2, whose results are uint8 in BGR order."""

    do_rescale: bool = False
    do_normalize: bool = False
    ignored: frozenset[str] = (
        NO_CROP | NO_PAD | {"rescale_factor", "image_mean", "image_std", "ocr_lang", "tesseract_config"}
    )

    def check(self, backend: str) -> None:
        super().check(backend)
        if not self.leaves_bytes:
            raise PresetError("`do_rescale`, `do_normalize`: LayoutLM v2 takes bytes")

    def finished(self, images: DataNode, backend: str) -> DataNode:
        return self.normalized(fn.color_space_conversion(images, image_type=types.RGB, output_type=types.BGR), backend)


@dataclass(frozen=True, kw_only=True)
class DonutFamily(FixedFamily):
    """Donut: images reduced to fit a page size, and centred on the page.

    Attributes:
        size: `height` and `width` of a page; of two numbers, the width comes first.
        do_thumbnail: whether images are reduced to fit the page, after their shorter side is resized to that of the page.
        do_align_long_axis: must be false.
        do_pad: whether to pad images with black to the page.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 2560, "width": 1920})
    do_thumbnail: bool = True
    do_align_long_axis: bool = False
    do_pad: bool = True
    ignored: frozenset[str] = frozenset({"pad_size"})

    forms = (frozenset({"height", "width"}),)
    tells_by = ()

    def converted(self, values: Values) -> Values:
        size = values["size"]
        return super().converted({**values, "size": size[::-1] if isinstance(size, (list, tuple)) else size})

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.do_align_long_axis or self.do_center_crop:
            raise PresetError("`do_align_long_axis`, `do_center_crop`: Donut's presets neither rotate nor crop pages")
        if self.do_pad and not (self.do_resize and self.do_thumbnail):
            raise PresetError("`do_pad` is supported only where pages are resized, and then made thumbnails")
        if self.do_thumbnail and self.resample == 0 and backend == "pil":
            raise PresetError("`resample`: presets with `backend='pil'` do not make thumbnails with the nearest filter")
        if self.do_pad:
            self.check_floats()

    def prepared(self, data: DataNode, backend: str) -> DataNode:
        images = self.shortened(data, backend, min(self.size.values())) if self.do_resize else data
        if not self.do_thumbnail:
            return images
        size, _ = fn.fitted_size(images, rule="thumbnail", canvases=[self.size["height"], self.size["width"]])
        return self.resized(images, backend, size)

    def finished(self, images: DataNode, backend: str) -> DataNode:
        if not self.do_pad:
            return self.normalized(images, backend)
        page = [self.size["height"], self.size["width"]]
        pages = fn.image_tiles(images, tile=page, canvas=page, centred=True, **self.normalizing(backend))
        return fn.squeeze(pages, axes=[0], name=PIXELS)

    def joined(self, images: Sequence[Features]) -> Values:
        return Family.joined(self, images)

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        raise PresetError("Donut does not tell how many tokens a page becomes")
