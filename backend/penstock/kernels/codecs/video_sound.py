"""The sound of videos, decoded with FFmpeg (PyAV)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame

# Decoding begins this many seconds early, as a frame of sound depends on earlier ones: in Opus on 80 ms, in MP3 on several frames.
_PREROLL_SECONDS = 0.5
# In units of the file's time: consecutive frames are treated as contiguous if their times leave a smaller gap, or overlap by
# less.
_MAX_GAP_TICKS = 2


class SoundFormat(NamedTuple):
    """The format of a video's sound.

    Attributes:
        rate: the sampling rate, in Hz.
        channels: the number of channels.
    """

    rate: int
    channels: int


class SoundTrack:
    """The first audio stream of an open file, which nothing else may read.

    Args:
        container: PyAV's container.
        origin: when the first video frame is shown, in seconds of the file's time.

    Attributes:
        format: the format of the decoded sound.
    """

    def __init__(self, container: Any, origin: float) -> None:
        self._container, self._origin = container, origin
        self._stream = container.streams.audio[0]
        codec = self._stream.codec_context
        self.format = SoundFormat(codec.sample_rate, codec.channels)

    def fill(self, start: float, output: np.ndarray) -> None:
        """Decode the sound from a time on; where there is none, write silence.

        Args:
            start: the start time, in seconds after the first video frame.
            output: the array to fill, float32 of shape (time, channels), from -1 to 1.
        """
        output[...] = 0
        begin = round(start * self.format.rate)
        for place, frame in self._placed(start):
            values = _values(frame)
            first = place - begin
            if first >= len(output):
                break
            if values.shape[1] != output.shape[1]:
                continue
            part = values[max(-first, 0) : len(output) - first]
            output[max(first, 0) :][: len(part)] = part

    def _placed(self, start: float) -> Iterator[tuple[int, AudioFrame]]:
        """Yield frames of sound that cover the time from ``start`` on, each with the number of its first sample, counted from the first
        video frame.
        """
        unit = float(self._stream.time_base)
        early = math.floor((start + self._origin - _PREROLL_SECONDS) / unit)
        # Some containers refuse to seek to a time before all frames.
        self._container.seek(max(early, self._stream.start_time or 0), stream=self._stream)
        following: int | None = None
        for frame in self._container.decode(self._stream):
            told = following if frame.pts is None else round((frame.pts * unit - self._origin) * self.format.rate)
            if told is None:
                continue
            if following is None or abs(told - following) > max(_MAX_GAP_TICKS * unit * self.format.rate, 1):
                following = told
            yield following, frame
            following += frame.samples


def has_sound(container: Any) -> bool:
    """Return whether an open file has sound that FFmpeg can decode."""
    streams = container.streams.audio
    return bool(streams) and bool(streams[0].codec_context) and streams[0].codec_context.sample_rate > 0


def _values(frame: AudioFrame) -> np.ndarray:
    """Return a frame's values, scaled to the range from -1 to 1, as float32 of shape (samples, channels)."""
    stored: np.ndarray = frame.to_ndarray()
    stored = stored.T if frame.format.is_planar else stored.reshape(frame.samples, -1)
    if stored.dtype.kind == "f":
        return stored.astype(np.float32, copy=False)
    if stored.dtype == np.uint8:
        return (stored.astype(np.float32) - 128) / np.float32(128)
    return stored.astype(np.float32) / np.float32(-float(np.iinfo(stored.dtype).min))
