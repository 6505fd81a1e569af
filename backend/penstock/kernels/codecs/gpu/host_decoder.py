"""Images that are decoded on the CPU and copied to the GPU: formats that no GPU decoder supports, and damaged files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.arrays import address
from penstock.errors import without_frames
from penstock.kernels.codecs.decoding import HostResources
from penstock.kernels.codecs.gpu.jpegs import JpegRequest, is_ordinary_jpeg
from penstock.kernels.codecs.gpu.pending import DecodedPart, Jobs, PendingDecode
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.image_codec import decode, decode_stored_jpegs
from penstock.kernels.cuda.launch import Located
from penstock.tensors.cuda import require_cupy
from penstock.tensors.transfers import HostBlocks, transfers

_ALIGNMENT = 256


@dataclass(slots=True)
class _HostPart(DecodedPart):
    """Images that are decoded into host memory.

    Attributes:
        block: the pixels of all images.
        starts: the offset of each image's pixels in the block, in bytes.
        errors: the errors of images that failed, by their numbers in the batch.
    """

    block: np.ndarray
    starts: Sequence[int]
    errors: dict[int, Exception]


class HostDecoder:
    """Decodes images on the CPU: ordinary JPEGs in one call, others one by one, so that a failure affects only one image.

    Args:
        settings: the operator's decode settings.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self._settings = settings

    def submit(self, pending: PendingDecode, indices: Sequence[int], host: HostResources) -> _HostPart:
        """Decode images into one block of memory."""
        jobs, settings, errors = pending.jobs, self._settings, dict[int, Exception]()
        sizes = np.array([math.prod(jobs.shapes[index]) for index in indices]) * settings.dtype.itemsize
        starts = [0, *(-(-sizes // _ALIGNMENT) * _ALIGNMENT).cumsum().tolist()]
        block = np.empty(starts[-1], np.uint8) if host.pool is None else host.pool.take(starts[-1])

        def task(position: int) -> None:
            index = indices[position]
            job, start = jobs[index], starts[position]
            target = block[start : start + int(sizes[position])].view(settings.dtype).reshape(job.shape)
            kind, adjust = settings.output_type, settings.adjust_orientation
            how = settings.fast_idct, job.region, host.decoding, settings.smooth
            try:
                decode(job.encoded, job.header, target, kind, adjust, *how)
            except Exception as error:
                errors[index] = without_frames(error)

        places = np.array(starts[:-1]) + address(block)
        left = self._decode_jpegs(jobs, indices, places, host)
        host.parallel(lambda number: task(left[number]), len(left), [jobs.files.files[indices[p]].size for p in left])
        return _HostPart(self, indices, block, starts, errors)

    def _decode_jpegs(self, jobs: Jobs, indices: Sequence[int], places: np.ndarray, host: HostResources) -> list[int]:
        """Decode the ordinary JPEGs among the images to the addresses ``places``; return the positions of the images that are left."""
        settings, headers = self._settings, jobs.headers
        everything = list(range(len(indices)))
        if settings.pixel_format is None or not settings.takes_bytes or settings.fast_idct:
            return everything
        found = [position for position, index in enumerate(indices) if is_ordinary_jpeg(headers[index])]
        if not found:
            return everything
        request = JpegRequest.of_jobs(settings, jobs, [indices[position] for position in found])
        if not request.upright:
            return everything
        rows = np.array(found)
        decoded = decode_stored_jpegs(
            request.files,
            request.sizes,
            request.windows,
            places[rows],
            settings.output_type,
            settings.smooth,
            host.parallel,
            host.num_threads,
        )
        return np.delete(everything, rows[decoded]).tolist()

    def collect(self, pending: PendingDecode, part: _HostPart) -> Sequence[Any]:
        """Copy the images of a part to the GPU in one transfer; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`."""
        memory = transfers().upload(HostBlocks.of_arrays([part.block])) if part.block.size else None
        images: list[Any] = []
        for index, start in zip(part.taken, part.starts):
            shape = pending.jobs.shapes[index]
            if index in part.errors:
                images.append(part.errors[index])
            elif memory is None or not math.prod(shape):
                images.append(require_cupy().empty(shape, self._settings.dtype))
            else:
                images.append(Located(memory.ptr + start, shape, self._settings.dtype, memory))
        return images
