"""Decodes batches of baseline JPEGs on the GPU's own processors, to the pixels of libjpeg-turbo.

Threads gather the coded data in pinned memory, from where they are copied at once; kernels read the codes and make the pixels, of
some of the images at a time, so that the coefficients take little memory. What is damaged, and what decoders may differ about,
comes back as not decoded.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.image_jobs import Followed
from penstock.kernels.cuda.launch import KernelLaunch, Located, Pinned, Staging, launch_all, size_class, staging
from penstock.tensors.cuda import require_cupy
from penstock.tensors.tensor import copy_device_to

if TYPE_CHECKING:
    from penstock.kernels.cpu.jpeg.batches import JpegScans
    from penstock.tensors.streams import Stream

# Bytes of a block.
_COEFFICIENTS, _SAMPLES = 128, 64
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
        self._last: weakref.ref[JpegBatch] | None = None

    def read(self, files: EncodedFiles, sizes: np.ndarray, start: Callable[..., Work]) -> JpegScans:
        """What is known of files before they are decoded, above all whether they are taken.

        Args:
            sizes: heights and widths as their headers say.
            start: runs a function over indices on several threads, without waiting for it.
        """
        from penstock.kernels.cpu.jpeg.batches import read_scans
        from penstock.kernels.cuda.jpeg_pixels import choose_images

        scans = read_scans(files.places, files.sizes, lambda task, count: start(task, count).wait())
        choose_images(scans, np.ascontiguousarray(sizes))
        return scans

    @staticmethod
    def divides(pixels: int) -> bool:
        """Whether of images of so many bytes only some are in memory at a time, if something follows that takes them."""
        return pixels > _WORTH_FOLLOWING

    def begin(
        self,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | Followed,
        stream: Stream,
        start: Callable[..., Work],
    ) -> JpegBatch:
        """Begins to decode those of a batch that are taken.

        Threads gather the data of a large batch, and its kernels are launched when the next one is begun, or when it is waited
        for. So nobody waits for what is gathered, and the interpreter launches from one thread.

        Args:
            scans: of the files.
            files: the batch.
            windows: top, left, height and width of what is decoded of each image that is taken, as stored.
            targets: the addresses of their pixels, whose memory is taken in the order of ``stream``; or what is done with them,
                of all images, while they are in memory that is soon others'.
            stream: in whose order to decode.
            start: runs a function over indices on several threads, without waiting for it.
        """
        before = None if self._last is None else self._last()
        if before is not None:
            before.launch()
        if not scans.taken.all():
            rows = np.flatnonzero(scans.taken)
            scans, files = scans.take(rows), files.take(rows.tolist())
        batch = JpegBatch(self, scans, files, windows, targets, stream, start)
        self._last = weakref.ref(batch)
        return batch


class Work(Protocol):
    """What other threads do."""

    def is_done(self) -> bool:
        """Whether there is nothing to wait for."""

    def wait(self) -> None:
        """Does what nobody has begun, and waits for the rest."""


class JpegBatch:
    """A batch on its way, of images that are taken; the arguments are those of :meth:`JpegDecoder.begin`.

    Attributes:
        stream: in whose order it is decoded.
        is_launched: its kernels were launched, or are not going to be.
    """

    def __init__(
        self,
        decoder: JpegDecoder,
        scans: JpegScans,
        files: EncodedFiles,
        windows: np.ndarray,
        targets: np.ndarray | Followed,
        stream: Stream,
        start: Callable[..., Work],
    ) -> None:
        from penstock.kernels.cuda.jpeg_codes import NOT_TAKEN

        self._decoder, self._scans, self.stream = decoder, scans, stream
        self._windows, self._targets = windows, targets
        # Bytes of coefficients. Once samples are made of them, pixels that are soon not needed any more take their place.
        self._places = scans.blocks * _COEFFICIENTS
        if isinstance(targets, Followed):
            pixels = windows[:, 2] * windows[:, 3] * decoder.channels
            self._places = np.maximum(self._places, -(-pixels // _ALIGNMENT) * _ALIGNMENT)
        # In front of the data lie two numbers for each image: its state, and for its part which turn is the next.
        count = len(files)
        self._begin = _aligned(2 * _NUMBER * count)
        held = staging()
        self._pinned = held.take(self._begin + scans.size)
        # Written when the GPU is done: the memory is another's only then.
        self._gathering: list[Work] = []
        self._return = weakref.finalize(self, _give_back, decoder.device, stream, held, self._pinned, self._gathering)
        self._return.atexit = False
        self._states, turns = self._pinned.bytes[: 2 * _NUMBER * count].view(np.int32).reshape(2, count)
        self._states[:], turns[:] = NOT_TAKEN, 0
        self._done = require_cupy().cuda.Event(disable_timing=True)
        self.is_launched = False
        self._error: Exception | None = None
        self._gather(files, start)
        if not self._gathering:
            self.launch()

    def _gather(self, files: EncodedFiles, start: Callable[..., Work]) -> None:
        """Copies the coded data to pinned memory, several shares at a time; a single one is copied at once."""
        from penstock.kernels.cpu.jpeg.batches import gather

        ends = np.cumsum(files.sizes)
        shares = int(np.clip(ends[-1] // _WORTH_SHARING, 1, self._decoder.threads))
        bounds = [0, *np.searchsorted(ends, ends[-1] / shares * np.arange(1, shares)).tolist(), len(ends)]
        # Not itself: nobody else may keep a batch that is dropped.
        scans, data = self._scans, self._pinned.bytes[self._begin :]

        def task(share: int) -> None:
            gather(scans, files.places, files.sizes, data, bounds[share], bounds[share + 1])

        if shares == 1:
            task(0)
        else:
            self._gathering.append(start(task, shares))

    def launch(self) -> None:
        """Launches the kernels, unless that was done; an error is raised where the batch is waited for.

        Without memory, they are launched there, when those before it may have given theirs back.
        """
        if self.is_launched:
            return
        try:
            for work in self._gathering:
                work.wait()
            if isinstance(self._targets, Followed):
                self._targets.following.take_memory(self.stream)
            with self.stream:
                self._launch(self._pinned)
                self.stream.record(self._done)
        except MemoryError:
            return
        except Exception as error:
            self._error = error
        self.is_launched = True

    def _launch(self, pinned: Pinned) -> None:
        from penstock.kernels.cuda.jpeg_codes import expected_intervals

        size = self._begin + self._scans.size
        memory = require_cupy().empty(size_class(size), np.uint8)
        self._states[:] = expected_intervals(self._scans)
        memory.data.copy_from_host_async(pinned.address, size, self.stream)
        self._decode_parts(memory.data.ptr, 0, len(self._windows))
        copy_device_to(memory[: self._states.nbytes], pinned.address, self.stream, non_blocking=True)

    def _decode_parts(self, given: int, first: int, last: int) -> None:
        """Decodes some of the images, as many together as there is memory for; those without any stay undecoded.

        Args:
            given: the address of what was copied.
        """
        parts = _cut(self._places, first, last, _AT_ONCE)
        try:
            scratch = require_cupy().empty(_scratch_size(max(self._room(*part) for part in parts)), np.uint8)
            launches = [one for part in parts for one in self._launches(given, *part, scratch.data.ptr)]
            if isinstance(self._targets, Followed):
                launches.insert(0, self._targets.following.preparing())
            launch_all(launches)
        except MemoryError:
            middle = (first + last) // 2
            if middle > first:
                self._decode_parts(given, first, middle)
                self._decode_parts(given, middle, last)

    def _together(self, first: int, last: int) -> list[tuple[int, int]]:
        """Those of some of the images whose samples are in memory together."""
        return _cut(self._scans.blocks * _SAMPLES, first, last, _SAMPLES_AT_ONCE)

    def _room(self, first: int, last: int) -> int:
        """Bytes for coefficients of some of the images, and for what is in memory of their samples."""
        samples = max(int(self._scans.blocks[begin:end].sum()) for begin, end in self._together(first, last))
        return int(self._places[first:last].sum()) + samples * _SAMPLES

    def _launches(self, given: int, first: int, last: int, scratch: int) -> Iterator[KernelLaunch]:
        """What decodes some of the images together; in ``scratch``, samples follow coefficients."""
        from penstock.kernels.cpu.jpeg.segments import ACROSS, DOWN, HEIGHT, WIDTH
        from penstock.kernels.cuda.jpeg_codes import reading
        from penstock.kernels.cuda.jpeg_pixels import Coefficients, making_pixels

        decoder, count = self._decoder, len(self._windows)
        scans = self._scans if last - first == count else self._scans.take(slice(first, last))
        ends = scratch + np.cumsum(self._places[first:last])
        sources = ends - self._places[first:last]
        states, turn, data = (
            Located(given + offset, (), _STATE) for offset in (_NUMBER * first, _NUMBER * (count + first), self._begin)
        )
        yield reading(scans, data, sources, states, turn)
        targets = sources.astype(np.uint64) if isinstance(self._targets, Followed) else self._targets[first:last]
        for begin, end in self._together(first, last):
            own = slice(begin - first, end - first)
            images = Coefficients(
                sources[own],
                targets[own],
                np.ascontiguousarray(scans.numbers[own, HEIGHT : WIDTH + 1]),
                self._windows[begin:end],
                np.ascontiguousarray(scans.components[own, :, ACROSS : DOWN + 1]),
                scans.factors[own].reshape(end - begin, -1, 64),
            )
            yield from making_pixels(images, int(ends[-1]), decoder.channels, decoder.reverse, decoder.smooth)
        if isinstance(self._targets, Followed):
            yield from self._targets.following.launches(self._targets.rows[first:last], targets)

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would not wait."""
        return self.is_launched and bool(self._done.done)

    def wait(self) -> list[bool]:
        """Waits for the batch; for each image that was taken, whether it is decoded."""
        self.launch()
        self.is_launched = True
        if self._error is not None:
            raise self._error
        self._done.synchronize()
        decoded: list[bool] = (self._states == 0).tolist()
        self._return()
        return decoded


def _cut(sizes: np.ndarray, first: int, last: int, most: int) -> list[tuple[int, int]]:
    """Ranges of things of these sizes, from ``first`` to ``last``: about equal shares, of ``most`` at most.

    Shares may be larger if a single thing takes more than half of that.
    """
    ends = np.cumsum(sizes[first:last])
    # A share goes beyond its bound by less than the largest thing.
    shares = -(-int(ends[-1]) // max(most - int(sizes[first:last].max()), most // 2, 1)) if ends[-1] > most else 1
    bounds = first + np.searchsorted(ends, ends[-1] / shares * np.arange(1, shares), "right")
    edges = [first, *bounds.tolist(), last]
    return [(begin, end) for begin, end in itertools.pairwise(edges) if begin < end]


def _scratch_size(size: int) -> int:
    """What is taken for so many bytes: for large batches always the same, as pools keep what other sizes had."""
    most = _AT_ONCE + _SAMPLES_AT_ONCE
    return most if most // 2 < size <= most else size_class(size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


_STATE = np.dtype(np.int32)
_NUMBER = _STATE.itemsize


def _give_back(
    device: AbstractContextManager[object], stream: Stream, memory: Staging, pinned: Pinned, gathering: list[Work]
) -> None:
    # Memory that is still written to, for a batch that nobody wants, is left to the garbage collector.
    if all(work.is_done() for work in gathering):
        with device:
            memory.give_back(pinned, stream)
