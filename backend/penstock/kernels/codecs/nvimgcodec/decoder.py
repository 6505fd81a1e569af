"""A batch decoder that works on its own thread, without the GIL."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.kernels.background import BackgroundThread, Job
from penstock.kernels.codecs.image_description import EncodedFiles
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
    """A pixel format to decode to.

    Attributes:
        color_spec: the library's number for the colour space.
        sample_format: the library's number for an interleaved format.
        channels: of the result.
    """

    color_spec: int
    sample_format: int
    channels: int


RGB, BGR, GRAY = PixelFormat(1, 8, 3), PixelFormat(1, 10, 3), PixelFormat(2, 4, 1)


class EncodedImages(NamedTuple):
    """Images to decode, in columns.

    Attributes:
        files: their bytes.
        sizes: heights and widths as stored, int64 of shape (images, 2).
        regions: top, left, bottom and right of the regions to decode, as stored, int64 of shape (images, 4); zeros: the
            whole image.
        outputs: addresses to decode to, int64 of shape (images,).
    """

    files: EncodedFiles
    sizes: np.ndarray
    regions: np.ndarray
    outputs: np.ndarray

    def table(self, channels: int) -> np.ndarray:
        """The table that compiled code reads, a row for each image; ``channels``: of the results."""
        from penstock.kernels.codecs.nvimgcodec import loop

        table = np.zeros((len(self.files), loop.IMAGE_WORDS), np.int64)
        table[:, loop.DATA] = self.files.places
        table[:, loop.LENGTH] = self.files.sizes
        table[:, loop.OUTPUT] = self.outputs
        table[:, loop.HEIGHT : loop.WIDTH + 1] = self.sizes
        table[:, loop.CHANNELS] = channels
        table[:, loop.TOP : loop.RIGHT + 1] = self.regions
        return table


class Templates:
    """The library's structures, with the fields that all images share filled in; the decoding thread fills in the rest.

    Args:
        pixels: the format to decode to.
        stream: the CUDA stream to order work on; 0 for host memory.
        on_host: whether outputs are in host memory.
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
    """Images being decoded together.

    Args:
        images: the images.
        channels: of the results.
        templates: of the library's structures.

    Attributes:
        words: the arguments of the compiled loop.
    """

    def __init__(self, images: EncodedImages, channels: int, templates: Templates) -> None:
        from penstock.kernels.codecs.nvimgcodec import loop

        # Compiled code reads these until the job is done, so they must not move.
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
        """Whether there was a second decoder when the batch was submitted."""
        from penstock.kernels.codecs.nvimgcodec import loop

        return bool(self.words[loop.SECOND])

    def states(self) -> list[int]:
        """The state of each image: 0 if it is not decoded, else the number of the decoder that decoded it."""
        from penstock.kernels.codecs.nvimgcodec import loop

        states: list[int] = self._table[:, loop.STATE].tolist()
        return states


class Decoded:
    """A submitted batch.

    Args:
        decoder: the decoder that it was submitted to.
        batch: the images.
        keep: object to keep alive until the batch is decoded.
    """

    def __init__(self, decoder: BatchDecoder, batch: Batch, keep: object) -> None:
        self._decoder, self._batch, self._keep = decoder, batch, keep
        self._job = decoder.run(batch, keep)

    @property
    def had_second(self) -> bool:
        """Whether images rejected by the first decoder went to a second."""
        return self._batch.had_second

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would not wait for the first decoder."""
        return self._job.is_done

    def wait(self) -> list[int]:
        """Waits for the batch, without holding the GIL; returns the states, as :meth:`Batch.states` does.

        On a GPU, work submitted to the stream afterwards sees the pixels.
        """
        self._job.wait()
        if not all(self._batch.states()) and not self.had_second and self._decoder.make_second():
            self._job = self._decoder.run(self._batch, self._keep)
            self._job.wait()
        self._keep = None
        return self._batch.states()


class BatchDecoder:
    """Decodes batches in order on its own thread.

    Args:
        device: number of the GPU; None: the CPU.
        threads: CPU threads that the library may use.
        first, second: the backends of two decoders; images that the first rejects go to the second, which is created
            when that first happens, or at once if the first can't be created. The second may be empty.
        options: for the backends, in the library's syntax.
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
        # One for each kind of batch, as batches are decoded one at a time.
        self._templates: dict[tuple[PixelFormat, int], Templates] = {}
        self.close = weakref.finalize(self, _close, self._thread, self._instance)

    def decode(self, images: EncodedImages, pixels: PixelFormat, stream: int = 0, keep: object = None) -> Decoded:
        """Starts decoding a batch.

        Args:
            images: with outputs large enough for their pixels.
            pixels: the format to decode to.
            stream: the CUDA stream to order work on.
            keep: object to keep alive until the batch is decoded: the owner of the outputs.
        """
        templates = self._templates.get((pixels, stream))
        if templates is None:
            templates = self._templates[pixels, stream] = Templates(pixels, stream, self._on_host)
        return Decoded(self, Batch(images, pixels.channels, templates), (images, keep))

    def run(self, batch: Batch, keep: object) -> Job:
        """Submits a batch; images that are decoded already are skipped."""
        from penstock.kernels.codecs.nvimgcodec import loop

        batch.words[loop.INSTANCE] = self._instance.handle
        batch.words[loop.FIRST], batch.words[loop.SECOND] = self._first, self._second
        function = loop.decode_batch.address
        assert function is not None
        last = self._last = Job(function, batch.words.ctypes.data, (batch, keep))
        self._thread.submit(last)
        return last

    def make_second(self) -> bool:
        """Creates the second decoder if needed; returns False if there is to be none."""
        if self._second or not self._shares_of_second:
            return bool(self._second)
        if self._last is not None:
            # The library must not be used by two threads at a time.
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
