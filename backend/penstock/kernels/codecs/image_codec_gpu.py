"""Decoding images on the GPU, a batch at a time, in the order of CuPy's current stream.

Each decoder submits images and collects them later (:mod:`penstock.kernels.codecs.gpu`). Our kernels and nvImageCodec's C API decode JPEGs,
uncompressed pixels are copied from their files, nvImageCodec's Python API decodes other images that the GPU supports, and the CPU decodes
the rest (other formats and damaged files).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.kernels.codecs.decoding import FREELY, Decoding, HostResources
from penstock.kernels.codecs.gpu.engine_decoder import EngineDecoder
from penstock.kernels.codecs.gpu.host_decoder import HostDecoder
from penstock.kernels.codecs.gpu.jpegs import JpegRequest
from penstock.kernels.codecs.gpu.kernel_decoder import CONSUMED, KernelDecoder
from penstock.kernels.codecs.gpu.library_decoder import LibraryDecoder
from penstock.kernels.codecs.gpu.pending import Jobs, PendingDecode
from penstock.kernels.codecs.gpu.plain_decoder import PlainDecoder
from penstock.kernels.codecs.gpu.settings import DecodeSettings, as_array
from penstock.kernels.codecs.image_cache import ImageCache
from penstock.kernels.codecs.image_description import EncodedFiles, JpegHeaders
from penstock.kernels.codecs.nvimgcodec.library import library
from penstock.kernels.codecs.nvimgcodec.on_gpu import PythonApi, Turns, options_of
from penstock.kernels.codecs.turns import TURNS
from penstock.kernels.cuda.launch import Places, Shape
from penstock.kernels.cuda.resample import PlannedResampling
from penstock.tensors.cuda import require_cupy

# The smallest batch size for which our kernels are faster than the engine.
_MIN_BATCH_FOR_KERNELS = 8
# A function that plans the next step for images of the given shapes (H, W, C).
FollowingFor = Callable[[Sequence[Shape]], PlannedResampling | None]


class GpuImageDecoder:
    """The decoders of one operator of a pipeline, on CuPy's current device.

    JPEGs go to our kernels if the pipeline's batches are large, or if chroma is to be smooth. They go to nvImageCodec otherwise, if our
    kernels do not support them, or if the user has chosen a share for the engine. Within a batch, the choice depends only on the image
    itself, so that its pixels do not depend on the other images of the batch.

    Args:
        arguments: the operator's arguments: ``output_type``, ``dtype``, ``adjust_orientation``, and the settings of
            nvJPEG and of the cache.
        given_load: whether the user has set ``hw_decoder_load``.
        num_threads: the number of CPU threads that may work for the decoders.
        max_batch_size: the pipeline's largest batch size.
        turns: the largest number of decoders that take turns at very small batches.

    Attributes:
        takes_all: whether all images so far were decoded without Python, so that no image had to wait for Python.
        batches_ahead: how many more batches like the last one are worth beginning, in addition to those in flight.
    """

    def __init__(
        self, arguments: dict[str, Any], given_load: bool, num_threads: int, max_batch_size: int, turns: int = TURNS
    ) -> None:
        cupy = require_cupy("decoding images on the device `mixed`")
        device, options = cupy.cuda.Device().id, options_of(arguments)
        settings = self._settings = DecodeSettings.from_arguments(arguments)
        self._cache = ImageCache.from_arguments(arguments)
        self._library = LibraryDecoder(settings, PythonApi(device, num_threads, options))
        self._plain, self._host = PlainDecoder(settings), HostDecoder(settings)
        self._kernels: KernelDecoder | None = None
        self._engine: EngineDecoder | None = None
        if settings.pixel_format is not None:
            has_engine = bool(library())
            prefers_kernels = not given_load and (settings.smooth or max_batch_size >= _MIN_BATCH_FOR_KERNELS)
            if prefers_kernels or not has_engine:
                self._kernels = KernelDecoder(settings, num_threads, turns)
            if has_engine:
                load = arguments["hw_decoder_load"] if given_load else None
                engines = Turns(cupy, num_threads, load, options, turns)
                self._engine = EngineDecoder(settings, engines, num_threads, self._kernels)
        self.takes_all = self._kernels is not None or self._engine is not None
        self.batches_ahead = 0

    def empty(self, dtype: DALIDataType) -> Any:
        """Return the placeholder for the result of an image that failed."""
        return require_cupy().empty((0, 0, 0), numpy_dtype(dtype))

    # -- submitting --------------------------------------------------------------------------------------------------

    def read_jpegs(self, files: EncodedFiles, decoding: Decoding = FREELY) -> JpegRequest | None:
        """Return the request for a batch of files, without inspecting each in Python, if all are ordinary JPEGs, complete, and stored
        upright.

        Return None if a file is of another kind or is decoded in a worker process, or if the decoder's settings require that each file is
        inspected: then use :meth:`submit`. Threads begin to read the headers and tables that our kernels need.
        """
        if self._cache.capacity:
            return None
        request = JpegRequest.of_ordinary(self._settings, files, decoding)
        if request is not None and self._kernels is not None:
            self._kernels.begin_reading(request)
        return request

    def submit_jpegs(self, request: JpegRequest, following_for: FollowingFor | None = None) -> PendingDecode | None:
        """Begin to decode a request of :meth:`read_jpegs`, in the order of CuPy's current stream; return None if :meth:`submit` has to be
        used.

        Args:
            request: the files.
            following_for: function that plans the next step if that can read images from the decoder's memory; called only if our kernels
                decode.
        """
        kernels, following = self._kernels, None
        if kernels is not None:
            if following_for is not None:
                following = following_for(request.jobs.shapes)
            decoded = kernels.count_decodable(request)
            if not decoded or (following is None and decoded < len(request)):
                return None
        pending = PendingDecode.of(request.jobs)
        self._submit(pending, request, following)
        return pending

    def submit(self, jobs: Jobs) -> PendingDecode:
        """Begin to decode images, in the order of CuPy's current stream."""
        pending = PendingDecode.of(jobs)
        if jobs.names:
            pending.results = [self._cache.find(name) for name in jobs.names]
        missing = pending.undecoded()
        taken = self._without_python(jobs, missing)
        self.takes_all = self.takes_all and len(taken) == len(missing)
        if taken:
            self._submit(pending, JpegRequest.of_jobs(self._settings, jobs, taken), None)
        if len(taken) < len(missing):
            self._plain.submit(pending, sorted({*missing}.difference(taken)))
        return pending

    def _submit(self, pending: PendingDecode, request: JpegRequest, following: PlannedResampling | None) -> None:
        """Submit JPEGs to our kernels, if this decoder uses them, and the remaining ones to nvImageCodec."""
        left: Sequence[int] = range(len(request))
        if self._kernels is not None:
            left = self._kernels.submit(pending, request, following)
            self.batches_ahead = self._kernels.batches_ahead
        if self._engine is not None and len(left):
            self._engine.submit(pending, request.take(left))
            self.batches_ahead = self._engine.batches_ahead

    def _without_python(self, jobs: Jobs, indices: list[int]) -> list[int]:
        """Return the indices of those images that are JPEGs and may be decoded without Python.

        nvJPEG makes up the missing pixels at the end of a truncated file, so such files are left to the CPU's decoder.
        """
        if self._kernels is None and self._engine is None:
            return []
        headers, shapes, whole = jobs.headers, jobs.shapes, jobs.files.are_whole()
        if isinstance(headers, JpegHeaders):
            if headers.isolated:
                return []
            if whole.all() and all(map(all, shapes)):
                return indices
        return [
            index
            for index in indices
            if whole[index]
            and (header := headers[index]).format == "jpeg"
            and header.channels in (1, 3)
            and not header.isolated
            and 0 not in shapes[index]
        ]

    # -- collecting --------------------------------------------------------------------------------------------------

    def collect(self, pending: PendingDecode, host: HostResources) -> Sequence[Any]:
        """Wait for the batch's images, as far as the host has to, and decode those that no decoder has begun.

        Args:
            pending: the batch.
            host: the resources for decoding other images on the CPU, in worker processes if the settings require that.

        Returns:
            For each image its location or a CuPy array, of shape (H, W, C), or the exception that decoding raised.
        """
        results, uncached = pending.results, list[int]()
        if self._cache.capacity:
            uncached = [index for index, result in enumerate(results) if result is None]
        submitted = list(pending.parts)
        if sum([len(part.taken) for part in submitted]) < len(results):
            self._decode_rest(pending, host)
        for part in submitted:
            images = part.decoder.collect(pending, part)
            if isinstance(images, Places) and len(images) == len(results) and not uncached:
                return images
            pending.take(part, images)
        self._decode_on_host(pending, [index for index, result in enumerate(results) if result is None], host)
        for index in uncached:
            if not isinstance(results[index], Exception):
                # A copy, as the image itself lies in the memory of its whole batch.
                results[index] = as_array(results[index]).copy()
                self._cache.offer(pending.jobs.names[index], results[index])
        return results

    def collect_fused(self, pending: PendingDecode, host: HostResources) -> dict[int, Any]:
        """Like :meth:`collect`, for a batch of which the next step has read some images already.

        Returns:
            For each image that the next step has not read, by its number in the batch: its location, a CuPy array, or the exception that
            decoding raised.
        """
        results = self.collect(pending, host)
        return {index: result for index, result in enumerate(results) if result is not CONSUMED}

    def _decode_rest(self, pending: PendingDecode, host: HostResources) -> None:
        """Decode the remaining images with nvImageCodec's Python API or on the CPU, while the GPU decodes the others."""
        part = self._library.submit(pending, pending.undecoded())
        pending.take(part, self._library.collect(pending, part))
        self._decode_on_host(pending, pending.undecoded(), host)

    def _decode_on_host(self, pending: PendingDecode, indices: Sequence[int], host: HostResources) -> None:
        if indices:
            part = self._host.submit(pending, indices, host)
            pending.take(part, self._host.collect(pending, part))
