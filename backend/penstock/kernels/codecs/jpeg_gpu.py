"""Decodes batches of baseline JPEGs with CUDA kernels; the pixels equal those of libjpeg-turbo.

Threads gather the coded data in pinned memory, from which it is copied to the GPU in one transfer; that of a large batch is copied while
the previous batch is decoded. Kernels decode some of the images at a time, so that coefficients take little memory. Damaged images, and
images on which decoders differ, are reported as not decoded.
"""

from __future__ import annotations

import functools
import sys
import weakref

import numpy as np

from penstock.core.threads import NO_CALLS, BackgroundThreads, SharedWork
from penstock.kernels.codecs.gpu.pending import FusedDecode
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.cpu.jpeg.batches import JpegScans, ScansBeingRead, gather_share, gathering
from penstock.kernels.cpu.jpeg.parts import Parts
from penstock.kernels.cuda.jpeg_codes import NOT_TAKEN
from penstock.kernels.cuda.jpeg_launches import Kernels, Page, launch_decoding
from penstock.kernels.cuda.launch import Pinned, staging
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.tensors.cuda import require_cupy
from penstock.tensors.driver import driver_error
from penstock.tensors.memory import size_class
from penstock.tensors.streams import Event, Stream, borrowed_streams, follow

# The largest number of bytes of coefficients, and of samples, in memory at a time. The coefficients of 32 photographs, and the
# samples of 16, keep most of a large GPU busy.
_COEFFICIENT_BYTES_PER_PART, _SAMPLE_BYTES_PER_PART = 104 << 20, 28 << 20
_ALIGNMENT = 256
# The smallest number of bytes of files for which another thread pays off, and of bytes to copy for which another stream does.
_MIN_BYTES_PER_THREAD = _MIN_BYTES_PER_STREAM = 1 << 20


class JpegDecoder:
    """The JPEG decoder of one operator, on CuPy's current device.

    Args:
        channels: the number of channels of the pixels; with one channel, pixels are luma.
        reverse: whether the pixels are in BGR order.
        smooth: whether subsampled chroma is interpolated, as libjpeg-turbo does by default.
        threads: the largest number of threads that gather data at a time.

    Attributes:
        cuda: CuPy's module.
        device, staging: the device, and the device's staging memory.
        copying: the stream in whose order the data of large batches are copied.
        copied: an event that is recorded after each of these copies.
        followed: an event that is recorded when a batch begins, on the stream whose work must precede the batch.
    """

    def __init__(self, channels: int, reverse: bool, smooth: bool, threads: int) -> None:
        cuda = self.cuda = require_cupy().cuda
        self.device, self.staging = cuda.Device(), staging()
        self.channels, self.reverse, self.smooth, self.threads = channels, reverse, smooth, threads
        self.copying: Stream = borrowed_streams(self, 1)[0]
        self.copied: Event = cuda.Event(disable_timing=True)
        self.followed: Event = cuda.Event(disable_timing=True)
        self._last: dict[int, weakref.ref[JpegBatch]] = {}

    @functools.cached_property
    def kernels(self) -> Kernels:
        """The decoding kernels, loaded on the device."""
        return Kernels.on_device(self.channels, self.reverse, self.smooth)

    @functools.cached_property
    def crew(self) -> BackgroundThreads:
        """Threads that gather data and launch kernels even while Python is busy."""
        crew = BackgroundThreads("penstock-jpegs", max(self.threads - 1, 1))
        weakref.finalize(self, crew.close).atexit = False
        return crew

    def begin_reading(self, files: EncodedFiles, extents: np.ndarray) -> ScansBeingRead:
        """Make threads read the headers of files, which tell whether the kernels support them, before the files are decoded.

        Args:
            extents: heights and widths from the headers, int64 of shape (files, 2).
        """
        return ScansBeingRead(files.places, files.sizes, extents, self.crew if self.threads > 1 else None, files)

    def begin(
        self,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | FusedDecode,
        stream: Stream,
        keep: object = None,
        after: Stream | None = None,
    ) -> JpegBatch:
        """Begin to decode the supported images of a batch.

        For a large batch, threads gather the data and launch the kernels, without Python; for a small one, the calling thread does so at
        once.

        Args:
            scans: the files' scans.
            files: the batch.
            windows: top, left, height and width of the part of each image to decode, as stored.
            targets: the addresses to which pixels are written, allocated in the order of ``stream``; or the next step, which reads the
                pixels of all images from memory that is reused soon.
            stream: the stream on which to decode.
            keep: the owner of the targets, which is kept alive until all kernels are launched.
            after: a stream; decoding waits for the work queued on it so far, which may still use memory that the batch gets.
        """
        if scans.taken_count < len(scans):
            rows = np.flatnonzero(scans.taken)
            scans, files = scans.take(rows), files.take(rows.tolist())
        self.settle(stream)
        batch = JpegBatch(self, scans, files, windows, targets, stream, keep, after)
        self._last[stream.ptr] = weakref.ref(batch)
        return batch

    def settle(self, stream: Stream) -> None:
        """Wait until all kernels of the last batch that was begun on a stream are launched.

        Kernels of the next batch are then launched after them, and may reuse their memory.
        """
        last = self._last.get(stream.ptr)
        before = None if last is None else last()
        if before is not None:
            before.work.wait()


class JpegBatch:
    """A batch of supported images that is being decoded; the arguments are those of :meth:`JpegDecoder.begin`.

    Attributes:
        work: the gathering of data and the launches; done when all kernels are launched.
    """

    def __init__(
        self,
        decoder: JpegDecoder,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | FusedDecode,
        stream: Stream,
        keep: object,
        after: Stream | None,
    ) -> None:
        # Pinned memory that has not been given back yet.
        self._borrowed = list[Pinned]()
        self._decoder, self._scans, self._windows, self._targets = decoder, scans, windows, targets
        # The pinned memory contains two int32 for each image (its state, and the turn of its part), the page, and the data.
        count, following = len(files), targets.following if isinstance(targets, FusedDecode) else None
        self._page = Page(_aligned(2 * _NUMBER * count), count, following)
        self._begin = _aligned(self._page.end)
        pinned = decoder.staging.take(self._begin + scans.size)
        self._numbers = pinned.bytes[: 2 * _NUMBER * count].view(np.int32).reshape(2, count)
        self._states = self._numbers[0]
        # The event of the pinned memory also marks the end of the batch, as nobody else waits for copies from this memory meanwhile.
        self._done = pinned.copied
        launches = LaunchList(stream)
        if after is not None:
            launches.follow(after, decoder.followed)
        launches.kept += targets, keep
        self._stream, self._copied_to = stream, list[object]()
        self.work = self._gathering(files, pinned)
        self._borrowed.append(pinned)
        calls = NO_CALLS
        try:
            with stream:
                self._launch(launches, pinned, stream)
            launches.record(self._done)
            calls = launches.calls()
        finally:
            self.work.follow(calls, launches.kept)

    def _gathering(self, files: EncodedFiles, pinned: Pinned) -> SharedWork:
        """Return the work of copying the coded data to pinned memory, divided among several threads; a small batch is copied at once."""
        shares = max(min(self._scans.size // _MIN_BYTES_PER_THREAD, self._decoder.threads), 1)
        begin, numbers = pinned.address + self._begin, self._numbers
        place, kept = gathering(self._scans, files.places, files.sizes, begin, numbers, NOT_TAKEN, shares)
        threads = None if shares == 1 else self._decoder.crew
        return SharedWork(gather_share.address, place, shares, (kept, files, pinned), threads)

    def _launch(self, launches: LaunchList, pinned: Pinned, stream: Stream) -> None:
        """Add the launches that decode the images; images for which the GPU lacks memory are not decoded."""
        size, decoder, targets = self._begin + self._scans.size, self._decoder, self._targets
        alloc, beforehand = decoder.cuda.alloc, size >= _MIN_BYTES_PER_STREAM
        pixels, rows = (
            (_NO_ROWS, targets.rows) if isinstance(targets, FusedDecode) else (targets.view(np.int64), _NO_ROWS)
        )
        try:
            with decoder.copying if beforehand else stream:
                memory = alloc(size_class(size))
        except MemoryError:
            return
        channels = decoder.channels * isinstance(targets, FusedDecode)
        parts = Parts(self._scans.memory, self._windows, channels, _COEFFICIENT_BYTES_PER_PART, _SAMPLE_BYTES_PER_PART)
        while len(parts):
            try:
                scratch = alloc(_scratch_size(parts.room))
                break
            except MemoryError:
                parts.halve()
        if not len(parts):
            return
        launches.kept += memory, scratch
        given = memory.ptr
        if beforehand:
            self._copied_to.append(memory)
            launches.copy_beforehand(given, pinned.address, size, decoder.copying, decoder.copied)
        else:
            launches.copy_to_device(given, pinned.address, size)
        places = given, given + self._begin, scratch.ptr
        images = self._scans, self._windows, pixels, parts
        launch_decoding(launches, decoder.kernels, *images, self._page, pinned.bytes, places, rows)
        launches.copy_to_host(pinned.address, given, self._states.nbytes)

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would return at once."""
        return self.work.is_done and bool(self._done.done)

    def await_done(self) -> None:
        """Wait until the pixels are there; any thread may call this."""
        status = self.work.wait()
        if status:
            raise driver_error(status)
        self._done.synchronize()

    def wait(self) -> list[bool]:
        """Wait until the pixels are there; return whether each supported image is decoded."""
        self.await_done()
        decoded: list[bool] = (self._states == 0).tolist()
        while self._borrowed:
            self._decoder.staging.give_back(self._borrowed.pop(), None)
        self._copied_to.clear()
        return decoded

    def __del__(self) -> None:
        """Release the memory of a batch that nobody waited for.

        Pinned memory, and GPU memory that another stream copied to, are reused only when the GPU is done with them.
        """
        if not self._borrowed or sys.is_finalizing():
            return
        self.work.wait()
        decoder = self._decoder
        with decoder.device:
            decoder.staging.give_back(self._borrowed.pop(), self._stream)
            if self._copied_to:
                follow(decoder.copying, self._stream, decoder.cuda.Event(disable_timing=True))
                self._copied_to.clear()


def _scratch_size(size: int) -> int:
    """Return the size to allocate for this many bytes; large batches always get the same size, as pools retain memory of each
    size.
    """
    most = _COEFFICIENT_BYTES_PER_PART + _SAMPLE_BYTES_PER_PART
    return most if most // 2 < size <= most else size_class(size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


_NUMBER = np.dtype(np.int32).itemsize
_NO_ROWS = np.zeros(0, np.int64)
