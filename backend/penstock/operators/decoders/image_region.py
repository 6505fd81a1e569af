"""Decoding, and the crop or slice behind it: where that is exact, only the region is decoded."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.kernels.codecs.jpeg_regions import decodes_alone
from penstock.kernels.thread_buffers import ThreadBuffers
from penstock.kernels.windows import Region
from penstock.operators.decoders._images import ImageDecoder, encoded_bytes
from penstock.operators.image._windows import copy_region
from penstock.schema import Sample, Schema, Workspace, register_operator
from penstock.schema.fused import FusedOperator
from penstock.types import numpy_dtype

_CHANNEL_AXIS = 2


@register_operator
class ImageRegion(FusedOperator):
    """Decodes what the window takes; where that could differ, the whole image into a buffer of the thread's own.

    On the device ``mixed`` there is no such operator: which of the GPU's decoders takes an image, and how its chroma is
    spread at the edges, depends on the region.
    """

    schema = Schema(
        name="_fused__ImageRegion",
        devices=("cpu",),
        fuses=(("decoders__Image", "ImageDecoder", "experimental__decoders__Image"), ("Crop", "Slice")),
        fused_by="decode_regions",
        hidden=True,
    )

    def setup(self) -> None:
        self._buffers = ThreadBuffers()

    def can_fuse(self, steps: Sequence[Workspace]) -> bool:
        return True

    def compute_fused(self, samples: Sequence[Sample]) -> None:
        decoding, cropping = samples
        try:
            if self._decoded_in_place(decoding, cropping):
                return
            whole = self._buffers.array(cropping.shapes[0], numpy_dtype(cropping.workspace.inputs[0].dtype))
            self._decoder.decode_into(decoding, whole)
        except Exception as error:
            raise self.error_of(0, error, decoding.index) from error
        copy_region(whole, cropping.plan, self.operators[1].args["fill_values"], _CHANNEL_AXIS, cropping.outputs[0])

    @property
    def _decoder(self) -> ImageDecoder:
        decoder = self.operators[0]
        assert isinstance(decoder, ImageDecoder)
        return decoder

    def _decoded_in_place(self, decoding: Sample, cropping: Sample) -> bool:
        """Decodes just the window, straight into the output, where that is exact."""
        window: Region = cropping.plan
        shape, output = cropping.shapes[0], cropping.outputs[0]
        if not output.size or output.dtype != numpy_dtype(self._decoder.args["dtype"]):
            return False
        if not window.inside(shape) or window.extents[_CHANNEL_AXIS] != shape[_CHANNEL_AXIS]:
            return False
        if window.extents != shape:
            region = Region(window.anchor[:2], window.extents[:2])
            header = decoding.plan[0]
            orientation = header.placed(self._decoder.args["adjust_orientation"])
            stored = orientation.stored_region(region, *shape[:2])
            if not decodes_alone(encoded_bytes(decoding), header, stored):
                return False
            decoding.plan = header, region
        self._decoder.decode_into(decoding, output)
        return True
