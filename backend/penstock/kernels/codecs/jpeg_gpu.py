"""Decodes batches of baseline JPEGs with CUDA kernels, to the pixels of libjpeg-turbo.

Threads gather the coded data in pinned memory, from which it is copied in one transfer, for a large batch while the
previous one is decoded. Kernels read the codes and make the pixels of some of the images at a time, so that the
coefficients take little memory. Damaged images, and those on which decoders differ, are reported as not decoded.
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

# Bytes of coefficients and of samples in memory at a time: coefficients of 32 photographs keep most of a large GPU
# busy, and samples of 16.
_COEFFICIENT_BYTES_PER_PART, _SAMPLE_BYTES_PER_PART = 104 << 20, 28 << 20
_ALIGNMENT = 256
# The smallest number of bytes of files for which another thread pays off, and of data for which another stream does.
_MIN_BYTES_PER_THREAD = _MIN_BYTES_PER_STREAM = 1 << 20


class JpegDecoder:
    """The decoder of one operator, on CuPy's current device.

    Args:
        channels: the pixels' channels; with one, they are luma.
        reverse: whether the pixels are in BGR order.
        smooth: whether chroma is interpolated, which is libjpeg-turbo's default.
        threads: the largest number of threads that gather at a time.

    Attributes:
        cuda: CuPy's module.
        device, staging: the device, and its staging memory.
        copying: the stream in whose order the data of large batches are copied.
        copied: an event recorded after each of these copies.
        followed: an event recorded when a batch begins, in the stream whose work must come before it.
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
        """The kernels that decode on the device."""
        return Kernels.on_device(self.channels, self.reverse, self.smooth)

    @functools.cached_property
    def crew(self) -> BackgroundThreads:
        """Threads that gather and launch, however busy Python is."""
        crew = BackgroundThreads("penstock-jpegs", max(self.threads - 1, 1))
        weakref.finalize(self, crew.close).atexit = False
        return crew

    def begin_reading(self, files: EncodedFiles, extents: np.ndarray) -> ScansBeingRead:
        """Make threads read the headers of files before they are decoded, which tell whether the kernels support them.

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

        Threads gather the data of a large batch and launch its kernels, without Python; the work for a small one is
        done at once.

        Args:
            scans: the files' scans.
            files: the batch.
            windows: top, left, height and width of the part of each image to decode, as stored.
            targets: the addresses of the pixels, allocated in the order of ``stream``; or the next step, which reads
                the pixels of all images from memory that is soon reused.
            stream: the stream in whose order to decode.
            keep: object to keep alive until all kernels are launched: the owner of the targets.
            after: a stream whose work queued so far must come first, as it may still use memory that the batch gets.
        """
        if scans.taken_count < len(scans):
            rows = np.flatnonzero(scans.taken)
            scans, files = scans.take(rows), files.take(rows.tolist())
        self.settle(stream)
        batch = JpegBatch(self, scans, files, windows, targets, stream, keep, after)
        self._last[stream.ptr] = weakref.ref(batch)
        return batch

    def settle(self, stream: Stream) -> None:
        """Wait until all kernels of the batch that was last begun in the order of a stream are launched.

        Then the next one is launched after it, and may reuse its memory.
        """
        last = self._last.get(stream.ptr)
        before = None if last is None else last()
        if before is not None:
            before.work.wait()


class JpegBatch:
    """A batch in flight, of supported images; the arguments are those of :meth:`JpegDecoder.begin`.

    Attributes:
        work: the work of threads until all kernels are launched.
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
        # Memory that is not released yet.
        self._borrowed = list[Pinned]()
        self._decoder, self._scans, self._windows, self._targets = decoder, scans, windows, targets
        # Layout of the pinned memory: two int32 for each image (its state; the next turn of its part), the page, the data.
        count, following = len(files), targets.following if isinstance(targets, FusedDecode) else None
        self._page = Page(_aligned(2 * _NUMBER * count), count, following)
        self._begin = _aligned(self._page.end)
        pinned = decoder.staging.take(self._begin + scans.size)
        self._numbers = pinned.bytes[: 2 * _NUMBER * count].view(np.int32).reshape(2, count)
        self._states = self._numbers[0]
        # The event of the pinned memory serves for the batch: nobody else waits for copies from this memory meanwhile.
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
        """Return the work of copying the coded data to pinned memory, in shares on several threads; a single share is copied directly."""
        shares = max(min(self._scans.size // _MIN_BYTES_PER_THREAD, self._decoder.threads), 1)
        begin, numbers = pinned.address + self._begin, self._numbers
        place, kept = gathering(self._scans, files.places, files.sizes, begin, numbers, NOT_TAKEN, shares)
        threads = None if shares == 1 else self._decoder.crew
        return SharedWork(gather_share.address, place, shares, (kept, files, pinned), threads)

    def _launch(self, launches: LaunchList, pinned: Pinned, stream: Stream) -> None:
        """Add the launches that decode the images; images for which the GPU lacks memory stay undecoded."""
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
        """Wait until the pixels are there; any thread may."""
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

        Pinned memory is reused only when the GPU is done with it, and so is memory that another stream copied to.
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
    """Return the size to allocate for this many bytes: for large batches always the same, as pools hold on to memory of
    other sizes.
    """
    most = _COEFFICIENT_BYTES_PER_PART + _SAMPLE_BYTES_PER_PART
    return most if most // 2 < size <= most else size_class(size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


_NUMBER = np.dtype(np.int32).itemsize
_NO_ROWS = np.zeros(0, np.int64)
