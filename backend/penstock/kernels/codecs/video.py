"""Decodes frames of video files with FFmpeg (PyAV) on the CPU, in this process or in a worker."""

from __future__ import annotations

import contextlib
import io
import itertools
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.video import CONTAINERS, CorruptVideoError, check_video
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.storage import ANYWHERE

if TYPE_CHECKING:
    from penstock.kernels.codecs.worker_pool import DecoderPool

_PADDING = 1 << 16
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG
# ITU-R BT.601: from (Y, U, V), all of unit range, to (R, G, B).
_TO_RGB = np.array([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]], np.float32)


class Clip(Protocol):
    """A video from which frames are taken.

    Attributes:
        shape: of a decoded frame: (H, W, 3).
    """

    shape: tuple[int, int, int]

    def __len__(self) -> int:
        """The number of frames."""

    def frames(self, indices: Sequence[int]) -> np.ndarray:
        """The given frames as RGB: uint8 of shape (n, H, W, 3)."""


def open_video(encoded: np.ndarray, decoding: Decoding = FREELY) -> Clip:
    """Opens the contents of a video file.

    Args:
        encoded: the file's bytes, uint8 of shape (n,).
        decoding: the limits to apply, and where to decode.

    Raises:
        CorruptVideoError: it is not a video, or FFmpeg cannot decode it.
        LimitError: its frames exceed the limits.
    """
    announced = check_video(encoded.data)
    if announced is not None:
        height, width = announced
        decoding.limits.check_pixels(height, width, "video")
    # None of FFmpeg's many decoders is trusted.
    pool = decoding.pool_for(trusted=False)
    clip = Video(encoded, decoding.limits) if pool is None else _Isolated(encoded, decoding.limits, pool)
    height, width, _ = clip.shape
    decoding.limits.check_pixels(height, width, "video")
    return clip


class Video:
    """An open video file.

    Attributes:
        shape: of a decoded frame: (H, W, 3).
        times: timestamps of the frames, in seconds.

    >>> video = Video("clip.mp4")  # doctest: +SKIP
    >>> video.frames([0, 10]).shape  # doctest: +SKIP
    (2, 720, 1280, 3)
    """

    def __init__(self, source: str | np.ndarray, limits: Limits = UNLIMITED) -> None:
        """Opens a file, or the contents of one.

        Raises:
            CorruptVideoError: it is not a video, or FFmpeg cannot decode it.
        """
        self._av = _pyav()
        self._name = source if isinstance(source, str) else f"{source.size} bytes"
        with self._reporting("open"):
            self._container = self._opened(source)
            streams = self._container.streams.video
        if not streams or streams[0].codec_context is None:
            raise CorruptVideoError(f"Failed to open the video ({self._name}): it has no stream of moving pictures")
        self._stream = streams[0]
        if limits.pixels is not None:
            # A stream may change its frame size. FFmpeg adds padding to its limit.
            self._stream.codec_context.options = {"max_pixels": str(2 * limits.pixels + _PADDING)}
        with self._reporting("read"):
            shown = sorted(
                (packet.pts, packet.is_keyframe)
                for packet in self._container.demux(self._stream)
                if packet.pts is not None and packet.size
            )
        self._points = [pts for pts, _ in shown]
        self._keys = [index for index, (_, is_key) in enumerate(shown) if is_key] or [0]
        first = self._stream.start_time or 0
        self.times = [float((pts - first) * (self._stream.time_base or 0)) for pts in self._points]
        self.shape = (self._stream.codec_context.height, self._stream.codec_context.width, 3)
        if not all(self.shape):
            raise CorruptVideoError(
                f"Failed to open the video ({self._name}): its frames are of {self.shape[:2]} pixels"
            )
        self._decoded: Any = None
        self._next = 0
        self._is_damaged = False

    @contextlib.contextmanager
    def _reporting(self, action: str) -> Iterator[None]:
        """Converts FFmpeg's errors."""
        try:
            yield
        except self._av.error.FFmpegError as error:
            raise CorruptVideoError(f"Failed to {action} the video ({self._name}): {error.strerror}") from error

    def _opened(self, source: str | np.ndarray) -> Any:
        options = {"format_whitelist": ",".join(CONTAINERS)}
        data = ANYWHERE.open(source) if isinstance(source, str) else io.BytesIO(source.tobytes())
        weakref.finalize(self, data.close)
        # No protocols: a playlist, or a session description, would make FFmpeg open other files and sockets.
        return self._av.open(data, options=options | {"protocol_whitelist": ""}, metadata_errors="replace")

    def __len__(self) -> int:
        return len(self._points)

    def frames(self, indices: Sequence[int]) -> np.ndarray:
        """The given frames as RGB: uint8 of shape (n, H, W, 3)."""
        output = np.empty((len(indices), *self.shape), np.uint8)
        places: dict[int, list[int]] = {}
        for place, index in enumerate(indices):
            places.setdefault(index, []).append(place)
        for index in sorted(places):
            first, *others = places[index]
            with self._reporting("decode"):
                frame = self._frame(index)
                if self._is_damaged:
                    # FFmpeg leaves parts of such frames uninitialized.
                    raise CorruptVideoError(
                        f"Frame {index} of the video ({self._name}) is damaged, or builds on data that are missing"
                    )
                if (frame.height, frame.width) != self.shape[:2]:
                    raise CorruptVideoError(
                        f"Frame {index} of the video ({self._name}) has {frame.height}x{frame.width} pixels, not "
                        f"{self.shape[0]}x{self.shape[1]} as was announced"
                    )
                _to_rgb(frame, output[first])
            for place in others:
                output[place] = output[first]
        return output

    def _frame(self, index: int) -> Any:
        """Decodes one frame: continuing from the current position, or from its key frame if that is nearer."""
        key = self._keys[max(bisect_right(self._keys, index) - 1, 0)]
        if self._decoded is None or index < self._next or key > self._next:
            self._container.seek(self._points[key], stream=self._stream)
            self._decoded = self._container.decode(self._stream)
            self._is_damaged = False
        wanted = self._points[index]
        for frame in self._decoded:
            # Frames that depend on a damaged frame are damaged, up to the next key frame.
            self._is_damaged = frame.is_corrupt or (self._is_damaged and not frame.key_frame)
            if frame.pts is not None and frame.pts >= wanted:
                self._next = index + 1
                return frame
        raise CorruptVideoError(f"The video ends before its frame {index}")


class _Isolated:
    """A video decoded in a worker process."""

    _tokens = itertools.count()

    def __init__(self, encoded: np.ndarray, limits: Limits, pool: DecoderPool) -> None:
        self._encoded, self._pool = encoded, pool
        # Lets a worker recognize a video that it has open.
        self._arguments = {"token": next(self._tokens), "pixels": limits.pixels}
        facts = pool.run("open_video", "this video", encoded, self._arguments)
        try:
            self._count, *sides = map(int, facts)
            height, width = sides
        except (TypeError, ValueError) as error:
            raise CorruptVideoError("Damaged video: the worker process returned invalid data") from error
        if min(self._count, height, width) < 0 or self._count > encoded.size:
            raise CorruptVideoError(f"Damaged video: it has {self._count} frames of {height}x{width} pixels")
        self.shape = (height, width, 3)

    def __len__(self) -> int:
        return self._count

    def frames(self, indices: Sequence[int]) -> np.ndarray:
        """The given frames as RGB: uint8 of shape (n, H, W, 3)."""
        output = np.empty((len(indices), *self.shape), np.uint8)
        arguments = self._arguments | {"indices": list(map(int, indices))}
        self._pool.run("decode_frames", "this video", self._encoded, arguments, output)
        return output


# -- in the worker -----------------------------------------------------------------------------------------------------

_open_videos: dict[int, Video] = {}


def open_in_worker(data: np.ndarray, output: None, token: int, pixels: int | None) -> list[int]:
    """Opens a video in the worker: returns the number of frames, their height and width."""
    video = _opened(data, token, pixels)
    return [len(video), *video.shape[:2]]


def decode_in_worker(data: np.ndarray, output: np.ndarray, token: int, pixels: int | None, indices: list[int]) -> None:
    """Decodes frames in the worker."""
    output[...] = _opened(data, token, pixels).frames(indices)


def _opened(data: np.ndarray, token: int, pixels: int | None) -> Video:
    """The video, kept open until another one is requested."""
    if token not in _open_videos:
        _open_videos.clear()
        _open_videos[token] = Video(data, Limits(pixels=pixels))
    return _open_videos[token]


# -- in either ---------------------------------------------------------------------------------------------------------


def _pyav() -> ModuleType:
    try:
        import av
    except ImportError as error:
        raise ImportError("PyAV is needed to decode videos: pip install penstock[video]") from error
    return av


def _to_rgb(frame: Any, output: np.ndarray) -> None:
    if frame.format.name not in ("yuv420p", "yuvj420p") or frame.height % 2 or frame.width % 2:
        output[...] = frame.to_ndarray(format="rgb24")
        return
    planes = frame.to_ndarray()
    height, width = frame.height, frame.width
    # The two chroma planes follow, in rows of their own width.
    chroma = planes[height:].reshape(2, height // 2, width // 2).astype(np.float32) - np.float32(128)
    luma = planes[:height].astype(np.float32)
    full = frame.color_range == _FULL_RANGE or frame.format.name == "yuvj420p"
    luma = luma if full else (luma - np.float32(16)) * np.float32(255 / 219)
    chroma = chroma if full else chroma * np.float32(255 / 224)
    u, v = _doubled(_doubled(chroma, 1), 2)
    for channel, (_, from_u, from_v) in enumerate(_TO_RGB):
        output[..., channel] = np.clip(np.rint(luma + from_u * u + from_v * v), 0, 255)


def _doubled(planes: np.ndarray, axis: int) -> np.ndarray:
    """Upsamples an axis by two, linearly; each old sample lies between two new ones."""
    moved = np.moveaxis(planes, axis, 0)
    before = np.concatenate([moved[:1], moved[:-1]])
    after = np.concatenate([moved[1:], moved[-1:]])
    result = np.empty((2 * len(moved), *moved.shape[1:]), np.float32)
    result[0::2] = moved * np.float32(0.75) + before * np.float32(0.25)
    result[1::2] = moved * np.float32(0.75) + after * np.float32(0.25)
    return np.moveaxis(result, 0, axis)


# -- frames outside a video ----------------------------------------------------------------------------------------

# The number of a frame filled with the fill value.
_FILL = -1


def _mirrored_with_edge(index: int, count: int) -> int:
    index %= 2 * count
    return index if index < count else 2 * count - 1 - index


def _mirrored_at_edge(index: int, count: int) -> int:
    if count == 1:
        return 0
    index %= 2 * count - 2
    return index if index < count else 2 * count - 2 - index


# Replacements for frames outside the video, from the frame's number and the number of frames.
PADDINGS: dict[str, Callable[[int, int], int] | None] = {
    "none": None,
    "": None,
    "constant": lambda index, count: _FILL,
    "edge": lambda index, count: min(max(index, 0), count - 1),
    "symmetric": _mirrored_with_edge,
    "reflect_1001": _mirrored_with_edge,
    "reflect": _mirrored_at_edge,
    "reflect_101": _mirrored_at_edge,
}


def padded(frames: Sequence[int], count: int, mode: str) -> list[int]:
    """Frame numbers for a video of ``count`` frames; those outside are replaced according to the mode."""
    outside = PADDINGS[mode]
    if outside is None:
        return [frame for frame in frames if 0 <= frame < count]
    return [frame if 0 <= frame < count else outside(frame, count) for frame in frames]


def fill_frames(video: Clip, frames: list[int], fill: list[int], output: np.ndarray) -> None:
    """Writes the given frames to ``output``."""
    inside = [place for place, frame in enumerate(frames) if frame != _FILL]
    if inside:
        output[inside] = video.frames([frames[place] for place in inside])
    outside = [place for place, frame in enumerate(frames) if frame == _FILL]
    if outside:
        output[outside] = np.asarray(fill, np.uint8)
