"""Decoding images on the GPU with nvImageCodec: a batch at a time, in the order of CuPy's current stream.

JPEGs are decoded by nvImageCodec's C API, on a thread that needs no GIL; what else the GPU takes, by its Python API. What the
GPU's decoders do not take (formats, damaged files) is decoded on the CPU, image by image, so that an image that fails does
so alone.

Source: nvImageCodec's Python API, version 0.9 (``Decoder``, ``DecodeParams``, ``CodeStream.get_sub_code_stream``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, DALIImageType, numpy_dtype
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.image_cache import ImageCache
from penstock.kernels.codecs.image_codec import (
    corners,
    decode,
    decode_parameters,
    full_intensity,
    gray_via_rgb,
    nvimgcodec_region,
    taken_by_nvimgcodec,
)
from penstock.kernels.codecs.image_description import (
    HEADER_COLUMNS,
    UPRIGHT,
    EncodedFiles,
    ImageHeader,
    JpegHeaders,
)
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec.decoder import (
    BGR,
    GRAY,
    RGB,
    BatchDecoder,
    Decoded,
    EncodedImages,
    compiled_loop,
    table_of,
)
from penstock.kernels.codecs.nvimgcodec.library import Backend, Policy, Share, library
from penstock.kernels.colour import TO_YCBCR, YCBCR_OFFSET
from penstock.kernels.cuda.launch import Located, Places
from penstock.kernels.windows import Region
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import borrowed_streams, follow

_FORMATS = {
    DALIImageType.RGB: RGB,
    DALIImageType.BGR: BGR,
    DALIImageType.GRAY: GRAY,
    DALIImageType.YCbCr: RGB,
}
# Batches of so few images, or of images of so few pixels, leave the GPU's engine idle at times: so many decoders take turns.
_FEW, _SMALL, _TURNS = 8, 1 << 19, 3
# Batches that are on their way anyway: one is completed when the next is begun.
_BEGUN = 2
_ALIGNMENT = 256
_BYTE_DEPTH, _BYTES = 8, np.dtype(np.uint8)


@dataclass(slots=True)
class Job:
    """One image to decode.

    Attributes:
        encoded: the file's bytes, uint8 of shape (n,).
        header: of the image.
        region: to decode, in rows and columns of the upright image; None: the whole.
        shape: of the result, (H, W, C).
        name: under which the result may be kept in the cache, or empty.
    """

    encoded: np.ndarray
    header: ImageHeader
    region: Region | None
    shape: tuple[int, int, int]
    name: str = ""


@dataclass(slots=True)
class Jobs:
    """Images to decode, in columns of :class:`Job`'s fields.

    Attributes:
        files: the encoded images.
        regions: anchors and extents, int64 of shape (images, 2); None: all images are decoded whole.
        names: none where no result may be kept.
    """

    files: EncodedFiles = field(default_factory=lambda: EncodedFiles(()))
    headers: Sequence[ImageHeader] = ()
    regions: tuple[np.ndarray, np.ndarray] | None = None
    shapes: Sequence[tuple[int, ...]] = ()
    names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.files)

    def shapes_of(self, indices: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """The shapes of some of the results."""
        return self.shapes if len(indices) == len(self) else [self.shapes[index] for index in indices]

    def __getitem__(self, index: int) -> Job:
        region = None
        if self.regions is not None:
            anchors, extents = self.regions
            region = Region(tuple(anchors[index].tolist()), tuple(extents[index].tolist()))
        height, width, channels = self.shapes[index]
        name = self.names[index] if self.names else ""
        return Job(self.files.files[index], self.headers[index], region, (height, width, channels), name)


@dataclass
class Begun:
    """A batch on its way.

    Attributes:
        jobs: what is decoded.
        results: what is there already, as :meth:`GpuImageDecoder.finish` gives it.
        batch: the images that are being decoded, or None.
        taken: the jobs of these.
        places: where each of them will lie.
        as_decoded: the images need neither be turned nor converted.
        streams: in whose order they are decoded, in whose they are used, and an event for these to wait for each other.
    """

    jobs: Jobs
    results: list[Any]
    batch: Decoded | None = None
    taken: Sequence[int] = ()
    places: Sequence[Located] = ()
    as_decoded: bool = False
    streams: tuple[Any, Any, Any] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the host need not wait for the images."""
        return self.batch is None or self.batch.is_done

    def join(self) -> list[int]:
        """Waits for the images, as far as the host has to; the states of those that are being decoded."""
        states = self.batch.wait() if self.batch is not None else []
        if self.streams is not None:
            decoding, using, event = self.streams
            follow(using, decoding, event)
        return states


class GpuImageDecoder:
    """The decoder of one operator of a pipeline, on CuPy's current device.

    Args:
        arguments: of the operator: ``output_type``, ``dtype``, ``adjust_orientation``, nvJPEG's settings, the cache's.
        given_load: the user has chosen ``hw_decoder_load``.
        num_threads: CPU threads that nvImageCodec may use for what the GPU leaves to the CPU.

    Attributes:
        takes_all: all images so far are decoded on nvImageCodec's own thread, and no other is held up.
        idle_turns: decoders that had nothing to do while one batch like the last is decoded, and the next begun.
    """

    def __init__(self, arguments: dict[str, Any], given_load: bool, num_threads: int) -> None:
        self._cupy = require_cupy("decoding images on the device `mixed`")
        self._output_type: DALIImageType = arguments["output_type"]
        self._dtype = numpy_dtype(arguments["dtype"])
        self._adjust: bool = arguments["adjust_orientation"]
        self._fast_idct: bool = arguments["use_fast_idct"]
        self._upright_bytes = self._dtype == np.uint8 and self._output_type != DALIImageType.YCbCr
        self._cache = ImageCache.from_arguments(arguments)
        device, load = self._cupy.cuda.Device().id, arguments["hw_decoder_load"] if given_load else None
        options = " ".join(_options(arguments))
        self._turns = _Turns(self._cupy, num_threads, load, options) if library() else None
        self._others = _ByPythonApi(device, num_threads, options)
        self.takes_all = self._turns is not None
        self.idle_turns = 0

    def empty(self, dtype: DALIDataType) -> Any:
        """What stands for an image that failed."""
        return self._cupy.empty((0, 0, 0), numpy_dtype(dtype))

    def begin(self, jobs: Jobs) -> Begun:
        """Begins to decode images, in the order of CuPy's current stream."""
        begun = Begun(jobs, [self._cache.find(name) for name in jobs.names] or [None] * len(jobs))
        missing = [index for index, result in enumerate(begun.results) if result is None]
        taken = self._decoded_early(jobs, missing)
        self.takes_all = self.takes_all and len(taken) == len(missing)
        if taken:
            self._begin_batch(begun, taken)
        return begun

    def begin_jpegs(self, files: EncodedFiles, decoding: Decoding = FREELY) -> Begun | None:
        """Begins to decode files that are all ordinary JPEGs, whole, and stored upright, without Python looking at each.

        None if one of them is of another kind, or if something about the decoder needs a look at each:
        :meth:`begin` then takes them.
        """
        limits = decoding.limits
        if self._turns is None or not self._upright_bytes or self._cache.capacity or not len(files):
            return None
        if limits.bytes is not None or decoding.pool_for(trusted=True) is not None:
            return None
        pixels = _FORMATS.get(self._output_type)
        if pixels is None:
            return None
        loop, count = compiled_loop(), len(files)
        block = np.zeros(loop.block_words(count), np.int64)
        found = np.zeros((count, HEADER_COLUMNS), np.int64)
        room, total = loop.prepare_jpegs(files.places, files.sizes, pixels.channels, limits.pixels or 0, block, found)
        if not room:
            return None
        decoder, own, event = self._next_turn(count, total)
        stream = self._cupy.cuda.get_current_stream()
        follow(own, stream, event)
        with own:
            try:
                memory = self._cupy.empty(_size_class(room), np.uint8)
            except MemoryError:
                return None
        table = table_of(block, count)
        shapes = list(map(tuple, table[:, loop.HEIGHT : loop.CHANNELS + 1].tolist()))
        base = memory.data.ptr
        batch = decoder.decode_block(block, count, base, pixels, own.ptr, (files, memory))
        places = Places(table[:, loop.OUTPUT].astype(np.uint64), shapes, _BYTES, memory)
        jobs = Jobs(files, JpegHeaders(found, False), None, shapes)
        return Begun(jobs, [None] * count, batch, range(count), places, True, (own, stream, event))

    def finish(self, begun: Begun, parallel: Callable[..., None], decoding: Decoding = FREELY) -> Sequence[Any]:
        """Waits for images, as far as the host has to, and decodes those that could not be begun.

        Args:
            begun: what was begun.
            parallel: runs a function over indices on the pipeline's threads, for what the GPU does not take.
            decoding: where; what is to be decoded in worker processes is decoded there on the CPU.

        Returns:
            For each job where its image of shape (H, W, C) lies, or a CuPy array of it, or the exception that it raised.
        """
        jobs, results, states = begun.jobs, begun.results, begun.join()
        if begun.as_decoded and len(states) == len(results) and all(states) and not self._cache.capacity:
            return begun.places
        missing = [index for index, result in enumerate(results) if result is None]
        for index, place, state in zip(begun.taken, begun.places, states):
            if state:
                results[index] = self._finished(jobs.headers[index], jobs.shapes[index], place, _BYTE_DEPTH)
        self._decode_others(begun)
        self._decode_on_cpu(jobs, results, parallel, decoding)
        for index in missing if self._cache.capacity else ():
            if not isinstance(results[index], Exception):
                # A copy: the image itself lies in the memory of its batch.
                results[index] = as_array(results[index]).copy()
                self._cache.offer(jobs.names[index], results[index])
        return results

    # -- by the C API ------------------------------------------------------------------------------------------------

    def _decoded_early(self, jobs: Jobs, missing: list[int]) -> list[int]:
        """The jobs that the thread without the GIL can take.

        nvJPEG fills in what is missing at a file's end, so such damaged files are judged by the CPU's decoder.
        """
        if self._turns is None or self._output_type not in _FORMATS:
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

    def _begin_batch(self, begun: Begun, taken: Sequence[int]) -> None:
        assert self._turns is not None
        pixels = _FORMATS[self._output_type]
        headers = begun.jobs.headers
        if isinstance(headers, JpegHeaders):
            sizes, upright = headers.rows[taken, :2], not self._adjust or not headers.turned[taken].any()
        else:
            sizes = np.array([headers[index][1:3] for index in taken], np.int64)
            upright = all(headers[index].placed(self._adjust) is UPRIGHT for index in taken)
        regions = self._stored_regions(begun.jobs, taken)
        extents = sizes if begun.jobs.regions is None else regions[:, 2:] - regions[:, :2]
        room = -(-extents[:, 0] * extents[:, 1] * pixels.channels // _ALIGNMENT) * _ALIGNMENT
        # The engine decodes images as a whole, whatever the regions.
        decoder, own, event = self._next_turn(len(taken), int((sizes[:, 0] * sizes[:, 1]).sum()))
        stream = self._cupy.cuda.get_current_stream()
        follow(own, stream, event)
        begun.streams = own, stream, event
        # Taken and given back in the order of the stream that writes to it.
        with own:
            memory, outputs = self._room(begun, taken, room)
        if not outputs.all():
            kept = np.flatnonzero(outputs)
            taken, outputs = [taken[row] for row in kept.tolist()], outputs[kept]
            sizes, regions, extents = sizes[kept], regions[kept], extents[kept]
            if not taken:
                return
        images = EncodedImages(begun.jobs.files.take(taken), sizes, regions, outputs)
        begun.batch = decoder.decode(images, pixels, own.ptr, memory)
        begun.taken = taken
        begun.as_decoded = self._upright_bytes and upright
        shapes = begun.jobs.shapes_of(taken)
        if not upright:
            shapes = [(height, width, pixels.channels) for height, width in extents.tolist()]
        begun.places = Places(outputs.astype(np.uint64), shapes, np.dtype(np.uint8), memory)

    def _next_turn(self, count: int, pixels: int) -> tuple[BatchDecoder, Any, Any]:
        """The decoder for ``count`` images of so many pixels together, its stream, and its event."""
        assert self._turns is not None
        turns = _TURNS if count <= _FEW or pixels <= _SMALL * count else 1
        self.idle_turns = max(turns - _BEGUN, 0)
        return self._turns.next(turns)

    def _room(self, begun: Begun, taken: Sequence[int], room: np.ndarray) -> tuple[object, np.ndarray]:
        """Memory for images of ``room`` bytes: its owner, and each one's address; those without room get an error, and 0."""
        cupy = self._cupy
        try:
            memory = cupy.empty(_size_class(int(room.sum())), np.uint8)
            return memory, memory.data.ptr + np.cumsum(room) - room
        except MemoryError:
            pass
        parts: list[Any] = []
        for index, size in zip(taken, room.tolist()):
            try:
                parts.append(cupy.empty(size, np.uint8))
            except MemoryError:
                parts.append(None)
                height, width, channels = begun.jobs.shapes[index]
                begun.results[index] = MemoryError(
                    f"No room on the GPU for an image of {height}x{width}x{channels}: {size >> 20} MiB could not be "
                    "allocated beside the batch's other images. Use smaller batches, or free memory."
                )
        return parts, np.array([0 if part is None else part.data.ptr for part in parts], np.int64)

    def _stored_regions(self, jobs: Jobs, taken: Sequence[int]) -> np.ndarray:
        """The regions to decode, as in :class:`EncodedImages`."""
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
        """Decodes what the C API was not asked for and the GPU takes."""
        taken_early = set(begun.taken)
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
        """The image turned upright and converted; None if its shape differs from the header's."""
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
        """Where an image of the Python API lies."""
        if image.buffer_kind == nvimgcodec().ImageBufferKind.STRIDED_HOST:
            image = image.cuda(synchronize=False, cuda_stream=self._cupy.cuda.get_current_stream().ptr)
        # The stream in whose order the data are is the current one, so there is nothing to wait for.
        interface = image.__cuda_array_interface__
        if interface["strides"] is not None:
            return self._cupy.ascontiguousarray(self._cupy.from_dlpack(image))
        return Located(interface["data"][0], interface["shape"], np.dtype(interface["typestr"]), image)

    def _decode_on_cpu(self, jobs: Jobs, results: list[Any], parallel: Callable[..., None], decoding: Decoding) -> None:
        """Decodes on the CPU what is missing in ``results``, and uploads it."""
        missing = [index for index, result in enumerate(results) if result is None]
        if not missing:
            return
        hosts: list[Any] = [None] * len(missing)

        def task(position: int) -> None:
            job = jobs[missing[position]]
            host = np.empty(job.shape, self._dtype)
            try:
                kind, adjust, fast = self._output_type, self._adjust, self._fast_idct
                decode(job.encoded, job.header, host, kind, adjust, fast, job.region, decoding)
                hosts[position] = host
            except Exception as error:
                hosts[position] = error

        parallel(task, len(missing), [jobs.files.files[index].size for index in missing])
        for index, host in zip(missing, hosts):
            results[index] = host if isinstance(host, Exception) else self._cupy.asarray(host)


def as_array(image: Any) -> Any:
    """An image that :meth:`GpuImageDecoder.decode` gave as an array."""
    return image.array() if isinstance(image, Located) else image


class _Turns:
    """nvImageCodec's decoders, each on a thread of its own, that take the batches in turn where these are small.

    Unless the user wants a part of each batch decoded elsewhere, the JPEG engine has all that it takes: so the same image gives
    the same pixels, whatever it is batched with.

    Attributes:
        streams: on which each decodes: on one, it would wait for the other, and what is done with a batch for the next one's
            decoding.
    """

    def __init__(self, cupy: ModuleType, num_threads: int, load: float | None, options: str) -> None:
        rest = [Share(Backend.GPU_ONLY), Share(Backend.HYBRID)]
        self._shares: tuple[list[Share], list[Share]] = rest, []
        if load is None:
            self._shares = [Share(Backend.ENGINE)], rest
        elif load > 0:
            # A fixed share would be one of the first batch's size, and hold for larger ones, too.
            self._shares = [Share(Backend.ENGINE, load, Policy.ADAPTIVE), *rest], []
        device = cupy.cuda.Device().id
        self._settings = device, num_threads, options
        self.streams = borrowed_streams(self, _TURNS)
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(_TURNS)]
        self._decoders: list[BatchDecoder | None] = [None] * _TURNS
        self._turn = 0

    def next(self, turns: int) -> tuple[BatchDecoder, Any, Any]:
        """The decoder for a batch, its stream and its event; ``turns``: how many of them take turns."""
        self._turn = (self._turn + 1) % turns
        decoder = self._decoders[self._turn]
        if decoder is None:
            device, threads, options = self._settings
            decoder = self._decoders[self._turn] = BatchDecoder(device, threads, *self._shares, options)
        return decoder, self.streams[self._turn], self._events[self._turn]


class _ByPythonApi:
    """nvImageCodec's decoder for what the C API is not asked for, made when it is needed."""

    def __init__(self, device: int, num_threads: int, options: str) -> None:
        self._settings = device, num_threads, options
        self._decoder: Any = None

    def decode(
        self, images: Sequence[tuple[np.ndarray, Region | None]], output_type: DALIImageType, stream: int
    ) -> list[Any]:
        """The library's images, as they are stored, of regions of encoded ones; None for those that it does not take."""
        codec = nvimgcodec()
        if codec is None or not images:
            return [None] * len(images)
        if self._decoder is None:
            self._decoder = self._made(codec)
        streams = [codec.CodeStream(encoded) for encoded, _ in images]
        parts = [
            stream if region is None else stream.get_sub_code_stream(region=nvimgcodec_region(region))
            for stream, (_, region) in zip(streams, images)
        ]
        decoded: list[Any] = self._decoder.decode(parts, params=decode_parameters(output_type), cuda_stream=stream)
        return decoded

    def _made(self, codec: Any) -> Any:
        device, num_threads, options = self._settings
        kinds = (codec.BackendKind.HW_GPU_ONLY, codec.BackendKind.GPU_ONLY, codec.BackendKind.HYBRID_CPU_GPU)
        backends = [codec.Backend(kind) for kind in kinds]
        return codec.Decoder(device_id=device, max_num_cpu_threads=num_threads, backends=backends, options=options)


def _size_class(size: int) -> int:
    """The next size with three significant bits: pools then find memory of earlier batches, which had other sizes."""
    step = max(1 << max(size.bit_length() - 4, 0), _ALIGNMENT)
    return -(-size // step) * step


def _options(arguments: dict[str, Any]) -> list[str]:
    fancy = int(arguments["jpeg_fancy_upsampling"])
    options = [
        f":fancy_upsampling={fancy}",
        f"nvjpeg_cuda_decoder:hybrid_huffman_threshold={arguments['hybrid_huffman_threshold']}",
        f"nvjpeg_cuda_decoder:device_memory_padding={arguments['device_memory_padding']}",
        f"nvjpeg_cuda_decoder:host_memory_padding={arguments['host_memory_padding']}",
        f"nvjpeg2k_cuda_decoder:device_memory_padding={arguments['device_memory_padding_jpeg2k']}",
        f"nvjpeg2k_cuda_decoder:host_memory_padding={arguments['host_memory_padding_jpeg2k']}",
    ]
    for side in ("height", "width"):
        hint = arguments[f"preallocate_{side}_hint"]
        if hint:
            options.append(f"nvjpeg_hw_decoder:preallocate_{side}_hint={hint}")
    return options


def _ycbcr(cupy: ModuleType, pixels: Any, maximum: float, matrix: Any, dtype: np.dtype) -> tuple[Any, float]:
    """The same as on the CPU."""
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum) @ matrix
    if dtype == np.uint8:
        offset = cupy.asarray(YCBCR_OFFSET + 0.5, cupy.float32)
        return cupy.floor(normalized * np.float32(255) + offset).astype(cupy.uint8), 255.0
    return normalized + cupy.asarray(YCBCR_OFFSET / 256, cupy.float32), 1.0


def _converted(cupy: ModuleType, pixels: Any, maximum: float, dtype: np.dtype) -> Any:
    """The same as on the CPU."""
    if pixels.dtype == dtype and maximum == (1.0 if dtype.kind == "f" else np.iinfo(dtype).max):
        return pixels
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum)
    if dtype.kind == "f":
        return normalized.astype(dtype, copy=False)
    limit = int(np.iinfo(dtype).max)
    scaled = cupy.floor(normalized * np.float32(limit) + np.float32(0.5)).astype(cupy.float64)
    return cupy.clip(scaled, 0, limit).astype(dtype)
