"""Images other than JPEGs that are decoded on the GPU, with nvImageCodec's Python API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.kernels.codecs.gpu.jpegs import stored_region
from penstock.kernels.codecs.gpu.pending import DecodedPart, PendingDecode
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.headers.tiff import plain_rows
from penstock.kernels.codecs.image_codec import gray_via_rgb, taken_by_nvimgcodec
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec.on_gpu import PythonApi
from penstock.kernels.cuda.launch import Located
from penstock.tensors.cuda import require_cupy

# The formats for which nvImageCodec has decoders that use a GPU; asking it to decode others takes time.
_FORMATS_ON_GPU = frozenset({"jpeg", "jpeg2k", "tiff"})


@dataclass(slots=True)
class _LibraryPart(DecodedPart):
    """Images that nvImageCodec decodes, queued on CuPy's current stream."""

    images: Sequence[Any]


class LibraryDecoder:
    """Decodes images that the other GPU decoders do not support.

    Args:
        settings: the operator's decode settings.
        api: nvImageCodec's Python module.
    """

    def __init__(self, settings: DecodeSettings, api: PythonApi) -> None:
        self._settings, self._api = settings, api

    def submit(self, pending: PendingDecode, indices: Sequence[int]) -> _LibraryPart:
        """Begin to decode the images that the library supports, in the order of CuPy's current stream."""
        jobs = pending.jobs
        asked = [index for index in indices if self._supports(pending, index)]
        regions = [
            (jobs.files.files[index], stored_region(jobs[index], self._settings.adjust_orientation)) for index in asked
        ]
        stream = require_cupy().cuda.get_current_stream().ptr
        images = self._api.decode(regions, self._settings.output_type, stream)
        decoded = [(index, image) for index, image in zip(asked, images) if image is not None]
        return _LibraryPart(self, [index for index, _ in decoded], [image for _, image in decoded])

    def _supports(self, pending: PendingDecode, index: int) -> bool:
        header, output_type = pending.jobs.headers[index], self._settings.output_type
        return (
            header.format in _FORMATS_ON_GPU
            and not header.isolated
            and not gray_via_rgb(header, output_type)
            and taken_by_nvimgcodec(header, output_type)
            and (header.format != "jpeg" or bool(pending.jobs.files.take([index]).are_whole().all()))
            # Copying the pixels of plain files is faster than passing the files to the library.
            and (header.format != "tiff" or plain_rows(pending.jobs.files.files[index]) is None)
        )

    def collect(self, pending: PendingDecode, part: _LibraryPart) -> Sequence[Any]:
        """Return the images of a part; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`."""
        headers, shapes = pending.jobs.headers, pending.jobs.shapes
        return [
            self._settings.converted(headers[index], shapes[index], _locate(image), image.precision)
            for index, image in zip(part.taken, part.images)
        ]


def _locate(image: Any) -> Any:
    """Return the location of an image that the library has decoded; if its rows are not contiguous, a CuPy array of it."""
    cupy = require_cupy()
    if image.buffer_kind == nvimgcodec().ImageBufferKind.STRIDED_HOST:
        image = image.cuda(synchronize=False, cuda_stream=cupy.cuda.get_current_stream().ptr)
    # The library's stream is the current one, so there is nothing to wait for.
    interface = image.__cuda_array_interface__
    if interface["strides"] is not None:
        return cupy.ascontiguousarray(cupy.from_dlpack(image))
    return Located(interface["data"][0], interface["shape"], np.dtype(interface["typestr"]), image)
