"""JPEGs that our own CUDA kernels decode."""

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

# The largest number of threads that gather data: more would take processors from the threads that run Python.
_MAX_GATHERING_THREADS = 4
# A fused batch with at most this many pixels, some 90 photographs, takes so little memory that one more may be in flight.
_MAX_PIXELS_TO_BEGIN_AHEAD = 96 << 20
# Stands for the result of an image that the next step has already read.
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
    """Decodes baseline JPEGs with our own kernels, on several streams that batches use in turn.

    Args:
        settings: the operator's decode settings.
        num_threads: the number of CPU threads that this decoder may use.
        turns: the number of streams: at most this many batches are decoded at a time.

    Attributes:
        batches_ahead: how many more batches like the last one are worth beginning, in addition to those in flight.
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
        """Make threads read, from the files, the headers and tables that the kernels need."""
        request.reading = self._jpegs.begin_reading(request.files, request.sizes)

    def submit(
        self, pending: PendingDecode, request: JpegRequest, following: PlannedResampling | None = None
    ) -> Sequence[int]:
        """Begin to decode JPEGs, in the order of CuPy's current stream.

        Args:
            pending: the batch.
            request: images of this batch.
            following: the next step, planned for all images of the batch: it reads pixels from the decoder's memory, so that they need not
                be stored.

        Returns:
            The positions, in the request, of images that another decoder must decode.
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
        """Return how many of the request's images the kernels support."""
        return self._scans(request).taken_count

    def _scans(self, request: JpegRequest) -> JpegScans:
        if request.reading is None:
            self.begin_reading(request)
        assert request.reading is not None
        return request.reading.wait()

    def _submit(
        self, pending: PendingDecode, request: JpegRequest, scans: JpegScans, following: PlannedResampling | None
    ) -> None:
        """Begin to decode JPEGs, all of which the kernels support."""
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
                # The host's work before the kernels start takes half as long as the kernels run.
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
        """Wait for the images of a part; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`.

        The result of an image that the next step has read is :data:`CONSUMED`.
        """
        if isinstance(part, _FusedPart):
            states = part.batch.wait()
            pending.joined()
            return [CONSUMED if state else None for state in states]
        return part.converted(pending.jobs, self._settings, part.join())

    def decode_instead(self, request: JpegRequest, part: JpegPart, rows: Sequence[int]) -> dict[int, int]:
        """Decode images that another decoder failed to decode, to the memory that it would have written to.

        Args:
            request: the images.
            part: the part of the other decoder that contains the images.
            rows: the images' positions in that part.

        Returns:
            Whether each image was decoded, by its position in the part; images that the kernels do not support are absent.
        """
        assert part.streams is not None
        scans = self._scans(request)
        if not scans.taken_count:
            return {}
        taken = np.array(rows)[scans.taken].tolist()
        targets, windows = part.images.addresses[taken], request.windows[scans.taken]
        batch = self._jpegs.begin(scans, request.files, windows, targets, part.streams.decoding, part.images)
        return dict(zip(taken, batch.wait()))
