"""The video files of a reader: indices of their frames, and decoders that stay open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from penstock.kernels.codecs.limits import Limits
from penstock.kernels.codecs.video import Video, VideoIndex
from penstock.storage import Files

# The default limit of open decoders, each of which holds a dozen frames in memory.
_MAX_OPEN_VIDEOS: Final = 8


class OpenVideos:
    """The indices of video files, each built once, and a few open decoders that threads share.

    Args:
        files: the accessible files.

    Attributes:
        most_open: the largest number of open decoders.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.most_open = _MAX_OPEN_VIDEOS
        self._lock = threading.Lock()
        self._indices: dict[str, tuple[tuple[int, ...], VideoIndex]] = {}
        # The paths of files that the GPU's video engine does not support.
        self._without_engine: set[str] = set()
        # Idle decoders with the file, limits and device that each is for; most recently used last.
        self._idle: list[tuple[object, Video]] = []

    def index(self, path: str) -> VideoIndex:
        """Return the index of a file's frames; build it if there is none, or if the file has changed."""
        version = self._files.version(path)
        known = self._indices.get(path)
        if known is None or known[0] != version:
            known = self._indices[path] = version, Video(self._files.path(path)).index
        return known[1]

    def size(self, path: str) -> tuple[int, int]:
        """Return the height and width of a file's frames."""
        return self.index(path).size

    def key_before(self, path: str, frame: int) -> int:
        """Return the number of the frame at which decoding must begin in order to reach ``frame``. The file must be indexed."""
        return self._indices[path][1].key_before(frame)

    def takes_engine(self, path: str) -> bool:
        """Return whether to decode a file with a GPU's video engine; False if the engine is known not to support the file."""
        return path not in self._without_engine

    @contextmanager
    def lent(self, path: str, first: int, limits: Limits, device: int | None = None) -> Iterator[Video]:
        """Return a context manager with a decoder of a file, for use by one thread.

        Args:
            path: the file's path.
            first: the first frame to decode; the idle decoder that reaches it with the least work is chosen.
            limits: the limits of decoded sizes.
            device: the device whose video engine decodes, see :class:`Video`; None: decode on the CPU.
        """
        index = self.index(path)
        if not self.takes_engine(path):
            device = None
        # If the file has changed, the index is another object, so that decoders of the old file do not match.
        kind = path, id(index), limits
        with self._lock:
            fitting = [entry for entry in self._idle if entry[0] == (*kind, device)]
            taken = min(fitting, key=lambda entry: entry[1].cost(first), default=None)
            if taken is not None:
                self._idle.remove(taken)
        video = Video(self._files.path(path), limits, index, device) if taken is None else taken[1]
        yield video
        if device is not None and not video.uses_engine:
            self._without_engine.add(path)
            device = None
        with self._lock:
            self._idle.append(((*kind, device), video))
            del self._idle[: -self.most_open]
