"""Decoding, and the resize and `crop_mirror_normalize` behind it, image by image."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.operators.decoders._images import ImageDecoder
from penstock.schema import Sample, Schema, Workspace, operator_class, register_operator
from penstock.schema.fused import FusedOperator
from penstock.types import numpy_dtype


@register_operator
class ImageResizeNormalize(FusedOperator):
    """Decodes of each image what the resize reads, into a buffer of the thread's own, and goes on while it is at hand.

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
        part = self._behind.part_read(resizing, normalizing)  # type: ignore[attr-defined]
        try:
            pixels = decoder.decode_part(decoding, part)
            origin = part.anchor
            if pixels is None:
                pixels = self._buffers.array(shape, numpy_dtype(resizing.workspace.inputs[0].dtype))
                decoder.decode_into(decoding, pixels)
                origin = (0, 0)
        except Exception as error:
            raise self.error_of(0, error, decoding.index) from error
        self._behind.compute_from(pixels, resizing, normalizing, origin)  # type: ignore[attr-defined]
