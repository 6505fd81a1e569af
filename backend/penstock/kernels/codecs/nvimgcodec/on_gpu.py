"""nvImageCodec's decoders on a GPU: several that take turns, each on its own thread, and one that is used through the Python API.

Source: nvImageCodec's Python API, version 0.9 (``Decoder``, ``DecodeParams``, ``CodeStream.get_sub_code_stream``).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from penstock.data_types import DALIImageType
from penstock.kernels.codecs.image_codec import decode_parameters, nvimgcodec_region
from penstock.kernels.codecs.libraries import nvimgcodec
from penstock.kernels.codecs.nvimgcodec.decoder import BatchDecoder
from penstock.kernels.codecs.nvimgcodec.library import Backend, Policy, Share
from penstock.kernels.codecs.turns import TurnTaking
from penstock.kernels.windows import Region
from penstock.tensors.streams import Event, Stream, borrowed_streams


class Turns:
    """nvImageCodec's decoders, each with a thread of its own, which take turns if batches are small.

    Unless the user assigns a part of each batch to other decoders, the JPEG engine decodes everything that it supports, so that an image's
    pixels do not depend on the other images of the batch. If the engine fails, for example because the GPU is short of memory, images do
    not go to nvImageCodec's other decoders, which round differently, unless the user has set a load.

    Args:
        load: the fraction of each batch that the engine gets; None: the whole batch.
        most: the largest number of decoders.

    Attributes:
        leaves_baseline: whether baseline JPEGs that the engine rejects are left to decoders outside nvImageCodec.
        streams: the stream of each decoder. On a shared stream, decoders would wait for each other, and work on a batch would wait until
            the next one is decoded.
    """

    def __init__(self, cupy: ModuleType, num_threads: int, load: float | None, options: str, most: int) -> None:
        rest = [Share(Backend.GPU_ONLY), Share(Backend.HYBRID)]
        self._shares: tuple[list[Share], list[Share]] = rest, []
        if load is None or load >= 1:
            self._shares = [Share(Backend.ENGINE)], rest
        elif load > 0:
            # A fixed share would be computed from the size of the first batch, and applied to larger batches, too.
            self._shares = [Share(Backend.ENGINE, load, Policy.ADAPTIVE), *rest], []
        device = cupy.cuda.Device().id
        self._settings = device, num_threads, options
        self.leaves_baseline = load is None
        self.streams = borrowed_streams(self, most)
        self._events: list[Event] = [cupy.cuda.Event(disable_timing=True) for _ in range(most)]
        self._decoders: list[BatchDecoder | None] = [None] * most
        self._turns = TurnTaking(most)

    @property
    def idle(self) -> int:
        """The same as :attr:`TurnTaking.idle`."""
        return self._turns.idle

    def next(self, count: int, pixels: int) -> tuple[BatchDecoder, Stream, Event]:
        """Return the decoder for ``count`` images with ``pixels`` pixels in total, its stream, and its event."""
        turn = self._turns.next(count, pixels)
        decoder = self._decoders[turn]
        if decoder is None:
            device, threads, options = self._settings
            shares = self._shares
            decoder = self._decoders[turn] = BatchDecoder(device, threads, *shares, options, self.leaves_baseline)
        return decoder, self.streams[turn], self._events[turn]


class PythonApi:
    """The decoder for images that the C API does not decode; created when it is first needed."""

    def __init__(self, device: int, num_threads: int, options: str) -> None:
        self._settings = device, num_threads, options
        self._decoder: Any = None

    def decode(
        self, images: Sequence[tuple[np.ndarray, Region | None]], output_type: DALIImageType, stream: int
    ) -> list[Any]:
        """Decode regions of encoded images; return nvImageCodec's images, not rotated, and None for those that it does not
        support.
        """
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


def options_of(arguments: dict[str, Any]) -> str:
    """Return the decoder options for an operator's arguments, in the library's syntax."""
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
    return " ".join(options)
