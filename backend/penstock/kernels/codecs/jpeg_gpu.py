"""Decodes batches of baseline JPEGs on the GPU's own processors, to the pixels of libjpeg-turbo.

Threads gather the coded data in pinned memory, from where they are copied at once; kernels read the codes and make the pixels, of
some of the images at a time, so that the coefficients take little memory. What is damaged, and what decoders may differ about,
comes back as not decoded.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.background import BackgroundThreads
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_jobs import Followed
from penstock.kernels.cuda.driver import driver_error
from penstock.kernels.cuda.launch import KernelLaunch, Located, Pinned, Staging, size_class, staging
from penstock.kernels.cuda.launch_list import LaunchList
from penstock.kernels.shared_work import SharedWork, no_calls
from penstock.tensors.cuda import require_cupy

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.batches import JpegScans, ScansBeingRead
    from penstock.tensors.streams import Stream

# Bytes of each that are in memory at a time: coefficients of 32 photographs keep a large GPU busy, and samples of 16.
_AT_ONCE, _SAMPLES_AT_ONCE = 104 << 20, 28 << 20
# Bytes of pixels that are worth being in memory some at a time, where something follows that takes them.
_WORTH_FOLLOWING = 64 << 20
_ALIGNMENT = 256
# Bytes of files that are worth another thread.
_WORTH_SHARING = 1 << 20


class JpegDecoder:
    """The decoder of one operator, on CuPy's current device.

    Args:
        channels: of the pixels; with one, they are luma.
        reverse: in BGR order.
        smooth: chroma is smoothed, as libjpeg-turbo does unless it is told otherwise.
        threads: that may gather at a time.
    """

    def __init__(self, channels: int, reverse: bool, smooth: bool, threads: int) -> None:
        self.device = require_cupy().cuda.Device()
        self.channels, self.reverse, self.smooth, self.threads = channels, reverse, smooth, threads
        self._last: dict[int, weakref.ref[JpegBatch]] = {}

    @functools.cached_property
    def crew(self) -> BackgroundThreads:
        """Threads that gather and launch, however busy Python is."""
        crew = BackgroundThreads("penstock-jpegs", max(self.threads - 1, 1))
        weakref.finalize(self, crew.close).atexit = False
        return crew

    def begin_reading(self, files: EncodedFiles) -> ScansBeingRead:
        """Has threads read what :meth:`chosen` needs to know of files."""
        from penstock.kernels.cpu.jpeg.batches import ScansBeingRead

        return ScansBeingRead(files.places, files.sizes, self.crew if self.threads > 1 else None, files)

    def chosen(self, reading: ScansBeingRead, sizes: np.ndarray) -> JpegScans:
        """What is known of files before they are decoded, above all whether they are taken.

        Args:
            sizes: heights and widths as their headers say.
        """
        from penstock.kernels.cuda.jpeg_pixels import choose_images

        scans = reading.wait()
        choose_images(scans, np.ascontiguousarray(sizes))
        return scans

    def read(self, files: EncodedFiles, sizes: np.ndarray) -> JpegScans:
        """:meth:`begin_reading` and :meth:`chosen`."""
        return self.chosen(self.begin_reading(files), sizes)

    def divides(self, pixels: int) -> bool:
        """Whether of images of so many pixels only some are in memory at a time, if something follows that takes them."""
        return pixels * self.channels > _WORTH_FOLLOWING

    def begin(
        self,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | Followed,
        stream: Stream,
        keep: object = None,
    ) -> JpegBatch:
        """Begins to decode those of a batch that are taken.

        Threads gather the data of a large batch and launch its kernels, without Python; what a small one needs is done at once.

        Args:
            scans: of the files.
            files: the batch.
            windows: top, left, height and width of what is decoded of each image that is taken, as stored.
            targets: the addresses of their pixels, whose memory is taken in the order of ``stream``; or what is done with them,
                of all images, while they are in memory that is soon others'.
            stream: in whose order to decode.
            keep: object to keep alive until all kernels are launched: the owner of the targets.
        """
        if not scans.taken.all():
            rows = np.flatnonzero(scans.taken)
            scans, files = scans.take(rows), files.take(rows.tolist())
        self.settle(stream)
        batch = JpegBatch(self, scans, files, windows, targets, stream, keep)
        self._last[stream.ptr] = weakref.ref(batch)
        return batch

    def settle(self, stream: Stream) -> None:
        """Waits until all kernels of the batch that was last begun in the order of a stream are launched.

        So the next one is launched after it, and may have its memory.
        """
        last = self._last.get(stream.ptr)
        before = None if last is None else last()
        if before is not None:
            before.work.wait()


class JpegBatch:
    """A batch on its way, of images that are taken; the arguments are those of :meth:`JpegDecoder.begin`.

    Attributes:
        work: what threads do until all kernels are launched.
    """

    def __init__(
        self,
        decoder: JpegDecoder,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | Followed,
        stream: Stream,
        keep: object,
    ) -> None:
        from penstock.kernels.cuda.jpeg_codes import NOT_TAKEN

        self._decoder, self._scans, self._windows, self._targets = decoder, scans, windows, targets
        # In front of the data lie two numbers for each image: its state, and for its part which turn is the next.
        count = len(files)
        self._begin = _aligned(2 * _NUMBER * count)
        self._staging = staging()
        pinned = self._staging.take(self._begin + scans.size)
        self._states, turns = pinned.bytes[: 2 * _NUMBER * count].view(np.int32).reshape(2, count)
        self._states[:], turns[:] = NOT_TAKEN, 0
        self._done = require_cupy().cuda.Event(disable_timing=True)
        launches = LaunchList(stream)
        launches.kept += targets, keep
        launches.pinned.append(pinned)
        self._pinned = launches.pinned
        self.work = self._gathering(files, pinned)
        # Pinned memory is another's only when the GPU is done.
        self._return = weakref.finalize(
            self, _give_back, decoder.device, stream, self._staging, self._pinned, self.work
        )
        self._return.atexit = False
        calls = no_calls()
        try:
            with stream:
                self._launch(launches, pinned)
            launches.record(self._done)
            calls = launches.calls()
        finally:
            self.work.follow(calls, launches.kept)

    def _gathering(self, files: EncodedFiles, pinned: Pinned) -> SharedWork:
        """Copies the coded data to pinned memory, several shares at a time; a single one is copied at once."""
        from penstock.kernels.cpu.jpeg.batches import gather_share, gathering

        shares = max(min(int(files.sizes.sum()) // _WORTH_SHARING, self._decoder.threads), 1)
        places = pinned.address + self._begin, pinned.address
        words, kept = gathering(self._scans, files.places, files.sizes, *places, shares)
        threads = None if shares == 1 else self._decoder.crew
        return SharedWork(gather_share.address or 0, words.ctypes.data, shares, (words, kept, files, pinned), threads)

    def _launch(self, launches: LaunchList, pinned: Pinned) -> None:
        """Lists what decodes the images; those for which there is no memory stay undecoded."""
        size = self._begin + self._scans.size
        cupy = require_cupy()
        try:
            memory = cupy.empty(size_class(size), np.uint8)
        except MemoryError:
            return
        layout = _Layout(
            self._scans.blocks, self._windows, self._decoder.channels * isinstance(self._targets, Followed)
        )
        while layout.parts:
            try:
                scratch = cupy.empty(_scratch_size(layout.room), np.uint8)
                break
            except MemoryError:
                layout.halve()
        if not layout.parts:
            return
        launches.kept += memory, scratch
        launches.copy_to_device(memory.data.ptr, pinned.address, size)
        try:
            kernels, steps = self._launches(memory.data.ptr, layout, scratch.data.ptr)
            launches.launch_all(kernels, np.array(steps, np.int64))
        except MemoryError:
            return
        launches.copy_to_host(pinned.address, memory.data.ptr, self._states.nbytes)

    def _launches(self, given: int, layout: _Layout, scratch: int) -> tuple[list[KernelLaunch], list[tuple[int, int, int]]]:
        """What decodes the images, whose data lie at ``given``, and in which order; ``scratch`` is the memory that is laid out."""
        from penstock.kernels.cpu.jpeg.segments import ACROSS, DOWN, HEIGHT, WIDTH
        from penstock.kernels.cuda.jpeg_codes import reading
        from penstock.kernels.cuda.jpeg_pixels import Coefficients, making_pixels

        decoder, scans, count = self._decoder, self._scans, len(self._windows)
        followed = self._targets if isinstance(self._targets, Followed) else None
        sources, planes = (places.view(np.uint64) for places in (layout.sources + scratch, layout.planes + scratch))
        states, turns, data = (Located(given + offset, (), _STATE) for offset in (0, _NUMBER * count, self._begin))
        images = Coefficients(
            sources,
            planes,
            sources if isinstance(self._targets, Followed) else self._targets,
            np.ascontiguousarray(scans.numbers[:, HEIGHT : WIDTH + 1]),
            self._windows,
            np.ascontiguousarray(scans.components[:, :, ACROSS : DOWN + 1]),
            scans.factors.reshape(count, -1, 64),
        )
        launches: list[KernelLaunch] = []
        steps: list[tuple[int, int, int]] = []
        if followed:
            launches.append(followed.following.preparing())
            steps.append((0, 0, len(launches[0].descriptors)))
        codes = len(launches)
        launches.append(reading(scans, data, sources, states, turns))
        launches += making_pixels(images, decoder.channels, decoder.reverse, decoder.smooth)
        pixels = range(codes + 1, len(launches))
        if followed:
            launches += followed.following.launches(followed.rows, sources)
        after = range(pixels.stop, len(launches))
        for first, last in layout.parts:
            own = [(begin, end) for begin, end in layout.groups if first <= begin < last]
            steps.append((codes, first, last))
            steps += [(number, begin, end) for begin, end in own for number in pixels]
            steps += [(number, first, last) for number in after]
        return launches, steps

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would not wait."""
        return self.work.is_done and bool(self._done.done)

    def wait(self) -> list[bool]:
        """Waits until the pixels are there; for each image that was taken, whether it is decoded."""
        status = self.work.wait()
        if status:
            raise driver_error(status)
        self._done.synchronize()
        decoded: list[bool] = (self._states == 0).tolist()
        if self._return.detach() is not None:
            for pinned in self._pinned:
                self._staging.give_back(pinned, None)
        return decoded


class _Layout:
    """Where coefficients and samples of a batch lie in memory that parts of the batch have one after the other.

    Args:
        blocks: of each image.
        windows: of each, as for :meth:`JpegDecoder.begin`.
        channels: of the pixels that take the coefficients' place as soon as samples are made of these; 0: they lie elsewhere.

    Attributes:
        parts: from which image to which each goes.
        groups: from which image to which samples are in memory together.
        sources, planes: where each image's coefficients and samples lie.
        room: the bytes that the largest part needs.
    """

    def __init__(self, blocks: np.ndarray, windows: np.ndarray, channels: int) -> None:
        from penstock.kernels.cpu.jpeg import parts as compiled

        count = len(blocks)
        self._lay_out, self._ranges = compiled.lay_out, np.empty((count, 2), np.int64)
        self._sizes, self._samples, self.sources, self.planes = np.zeros((4, count), np.int64)
        compiled.fill_sizes(blocks, windows, channels, self._sizes, self._samples)
        parts = self._ranges[: compiled.cut(self._sizes, 0, count, _AT_ONCE, self._ranges)]
        self._place(parts.copy())

    def _place(self, parts: np.ndarray) -> None:
        rooms = np.zeros(len(parts), np.int64)
        places = self._sizes, self._samples, parts, _SAMPLES_AT_ONCE, self.sources, self.planes, rooms, self._ranges
        groups = self._lay_out(*places)
        self.parts, self.groups, self._rooms = parts.tolist(), self._ranges[:groups].tolist(), rooms.tolist()
        self.room = max(self._rooms, default=0)

    def halve(self) -> None:
        """Has less memory do, if that is possible: of the largest parts, each becomes two, or, if it is one image, none."""
        smaller: list[tuple[int, int]] = []
        for (first, last), room in zip(self.parts, self._rooms):
            middle = (first + last) // 2
            if room < self.room:
                smaller.append((first, last))
            elif middle > first:
                smaller += (first, middle), (middle, last)
        self._place(np.array(smaller, np.int64).reshape(-1, 2))


def _scratch_size(size: int) -> int:
    """What is taken for so many bytes: for large batches always the same, as pools keep what other sizes had."""
    most = _AT_ONCE + _SAMPLES_AT_ONCE
    return most if most // 2 < size <= most else size_class(size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


_STATE = np.dtype(np.int32)
_NUMBER = _STATE.itemsize


def _give_back(
    device: AbstractContextManager[object], stream: Stream, memory: Staging, pinned: Sequence[Pinned], work: SharedWork
) -> None:
    """Leaves the memory of a batch that nobody waited for to others."""
    work.wait()
    with device:
        for one in pinned:
            memory.give_back(one, stream)
