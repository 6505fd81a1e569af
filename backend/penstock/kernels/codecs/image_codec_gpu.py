"""Decoding images on the GPU: a batch at a time, in the order of CuPy's current stream.

JPEGs are decoded by our own kernels, or else by nvImageCodec's C API, on a thread that needs no GIL; what else the GPU takes,
by its Python API. What the GPU's decoders do not take (formats, damaged files) is decoded on the CPU, image by image, so that
an image that fails does so alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.core.codecs import prepare_jpegs
from penstock.data_types import DALIDataType, DALIImageType, numpy_dtype
from penstock.errors import without_frames
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.image_cache import ImageCache
from penstock.kernels.codecs.image_codec import (
    corners,
    decode,
    full_intensity,
    gray_via_rgb,
    taken_by_nvimgcodec,
)
from penstock.kernels.codecs.image_description import (
    UPRIGHT,
    EncodedFiles,
    ImageHeader,
    JpegHeaders,
)
from penstock.kernels.codecs.image_jobs import Begun, Followed, Job, Jobs, Part, Streams, Submitted, followed
from penstock.kernels.codecs.jpeg_gpu import JpegDecoder
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec.decoder import (
    BGR,
    GRAY,
    RGB,
    BatchDecoder,
    EncodedImages,
    PixelFormat,
)
from penstock.kernels.codecs.nvimgcodec.library import library
from penstock.kernels.codecs.nvimgcodec.on_gpu import PythonApi, Turns, options_of
from penstock.kernels.codecs.turns import TURNS, TurnTaking
from penstock.kernels.colour import TO_YCBCR, YCBCR_OFFSET
from penstock.kernels.cuda.launch import Located, Places, Shape
from penstock.kernels.cuda.resample import PlannedResampling
from penstock.kernels.windows import Region
from penstock.tensors import HostPool
from penstock.tensors.batch import ShapeRows
from penstock.tensors.cuda import require_cupy
from penstock.tensors.memory import size_class
from penstock.tensors.streams import borrowed_streams, follow
from penstock.tensors.transfers import HostBlocks, transfers

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.batches import JpegScans, ScansBeingRead

_FORMATS = {
    DALIImageType.RGB: RGB,
    DALIImageType.BGR: BGR,
    DALIImageType.GRAY: GRAY,
    DALIImageType.YCbCr: RGB,
}
_ALIGNMENT = 256
# Our kernels are faster than the engine from this many images on.
_MANY = 8
# Threads that gather data for our kernels: more would take processors from the threads that run Python.
_GATHERING = 4
# Pixels of a batch that is followed and takes so little memory that one more may be in flight: some 90 photographs.
_WORTH_AHEAD = 96 << 20
# Stands for an image whose pixels are not needed any more.
_FOLLOWED = object()
# A function that runs another one over indices on the pipeline's threads.
Parallel = Callable[..., None]
# A function that returns the next step for images of these shapes (H, W, C).
FollowingFor = Callable[[Sequence[Shape]], PlannedResampling | None]
_BYTE_DEPTH, _BYTES = 8, np.dtype(np.uint8)


class JpegsRead(NamedTuple):
    """Files that are all ordinary JPEGs, whole, and stored upright.

    Attributes:
        files: the files.
        format: of the decoded images.
        images, headers: of the batch, as :func:`~penstock.core.codecs.prepare_jpegs` describes them.
        shapes: of the decoded images (H, W, C), in rows.
        room: the bytes that these take.
        pixels: of all of them.
        reading: what our kernels are to know.
    """

    files: EncodedFiles
    format: PixelFormat
    images: np.ndarray
    headers: np.ndarray
    shapes: np.ndarray
    room: int
    pixels: int
    reading: ScansBeingRead | None


class GpuImageDecoder:
    """The decoder of one operator of a pipeline, on CuPy's current device.

    JPEGs of pipelines with large batches go to our own kernels, and all if chroma is to be smooth; the rest, what these do not take,
    and all if the user has chosen a share for the engine, go to nvImageCodec. Of a batch, nothing but the image itself decides, so
    that it has the same pixels whatever it is batched with.

    Args:
        arguments: of the operator: ``output_type``, ``dtype``, ``adjust_orientation``, nvJPEG's settings, the cache's.
        given_load: the user has chosen ``hw_decoder_load``.
        num_threads: CPU threads that may work for it.
        max_batch_size: of the pipeline.
        turns: how many decoders there are at most, for very small batches.

    Attributes:
        takes_all: all images so far are decoded without Python, and no other is held up.
        batches_ahead: how many batches like the last are worth beginning besides those that are in flight anyway.
    """

    def __init__(
        self, arguments: dict[str, Any], given_load: bool, num_threads: int, max_batch_size: int, turns: int = TURNS
    ) -> None:
        self._cupy = require_cupy("decoding images on the device `mixed`")
        self._output_type: DALIImageType = arguments["output_type"]
        self._dtype = numpy_dtype(arguments["dtype"])
        self._adjust: bool = arguments["adjust_orientation"]
        self._fast_idct: bool = arguments["use_fast_idct"]
        self._smooth: bool = arguments["jpeg_fancy_upsampling"]
        self._upright_bytes = self._dtype == np.uint8 and self._output_type != DALIImageType.YCbCr
        self._cache = ImageCache.from_arguments(arguments)
        device, load = self._cupy.cuda.Device().id, arguments["hw_decoder_load"] if given_load else None
        options = options_of(arguments)
        self._turns = Turns(self._cupy, num_threads, load, options, turns) if library() else None
        self._others = PythonApi(device, num_threads, options)
        self._num_threads = num_threads
        self._own: JpegDecoder | None = None
        pixels = self._pixels = _FORMATS.get(self._output_type)
        wants_own = self._turns is None or (not given_load and (self._smooth or max_batch_size >= _MANY))
        if pixels is not None and wants_own:
            self._own = self._by_our_kernels(pixels)
        self._own_streams = borrowed_streams(self, turns if self._own else 0)
        self.batches_ahead = 0
        self._own_turns, self._event = TurnTaking(turns), self._cupy.cuda.Event(disable_timing=True)
        self.takes_all = pixels is not None and (self._own is not None or self._turns is not None)

    def empty(self, dtype: DALIDataType) -> Any:
        """Return what stands for an image that failed."""
        return self._cupy.empty((0, 0, 0), numpy_dtype(dtype))

    def begin(self, jobs: Jobs) -> Begun:
        """Begin to decode images, in the order of CuPy's current stream."""
        begun = Begun(jobs, [self._cache.find(name) for name in jobs.names] or [None] * len(jobs))
        missing = [index for index, result in enumerate(begun.results) if result is None]
        taken = self._decoded_early(jobs, missing)
        self.takes_all = self.takes_all and len(taken) == len(missing)
        if self._own is not None and taken:
            scans = self._own.begin_reading(jobs.files.take(taken), self._stored_sizes(jobs, taken)).wait()
            read, taken = _divided(taken, scans.taken)
            if taken and read:
                scans = self._own.begin_reading(jobs.files.take(read), self._stored_sizes(jobs, read)).wait()
            if read:
                self._begin_part(begun, read, scans)
        if self._turns is not None and taken:
            self._begin_part(begun, taken)
        return begun

    def read_jpegs(self, files: EncodedFiles, decoding: Decoding = FREELY) -> JpegsRead | None:
        """Read the headers of files that are all ordinary JPEGs, whole, and stored upright, without Python looking at
        each.

        None if one of them is of another kind, or decoded elsewhere, or if something about the decoder needs a look at each:
        :meth:`begin` then takes them. Threads begin to read what our kernels are to know.
        """
        limits, pixels, count = decoding.limits, self._pixels, len(files.sizes)
        if pixels is None or not self._upright_bytes or self._cache.capacity or not count:
            return None
        if limits.bytes is not None or decoding.pool_for(trusted=True) is not None:
            return None
        room, images, headers = prepare_jpegs(files.places, files.sizes, pixels.channels, limits.pixels or 0)
        if not room:
            return None
        shapes = np.full((count, 3), pixels.channels)
        shapes[:, 0], shapes[:, 1] = headers["height"], headers["width"]
        total = int(shapes[:, 0] @ shapes[:, 1])
        reading = None if self._own is None else self._own.begin_reading(files, shapes[:, :2])
        return JpegsRead(files, pixels, images, headers, shapes, room, total, reading)

    def begin_jpegs(self, read: JpegsRead, following_for: FollowingFor | None = None) -> Begun | None:
        """Begin to decode files without Python looking at each; None if :meth:`begin` is to take them.

        Args:
            following_for: asked if our kernels decode them.
        """
        files, images, room, total = read.files, read.images, read.room, read.pixels
        if following_for is not None:
            begun = self._begin_followed(read, following_for)
            if begun is not None:
                return begun
        count = len(read.shapes)
        shapes: list[Shape] = list(map(tuple, read.shapes.tolist()))
        jobs = Jobs(files, JpegHeaders(read.headers, False), None, shapes)
        if self._own is not None and read.reading is not None:
            streams = self._own_turn(count, total)
            windows = np.zeros((count, 4), np.int64)
            windows[:, 2:] = read.shapes[:, :2]
            scans = read.reading.wait()
            memory = self._memory(room, streams) if scans.taken_count == count else None
            if memory is None:
                return None
            outputs = (images["output"] + memory.ptr).astype(np.uint64)
            order = streams.decoding, memory, streams.using
            batch: Submitted = self._own.begin(scans, files, windows, outputs, *order)
            joined = None
        elif self._turns is not None:
            decoder, streams = self._engine_turn(self._turns, count, total)
            memory = self._memory(room, streams)
            if memory is None:
                return None
            images["output"] += memory.ptr
            batch = decoder.decode_records(images, read.format, streams.decoding.ptr, (files, memory))
            outputs = images["output"].astype(np.uint64)
            joined = streams
        else:
            return None
        places = Places(outputs, shapes, _BYTES, memory)
        return Begun(jobs, [None] * count, [Part(batch, range(count), places, True, joined)])

    def _begin_followed(self, read: JpegsRead, following_for: FollowingFor) -> Begun | None:
        """Begin to decode windows of ordinary JPEGs whose pixels are followed; None if that is not possible.

        The pixels of those that our kernels take are in memory for a while only; the others are followed when they are decoded.
        """
        own, files, sizes, pixels, count = self._own, read.files, read.shapes[:, :2], read.pixels, len(read.shapes)
        if own is None or read.reading is None:
            return None
        jobs = Jobs(files, JpegHeaders(read.headers, False), None, ShapeRows(read.shapes))
        following = following_for(jobs.shapes)
        scans = read.reading.wait()
        if following is None or not scans.taken_count:
            return None
        whole = scans.taken_count == count
        taken = np.arange(count) if whole else np.flatnonzero(scans.taken)
        windows = following.windows if whole else following.windows[taken]
        if not whole:
            pixels = int(sizes[taken].prod(1).sum())
        streams = self._own_turn(len(taken), pixels)
        order = streams.decoding, None, streams.using
        batch = own.begin(scans, files, windows, Followed(following, taken), *order)
        if pixels <= _WORTH_AHEAD:
            # The work before its kernels takes half as long as they do.
            self.batches_ahead = max(self.batches_ahead, 1)
        part = Part(batch, taken.tolist(), (), True, None)
        begun = followed(jobs, part, following, streams, batch.work.wait)
        if not whole and self._turns is not None:
            self._begin_part(begun, np.flatnonzero(~scans.taken).tolist())
        return begun

    def _own_turn(self, count: int, pixels: int) -> Streams:
        """Return the streams for our kernels to decode ``count`` images of this many pixels together, after what the
        current one was given.
        """
        turn = self._own_turns.next(count, pixels)
        self.batches_ahead = self._own_turns.idle
        return Streams(self._own_streams[turn], self._cupy.cuda.get_current_stream(), self._event)

    def _engine_turn(self, turns: Turns, count: int, pixels: int) -> tuple[BatchDecoder, Streams]:
        """Return the decoder of nvImageCodec for these, and the streams, of which the one to decode on now follows the
        current one.
        """
        decoder, stream, event = turns.next(count, pixels)
        self.batches_ahead = turns.idle
        streams = Streams(stream, self._cupy.cuda.get_current_stream(), event)
        follow(*streams)
        return decoder, streams

    def _memory(self, room: int, streams: Streams) -> Any:
        """Return memory for images, taken and given back in the order of the stream that writes to it; None if there is
        none.
        """
        with streams.decoding:
            try:
                return self._cupy.cuda.alloc(size_class(room))
            except MemoryError:
                return None

    def finish(
        self, begun: Begun, parallel: Parallel, decoding: Decoding = FREELY, pool: HostPool | None = None
    ) -> Sequence[Any]:
        """Wait for images, as far as the host has to, and decode those that could not be begun.

        Args:
            begun: what was begun.
            parallel: runs a function over indices on the pipeline's threads, for what the GPU does not take.
            decoding: where; what is to be decoded in worker processes is decoded there on the CPU.
            pool: gives the memory for that.

        Returns:
            For each job where its image of shape (H, W, C) lies, or a CuPy array of it, or the exception that it raised.
        """
        jobs, results, keeps = begun.jobs, begun.results, bool(self._cache.capacity)
        missing = [index for index, result in enumerate(results) if result is None] if keeps else []
        self._decode_rest(begun, parallel, decoding, pool)
        for part in begun.parts:
            states = self._joined(part, begun)
            if part.as_decoded and len(states) == len(results) and all(states) and not keeps:
                return part.places
            self._take(part, states, begun)
        left = [index for index, result in enumerate(results) if result is None]
        self._decode_on_cpu(begun, left, parallel, decoding, pool)
        for index in missing:
            if not isinstance(results[index], Exception):
                # A copy: the image itself lies in the memory of its batch.
                results[index] = as_array(results[index]).copy()
                self._cache.offer(jobs.names[index], results[index])
        return results

    def _joined(self, part: Part, begun: Begun) -> Sequence[int]:
        """Wait for a part, as far as the host has to; for each image, whether it is decoded.

        Those that the JPEG engine failed at are decoded by our kernels, to where they would lie.
        """
        states, jobs = part.join(), begun.jobs
        if all(states) or part.streams is None or self._turns is None or not self._turns.leaves_baseline:
            return states
        left = [row for row, state in enumerate(states) if not state]
        indices = [part.taken[row] for row in left]
        files, sizes = jobs.files.take(indices), self._stored_sizes(jobs, indices)
        scans = self._instead.begin_reading(files, sizes).wait()
        if not scans.taken_count:
            return states
        regions = self._stored_regions(jobs, indices)
        extents = sizes if jobs.regions is None else regions[:, 2:] - regions[:, :2]
        windows = np.concatenate([regions[:, :2], extents], 1)[scans.taken]
        rows = np.array(left)[scans.taken]
        targets = np.array([part.places[row].address for row in rows.tolist()], np.uint64)
        batch = self._instead.begin(scans, files, windows, targets, part.streams.decoding, part.places)
        now = list(states)
        for row, decoded in zip(rows.tolist(), batch.wait()):
            now[row] = decoded
        return now

    @functools.cached_property
    def _instead(self) -> JpegDecoder:
        """The decoder of what the JPEG engine fails at."""
        return self._own or self._by_our_kernels(_FORMATS[self._output_type])

    def _by_our_kernels(self, pixels: PixelFormat) -> JpegDecoder:
        return JpegDecoder(pixels.channels, pixels is BGR, self._smooth, min(self._num_threads, _GATHERING))

    def _take(self, part: Part, states: Sequence[int], begun: Begun) -> None:
        """Take the images of a part that are decoded."""
        jobs = begun.jobs
        for index, place, state in zip(part.taken, part.places, states):
            if state:
                begun.results[index] = self._finished(jobs.headers[index], jobs.shapes[index], place, _BYTE_DEPTH)

    def finish_followed(
        self, begun: Begun, parallel: Parallel, decoding: Decoding = FREELY, pool: HostPool | None = None
    ) -> dict[int, Any]:
        """Like :meth:`finish`, for images that something follows.

        Returns:
            For each job whose image is still to be followed, by its number, where it lies, or an array, or the exception that it
            raised.
        """
        self._decode_rest(begun, parallel, decoding, pool)
        followed, *parts = begun.parts
        results, states = begun.results, followed.join()
        begun.is_joined()
        if len(states) == len(results) and all(states):
            return {}
        for index, state in zip(followed.taken, states):
            results[index] = _FOLLOWED if state else None
        for part in parts:
            self._take(part, self._joined(part, begun), begun)
        left = [index for index, result in enumerate(results) if result is None]
        self._decode_on_cpu(begun, left, parallel, decoding, pool)
        return {index: result for index, result in enumerate(results) if result is not _FOLLOWED}

    # -- without Python ----------------------------------------------------------------------------------------------

    def _decoded_early(self, jobs: Jobs, missing: list[int]) -> list[int]:
        """Return the jobs that may be decoded without Python.

        nvJPEG fills in what is missing at a file's end, so such damaged files are judged by the CPU's decoder.
        """
        if (self._turns is None and self._own is None) or self._output_type not in _FORMATS:
            return []
        headers, shapes, whole = jobs.headers, jobs.shapes, jobs.files.are_whole()
        if isinstance(headers, JpegHeaders):
            if headers.isolated:
                return []
            if whole.all() and all(map(all, shapes)):
                return missing
        return [
            index
            for index in missing
            if whole[index]
            and (header := headers[index]).format == "jpeg"
            and header.channels in (1, 3)
            and not header.isolated
            and 0 not in shapes[index]
        ]

    def _begin_part(
        self,
        begun: Begun,
        taken: Sequence[int],
        scans: JpegScans | None = None,
    ) -> None:
        """Begin to decode some of the images: with ``scans`` by our kernels, without by nvImageCodec."""
        pixels, jobs = _FORMATS[self._output_type], begun.jobs
        headers, sizes = jobs.headers, self._stored_sizes(jobs, taken)
        if isinstance(headers, JpegHeaders):
            upright = not self._adjust or not headers.turned[taken].any()
        else:
            upright = all(headers[index].placed(self._adjust) is UPRIGHT for index in taken)
        regions = self._stored_regions(jobs, taken)
        extents = sizes if jobs.regions is None else regions[:, 2:] - regions[:, :2]
        room = -(-extents[:, 0] * extents[:, 1] * pixels.channels // _ALIGNMENT) * _ALIGNMENT
        decoder, own = None, self._own
        # Images are read as a whole, whatever the regions.
        pixels_read = int((sizes[:, 0] * sizes[:, 1]).sum())
        if scans is not None and own is not None:
            streams = self._own_turn(len(taken), pixels_read)
        else:
            assert self._turns is not None
            decoder, streams = self._engine_turn(self._turns, len(taken), pixels_read)
        memory, outputs = self._room(begun, taken, room, streams)
        if not outputs.all():
            kept = np.flatnonzero(outputs)
            taken, outputs = [taken[row] for row in kept.tolist()], outputs[kept]
            sizes, regions, extents = sizes[kept], regions[kept], extents[kept]
            if not taken:
                return
            if scans is not None and own is not None:
                scans = own.begin_reading(jobs.files.take(taken), sizes).wait()
        files = jobs.files.take(taken)
        if scans is not None and own is not None:
            windows = np.concatenate([regions[:, :2], extents], 1)
            order = streams.decoding, memory, streams.using
            batch: Submitted = own.begin(scans, files, windows, outputs.astype(np.uint64), *order)
        else:
            assert decoder is not None
            batch = decoder.decode(EncodedImages(files, sizes, regions, outputs), pixels, streams.decoding.ptr, memory)
        shapes = jobs.shapes_of(taken)
        if not upright:
            shapes = [(height, width, pixels.channels) for height, width in extents.tolist()]
        places = Places(outputs.astype(np.uint64), shapes, _BYTES, memory)
        joined = streams if decoder is not None else None
        begun.parts.append(Part(batch, taken, places, self._upright_bytes and upright, joined))

    def _stored_sizes(self, jobs: Jobs, taken: Sequence[int]) -> np.ndarray:
        """Return heights and widths as stored."""
        if isinstance(jobs.headers, JpegHeaders):
            return jobs.headers.sizes[taken]
        return np.array([jobs.headers[index][1:3] for index in taken], np.int64).reshape(-1, 2)

    def _room(
        self, begun: Begun, taken: Sequence[int], room: np.ndarray, streams: Streams
    ) -> tuple[object, np.ndarray]:
        """Return memory for images of ``room`` bytes: its owner, and each one's address; those without room get an
        error, and 0.
        """
        memory = self._memory(int(room.sum()), streams)
        if memory is not None:
            return memory, memory.ptr + np.cumsum(room) - room
        parts = [self._memory(size, streams) for size in room.tolist()]
        for index, size, part in zip(taken, room.tolist(), parts):
            if part is None:
                height, width, channels = begun.jobs.shapes[index]
                begun.results[index] = MemoryError(
                    f"No room on the GPU for an image of {height}x{width}x{channels}: {size >> 20} MiB could not be "
                    "allocated beside the batch's other images. Use smaller batches, or free memory."
                )
        return parts, np.array([0 if part is None else part.ptr for part in parts], np.int64)

    def _stored_regions(self, jobs: Jobs, taken: Sequence[int]) -> np.ndarray:
        """Return the regions to decode, as in :class:`EncodedImages`."""
        if jobs.regions is None:
            return np.zeros((len(taken), 4), np.int64)
        anchors, extents = (column[taken] for column in jobs.regions)
        regions = np.concatenate([anchors, anchors + extents], axis=1)
        rows: Sequence[int] = range(len(taken))
        if isinstance(jobs.headers, JpegHeaders):
            rows = np.flatnonzero(jobs.headers.turned[taken]).tolist()
        for row in rows:
            index = taken[row]
            if jobs.headers[index].placed(self._adjust) is not UPRIGHT:
                stored = self._stored_region(jobs[index])
                assert stored is not None
                regions[row] = corners(stored)
        return regions

    def _stored_region(self, job: Job) -> Region | None:
        if job.region is None:
            return None
        orientation = job.header.placed(self._adjust)
        return orientation.stored_region(job.region, *orientation.size(job.header.height, job.header.width))

    # -- by the Python API -------------------------------------------------------------------------------------------

    def _decode_others(self, begun: Begun) -> None:
        """Decode what the C API was not asked for and the GPU takes."""
        taken_early = {index for part in begun.parts for index in part.taken}
        taken = [
            index
            for index, (header, result) in enumerate(zip(begun.jobs.headers, begun.results))
            if result is None
            and index not in taken_early
            and self._on_gpu(header)
            and (header.format != "jpeg" or begun.jobs.files.take([index]).are_whole().all())
        ]
        regions = [(begun.jobs.files.files[index], self._stored_region(begun.jobs[index])) for index in taken]
        images = self._others.decode(regions, self._output_type, self._cupy.cuda.get_current_stream().ptr)
        for index, image in zip(taken, images):
            if image is not None:
                header, shape = begun.jobs.headers[index], begun.jobs.shapes[index]
                begun.results[index] = self._finished(header, shape, self._place(image), image.precision)

    def _on_gpu(self, header: ImageHeader) -> bool:
        if header.isolated or gray_via_rgb(header, self._output_type):
            return False
        return taken_by_nvimgcodec(header, self._output_type)

    def _finished(self, header: ImageHeader, shape: tuple[int, ...], place: Any, precision: int) -> Any:
        """Return the image turned upright and converted; None if its shape differs from the header's."""
        cupy = self._cupy
        orientation = header.placed(self._adjust)
        if self._upright_bytes and orientation is UPRIGHT and place.dtype == np.uint8:
            return place if place.shape == shape else None
        pixels = as_array(place)
        maximum = full_intensity(pixels.dtype, precision)
        if self._output_type == DALIImageType.YCbCr:
            matrix = cupy.asarray(TO_YCBCR.T, cupy.float32)
            pixels, maximum = _ycbcr(cupy, pixels, maximum, matrix, self._dtype)
        pixels = _converted(cupy, pixels, maximum, self._dtype)
        pixels = cupy.ascontiguousarray(orientation.upright(pixels))
        return pixels if pixels.shape == shape else None

    def _place(self, image: Any) -> Any:
        """Return where an image of the Python API lies."""
        if image.buffer_kind == nvimgcodec().ImageBufferKind.STRIDED_HOST:
            image = image.cuda(synchronize=False, cuda_stream=self._cupy.cuda.get_current_stream().ptr)
        # The stream in whose order the data are is the current one, so there is nothing to wait for.
        interface = image.__cuda_array_interface__
        if interface["strides"] is not None:
            return self._cupy.ascontiguousarray(self._cupy.from_dlpack(image))
        return Located(interface["data"][0], interface["shape"], np.dtype(interface["typestr"]), image)

    def _decode_rest(self, begun: Begun, parallel: Parallel, decoding: Decoding, pool: HostPool | None) -> None:
        """Decode images that are in no part, while the GPU is at work on those that are."""
        if sum([len(part.taken) for part in begun.parts]) < len(begun.results):
            self._decode_others(begun)
            taken = {index for part in begun.parts for index in part.taken}
            rest = [index for index, result in enumerate(begun.results) if result is None and index not in taken]
            self._decode_on_cpu(begun, rest, parallel, decoding, pool)

    def _decode_on_cpu(
        self, begun: Begun, indices: Sequence[int], parallel: Parallel, decoding: Decoding, pool: HostPool | None
    ) -> None:
        """Decode images on the CPU, into one block of memory, which is then copied to the GPU at once."""
        if not indices:
            return
        jobs, results = begun.jobs, begun.results
        shapes = [jobs.shapes[index] for index in indices]
        sizes = np.array(list(map(math.prod, shapes))) * self._dtype.itemsize
        ends = (-(-sizes // _ALIGNMENT) * _ALIGNMENT).cumsum()
        begins = [0, *ends.tolist()]
        block = np.empty(begins[-1], np.uint8) if pool is None else pool.take(begins[-1])

        def task(position: int) -> None:
            index = indices[position]
            job, begin, size = jobs[index], begins[position], int(sizes[position])
            host = block[begin : begin + size].view(self._dtype).reshape(job.shape)
            try:
                kind, adjust, fast = self._output_type, self._adjust, self._fast_idct
                decode(job.encoded, job.header, host, kind, adjust, fast, job.region, decoding, self._smooth)
            except Exception as error:
                results[index] = without_frames(error)

        parallel(task, len(indices), [jobs.files.files[index].size for index in indices])
        memory = transfers().upload(HostBlocks.of_arrays([block])) if block.size else None
        for index, begin, shape in zip(indices, begins, shapes):
            if results[index] is not None:
                continue
            if memory is None or not math.prod(shape):
                results[index] = self._cupy.empty(shape, self._dtype)
            else:
                results[index] = Located(memory.ptr + begin, shape, self._dtype, memory)


def _divided(indices: Sequence[int], chosen: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the indices that are chosen, and the others."""
    pairs = list(zip(indices, chosen.tolist()))
    return [index for index, is_one in pairs if is_one], [index for index, is_one in pairs if not is_one]


def as_array(image: Any) -> Any:
    """Return an image that :meth:`GpuImageDecoder.decode` gave as an array."""
    return image.array() if isinstance(image, Located) else image


def _ycbcr(cupy: ModuleType, pixels: Any, maximum: float, matrix: Any, dtype: np.dtype) -> tuple[Any, float]:
    """Return the same as on the CPU."""
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum) @ matrix
    if dtype == np.uint8:
        offset = cupy.asarray(YCBCR_OFFSET + 0.5, cupy.float32)
        return cupy.floor(normalized * np.float32(255) + offset).astype(cupy.uint8), 255.0
    return normalized + cupy.asarray(YCBCR_OFFSET / 256, cupy.float32), 1.0


def _converted(cupy: ModuleType, pixels: Any, maximum: float, dtype: np.dtype) -> Any:
    """Return the same as on the CPU."""
    if pixels.dtype == dtype and maximum == (1.0 if dtype.kind == "f" else np.iinfo(dtype).max):
        return pixels
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum)
    if dtype.kind == "f":
        return normalized.astype(dtype, copy=False)
    limit = int(np.iinfo(dtype).max)
    scaled = cupy.floor(normalized * np.float32(limit) + np.float32(0.5)).astype(cupy.float64)
    return cupy.clip(scaled, 0, limit).astype(dtype)
