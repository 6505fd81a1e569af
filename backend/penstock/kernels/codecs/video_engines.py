"""Decoders that use the video engine of a GPU (NVDEC), through FFmpeg."""

from __future__ import annotations

import atexit
import threading
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from penstock.tensors.cuda import require_cupy

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

# The largest number of unused decoders that are retained.
_MAX_IDLE_DECODERS = 32


class DecoderKind(NamedTuple):
    """The properties of files that a decoder can decode."""

    name: str
    extradata: bytes
    height: int
    width: int
    device: int
    options: tuple[tuple[str, str], ...]


class IdleDecoders:
    """Idle decoders of video engines, for reuse: creating one takes as long as decoding dozens of frames."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Least recently used first.
        self._idle: list[tuple[DecoderKind, VideoCodecContext]] = []
        atexit.register(self._idle.clear)

    def take(self, kind: DecoderKind) -> VideoCodecContext | None:
        """Return an idle decoder that was created for another file of this kind; None if there is none."""
        with self._lock:
            for place in range(len(self._idle) - 1, -1, -1):
                if self._idle[place][0] == kind:
                    return self._idle.pop(place)[1]
        return None

    def give_back(self, kind: DecoderKind, decoder: VideoCodecContext) -> None:
        """Store a decoder for use with other files."""
        with self._lock:
            self._idle.append((kind, decoder))
            dropped = self._idle[:-_MAX_IDLE_DECODERS]
            del self._idle[:-_MAX_IDLE_DECODERS]
        # Closing a decoder takes long, so this is done outside the lock.
        del dropped


idle_decoders = IdleDecoders()


def engine_decoder(av: ModuleType, kind: DecoderKind) -> VideoCodecContext | None:
    """Return a decoder that uses a GPU's video engine and returns frames in GPU memory; None if the GPU has no suitable engine.

    Args:
        av: PyAV's module.
        kind: the kind of files to decode; its ``device`` must be the current device.
    """
    # A thread's current device has no context until the thread's first work on it creates one, and FFmpeg would find no
    # context.
    require_cupy("decoding of videos").cuda.runtime.memGetInfo()
    # Frames are in the memory of the current context, which is shared with other users of the GPU in this process.
    context: dict[str, object] = {"primary_ctx": "0", "current_ctx": "1"}
    try:
        from av.codec.hwaccel import HWAccel

        # FFmpeg's own decoder decodes files that the engine rejects; this decoder must not silently decode them on the CPU.
        engine = HWAccel(
            "cuda", device=str(kind.device), allow_software_fallback=False, options=context, is_hw_owned=True
        )
        decoder: VideoCodecContext = av.CodecContext.create(kind.name, "r", hwaccel=engine)
    except (ImportError, TypeError, ValueError, av.error.FFmpegError):
        # PyAV is too old, the engine does not support the format, or there is no engine.
        return None
    if not decoder.is_hwaccel:
        return None
    if kind.extradata:
        decoder.extradata = kind.extradata
    decoder.height, decoder.width, decoder.options = kind.height, kind.width, dict(kind.options)
    return decoder
