"""Decoding images on the GPU with nvImageCodec: a batch at a time, on CuPy's current stream.

What the GPU's decoders do not take (formats, damaged files) is decoded on the CPU, image by image, so that an image
that fails does so alone.

Source: nvImageCodec's Python API, version 0.9 (``Decoder``, ``DecodeParams``, ``CodeStream.get_sub_code_stream``).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.data_types import DALIDataType, DALIImageType, numpy_dtype
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.image_cache import ImageCache
from penstock.kernels.codecs.image_codec import (
    decode,
    decode_parameters,
    full_intensity,
    gray_via_rgb,
    nvimgcodec_region,
    taken_by_nvimgcodec,
)
from penstock.kernels.codecs.image_description import UPRIGHT, ImageHeader
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.colour import TO_YCBCR, YCBCR_OFFSET
from penstock.kernels.cuda.launch import Located
from penstock.kernels.windows import Region
from penstock.tensors.cuda import require_cupy

_BEST_HARDWARE_LOAD = 1.0
"""The share of a batch that the JPEG engine begins with; DALI's default is 0.65.

On an H200 eight images of 1.1 megapixels take 2 ms in the engine, and 7 where one of them is left to the others.
"""


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


# Idle images may have so many times the bytes that the next batch needs.
_MAX_SPARE = 2
_END_OF_JPEG = b"\xff\xd9"
# How much of a file's end is searched for what is not padding, before all of it is.
_PADDING_SEARCHED = 256


class GpuImageDecoder:
    """The decoder of one operator of a pipeline, on CuPy's current device.

    Args:
        arguments: of the operator: ``output_type``, ``dtype``, ``adjust_orientation``, nvJPEG's settings, the cache's.
        given_load: the user has chosen ``hw_decoder_load``.
        num_threads: CPU threads that nvImageCodec may use for what the GPU leaves to the CPU.
    """

    def __init__(self, arguments: dict[str, Any], given_load: bool, num_threads: int) -> None:
        self._cupy = require_cupy("decoding images on the device `mixed`")
        self._output_type: DALIImageType = arguments["output_type"]
        self._dtype = numpy_dtype(arguments["dtype"])
        self._adjust: bool = arguments["adjust_orientation"]
        self._fast_idct: bool = arguments["use_fast_idct"]
        self._upright_bytes = self._dtype == np.uint8 and self._output_type != DALIImageType.YCbCr
        self._cache = ImageCache.from_arguments(arguments)
        load = arguments["hw_decoder_load"] if given_load else _BEST_HARDWARE_LOAD
        self._decoder = _make_decoder(arguments, load, num_threads, self._cupy.cuda.Device().id)
        self._idle = IdleImages()

    def empty(self, dtype: DALIDataType) -> Any:
        """What stands for an image that failed."""
        return self._cupy.empty((0, 0, 0), numpy_dtype(dtype))

    def decode(self, jobs: Sequence[Job], parallel: Callable[..., None], decoding: Decoding = FREELY) -> list[Any]:
        """Decodes images, in the order of CuPy's current stream.

        Args:
            jobs: what to decode.
            parallel: runs a function over indices on the pipeline's threads, for what the GPU does not take.
            decoding: where; what is to be decoded in worker processes is decoded there on the CPU.

        Returns:
            For each job where its image of shape (H, W, C) lies, or a CuPy array of it, or the exception that it raised.
        """
        results: list[Any] = [self._cache.find(job.name) for job in jobs]
        missing = [index for index, result in enumerate(results) if result is None]
        for index, image in zip(missing, self._decode_stored([jobs[index] for index in missing])):
            if image is not None:
                results[index] = self._finished(jobs[index], image)
        self._decode_on_cpu(jobs, results, parallel, decoding)
        for index in missing if self._cache.capacity else ():
            if not isinstance(results[index], Exception):
                results[index] = as_array(results[index])
                self._cache.offer(jobs[index].name, results[index])
        return results

    def _decode_stored(self, jobs: Sequence[Job]) -> list[Any]:
        """nvImageCodec's images as they are stored, on the GPU; None for those that it does not take."""
        if self._decoder is None or not jobs:
            return [None] * len(jobs)
        codec = nvimgcodec()
        taken = [index for index, job in enumerate(jobs) if self._on_gpu(job.header) and _is_whole(job)]
        if not taken:
            return [None] * len(jobs)
        streams = [self._stream(codec, jobs[index]) for index in taken]
        stream = self._cupy.cuda.get_current_stream().ptr
        sizes = [math.prod(jobs[index].shape) for index in taken]
        images = self._decoder.decode(
            streams,
            images=self._idle.take(sizes),
            params=decode_parameters(self._output_type),
            cuda_stream=stream,
        )
        decoded: list[Any] = [None] * len(jobs)
        for index, image in zip(taken, images):
            decoded[index] = image
        return decoded

    def _on_gpu(self, header: ImageHeader) -> bool:
        if header.isolated or gray_via_rgb(header, self._output_type):
            return False
        return taken_by_nvimgcodec(header, self._output_type)

    def _stream(self, codec: Any, job: Job) -> Any:
        stream = codec.CodeStream(job.encoded)
        if job.region is None:
            return stream
        orientation = job.header.placed(self._adjust)
        stored = orientation.stored_region(job.region, *orientation.size(job.header.height, job.header.width))
        return stream.get_sub_code_stream(region=nvimgcodec_region(stored))

    def _finished(self, job: Job, image: Any) -> Any:
        """The image turned upright and converted; None where it is not what the header announced."""
        cupy = self._cupy
        if image.buffer_kind == nvimgcodec().ImageBufferKind.STRIDED_HOST:
            image = image.cuda(synchronize=False, cuda_stream=cupy.cuda.get_current_stream().ptr)
        orientation = job.header.placed(self._adjust)
        place = self._place(image)
        if self._upright_bytes and orientation is UPRIGHT and place.dtype == np.uint8:
            return place if place.shape == job.shape else None
        pixels = as_array(place)
        maximum = full_intensity(pixels.dtype, image.precision)
        if self._output_type == DALIImageType.YCbCr:
            matrix = cupy.asarray(TO_YCBCR.T, cupy.float32)
            pixels, maximum = _ycbcr(cupy, pixels, maximum, matrix, self._dtype)
        pixels = _converted(cupy, pixels, maximum, self._dtype)
        pixels = cupy.ascontiguousarray(orientation.upright(pixels))
        return pixels if pixels.shape == job.shape else None

    def _place(self, image: Any) -> Any:
        """Where a decoded image lies; when nobody uses that any more, the memory takes another one."""
        # The stream in whose order the data are is the current one, so there is nothing to wait for.
        interface = image.__cuda_array_interface__
        if interface["strides"] is not None:
            return self._cupy.ascontiguousarray(self._cupy.from_dlpack(image))
        owner = _Lease(image, self._idle)
        return Located(interface["data"][0], interface["shape"], np.dtype(interface["typestr"]), owner)

    def _decode_on_cpu(
        self, jobs: Sequence[Job], results: list[Any], parallel: Callable[..., None], decoding: Decoding
    ) -> None:
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

        parallel(task, len(missing), [jobs[index].encoded.size for index in missing])
        for index, host in zip(missing, hosts):
            results[index] = host if isinstance(host, Exception) else self._cupy.asarray(host)


def as_array(image: Any) -> Any:
    """An image that :meth:`GpuImageDecoder.decode` gave as an array."""
    return image.array() if isinstance(image, Located) else image


class IdleImages:
    """nvImageCodec's images that nobody uses: to decode into their memory costs a tenth less than to allocate it.

    What lies idle is at most twice of what a batch needs.
    """

    def __init__(self) -> None:
        self._images: deque[Any] = deque()

    def give(self, image: Any) -> None:
        """Takes an image back."""
        self._images.append(image)

    def take(self, sizes: Sequence[int]) -> list[Any] | None:
        """Images for results of such sizes, in bytes or nearly so; None where new ones are to be made."""
        count = len(sizes)
        idle = []
        while self._images:
            idle.append(self._images.popleft())
        idle.sort(key=_capacity, reverse=True)
        if len(idle) < count or sum(map(_capacity, idle[:count])) > _MAX_SPARE * sum(sizes):
            return None
        # The largest memory for the largest image.
        chosen: list[Any] = [None] * count
        for image, place in zip(idle, sorted(range(count), key=sizes.__getitem__, reverse=True)):
            chosen[place] = image
        return chosen


def _capacity(image: Any) -> int:
    return int(image.capacity)


class _Lease:
    """Keeps an image for those that use its memory, and then gives it back."""

    __slots__ = ("_idle", "_image")

    def __init__(self, image: Any, idle: IdleImages) -> None:
        self._image, self._idle = image, idle

    def __del__(self) -> None:
        self._idle.give(self._image)


def _is_whole(job: Job) -> bool:
    """Whether a JPEG has its end; nvJPEG fills in what is missing, so damaged ones are judged by the CPU's decoder."""
    if job.header.format != "jpeg" or job.encoded.data[-2:] == _END_OF_JPEG:
        return True
    filled = np.flatnonzero(job.encoded[-_PADDING_SEARCHED:])
    if not filled.size:
        filled = np.flatnonzero(job.encoded)
        return filled.size > 1 and bytes(job.encoded[filled[-1] - 1 : filled[-1] + 1]) == _END_OF_JPEG
    end = max(job.encoded.size - _PADDING_SEARCHED, 0) + int(filled[-1]) + 1
    return bytes(job.encoded[max(end - 2, 0) : end]) == _END_OF_JPEG


def _make_decoder(arguments: dict[str, Any], load: float, num_threads: int, device: int) -> Any:
    """nvImageCodec's decoder with the JPEG engine first, or None where the library is missing.

    What none of the GPU's decoders takes comes back as missing, and is decoded on the CPU with the care taken there.
    """
    codec = nvimgcodec()
    if codec is None:
        return None
    kinds = codec.BackendKind
    # A fixed share would be one of the first batch's size, and hold for larger ones, too.
    policy = codec.LoadHintPolicy.ADAPTIVE_MINIMIZE_IDLE_TIME
    engine = [codec.Backend(kinds.HW_GPU_ONLY, load_hint=load, load_hint_policy=policy)] if load > 0 else []
    return codec.Decoder(
        device_id=device,
        max_num_cpu_threads=num_threads,
        backends=[*engine, codec.Backend(kinds.GPU_ONLY), codec.Backend(kinds.HYBRID_CPU_GPU)],
        options=" ".join(_options(arguments)),
    )


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


def _ycbcr(cupy: Any, pixels: Any, maximum: float, matrix: Any, dtype: np.dtype) -> tuple[Any, float]:
    """The same as on the CPU."""
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum) @ matrix
    if dtype == np.uint8:
        offset = cupy.asarray(YCBCR_OFFSET + 0.5, cupy.float32)
        return cupy.floor(normalized * np.float32(255) + offset).astype(cupy.uint8), 255.0
    return normalized + cupy.asarray(YCBCR_OFFSET / 256, cupy.float32), 1.0


def _converted(cupy: Any, pixels: Any, maximum: float, dtype: np.dtype) -> Any:
    """The same as on the CPU."""
    if pixels.dtype == dtype and maximum == (1.0 if dtype.kind == "f" else np.iinfo(dtype).max):
        return pixels
    normalized = pixels.astype(cupy.float32) * np.float32(1 / maximum)
    if dtype.kind == "f":
        return normalized.astype(dtype, copy=False)
    limit = int(np.iinfo(dtype).max)
    scaled = cupy.floor(normalized * np.float32(limit) + np.float32(0.5)).astype(cupy.float64)
    return cupy.clip(scaled, 0, limit).astype(dtype)
