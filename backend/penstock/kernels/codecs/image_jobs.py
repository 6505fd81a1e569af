"""Images to decode on a GPU, in batches, and batches of them in flight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.kernels.codecs.image_description import EncodedFiles, ImageHeader
from penstock.kernels.cuda.launch import Located
from penstock.kernels.cuda.resample import PlannedResampling
from penstock.kernels.windows import Region
from penstock.tensors.streams import Event, Stream, follow


@dataclass(slots=True)
class Job:
    """An image to decode.

    Attributes:
        encoded: the file's bytes, uint8 of shape (n,).
        header: of the image.
        region: to decode, in rows and columns of the upright image; None: the whole.
        shape: of the result, (H, W, C).
        name: under which the result may be kept in the cache, or empty.
    """

    encoded: np.ndarray
    header: ImageHeader
    region: Region | None
    shape: tuple[int, int, int]
    name: str = ""


@dataclass(slots=True)
class Jobs:
    """Images to decode, in columns of :class:`Job`'s fields.

    Attributes:
        files: the encoded images.
        regions: anchors and extents, int64 of shape (images, 2); None: all images are decoded whole.
        names: none where no result may be kept.
    """

    files: EncodedFiles = field(default_factory=lambda: EncodedFiles(()))
    headers: Sequence[ImageHeader] = ()
    regions: tuple[np.ndarray, np.ndarray] | None = None
    shapes: Sequence[tuple[int, ...]] = ()
    names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.files)

    def shapes_of(self, indices: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of some of the results."""
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
    """Images in flight."""

    @property
    def is_done(self) -> bool:
        """Whether :meth:`wait` would return at once."""

    def wait(self) -> Sequence[int]:
        """Wait until the pixels are there, or until later work on the stream sees them; for each image, whether it is
        decoded.
        """


class Followed(NamedTuple):
    """Images whose pixels are in memory for a while only.

    Attributes:
        following: what is done with them meanwhile.
        rows: the numbers by which it knows them, ascending.
    """

    following: PlannedResampling
    rows: np.ndarray


class Streams(NamedTuple):
    """In whose order images are decoded, in whose they are used, and an event for these to wait for each other."""

    decoding: Stream
    using: Stream
    event: Event


@dataclass(slots=True)
class Part:
    """Images that are decoded together.

    Attributes:
        batch: the images.
        taken: the jobs of these.
        places: where each of them will lie.
        as_decoded: they need neither be turned nor converted.
        streams: what uses the images has to follow what decodes them; None: they are there when the host has waited.
    """

    batch: Submitted
    taken: Sequence[int]
    places: Sequence[Located]
    as_decoded: bool
    streams: Streams | None

    def join(self) -> Sequence[int]:
        """Wait for the images, as far as the host has to; for each, whether it is decoded."""
        states = self.batch.wait()
        if self.streams is not None:
            follow(self.streams.using, self.streams.decoding, self.streams.event)
        return states


@dataclass
class Begun:
    """A batch in flight.

    Attributes:
        jobs: what is decoded.
        results: what is there already, as :meth:`GpuImageDecoder.finish` gives it.
        parts: what is being decoded.
        following: what is done with the pixels of the first part, in place of keeping them, and of the others afterwards.
    """

    jobs: Jobs
    results: list[Any]
    parts: list[Part] = field(default_factory=list)
    following: PlannedResampling | None = None
    _apart: tuple[Streams, Callable[[], object]] | None = None

    def is_joined(self) -> None:
        """Note that images are used in the order of the work that follows them."""
        self._apart = None

    def __del__(self) -> None:
        # The next step's memory belongs to the stream that uses the images, and is written to even if nobody waits.
        if self._apart is not None and not sys.is_finalizing():
            streams, settle = self._apart
            settle()
            follow(streams.using, streams.decoding, streams.event)

    @property
    def is_ready(self) -> bool:
        """Whether the images are ready without the host waiting."""
        return all([part.batch.is_done for part in self.parts])


def followed(
    jobs: Jobs, part: Part, following: PlannedResampling, streams: Streams, settle: Callable[[], object]
) -> Begun:
    """Return a batch whose images something follows.

    Args:
        part: the images that are in memory for a while only.
        streams: of the part.
        settle: waits until all is launched.
    """
    return Begun(jobs, [None] * len(jobs.shapes), [part], following, (streams, settle))
