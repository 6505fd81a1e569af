"""A decoder of batches that works on a separate thread, without the GIL."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.core.codecs import ENCODED_IMAGE, ImageBatch, ImageDecoder, check_status, decode_function
from penstock.core.threads import BackgroundThreads, Job
from penstock.kernels.codecs.image_description import EncodedFiles
from penstock.kernels.codecs.nvimgcodec.library import Share, instance


@dataclass(frozen=True, eq=False)
class PixelFormat:
    """A pixel format to decode to; each format has a single instance.

    Attributes:
        color_spec: the library's number for the colour space.
        sample_format: the library's number for the interleaved sample format.
        channels: the number of channels of the result.
    """

    color_spec: int
    sample_format: int
    channels: int


RGB, BGR, GRAY = PixelFormat(1, 8, 3), PixelFormat(1, 10, 3), PixelFormat(2, 4, 1)


class EncodedImages(NamedTuple):
    """Images to decode; each attribute holds a value for every image.

    Attributes:
        files: the bytes of the encoded images.
        sizes: heights and widths as stored, int64 of shape (images, 2).
        regions: top, left, bottom and right of the regions to decode, in the stored images, int64 of shape (images, 4); zeros: the whole
            image.
        outputs: the addresses to which pixels are written, int64 of shape (images,).
    """

    files: EncodedFiles
    sizes: np.ndarray
    regions: np.ndarray
    outputs: np.ndarray

    def records(self) -> np.ndarray:
        """Return an :data:`~penstock.core.codecs.ENCODED_IMAGE` for each image."""
        images = np.zeros(len(self.files), ENCODED_IMAGE)
        images["data"], images["size"], images["output"] = self.files.places, self.files.sizes, self.outputs
        images["height"], images["width"] = self.sizes.T
        images["top"], images["left"], images["bottom"], images["right"] = self.regions.T
        return images


class Decoded:
    """A submitted batch: images that are decoded together.

    Args:
        job: the job that decodes them.
        batch: the record of the batch that compiled code reads, and in which it stores the status.
        images: an :data:`~penstock.core.codecs.ENCODED_IMAGE` for each image.
    """

    __slots__ = ("_batch", "_images", "_job")

    def __init__(self, job: Job, batch: ImageBatch, images: np.ndarray) -> None:
        self._job, self._batch, self._images = job, batch, images

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would return at once."""
        return self._job.is_done

    def await_done(self) -> None:
        """Wait for the batch, without holding the GIL; any thread may call this."""
        self._job.wait()

    def wait(self) -> list[int]:
        """Wait for the batch, without holding the GIL.

        On a GPU, work queued on the stream afterwards sees the pixels.

        Returns:
            The state of each image: 0 if it was not decoded, otherwise the number of the decoder that decoded it.

        Raises:
            MemoryError: there was not enough memory for the second decoder, which some images needed.
            RuntimeError: a decoder's backends are not available.
        """
        self.await_done()
        check_status(self._batch.status, "make a decoder")
        states: list[int] = self._images["decoded_by"].tolist()
        return states


class BatchDecoder:
    """Decodes batches in order on a separate thread.

    Args:
        device: the number of the GPU; None: the CPU.
        threads: the number of CPU threads that the library may use.
        first, second: the backends of two decoders. Images that the first decoder rejects go to the second, which is created when that
            happens for the first time, or at once if the first one cannot be created. Without backends, there is no second decoder.
        options: the options for the backends, in the library's syntax.
        spares_baseline: whether baseline JPEGs that the first decoder rejects are left undecoded, rather than passed to the second.
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
        some, others = ([(share.backend, share.load, share.policy) for share in shares] for shares in (first, second))
        decoder = ImageDecoder(instance(), device, threads, some, others, options, spares_baseline)
        self._decoder, self._function = decoder.address, decode_function()
        self._thread = BackgroundThreads("penstock-decode")
        self.close = weakref.finalize(self, _close, self._thread, decoder)

    def decode(self, images: EncodedImages, pixels: PixelFormat, stream: int = 0, keep: object = None) -> Decoded:
        """Start decoding a batch.

        Args:
            images: the images; outputs must be large enough for the pixels.
            pixels: the format to decode to.
            stream: the CUDA stream on which work is ordered.
            keep: the owner of the outputs, which is kept alive until the batch is decoded.
        """
        return self.decode_records(images.records(), pixels, stream, (images, keep))

    def decode_records(self, images: np.ndarray, pixels: PixelFormat, stream: int, keep: object) -> Decoded:
        """Start decoding a batch.

        Args:
            images: an :data:`~penstock.core.codecs.ENCODED_IMAGE` for each image.
            pixels, stream: as in :meth:`decode`.
            keep: the owners of the files and outputs, which are kept alive until the batch is decoded.
        """
        numbers = pixels.color_spec, pixels.sample_format, pixels.channels
        batch = ImageBatch(self._decoder, images.ctypes.data, len(images), *numbers, stream, 0)
        job = Job(self._function, ctypes.addressof(batch), (batch, images, keep))
        self._thread.submit(job)
        return Decoded(job, batch, images)


def _close(thread: BackgroundThreads, decoder: ImageDecoder) -> None:
    thread.close()
    decoder.close()
