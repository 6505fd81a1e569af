"""JPEGs of a batch that are decoded together, and the GPU memory for their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.core.codecs import prepare_jpegs
from penstock.kernels.codecs.decoding import Decoding
from penstock.kernels.codecs.gpu.pending import DecodedPart, Decoder, Job, Jobs, PendingDecode, Streams, Submitted
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.image_codec import corners
from penstock.kernels.codecs.image_description import UPRIGHT, EncodedFiles, ImageHeader, JpegHeaders
from penstock.kernels.codecs.nvimgcodec.decoder import EncodedImages
from penstock.kernels.cpu.jpeg.batches import ScansBeingRead
from penstock.kernels.cuda.launch import Places
from penstock.kernels.windows import Region
from penstock.tensors.batch import ShapeRows
from penstock.tensors.cuda import require_cupy
from penstock.tensors.memory import size_class
from penstock.tensors.streams import Stream

_ALIGNMENT = 256
_BITS_OF_JPEG, _BYTES = 8, np.dtype(np.uint8)


def is_ordinary_jpeg(header: ImageHeader) -> bool:
    """Return whether an image is a grey or colour JPEG that may be decoded in this process."""
    return header.format == "jpeg" and header.channels in (1, 3) and not header.isolated


@dataclass(slots=True)
class JpegRequest:
    """JPEGs of a batch to decode together, as stored, to the pixel format of the settings.

    Attributes:
        settings: the decode settings.
        jobs: all images of the batch.
        taken: the positions of this request's images among ``jobs``.
        files: the files of these images.
        sizes: heights and widths as stored, int64 of shape (images, 2).
        regions: top, left, bottom and right of the regions to decode, in the stored image, int64 of shape (images, 4); None: whole images.
        upright: whether all images are stored upright.
        offsets: the offset of each image's pixels, in bytes, in one block of memory for all images.
        room: the size of this block, in bytes.
        records: an :data:`~penstock.core.codecs.ENCODED_IMAGE` for each image, with its offset as output address; None: not made yet.
        reading: the headers that threads are reading from the files for our kernels; None: not begun yet.
    """

    settings: DecodeSettings
    jobs: Jobs
    taken: Sequence[int]
    files: EncodedFiles
    sizes: np.ndarray
    regions: np.ndarray | None
    upright: bool
    offsets: np.ndarray
    room: int
    records: np.ndarray | None = None
    reading: ScansBeingRead | None = None

    @classmethod
    def of_jobs(cls, settings: DecodeSettings, jobs: Jobs, taken: Sequence[int]) -> JpegRequest:
        """Make the request for some images of a batch."""
        headers, adjust = jobs.headers, settings.adjust_orientation
        if isinstance(headers, JpegHeaders):
            sizes = headers.sizes[taken]
            upright = not adjust or not headers.turned[taken].any()
        else:
            sizes = np.array([headers[index][1:3] for index in taken], np.int64).reshape(-1, 2)
            upright = all(headers[index].placed(adjust) is UPRIGHT for index in taken)
        regions = _stored_regions(jobs, taken, adjust)
        offsets, room = _pixel_memory(sizes if regions is None else regions[:, 2:] - regions[:, :2], settings)
        return cls(settings, jobs, taken, jobs.files.take(taken), sizes, regions, upright, offsets, room)

    @classmethod
    def of_ordinary(cls, settings: DecodeSettings, files: EncodedFiles, decoding: Decoding) -> JpegRequest | None:
        """Make the request for a batch of files, without inspecting each in Python, if all of them are ordinary JPEGs that are decoded
        whole in this process, and stored upright; otherwise return None.
        """
        pixels, limits, count = settings.pixel_format, decoding.limits, len(files.sizes)
        if pixels is None or not settings.takes_bytes or not count:
            return None
        if limits.bytes is not None or decoding.pool_for(trusted=True) is not None:
            return None
        room, records, headers = prepare_jpegs(files.places, files.sizes, pixels.channels, limits.pixels or 0)
        if not room:
            return None
        shapes = np.full((count, 3), pixels.channels)
        shapes[:, 0], shapes[:, 1] = headers["height"], headers["width"]
        jobs = Jobs(files, JpegHeaders(headers, False), None, ShapeRows(shapes))
        return cls(settings, jobs, range(count), files, shapes[:, :2], None, True, records["output"], room, records)

    def __len__(self) -> int:
        return len(self.taken)

    def take(self, rows: Sequence[int]) -> JpegRequest:
        """Return the request for some of these images."""
        return self if len(rows) == len(self) else self.of_jobs(self.settings, self.jobs, [self.taken[r] for r in rows])

    @property
    def pixels(self) -> int:
        """The total number of pixels of all images, which decoders read as a whole even if only regions are needed."""
        return int(self.sizes[:, 0] @ self.sizes[:, 1])

    @property
    def extents(self) -> np.ndarray:
        """Heights and widths of the regions to decode, in the stored images."""
        return self.sizes if self.regions is None else self.regions[:, 2:] - self.regions[:, :2]

    @property
    def windows(self) -> np.ndarray:
        """Top, left, height and width of the regions to decode, in the stored images, int64 of shape (images, 4)."""
        windows = np.zeros((len(self), 4), np.int64)
        windows[:, 2:] = self.extents
        if self.regions is not None:
            windows[:, :2] = self.regions[:, :2]
        return windows

    def records_at(self, outputs: np.ndarray) -> np.ndarray:
        """Return an :data:`~penstock.core.codecs.ENCODED_IMAGE` for each image, with the address to decode it to."""
        if self.records is None:
            regions = np.zeros((len(self), 4), np.int64) if self.regions is None else self.regions
            self.records = EncodedImages(self.files, self.sizes, regions, outputs).records()
        else:
            self.records["output"] = outputs
        return self.records

    def shapes(self) -> Sequence[tuple[int, ...]]:
        """Return the shapes (H, W, C) of the decoded images, before rotation and conversion."""
        if self.upright:
            return self.jobs.shapes_of(self.taken)
        assert self.settings.pixel_format is not None
        return [(height, width, self.settings.pixel_format.channels) for height, width in self.extents.tolist()]


@dataclass(slots=True)
class JpegPart(DecodedPart):
    """JPEGs that are decoded together, to memory that is not reused while the images are needed.

    Attributes:
        batch: the images in flight, at the decoder.
        images: the locations of the decoded pixels, before rotation and conversion.
        as_decoded: whether the images need neither rotation nor conversion.
        streams: the stream that decodes the images, and the stream that uses them and has to wait for the first; None: images are ready
            once the host has waited.
    """

    batch: Submitted
    images: Places
    as_decoded: bool
    streams: Streams | None

    @classmethod
    def of(
        cls, decoder: Decoder, request: JpegRequest, memory: PixelMemory, batch: Submitted, streams: Streams | None
    ) -> JpegPart:
        """Make a part of a request that a decoder has begun to decode."""
        images = Places(memory.addresses.astype(np.uint64), request.shapes(), _BYTES, memory.owner)
        return cls(decoder, request.taken, batch, images, request.settings.takes_bytes and request.upright, streams)

    @property
    def is_done(self) -> bool:
        return self.batch.is_done

    def await_done(self) -> None:
        self.batch.await_done()

    def join(self) -> Sequence[int]:
        """Wait for the images, as far as the host has to; return whether each image is decoded."""
        states = self.batch.wait()
        if self.streams is not None:
            self.streams.join()
        return states

    def converted(self, jobs: Jobs, settings: DecodeSettings, states: Sequence[int]) -> Sequence[Any]:
        """Return the images, converted according to the settings; None for images that were not decoded."""
        if self.as_decoded and all(states):
            return self.images
        return [
            settings.converted(jobs.headers[index], jobs.shapes[index], image, _BITS_OF_JPEG) if state else None
            for index, image, state in zip(self.taken, self.images, states)
        ]


class PixelMemory(NamedTuple):
    """Memory for the pixels of JPEGs.

    Attributes:
        owner: object that keeps the memory alive.
        addresses: the address of each image's pixels, int64.
    """

    owner: object
    addresses: np.ndarray


def allocate(pending: PendingDecode, request: JpegRequest, stream: Stream) -> tuple[JpegRequest, PixelMemory]:
    """Allocate memory for a request in the order of a stream. Return the memory, and the request for those images for which there
    is memory; the others get an error.
    """
    memory = _allocated(request.room, stream)
    if memory is not None:
        return request, PixelMemory(memory, request.offsets + memory.ptr)
    sizes = np.diff(request.offsets, append=request.room).tolist()
    parts = [_allocated(size, stream) for size in sizes]
    for index, size, part in zip(request.taken, sizes, parts):
        if part is None:
            height, width, channels = pending.jobs.shapes[index]
            pending.results[index] = MemoryError(
                f"No room on the GPU for an image of {height}x{width}x{channels}: {size >> 20} MiB could not be "
                "allocated beside the batch's other images. Use smaller batches, or free memory."
            )
    rows = [row for row, part in enumerate(parts) if part is not None]
    addresses = np.array([parts[row].ptr for row in rows], np.int64)
    return request.take(rows), PixelMemory(parts, addresses)


def _allocated(size: int, stream: Stream) -> Any:
    """Allocate GPU memory in the order of a stream; return None if memory is exhausted."""
    with stream:
        try:
            return require_cupy().cuda.alloc(size_class(size))
        except MemoryError:
            return None


def _pixel_memory(extents: np.ndarray, settings: DecodeSettings) -> tuple[np.ndarray, int]:
    """Lay out images of these sizes in one block of memory; return the offset of each image's pixels, and the block's size, in bytes."""
    assert settings.pixel_format is not None
    sizes = -(-extents[:, 0] * extents[:, 1] * settings.pixel_format.channels // _ALIGNMENT) * _ALIGNMENT
    ends = np.cumsum(sizes)
    return ends - sizes, int(ends[-1]) if len(ends) else 0


def _stored_regions(jobs: Jobs, taken: Sequence[int], adjust_orientation: bool) -> np.ndarray | None:
    """Return top, left, bottom and right of the regions to decode, in the stored images; None if images are decoded whole."""
    if jobs.regions is None:
        return None
    anchors, extents = (column[taken] for column in jobs.regions)
    regions = np.concatenate([anchors, anchors + extents], axis=1)
    rows: Sequence[int] = range(len(taken))
    if isinstance(jobs.headers, JpegHeaders):
        rows = np.flatnonzero(jobs.headers.turned[taken]).tolist()
    for row in rows:
        index = taken[row]
        if jobs.headers[index].placed(adjust_orientation) is not UPRIGHT:
            stored = stored_region(jobs[index], adjust_orientation)
            assert stored is not None
            regions[row] = corners(stored)
    return regions


def stored_region(job: Job, adjust_orientation: bool) -> Region | None:
    """Return the region of an image to decode, in the stored image; None: the whole image."""
    if job.region is None:
        return None
    orientation = job.header.placed(adjust_orientation)
    return orientation.stored_region(job.region, *orientation.size(job.header.height, job.header.width))
