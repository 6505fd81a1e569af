"""A decoder of batches that works on a thread of its own, without the GIL."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.background import BackgroundThread, Job
from penstock.kernels.codecs.nvimgcodec.library import (
    FUNCTIONS,
    CodeStreamView,
    DecodeParams,
    ImageInfo,
    Instance,
    Orientation,
    PlaneInfo,
    Region,
    Share,
    address_of,
)

_DEVICE_MEMORY, _HOST_MEMORY = 1, 2


@dataclass(frozen=True)
class PixelFormat:
    """As what images are decoded.

    Attributes:
        color_spec: the library's number.
        sample_format: the library's number, of channels that lie beside each other.
        channels: of the result.
    """

    color_spec: int
    sample_format: int
    channels: int


RGB, BGR, GRAY = PixelFormat(1, 8, 3), PixelFormat(1, 10, 3), PixelFormat(2, 4, 1)


class EncodedImages(NamedTuple):
    """Images to decode, in columns.

    Attributes:
        files: their bytes, uint8 of shape (n,), contiguous.
        sizes: heights and widths as stored, int64 of shape (images, 2).
        regions: top, left, bottom and right of what is wanted, as stored, int64 of shape (images, 4); zeros: all.
        outputs: the addresses that they are decoded to, int64 of shape (images,).
    """

    files: Sequence[np.ndarray]
    sizes: np.ndarray
    regions: np.ndarray
    outputs: np.ndarray

    def table(self, channels: int) -> np.ndarray:
        """What compiled code reads: a row for each image, decoded to so many channels."""
        from penstock.kernels.codecs.nvimgcodec import loop

        table = np.zeros((len(self.files), loop.IMAGE_WORDS), np.int64)
        table[:, loop.DATA] = [file.__array_interface__["data"][0] for file in self.files]
        table[:, loop.LENGTH] = [file.size for file in self.files]
        table[:, loop.OUTPUT] = self.outputs
        table[:, [loop.HEIGHT, loop.WIDTH]] = self.sizes
        table[:, loop.CHANNELS] = channels
        table[:, [loop.TOP, loop.LEFT, loop.BOTTOM, loop.RIGHT]] = self.regions
        return table


class Templates:
    """The library's structures, as far as all images have them in common; a thread that decodes fills in the rest.

    Args:
        pixels: as what images are decoded.
        stream: the CUDA stream in whose order; 0 where memory is the host's.
        on_host: outputs are in host memory.
    """

    def __init__(self, pixels: PixelFormat, stream: int, on_host: bool) -> None:
        self._info = ImageInfo(
            color_spec=pixels.color_spec,
            sample_format=pixels.sample_format,
            orientation=Orientation(),
            num_planes=1,
            buffer_kind=_HOST_MEMORY if on_host else _DEVICE_MEMORY,
            cuda_stream=stream,
        )
        self._info.plane_info[0] = PlaneInfo()
        self._seen = ImageInfo(orientation=Orientation())
        self._view = CodeStreamView(region=Region(ndim=2))
        self._params = DecodeParams(apply_exif_orientation=0)
        structures = (self._info, self._seen, self._view, self._params)
        self.info, self.seen, self.view, self.params = map(ctypes.addressof, structures)


class Batch:
    """Images that are being decoded.

    Args:
        images: what is decoded.
        channels: of the results.
        templates: for the library's structures.

    Attributes:
        words: what compiled code is told.
    """

    def __init__(self, images: EncodedImages, channels: int, templates: Templates) -> None:
        from penstock.kernels.codecs.nvimgcodec import loop

        # Compiled code reads all of this until the job is done, so it stays where it is.
        count = len(images.files)
        self._table = images.table(channels)
        self._work = np.empty(loop.work_words(count), np.int64)
        self._templates = templates
        self.words = np.zeros(loop.BATCH_WORDS, np.int64)
        self.words[loop.COUNT] = count
        self.words[loop.TABLE], self.words[loop.WORK] = self._table.ctypes.data, self._work.ctypes.data
        self.words[loop.INFO], self.words[loop.SEEN] = templates.info, templates.seen
        self.words[loop.VIEW], self.words[loop.PARAMS] = templates.view, templates.params
        self.words[loop.FUNCTION_TABLE] = _functions().ctypes.data

    @property
    def had_second(self) -> bool:
        """Whether there was a second decoder when it was handed over."""
        from penstock.kernels.codecs.nvimgcodec import loop

        return bool(self.words[loop.SECOND])

    def states(self) -> list[int]:
        """What became of each image: 0 where it is not decoded, else the number of the decoder that took it."""
        from penstock.kernels.codecs.nvimgcodec import loop

        states: list[int] = self._table[:, loop.STATE].tolist()
        return states


class Decoded:
    """A batch that was handed over.

    Args:
        decoder: that has it.
        batch: the images.
        keep: what must live until the batch is decoded.
    """

    def __init__(self, decoder: BatchDecoder, batch: Batch, keep: object) -> None:
        self._decoder, self._batch, self._keep = decoder, batch, keep
        self._job = decoder.run(batch, keep)

    @property
    def had_second(self) -> bool:
        """Whether what the first decoder refused went to the second."""
        return self._batch.had_second

    def wait(self) -> list[int]:
        """Waits for the batch without the GIL; what became of each image, as :meth:`Batch.states` tells.

        On a GPU, what the stream is told from now on finds the pixels.
        """
        self._job.wait()
        if not all(self._batch.states()) and not self.had_second and self._decoder.make_second():
            self._job = self._decoder.run(self._batch, self._keep)
            self._job.wait()
        self._keep = None
        return self._batch.states()


class BatchDecoder:
    """Decodes batches in order on a thread of its own.

    Args:
        device: the GPU's number; None: the CPU.
        threads: CPU threads that the library may use.
        first, second: the decoders, each as its backends; images that the first refuses go to the second, which is not made
            before that happens, unless there can be no first. The second may be empty.
        options: of the backends, as the library writes them.
    """

    def __init__(
        self, device: int | None, threads: int, first: Sequence[Share], second: Sequence[Share] = (), options: str = ""
    ) -> None:
        self._on_host = device is None
        self._instance = Instance()
        self._make = functools.partial(self._instance.decoder, device, threads, options=options)
        self._second, self._shares_of_second = 0, second
        try:
            self._first = self._make(first)
        except RuntimeError:
            # Not every GPU has a JPEG engine.
            if not second:
                raise
            self._first, self._shares_of_second = self._make(second), ()
        self._thread = BackgroundThread("penstock-decoder")
        self._last: Job | None = None
        # One for all batches of a kind, as they are decoded one after the other.
        self._templates: dict[tuple[PixelFormat, int], Templates] = {}
        self.close = weakref.finalize(self, _close, self._thread, self._instance)

    def decode(self, images: EncodedImages, pixels: PixelFormat, stream: int = 0, keep: object = None) -> Decoded:
        """Begins to decode a batch.

        Args:
            images: whose outputs have room for the pixels.
            pixels: as what.
            stream: the CUDA stream in whose order.
            keep: what must live until the batch is decoded: the outputs' memory.
        """
        templates = self._templates.get((pixels, stream))
        if templates is None:
            templates = self._templates[pixels, stream] = Templates(pixels, stream, self._on_host)
        return Decoded(self, Batch(images, pixels.channels, templates), (images, keep))

    def run(self, batch: Batch, keep: object) -> Job:
        """Hands a batch over; images of it that are decoded already are left alone."""
        from penstock.kernels.codecs.nvimgcodec import loop

        batch.words[loop.INSTANCE] = self._instance.handle
        batch.words[loop.FIRST], batch.words[loop.SECOND] = self._first, self._second
        function = loop.decode_batch.address
        assert function is not None
        last = self._last = Job(function, batch.words.ctypes.data, (batch, keep))
        self._thread.submit(last)
        return last

    def make_second(self) -> bool:
        """Makes the second decoder where there is none yet; false where none is wanted."""
        if self._second or not self._shares_of_second:
            return bool(self._second)
        if self._last is not None:
            # The library is not asked for two things at a time.
            self._last.wait()
        self._second = self._make(self._shares_of_second)
        return True


def _close(thread: BackgroundThread, instance: Instance) -> None:
    thread.close()
    instance.close()


@functools.cache
def _functions() -> np.ndarray:
    """The addresses of the library's functions."""
    return np.array([address_of(name) for name in FUNCTIONS], np.int64)
