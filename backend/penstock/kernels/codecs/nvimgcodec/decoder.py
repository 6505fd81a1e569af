"""A batch decoder that works on its own thread, without the GIL."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np

from penstock.core.threads import BackgroundThreads, Job
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.nvimgcodec.library import (
    FUNCTIONS,
    CodeStreamView,
    DecodeParams,
    Decoders,
    ImageInfo,
    Orientation,
    PlaneInfo,
    Region,
    Share,
    address_of,
    instance,
)

_DEVICE_MEMORY, _HOST_MEMORY = 1, 2


@dataclass(frozen=True, eq=False)
class PixelFormat:
    """A pixel format to decode to; there is one object for each.

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

    def block(self, channels: int) -> np.ndarray:
        """The block that compiled code reads, with its table filled in; ``channels``: of the results."""
        loop = compiled_loop()
        block = np.zeros(loop.block_words(len(self.files)), np.int64)
        table = table_of(block, len(self.files))
        table[:, loop.DATA] = self.files.places
        table[:, loop.LENGTH] = self.files.sizes
        table[:, loop.OUTPUT] = self.outputs
        table[:, loop.HEIGHT : loop.WIDTH + 1] = self.sizes
        table[:, loop.CHANNELS] = channels
        table[:, loop.TOP : loop.RIGHT + 1] = self.regions
        return block


@functools.cache
def compiled_loop() -> ModuleType:
    """The module of the compiled loop, which loads numba."""
    from penstock.kernels.codecs.nvimgcodec import loop

    return loop


def table_of(block: np.ndarray, count: int) -> np.ndarray:
    """The table in a block of a batch, with a row for each image."""
    loop = compiled_loop()
    return block[loop.BATCH_WORDS : loop.BATCH_WORDS + count * loop.IMAGE_WORDS].reshape(count, loop.IMAGE_WORDS)


def column_of(block: np.ndarray, count: int, column: int) -> np.ndarray:
    """A column of the table in a block of a batch."""
    loop = compiled_loop()
    first, words = loop.BATCH_WORDS + column, loop.IMAGE_WORDS
    return block[first : first + count * words : words]


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
        self._addresses = tuple(map(ctypes.addressof, structures))

    def words(self) -> np.ndarray:
        """The words of a batch that all batches share."""
        loop = compiled_loop()
        words = np.zeros(loop.BATCH_WORDS, np.int64)
        words[[loop.INFO, loop.SEEN, loop.VIEW, loop.PARAMS]] = self._addresses
        words[loop.INSTANCE], words[loop.FUNCTION_TABLE] = instance(), _functions().ctypes.data
        return words


class Decoded:
    """A submitted batch: images that are decoded together.

    Args:
        decoder: the decoder that it was submitted to.
        block: of the batch, complete.
        address: of the block.
        count: of the images.
        keep: object to keep alive until the batch is decoded.
    """

    __slots__ = ("_address", "_block", "_count", "_decoder", "_job", "_keep")

    def __init__(self, decoder: BatchDecoder, block: np.ndarray, address: int, count: int, keep: object) -> None:
        self._decoder, self._block, self._address, self._count = decoder, block, address, count
        # Compiled code reads the block until the job is done.
        self._keep: object = (block, keep)
        self._job = decoder.run(block, address, self._keep)

    @property
    def had_second(self) -> bool:
        """Whether there was a second decoder, for images rejected by the first, when the batch was submitted."""
        return bool(self._block[compiled_loop().SECOND])

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would not wait for the first decoder."""
        return self._job.is_done

    def wait(self) -> list[int]:
        """Waits for the batch, without holding the GIL.

        On a GPU, work submitted to the stream afterwards sees the pixels.

        Returns:
            The state of each image: 0 if it is not decoded, else the number of the decoder that decoded it.
        """
        self._job.wait()
        states = self._states()
        if 0 in states and self._needs_second() and self._decoder.make_second():
            self._job = self._decoder.run(self._block, self._address, self._keep)
            self._job.wait()
            states = self._states()
        self._keep = None
        return states

    def _needs_second(self) -> bool:
        """Whether there was no second decoder, and images are left for it."""
        return not self.had_second and bool(compiled_loop().is_any_left(self._address))

    def _states(self) -> list[int]:
        states: list[int] = column_of(self._block, self._count, compiled_loop().STATE).tolist()
        return states


class BatchDecoder:
    """Decodes batches in order on its own thread.

    Args:
        device: number of the GPU; None: the CPU.
        threads: CPU threads that the library may use.
        first, second: the backends of two decoders; images that the first rejects go to the second, which is created
            when that first happens, or at once if the first can't be created. The second may be empty.
        options: for the backends, in the library's syntax.
        spares_baseline: baseline JPEGs that the first rejects do not go to the second.
    """

    def __init__(
        self,
        device: int | None,
        threads: int,
        first: Sequence[Share],
        second: Sequence[Share] = (),
        options: str = "",
        spares_baseline: bool = False,
    ) -> None:
        self._on_host = device is None
        decoders = Decoders()
        self._make = functools.partial(decoders.make, device, threads, options=options)
        self._second, self._shares_of_second = 0, second
        try:
            self._first = self._make(first)
        except RuntimeError:
            # Not every GPU has a JPEG engine. One without memory at the moment is another matter: pixels would differ.
            if not second:
                raise
            self._first, self._shares_of_second = self._make(second), ()
        self._thread = BackgroundThreads("penstock-decode")
        self._last: Job | None = None
        # One for each kind of batch, as batches are decoded one at a time.
        self._templates: dict[tuple[PixelFormat, int], tuple[Templates, np.ndarray]] = {}
        loop = compiled_loop()
        self._function: int = loop.decode_batch.address
        self._places = loop.FIRST, loop.SECOND
        self._spares_baseline = spares_baseline
        self.close = weakref.finalize(self, _close, self._thread, decoders)

    def decode(self, images: EncodedImages, pixels: PixelFormat, stream: int = 0, keep: object = None) -> Decoded:
        """Starts decoding a batch.

        Args:
            images: with outputs large enough for their pixels.
            pixels: the format to decode to.
            stream: the CUDA stream to order work on.
            keep: object to keep alive until the batch is decoded: the owner of the outputs.
        """
        return self.decode_block(images.block(pixels.channels), len(images.files), 0, pixels, stream, (images, keep))

    def decode_block(
        self, block: np.ndarray, count: int, base: int, pixels: PixelFormat, stream: int, keep: object
    ) -> Decoded:
        """Starts decoding a batch whose table is filled in already.

        Args:
            block: of the batch.
            count: of its images.
            base: added to the addresses in the table.
            pixels, stream, keep: as in :meth:`decode`.
        """
        known = self._templates.get((pixels, stream))
        if known is None:
            templates = Templates(pixels, stream, self._on_host)
            words = templates.words()
            words[compiled_loop().SPARED] = self._spares_baseline
            known = self._templates[pixels, stream] = templates, words
        templates, constants = known
        address = compiled_loop().complete_block(block, count, constants, base)
        return Decoded(self, block, address, count, (keep, templates))

    def run(self, block: np.ndarray, address: int, keep: object) -> Job:
        """Submits a batch by its block, and where that lies; images that are decoded already are skipped."""
        first, second = self._places
        block[first], block[second] = self._first, self._second
        last = self._last = Job(self._function, address, keep)
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


def _close(thread: BackgroundThreads, decoders: Decoders) -> None:
    thread.close()
    decoders.close()


@functools.cache
def _functions() -> np.ndarray:
    """The addresses of the library's functions."""
    return np.array([address_of(name) for name in FUNCTIONS], np.int64)
