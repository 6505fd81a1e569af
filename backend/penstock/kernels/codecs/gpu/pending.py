"""Images to decode on a GPU, one by one and in batches, and batches in flight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.kernels.codecs.image_description import EncodedFiles, ImageHeader
from penstock.kernels.cuda.resample import PlannedResampling
from penstock.kernels.windows import Region
from penstock.tensors.streams import Event, Stream, follow


@dataclass(slots=True)
class Job:
    """An image to decode.

    Attributes:
        encoded: the file's bytes, uint8 of shape (n,).
        header: the image's header.
        region: the region to decode, in rows and columns of the upright image; None: the whole image.
        shape: the result's shape, (H, W, C).
        name: the name under which the cache may store the result; empty: it must not.
    """

    encoded: np.ndarray
    header: ImageHeader
    region: Region | None
    shape: tuple[int, int, int]
    name: str = ""


@dataclass(slots=True)
class Jobs:
    """Images to decode; each attribute holds a field of :class:`Job` for all images.

    Attributes:
        files: the encoded images.
        regions: the anchors and the extents of the regions to decode, both int64 of shape (images, 2); None: all images are decoded whole.
        names: the name of each image in the cache; empty for those that must not be cached.
    """

    files: EncodedFiles = field(default_factory=lambda: EncodedFiles(()))
    headers: Sequence[ImageHeader] = ()
    regions: tuple[np.ndarray, np.ndarray] | None = None
    shapes: Sequence[tuple[int, ...]] = ()
    names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.files)

    def shapes_of(self, indices: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of the results of some images."""
        return self.shapes if len(indices) == len(self) else [self.shapes[index] for index in indices]

    def __getitem__(self, index: int) -> Job:
        region = None
        if self.regions is not None:
            anchors, extents = self.regions
            region = Region(tuple(anchors[index].tolist()), tuple(extents[index].tolist()))
        height, width, channels = self.shapes[index]
        name = self.names[index] if self.names else ""
        return Job(self.files.files[index], self.headers[index], region, (height, width, channels), name)


class Submitted(Protocol):
    """JPEGs that our kernels or nvImageCodec are decoding."""

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would return at once."""

    def await_done(self) -> None:
        """Wait until :meth:`wait` would return at once; any thread may call this."""

    def wait(self) -> Sequence[int]:
        """Wait until the pixels are there, or until work queued on the stream from then on sees them; return whether each image is
        decoded.
        """


class FusedDecode(NamedTuple):
    """Images that the next step reads from the decoder's memory before later images overwrite it.

    Attributes:
        following: the next step.
        rows: each image's row in the next step, ascending.
    """

    following: PlannedResampling
    rows: np.ndarray


class Streams(NamedTuple):
    """The streams on which images are decoded and used, and an event with which one waits for the other."""

    decoding: Stream
    using: Stream
    event: Event

    def join(self) -> None:
        """Make work that uses the images wait for the work that decodes them."""
        follow(self.using, self.decoding, self.event)


class Decoder(Protocol):
    """A way to decode images into GPU memory. A decoder submits the images that it supports, and collects them later."""

    def collect(self, pending: PendingDecode, part: Any) -> Sequence[Any]:
        """Wait for the images of a part that this decoder submitted, as far as the host has to.

        Returns:
            For each image the location of its pixels, a CuPy array, or the exception that decoding raised; None if it was not decoded.
        """


@dataclass(slots=True)
class DecodedPart:
    """Images that one decoder decodes together.

    Attributes:
        decoder: the decoder.
        taken: the numbers of the images in the batch.
    """

    decoder: Decoder
    taken: Sequence[int]

    @property
    def is_done(self) -> bool:
        """Whether the part can be collected without waiting."""
        return True

    def await_done(self) -> None:
        """Wait until the part can be collected without waiting; any thread may call this."""


@dataclass
class PendingDecode:
    """A batch whose images are being decoded.

    Attributes:
        jobs: the images.
        results: for each image, the location of its pixels, a CuPy array, or the exception that decoding raised; None: not known yet.
        parts: the images in flight.
        following: the next step, if it reads the images of the first part from the decoder's memory; None: pixels are stored.
    """

    jobs: Jobs
    results: list[Any]
    parts: list[DecodedPart] = field(default_factory=list)
    following: PlannedResampling | None = None
    _unjoined: tuple[Streams, Callable[[], object]] | None = None

    @classmethod
    def of(cls, jobs: Jobs) -> PendingDecode:
        """Make a batch of images, none of which is decoded yet."""
        return cls(jobs, [None] * len(jobs))

    def fuse(self, following: PlannedResampling, streams: Streams, settle: Callable[[], object]) -> None:
        """Record that the next step reads the images of the first part, on the streams of that part.

        Args:
            following: the next step.
            streams: the part's streams.
            settle: function that waits until all kernels are launched.
        """
        self.following, self._unjoined = following, (streams, settle)

    def joined(self) -> None:
        """Record that work that uses the images waits for their decoding, so that no stream has to be joined any more."""
        self._unjoined = None

    def __del__(self) -> None:
        # The next step writes to memory of the stream that uses the images, even if nobody collects the batch.
        if self._unjoined is not None and not sys.is_finalizing():
            streams, settle = self._unjoined
            settle()
            streams.join()

    @property
    def is_ready(self) -> bool:
        """Whether the images can be collected without waiting on the host."""
        return all([part.is_done for part in self.parts])

    def await_ready(self) -> None:
        """Wait until the images can be collected without waiting; any thread may call this."""
        for part in self.parts:
            part.await_done()

    def undecoded(self) -> list[int]:
        """Return the numbers of the images that have no result and are in no part."""
        taken = {index for part in self.parts for index in part.taken}
        return [index for index, result in enumerate(self.results) if result is None and index not in taken]

    def take(self, part: DecodedPart, images: Sequence[Any]) -> None:
        """Store the images of a part, as :meth:`Decoder.collect` returns them, as results."""
        for index, image in zip(part.taken, images):
            self.results[index] = image
