"""Decoding, and the resize and `crop_mirror_normalize` behind it, image by image."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operators.decoders._buffers import ThreadBuffers
from penstock.operators.decoders._images import ImageDecoder
from penstock.schema import Sample, Schema, Workspace, operator_class, register_operator
from penstock.schema.fused import FusedOperator
from penstock.types import numpy_dtype


@register_operator
class ImageResizeNormalize(FusedOperator):
    """Decodes each image into a buffer of the thread's own, and goes on from there while its pixels are at hand.

    A batch then takes no more memory for decoded images than one image a thread.
    """

    schema = Schema(
        name="_fused__ImageResizeNormalize",
        devices=("cpu",),
        fuses=(
            ("decoders__Image", "ImageDecoder", "experimental__decoders__Image"),
            ("Resize", "ResizeCropMirror"),
            ("CropMirrorNormalize",),
        ),
        hidden=True,
    )

    def setup(self) -> None:
        self._behind = operator_class("_fused__ResizeNormalize")()
        self._buffers = ThreadBuffers()

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        return self._behind.can_fuse(steps[1:])  # type: ignore[attr-defined]

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        decoding, resizing, normalizing = samples
        decoder = self.operators[0]
        assert isinstance(decoder, ImageDecoder)
        shape = resizing.shapes[0]
        pixels = self._buffers.array(shape, numpy_dtype(resizing.workspace.inputs[0].dtype))
        try:
            decoder.decode_into(decoding, pixels)
        except Exception as error:
            raise self.error_of(0, error, decoding.index) from error
        self._behind.compute_from(pixels, resizing, normalizing)  # type: ignore[attr-defined]
