"""Decodes frames of video files with FFmpeg (PyAV) on the CPU, in this process or in a worker.

A file's index lists all frames, and the key frames at which decoding can begin. It is made from the timestamps of packets, without
decoding. Files that lack timestamps for some frames (elementary streams of H.264 and HEVC, MPEG program streams, AVI with frames that refer
to later ones) are decoded once to make the index, and their packets stay in memory.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.data_types import RGB, DALIImageType
from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.video import CONTAINERS, CorruptVideoError, check_video
from penstock.kernels.codecs.limits import UNLIMITED, Limits
from penstock.kernels.codecs.video_engines import DecoderKind, engine_decoder, idle_decoders
from penstock.kernels.codecs.video_frames import USUAL_RATE, sides, span_of
from penstock.kernels.codecs.video_pixels import FrameScaler, Scaling, channels_of, write_pixels
from penstock.kernels.codecs.video_sound import SoundFormat, SoundTrack, has_sound
from penstock.storage import ANYWHERE

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from penstock.kernels.codecs.worker_pool import DecoderPool

_PADDING = 1 << 16
# The largest number of additional key frames that a seek goes back, and the seconds before the first frame to seek to if there is
# no key frame so far back.
_MAX_SEEK_KEY_FRAMES, _FIRST_SEEK_MARGIN_SECONDS = 3, 10
# Containers that store a time for each packet, by FFmpeg's names.
_TIMED = ("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm")
# By default, FFmpeg decodes a frame of each file that it opens, to learn properties that a container may omit; with these options,
# it does not.
_UNANALYSED = {"codec_whitelist": "none", "probesize": "32"}
# The bit of VP8's frame header that is set if the frame is shown.
_VP8_SHOWN = 0x10


class Clip(Protocol):
    """A video from which frames are decoded.

    Attributes:
        size: height and width of a decoded frame.
    """

    size: tuple[int, int]

    def __len__(self) -> int:
        """Return the number of frames."""

    @property
    def times(self) -> np.ndarray:
        """The times at which frames are shown, in seconds after the first frame: float64 of shape (n,)."""

    @property
    def sound(self) -> SoundFormat | None:
        """The format of the sound; None: there is no sound that FFmpeg can decode."""

    def fill_sound(self, start: float, output: np.ndarray) -> None:
        """Decode the sound from ``start`` on, in seconds after the first frame, to float32 of shape (time, channels)."""

    def fill(
        self,
        indices: Sequence[int],
        output: np.ndarray,
        image_type: DALIImageType = RGB,
        scaling: Scaling | None = None,
    ) -> None:
        """Decode frames to uint8 of shape (n, H, W, C); resize them if ``scaling`` is not None."""

    def frames(self, indices: Sequence[int], image_type: DALIImageType = RGB) -> np.ndarray:
        """Decode the frames with these indices to uint8 of shape (n, H, W, C)."""


def open_video(encoded: np.ndarray, decoding: Decoding = FREELY) -> Clip:
    """Open the contents of a video file.

    Args:
        encoded: the file's bytes, uint8 of shape (n,).
        decoding: the settings: the limits to apply, and in which process to decode.

    Raises:
        CorruptVideoError: the file is not a video, or FFmpeg cannot decode it.
        LimitError: the frames exceed the limits.
    """
    announced = announced_size(encoded)
    if announced is not None:
        height, width = announced
        decoding.limits.check_pixels(height, width, "video")
    # FFmpeg has many decoders, so none runs in this process, unless isolation is switched off.
    pool = decoding.pool_for(trusted=False)
    clip = Video(encoded, decoding.limits) if pool is None else _Isolated(encoded, decoding.limits, pool)
    height, width = clip.size
    decoding.limits.check_pixels(height, width, "video")
    return clip


def announced_size(encoded: np.ndarray) -> tuple[int, int] | None:
    """Return the height and width in a video's header; None if the size is known only when the video is opened.

    Args:
        encoded: the file's bytes, uint8 of shape (n,).
    """
    return check_video(encoded.data)


@dataclass(frozen=True)
class VideoIndex:
    """The frames of a file, in the order in which they are shown.

    Attributes:
        points: the frames' timestamps, in the stream's unit; None: the file has no usable timestamps.
        times: when frames are shown, in seconds after the first frame: float64.
        keys: the numbers of the frames at which decoding can begin.
        size: height and width of a frame.
        packets: the packets of a file without timestamps, in decoding order.
        key_packets: the positions of the key frames among ``packets``.
        tells_all: whether the container states all properties that decoding needs, so that FFmpeg need not analyse the file when it is
            opened again.
    """

    points: list[int] | None
    times: np.ndarray
    keys: list[int]
    size: tuple[int, int]
    packets: Sequence[Packet[Any]] = ()
    key_packets: Sequence[int] = ()
    tells_all: bool = False

    def key_before(self, index: int) -> int:
        """Return the number of the key frame from which the frame at ``index`` has to be decoded."""
        return self.keys[max(bisect_right(self.keys, index) - 1, 0)]


class Video:
    """An open video file.

    Attributes:
        size: height and width of a decoded frame.
        index: the file's index.
        next_frame: the number of the next frame that will be decoded; None if decoding must begin at a key frame.

    >>> video = Video("clip.mp4")  # doctest: +SKIP
    >>> video.frames([0, 10]).shape  # doctest: +SKIP
    (2, 720, 1280, 3)
    """

    def __init__(
        self,
        source: str | np.ndarray,
        limits: Limits = UNLIMITED,
        index: VideoIndex | None = None,
        device: int | None = None,
    ) -> None:
        """Open a file, or the contents of one.

        Args:
            source: the file's path, or its contents.
            limits: the limits to apply.
            index: the file's index; None: it is made here.
            device: the number of the current GPU, whose video engine decodes the formats that it supports; None: the CPU decodes.

        Raises:
            CorruptVideoError: the file is not a video, or FFmpeg cannot decode it.
        """
        self._av = _pyav()
        self._source = source
        self._name = source if isinstance(source, str) else f"{source.size} bytes"
        with self._reporting("open"):
            self._container = self._opened(source, is_analysed=index is None or not index.tells_all)
            streams = self._container.streams.video
        if not streams or streams[0].codec_context is None:
            raise CorruptVideoError(f"Failed to open the video ({self._name}): it has no stream of moving pictures")
        self._stream = streams[0]
        own = self._stream.codec_context
        self.size = (own.height, own.width)
        if not all(self.size):
            raise CorruptVideoError(f"Failed to open the video ({self._name}): its frames have the size {self.size}")
        # The limit also applies to later frames, as a stream may change its frame size. FFmpeg counts pixels with padding.
        self._options = {} if limits.pixels is None else {"max_pixels": str(2 * limits.pixels + _PADDING)}
        self._codec = own
        own.options = self._options
        if index is None:
            with self._reporting("read"):
                index = self._indexed()
        self.index = index
        self.next_frame: int | None = None
        self._keys_ahead = 0
        self._decoded: Iterator[VideoFrame] = iter(())
        self._is_damaged = False
        if device is not None:
            self.use_engine(device)

    @contextlib.contextmanager
    def _reporting(self, action: str) -> Iterator[None]:
        """Convert FFmpeg's errors to CorruptVideoError inside the context."""
        try:
            yield
        except self._av.error.FFmpegError as error:
            raise CorruptVideoError(f"Failed to {action} the video ({self._name}): {error.strerror}") from error

    def _opened(self, source: str | np.ndarray, is_analysed: bool = True) -> Any:
        options = {"format_whitelist": ",".join(CONTAINERS)} | ({} if is_analysed else _UNANALYSED)
        data = ANYWHERE.open(source) if isinstance(source, str) else io.BytesIO(source.tobytes())
        # Do not close it at exit, when a thread may still be decoding.
        weakref.finalize(self, data.close).atexit = False
        # Allow no protocols: a playlist or a session description would make FFmpeg open other files and sockets. Metadata in
        # another encoding than UTF-8 is not an error, but PyAV treated it as one before version 19.
        lenient = {} if int(self._av.__version__.partition(".")[0]) >= 19 else {"metadata_errors": "replace"}
        return self._av.open(data, options=options | {"protocol_whitelist": ""}, **lenient)

    def use_engine(self, device: int) -> None:
        """Decode with a GPU's video engine from now on, if the GPU has one that supports the format.

        Args:
            device: the number of the GPU, which must be the current one.
        """
        own = self._stream.codec_context
        kind = DecoderKind(
            own.codec.canonical_name, own.extradata or b"", *self.size, device, tuple(self._options.items())
        )
        engine = idle_decoders.take(kind) or engine_decoder(self._av, kind)
        if engine is not None:
            self._lent = weakref.finalize(self, idle_decoders.give_back, kind, engine)
            self._lent.atexit = False
            self._codec, self.next_frame = engine, None

    @property
    def uses_engine(self) -> bool:
        """Whether a GPU's video engine is in use; its first error ends that."""
        return self._codec is not self._stream.codec_context

    def _without_engine(self) -> bool:
        """Continue with FFmpeg's decoder; return False if that was in use already."""
        if not self.uses_engine:
            return False
        # The engine's decoder is not returned for reuse, as it has failed.
        self._lent.detach()
        self._codec, self.next_frame = self._stream.codec_context, None
        return True

    def __len__(self) -> int:
        return len(self.index.times)

    @property
    def times(self) -> np.ndarray:
        """The times at which frames are shown, in seconds after the first frame: float64 of shape (n,)."""
        return self.index.times

    @cached_property
    def _track(self) -> SoundTrack | None:
        with self._reporting("open"):
            # The sound gets its own open file: an open file has only one position, which decoding the frames needs.
            container = self._opened(self._source)
            if not has_sound(container):
                return None
            pictures = container.streams.video[0]
            origin = (pictures.start_time or 0) * float(pictures.time_base or 0)
            return SoundTrack(container, origin)

    @property
    def sound(self) -> SoundFormat | None:
        """The format of the sound; None: there is no sound that FFmpeg can decode."""
        return None if self._track is None else self._track.format

    def fill_sound(self, start: float, output: np.ndarray) -> None:
        """Decode the sound from ``start`` on, in seconds after the first frame, to float32 of shape (time, channels).

        Raises:
            CorruptVideoError: the sound cannot be decoded.
        """
        if self._track is not None:
            with self._reporting("decode the sound of"):
                self._track.fill(start, output)

    # -- the index ---------------------------------------------------------------------------------------------

    def _indexed(self) -> VideoIndex:
        packets = [packet for packet in self._container.demux(self._stream) if packet.size and self._is_shown(packet)]
        # AVI has no timestamps: FFmpeg counts frames in the order in which they are stored. MPEG program streams have some: FFmpeg
        # guesses the others.
        container = self._container.format.name
        misleading = container == "mpeg" or (container == "avi" and self._stream.codec_context.has_b_frames)
        if misleading or any(packet.pts is None for packet in packets):
            return self._index_by_decoding(packets)
        shown = sorted((packet.pts, packet.is_keyframe) for packet in packets)
        points = [pts for pts, _ in shown]
        first = self._stream.start_time or 0
        times = (np.array(points, np.float64) - first) * float(self._stream.time_base or 0)
        keys = [index for index, (_, is_key) in enumerate(shown) if is_key] or [0]
        return VideoIndex(points, times, keys, self.size, tells_all=self._tells_all())

    def _tells_all(self) -> bool:
        """Return whether opening the file without FFmpeg's analysis yields the same properties that decoding needs."""
        if not isinstance(self._source, str) or self._container.format.name not in _TIMED:
            return False
        container = self._opened(self._source, is_analysed=False)
        streams = container.streams.video
        return bool(streams) and _facts_of(streams[0]) == _facts_of(self._stream)

    def _is_shown(self, packet: Packet[Any]) -> bool:
        if packet.is_discard:
            # An edit list leaves out this frame.
            return False
        return self._stream.codec_context.name not in ("vp8", "libvpx") or bool(memoryview(packet)[0] & _VP8_SHOWN)

    def _index_by_decoding(self, packets: list[Packet[Any]]) -> VideoIndex:
        count, keys = 0, []
        for frame in _frames_of(self._codec, packets):
            if frame.key_frame:
                keys.append(count)
            count += 1
        stored = [number for number, packet in enumerate(packets) if packet.is_keyframe]
        if len(stored) != len(keys) or keys[:1] != [0]:
            keys, stored = [0], [0]
        rate = float(self._stream.average_rate or self._stream.guessed_rate or USUAL_RATE)
        return VideoIndex(None, np.arange(count) / rate, keys, self.size, packets, stored)

    # -- frames ------------------------------------------------------------------------------------------------

    def frames(self, indices: Sequence[int], image_type: DALIImageType = RGB) -> np.ndarray:
        """Return the frames with these indices: uint8 of shape (n, H, W, C)."""
        output = np.empty((len(indices), *self.size, channels_of(image_type)), np.uint8)
        self.fill(indices, output, image_type)
        return output

    def fill(
        self,
        indices: Sequence[int],
        output: np.ndarray,
        image_type: DALIImageType = RGB,
        scaling: Scaling | None = None,
    ) -> None:
        """Decode frames to uint8 of shape (n, H, W, C); resize them if ``scaling`` is not None."""
        scaler = None if scaling is None else FrameScaler(scaling)
        for (first, *others), frame in self.decoded(indices):
            with self._reporting("convert"):
                if scaler is None:
                    write_pixels(frame, image_type, output[first])
                else:
                    scaler.write(frame, output[first])
            for place in others:
                output[place] = output[first]

    def decoded(self, indices: Sequence[int]) -> Iterator[tuple[list[int], VideoFrame]]:
        """Yield the frames in the order of the file, each with its positions in ``indices``.

        Raises:
            CorruptVideoError: a frame cannot be decoded, is damaged, or has another size than ``size``.
        """
        places: dict[int, list[int]] = {}
        for place, index in enumerate(indices):
            places.setdefault(index, []).append(place)
        for index in sorted(places):
            try:
                frame = self._frame(index)
            except CorruptVideoError:
                # The engine does not support everything that FFmpeg's decoder supports.
                if not self._without_engine():
                    raise
                frame = self._frame(index)
            if self._is_damaged:
                # FFmpeg leaves parts of such frames uninitialized.
                raise CorruptVideoError(
                    f"Frame {index} of the video ({self._name}) is damaged, or depends on missing data"
                )
            if (frame.height, frame.width) != self.size:
                raise CorruptVideoError(
                    f"Frame {index} of the video ({self._name}) has {frame.height}x{frame.width} pixels, not "
                    f"{self.size[0]}x{self.size[1]} as the file declares"
                )
            yield places[index], frame

    def cost(self, index: int) -> int:
        """Return how many frames must be decoded to obtain the one at ``index``."""
        key, following = self.index.key_before(index), self.next_frame
        return index - (key if following is None or not key < following <= index else following)

    def _frame(self, index: int) -> VideoFrame:
        """Decode one frame: from the current position on, or from its key frame if that is nearer."""
        following = self.next_frame
        with self._reporting("decode"):
            if following is None or not self.index.key_before(index) <= following <= index:
                self._begin_at(self.index.key_before(index))
            return self._frame_ahead(index)

    def _begin_at(self, key: int) -> None:
        """Prepare decoding so that a key frame is the next one to decode."""
        self._is_damaged = False
        self.next_frame = key
        before = self.index.keys.index(key)
        if self.index.points is None:
            first = self.index.key_packets[before]
            self._decoded = _frames_of(self._codec, itertools.islice(self.index.packets, first, None))
            if first:
                # Skip frames that are shown before the key frame: they refer to earlier frames, which are not decoded.
                self._decoded = itertools.dropwhile(lambda frame: not frame.key_frame, self._decoded)
            return
        point = self.index.points[key]
        # In containers without an index, such as MPEG's, seeking may end after the target: then seek further back.
        while self._keys_ahead <= _MAX_SEEK_KEY_FRAMES:
            early = before - self._keys_ahead
            target = self.index.points[self.index.keys[early]] if early >= 0 else self._earliest
            self._container.seek(target, stream=self._stream)
            decoded = _frames_of(self._codec, self._container.demux(self._stream))
            for frame in decoded:
                if frame.pts is not None and frame.pts >= point:
                    if frame.pts == point:
                        self._decoded = itertools.chain([frame], decoded)
                        return
                    break
            self._keys_ahead += 1
        self.next_frame, self._keys_ahead = None, 0
        raise CorruptVideoError(f"The key frame {key} of the video ({self._name}) cannot be found")

    @property
    def _earliest(self) -> int:
        """A timestamp well before the first frame, in the stream's unit."""
        points = self.index.points or [0]
        return points[0] - int(_FIRST_SEEK_MARGIN_SECONDS / (self._stream.time_base or 1))

    def _frame_ahead(self, index: int) -> VideoFrame:
        """Continue decoding up to the frame at ``index``, and return it."""
        points = self.index.points
        for frame in self._decoded:
            # A frame that depends on a damaged frame is damaged, too, up to the next key frame.
            self._is_damaged = frame.is_corrupt or (self._is_damaged and not frame.key_frame)
            number = self.next_frame or 0
            if points is not None:
                if frame.pts is None:
                    continue
                if points[number] != frame.pts:
                    # Some frames before this one could not be decoded.
                    number = bisect_left(points, frame.pts)
            self.next_frame = number + 1
            if number == index:
                return frame
            if number > index:
                break
        self.next_frame = None
        raise CorruptVideoError(f"Frame {index} of the video ({self._name}) cannot be decoded")


class _Isolated:
    """A video that is decoded in a worker process."""

    _tokens = itertools.count()

    def __init__(self, encoded: np.ndarray, limits: Limits, pool: DecoderPool) -> None:
        self._encoded, self._pool = encoded, pool
        # The token by which a worker recognizes a video that it has already opened.
        self._arguments: dict[str, object] = {"token": next(self._tokens), "pixels": limits.pixels}
        facts = pool.run("open_video", "this video", encoded, self._arguments)
        try:
            self._count, *sides = map(int, facts)
            height, width = sides
        except (TypeError, ValueError) as error:
            raise CorruptVideoError("Damaged video: the worker process returned invalid data") from error
        if min(self._count, height, width) < 0 or self._count > encoded.size:
            raise CorruptVideoError(f"Damaged video: it has {self._count} frames of {height}x{width} pixels")
        self.size = (height, width)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def times(self) -> np.ndarray:
        """The times at which frames are shown, in seconds after the first frame: float64 of shape (n,)."""
        told = self._pool.run("open_video", "this video", self._encoded, self._arguments | {"times": True})
        try:
            times = np.array(told, np.float64)
        except (TypeError, ValueError) as error:
            raise CorruptVideoError("Damaged video: the worker process returned invalid data") from error
        if times.shape != (self._count,) or not np.isfinite(times).all():
            raise CorruptVideoError("Damaged video: the worker process returned invalid times")
        return times

    def frames(self, indices: Sequence[int], image_type: DALIImageType = RGB) -> np.ndarray:
        """Return the frames with these indices: uint8 of shape (n, H, W, C)."""
        output = np.empty((len(indices), *self.size, channels_of(image_type)), np.uint8)
        self.fill(indices, output, image_type)
        return output

    def fill(
        self,
        indices: Sequence[int],
        output: np.ndarray,
        image_type: DALIImageType = RGB,
        scaling: Scaling | None = None,
    ) -> None:
        """Decode frames to uint8 of shape (n, H, W, C); resize them if ``scaling`` is not None."""
        arguments = self._arguments | {"indices": list(map(int, indices)), "image_type": int(image_type)}
        if scaling is not None:
            arguments["scaling"] = astuple(scaling)
        self._pool.run("decode_frames", "this video", self._encoded, arguments, output)

    @cached_property
    def sound(self) -> SoundFormat | None:
        """The format of the sound; None: there is no sound that FFmpeg can decode."""
        told = self._pool.run("open_sound", "this video", self._encoded, self._arguments)
        try:
            if told is None:
                return None
            rate, channels = map(int, told)
        except (TypeError, ValueError) as error:
            raise CorruptVideoError("Damaged video: the worker process returned invalid data") from error
        if rate <= 0 or channels <= 0:
            raise CorruptVideoError(f"Damaged video: its sound has {channels} channels of {rate} Hz")
        return SoundFormat(rate, channels)

    def fill_sound(self, start: float, output: np.ndarray) -> None:
        """Decode the sound from ``start`` on, in seconds after the first frame, to float32 of shape (time, channels)."""
        self._pool.run("decode_sound", "this video", self._encoded, self._arguments | {"start": start}, output)


# -- in the worker -----------------------------------------------------------------------------------------------------

_open_videos: dict[int, Video] = {}


def open_in_worker(
    data: np.ndarray, output: None, token: int, pixels: int | None, times: bool = False
) -> list[int] | list[float]:
    """Open a video in the worker; return the number of frames and their height and width, or the times of the frames."""
    video = _opened(data, token, pixels)
    return video.times.tolist() if times else [len(video), *video.size]


def decode_in_worker(
    data: np.ndarray,
    output: np.ndarray,
    token: int,
    pixels: int | None,
    indices: list[int],
    image_type: int,
    scaling: tuple[int, int, str] | None = None,
) -> None:
    """Decode frames into ``output``. Runs in the worker."""
    video = _opened(data, token, pixels)
    video.fill(indices, output, DALIImageType(image_type), None if scaling is None else Scaling(*scaling))


def open_sound_in_worker(data: np.ndarray, output: None, token: int, pixels: int | None) -> SoundFormat | None:
    """Return the format of a video's sound. Runs in the worker."""
    return _opened(data, token, pixels).sound


def decode_sound_in_worker(data: np.ndarray, output: np.ndarray, token: int, pixels: int | None, start: float) -> None:
    """Decode sound into ``output``. Runs in the worker."""
    _opened(data, token, pixels).fill_sound(start, output)


def _opened(data: np.ndarray, token: int, pixels: int | None) -> Video:
    """Return a video; it stays open until another one is requested."""
    if token not in _open_videos:
        _open_videos.clear()
        _open_videos[token] = Video(data, Limits(pixels=pixels))
    return _open_videos[token]


# -- in either ---------------------------------------------------------------------------------------------------------


def _frames_of(codec: VideoCodecContext, packets: Iterable[Packet[Any]]) -> Iterator[VideoFrame]:
    """Yield the frames that packets contain."""
    codec.flush_buffers()
    for packet in packets:
        # At the end of a file, PyAV yields a packet without data.
        if packet.size:
            yield from codec.decode(packet)
    yield from codec.decode(None)


def _facts_of(stream: VideoStream) -> tuple[object, ...]:
    """Return the properties of a stream that must be known before decoding."""
    own = stream.codec_context
    # H.264 streams may omit how far frames are reordered, so it must be compared; streams of other formats always contain it.
    reordered = own.has_b_frames if own.codec.canonical_name == "h264" else None
    return own.name, own.extradata, own.height, own.width, stream.time_base, stream.start_time, reordered


def _pyav() -> ModuleType:
    try:
        import av
    except ImportError as error:
        raise ImportError("PyAV is needed to decode videos: pip install penstock-triton[video]") from error
    return av


# -- sound -------------------------------------------------------------------------------------------------------------


def sound_shape(video: Clip, frames: Sequence[int], limits: Limits) -> tuple[int, int]:
    """Return the shape (time, channels) of the sound during the given frames; (0, 1) if the video has no sound.

    Raises:
        LimitError: the sound exceeds the limits.
    """
    sound = video.sound
    if sound is None:
        return 0, 1
    start, end = span_of(video.times, frames)
    shape = round(end * sound.rate) - round(start * sound.rate), sound.channels
    limits.check_audio(*shape, itemsize=4)
    return shape


def fill_sound(video: Clip, frames: Sequence[int], output: np.ndarray) -> None:
    """Decode the sound during the given frames to float32, of the shape that :func:`sound_shape` returns."""
    if output.size:
        video.fill_sound(span_of(video.times, frames)[0], output)


def sound_rate(video: Clip) -> float:
    """Return the sampling rate of a video's sound, in Hz; 0 if the video has no sound."""
    return 0.0 if video.sound is None else float(video.sound.rate)


# -- frames, some of them outside a video -------------------------------------------------------------------------------


def fill_frames(
    video: Clip,
    frames: list[int],
    fill: list[int],
    output: np.ndarray,
    image_type: DALIImageType = RGB,
    scaling: Scaling | None = None,
) -> None:
    """Write frames to uint8 of shape (n, H, W, C); resize them if ``scaling`` is not None. Frames outside the video get the colour
    ``fill``.
    """
    inside, outside = sides(frames)
    if not outside:
        video.fill(frames, output, image_type, scaling)
        return
    if inside:
        decoded = np.empty((len(inside), *output.shape[1:]), np.uint8)
        video.fill([frames[place] for place in inside], decoded, image_type, scaling)
        output[inside] = decoded
    output[outside] = np.asarray(fill, np.uint8)
