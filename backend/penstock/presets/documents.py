"""Image processors of models that read documents: LayoutLM v2 and v3, Donut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock import fn, types
from penstock.graph import DataNode
from penstock.presets.family import PresetError
from penstock.presets.fixed import NO_CROP, NO_PAD, FixedFamily


@dataclass(frozen=True, kw_only=True)
class LayoutFamily(FixedFamily):
    """LayoutLM v3, whose words and boxes are told to its tokenizer.

    Attributes:
        apply_ocr: whether the class has Tesseract find these; must be false.
    """

    size: Mapping[str, int] = field(default_factory=lambda: {"height": 224, "width": 224})
    ignored: frozenset[str] = NO_PAD | {"ocr_lang", "tesseract_config"}
    apply_ocr: bool = True

    def check(self, backend: str) -> None:
        super().check(backend)
        if self.apply_ocr:
            raise PresetError(
                "`apply_ocr` is false, as no preset reads words: give the words and boxes to the tokenizer"
            )
        if self.do_center_crop and backend == "pil":
            raise PresetError("`do_center_crop`: no preset of `pil` crops what LayoutLM resized")


@dataclass(frozen=True, kw_only=True)
class BlueLayoutFamily(LayoutFamily):
    """LayoutLM v2, which takes bytes, blue first."""

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
