"""JPEGs decoded by our own CUDA kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.kernels.codecs.gpu.jpegs import JpegPart, JpegRequest, allocate
from penstock.kernels.codecs.gpu.pending import DecodedPart, FusedDecode, PendingDecode, Streams
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.jpeg_gpu import JpegBatch, JpegDecoder
from penstock.kernels.codecs.nvimgcodec.decoder import BGR
from penstock.kernels.codecs.turns import TurnTaking
from penstock.kernels.cpu.jpeg.batches import JpegScans
from penstock.kernels.cuda.resample import PlannedResampling
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import borrowed_streams

# Threads that gather data: more would take processors from the threads that run Python.
_MAX_GATHERING_THREADS = 4
# A fused batch of at most as many pixels, some 90 photographs, takes so little memory that one more may be in flight.
_MAX_PIXELS_TO_BEGIN_AHEAD = 96 << 20
# The result of an image that the next step has read.
CONSUMED: Final = object()


@dataclass(slots=True)
class _FusedPart(DecodedPart):
    """JPEGs whose pixels the next step reads from the decoder's memory."""

    batch: JpegBatch

    @property
    def is_done(self) -> bool:
        return self.batch.is_done

    def await_done(self) -> None:
        self.batch.await_done()


class KernelDecoder:
    """Decodes baseline JPEGs by our own kernels, in the order of streams that batches take in turn.

    Args:
        settings: the operator's decode settings.
        num_threads: CPU threads that may work for it.
        turns: the largest number of batches that may be decoded at a time.

    Attributes:
        batches_ahead: how many batches like the last are worth beginning in addition to those already in flight.
    """

    def __init__(self, settings: DecodeSettings, num_threads: int, turns: int) -> None:
        pixels = settings.pixel_format
        assert pixels is not None
        cuda = require_cupy().cuda
        threads = min(num_threads, _MAX_GATHERING_THREADS)
        self._settings = settings
        self._jpegs = JpegDecoder(pixels.channels, pixels is BGR, settings.smooth, threads)
        self._streams, self._turns = borrowed_streams(self, turns), TurnTaking(turns)
        self._cuda, self._event = cuda, cuda.Event(disable_timing=True)
        self.batches_ahead = 0

    def begin_reading(self, request: JpegRequest) -> None:
        """Make threads read the headers and tables that the kernels need from the files."""
        request.reading = self._jpegs.begin_reading(request.files, request.sizes)

    def submit(
        self, pending: PendingDecode, request: JpegRequest, following: PlannedResampling | None = None
    ) -> Sequence[int]:
        """Begin to decode JPEGs, in the order of CuPy's current stream.

        Args:
            pending: the batch.
            request: some of its images.
            following: the next step, for all images of the batch: it reads these while they are in memory, instead of storing them.

        Returns:
            The numbers of the request's images that another decoder must decode.
        """
        scans = self._scans(request)
        if scans.taken_count == len(request):
            self._submit(pending, request, scans, following)
            return ()
        rows = np.flatnonzero(scans.taken)
        if len(rows):
            self._submit(pending, request.take(rows.tolist()), scans.take(rows), following)
        return np.flatnonzero(~scans.taken).tolist()

    def count_decodable(self, request: JpegRequest) -> int:
        """Return how many of these images the kernels decode."""
        return self._scans(request).taken_count

    def _scans(self, request: JpegRequest) -> JpegScans:
        if request.reading is None:
            self.begin_reading(request)
        assert request.reading is not None
        return request.reading.wait()

    def _submit(
        self, pending: PendingDecode, request: JpegRequest, scans: JpegScans, following: PlannedResampling | None
    ) -> None:
        """Begin to decode JPEGs all of which the kernels decode."""
        pixels = request.pixels
        turn = self._turns.next(len(request), pixels)
        self.batches_ahead = self._turns.idle
        streams = Streams(self._streams[turn], self._cuda.get_current_stream(), self._event)
        if following is not None:
            whole = len(request) == len(request.jobs)
            rows = np.arange(len(request)) if whole else np.array(request.taken)
            windows, fused = following.windows if whole else following.windows[rows], FusedDecode(following, rows)
            batch = self._jpegs.begin(scans, request.files, windows, fused, streams.decoding, None, streams.using)
            if pixels <= _MAX_PIXELS_TO_BEGIN_AHEAD:
                # The work before its kernels takes half as long as they do.
                self.batches_ahead = max(self.batches_ahead, 1)
            pending.parts.append(_FusedPart(self, request.taken, batch))
            pending.fuse(following, streams, batch.work.wait)
            return
        stored, memory = allocate(pending, request, streams.decoding)
        if not len(stored):
            return
        if len(stored) < len(request):
            self.begin_reading(stored)
            scans = self._scans(stored)
        outputs = memory.addresses.astype(np.uint64)
        order = streams.decoding, memory.owner, streams.using
        batch = self._jpegs.begin(scans, stored.files, stored.windows, outputs, *order)
        pending.parts.append(JpegPart.of(self, stored, memory, batch, None))

    def collect(self, pending: PendingDecode, part: JpegPart | _FusedPart) -> Sequence[Any]:
        """Wait for a part; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`.

        Images that the next step has read are :data:`CONSUMED`.
        """
        if isinstance(part, _FusedPart):
            states = part.batch.wait()
            pending.joined()
            return [CONSUMED if state else None for state in states]
        return part.converted(pending.jobs, self._settings, part.join())

    def decode_instead(self, request: JpegRequest, part: JpegPart, rows: Sequence[int]) -> dict[int, int]:
        """Decode images that another decoder failed to decode, to the memory intended for them.

        Args:
            request: these images.
            part: the other decoder's.
            rows: the images' numbers in the part.

        Returns:
            Whether each image was decoded, by its number; images that the kernels do not support are absent.
        """
        assert part.streams is not None
        scans = self._scans(request)
        if not scans.taken_count:
            return {}
        taken = np.array(rows)[scans.taken].tolist()
        targets, windows = part.images.addresses[taken], request.windows[scans.taken]
        batch = self._jpegs.begin(scans, request.files, windows, targets, part.streams.decoding, part.images)
        return dict(zip(taken, batch.wait()))
