"""JPEGs that nvImageCodec decodes, mostly on the GPU's JPEG engine, on threads that need no GIL."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from penstock.kernels.codecs.gpu.jpegs import JpegPart, JpegRequest, allocate
from penstock.kernels.codecs.gpu.kernel_decoder import KernelDecoder
from penstock.kernels.codecs.gpu.pending import PendingDecode, Streams
from penstock.kernels.codecs.gpu.settings import DecodeSettings
from penstock.kernels.codecs.nvimgcodec.on_gpu import Turns
from penstock.tensors.cuda import require_cupy
from penstock.tensors.streams import follow


class EngineDecoder:
    """Decodes JPEGs with nvImageCodec's C API.

    Args:
        settings: the operator's decode settings.
        turns: nvImageCodec's decoders.
        num_threads: the number of CPU threads that this decoder may use.
        kernels: the operator's decoder that uses our kernels, if the operator has one.

    Attributes:
        batches_ahead: how many more batches like the last one are worth beginning, in addition to those in flight.
    """

    def __init__(self, settings: DecodeSettings, turns: Turns, num_threads: int, kernels: KernelDecoder | None) -> None:
        self._settings, self._turns, self._num_threads, self._known_kernels = settings, turns, num_threads, kernels
        self.batches_ahead = 0

    @functools.cached_property
    def _kernels(self) -> KernelDecoder:
        """The decoder for images that the engine failed to decode; it uses the engine's streams."""
        return self._known_kernels or KernelDecoder(self._settings, self._num_threads, turns=0)

    def submit(self, pending: PendingDecode, request: JpegRequest) -> Sequence[int]:
        """Begin to decode JPEGs, in the order of CuPy's current stream. Return an empty sequence, as none are left for another decoder."""
        assert self._settings.pixel_format is not None
        decoder, stream, event = self._turns.next(len(request), request.pixels)
        self.batches_ahead = self._turns.idle
        streams = Streams(stream, require_cupy().cuda.get_current_stream(), event)
        follow(*streams)
        stored, memory = allocate(pending, request, stream)
        if len(stored):
            records, keep = stored.records_at(memory.addresses), (stored.files, memory.owner)
            batch = decoder.decode_records(records, self._settings.pixel_format, stream.ptr, keep)
            pending.parts.append(JpegPart.of(self, stored, memory, batch, streams))
        return ()

    def collect(self, pending: PendingDecode, part: JpegPart) -> Sequence[Any]:
        """Wait for the images of a part; see :meth:`penstock.kernels.codecs.gpu.pending.Decoder.collect`.

        Our kernels decode the baseline JPEGs that the engine failed to decode.
        """
        states = list(part.join())
        if not all(states) and self._turns.leaves_baseline:
            rows = [row for row, state in enumerate(states) if not state]
            failed = JpegRequest.of_jobs(self._settings, pending.jobs, [part.taken[row] for row in rows])
            for row, state in self._kernels.decode_instead(failed, part, rows).items():
                states[row] = state
        return part.converted(pending.jobs, self._settings, states)
