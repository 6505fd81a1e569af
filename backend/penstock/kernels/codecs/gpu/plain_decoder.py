"""Uncompressed images: the pixels in their files are copied to the GPU, and put in order there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.arrays import address
from penstock.kernels.codecs.gpu.jpegs import stored_region
from penstock.kernels.codecs.gpu.pending import DecodedPart, PendingDecode
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.image_codec import plain_pixels
from penstock.kernels.codecs.image_description import UPRIGHT
from penstock.kernels.cuda.launch import Located
from penstock.kernels.cuda.window import WindowCopy, copy_windows
from penstock.tensors.cuda import require_cupy
from penstock.tensors.transfers import Arrival, HostBlocks, transfers

_ALIGNMENT = 256
_BYTES = np.dtype(np.uint8)


@dataclass(slots=True)
class _Plain:
    """The pixels of one image.

    Attributes:
        rows: a view of the file, (H, W, 3).
        is_reversed: whether the result has the channels in reverse order.
        begin: the lowest address of a pixel in host memory.
        span: the number of bytes from there to the end of the last pixel.
    """

    rows: np.ndarray
    is_reversed: bool
    begin: int
    span: int

    @classmethod
    def of(cls, rows: np.ndarray, is_reversed: bool) -> _Plain:
        """Find where the rows are in host memory."""
        height, width, channels = rows.shape
        to_last = (height - 1) * rows.strides[0]
        return cls(rows, is_reversed, address(rows) + min(to_last, 0), abs(to_last) + width * channels)

    @property
    def is_in_order(self) -> bool:
        """Whether the pixels are stored like those of the result."""
        return self.rows.flags.c_contiguous and not self.is_reversed

    def ordering(self, place: int, owner: object, target: Located) -> WindowCopy:
        """Return the copy that puts the pixels in order.

        Args:
            place: the address on the GPU of what is at :attr:`begin`.
            owner: the object that keeps the GPU's memory alive.
            target: the result.
        """
        row_step = self.rows.strides[0]
        mirrored = [axis for axis, is_mirrored in ((0, row_step < 0), (2, self.is_reversed)) if is_mirrored]
        # Where rows are stored from the bottom, the source begins with the last one.
        source = Located(place, self.rows.shape, _BYTES, owner)
        return WindowCopy(source, target, mirrored=mirrored, strides=(abs(row_step), *self.rows.strides[1:]))


@dataclass(slots=True)
class _PlainPart(DecodedPart):
    """Images that are being copied to the GPU.

    Attributes:
        images: the images.
        memory: CuPy's pointer to the copy: the bytes that :attr:`_Plain.span` counts of each image, one image after the other.
        arrival: the copy under way; None if it is made.
    """

    images: Sequence[_Plain]
    memory: Any
    arrival: Arrival | None


class PlainDecoder:
    """Copies uncompressed images, of which the GPU then reverses rows and channels where results have them in another order.

    Args:
        settings: the operator's decode settings.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self._settings = settings

    def submit(self, pending: PendingDecode, indices: Sequence[int]) -> None:
        """Begin to copy the uncompressed ones among images, in the order of CuPy's current stream."""
        if not self._settings.takes_bytes:
            return
        found = {index: plain for index in indices if (plain := self._find(pending, index)) is not None}
        if not found:
            return
        images = list(found.values())
        begins, spans = (np.array([getattr(plain, name) for plain in images], np.int64) for name in ("begin", "span"))
        blocks = HostBlocks(begins, spans, [plain.rows for plain in images])
        memory, arrival = transfers().begin_upload(blocks)
        pending.parts.append(_PlainPart(self, list(found), images, memory, arrival))

    def _find(self, pending: PendingDecode, index: int) -> _Plain | None:
        """Return the pixels of an image of the batch; None if it has to be decoded."""
        job, settings = pending.jobs[index], self._settings
        if job.header.isolated or job.header.placed(settings.adjust_orientation) is not UPRIGHT:
            return None
        region = stored_region(job, settings.adjust_orientation)
        found = plain_pixels(job.encoded, job.header, settings.output_type, region)
        if found is None or found[0].shape != job.shape or not math.prod(job.shape):
            return None
        return _Plain.of(*found)

    def collect(self, pending: PendingDecode, part: _PlainPart) -> Sequence[Any]:
        """Put the pixels in order; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`."""
        if part.arrival is not None:
            part.arrival.wait()
        sizes = [-(-plain.rows.size // _ALIGNMENT) * _ALIGNMENT * (not plain.is_in_order) for plain in part.images]
        ordered = require_cupy().cuda.alloc(sum(sizes)) if any(sizes) else part.memory
        results, copies, source, target = list[Located](), list[WindowCopy](), part.memory.ptr, 0
        for plain, size in zip(part.images, sizes):
            if plain.is_in_order:
                results.append(Located(source, plain.rows.shape, _BYTES, part.memory))
            else:
                results.append(Located(ordered.ptr + target, plain.rows.shape, _BYTES, ordered))
                copies.append(plain.ordering(source, part.memory, results[-1]))
            source, target = source + plain.span, target + size
        if copies:
            copy_windows(copies)
        return results
