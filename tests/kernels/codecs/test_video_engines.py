"""Decoders of video engines: their construction, and the fallback for files that an engine refuses."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock.kernels.codecs import video as videos
from penstock.kernels.codecs.limits import UNLIMITED
from penstock.kernels.codecs.video import Video
from penstock.kernels.codecs.video_engines import DecoderKind, engine_decoder, idle_decoders
from penstock.operators.readers._open_videos import OpenVideos
from penstock.storage import ANYWHERE

FRAMES = 20


@pytest.fixture
def clip(tmp_path: Path) -> str:
    with av.open(str(tmp_path / "clip.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(FRAMES):
            picture = np.full((48, 64, 3), 10 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())
    return str(tmp_path / "clip.mp4")


@pytest.mark.usefixtures("with_gpu")
def test_a_thread_has_a_context_before_ffmpeg_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    context = threading.local()
    found: list[dict[str, Any]] = []

    def accelerator(name: str, **arguments: Any) -> None:
        found.append({"context": getattr(context, "made", False), **arguments})
        raise ValueError("No engine here")

    def info() -> tuple[int, int]:
        context.made = True
        return 0, 0

    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "memGetInfo", info)
    monkeypatch.setattr("av.codec.hwaccel.HWAccel", accelerator)
    kind = DecoderKind("h264", b"", 48, 64, 0, ())
    made: list[object] = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: made.append(engine_decoder(av, kind)))
        thread.start()
        thread.join()
    assert made == [None, None]
    assert [one["context"] for one in found] == [True, True]
    # Otherwise FFmpeg would silently decode on the CPU.
    assert [one["allow_software_fallback"] for one in found] == [False, False]


class _Refusing:
    """A decoder whose engine refuses the file."""

    def __init__(self, after: int) -> None:
        self._left = after
        self._decoder = av.CodecContext.create("h264", "r")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def decode(self, packet: Any) -> list[Any]:
        if not self._left:
            raise av.error.InvalidDataError(1, "refused")
        self._left -= 1
        return self._decoder.decode(packet)


@pytest.mark.parametrize("after", [0, 7])
def test_what_an_engine_refuses_the_file_s_own_decoder_takes(
    clip: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Video(clip).frames(range(FRAMES))
    refusing: list[_Refusing] = []

    def engine(_: object, kind: DecoderKind) -> _Refusing:
        refusing.append(_Refusing(after))
        refusing[-1].extradata = kind.extradata
        refusing[-1]._decoder.extradata = kind.extradata
        return refusing[-1]

    monkeypatch.setattr(videos, "engine_decoder", engine)
    opened = Video(clip, device=0)
    # The engine's decoder must not be used to build the index, either.
    assert refusing[0]._left == after
    np.testing.assert_array_equal(opened.frames(range(FRAMES)), expected)
    np.testing.assert_array_equal(opened.frames([3]), expected[3:4])
    assert len(refusing) == 1
    kept = opened._lent.peek()
    assert kept is None
    del opened
    assert not any(decoder is refusing[0] for _, decoder in idle_decoders._idle)


def test_a_file_that_an_engine_refused_is_left_to_the_cpu(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[_Refusing] = []

    def engine(_: object, kind: DecoderKind) -> _Refusing:
        made.append(_Refusing(0))
        return made[-1]

    monkeypatch.setattr(videos, "engine_decoder", engine)
    opened = OpenVideos(ANYWHERE)
    assert opened.takes_engine(clip)
    with opened.lent(clip, 0, UNLIMITED, 0) as first:
        assert first.uses_engine
        first.frames([0])
    assert not opened.takes_engine(clip)
    with opened.lent(clip, 1, UNLIMITED, 0) as again, opened.lent(clip, 1, UNLIMITED, 0) as other:
        assert again is first
        np.testing.assert_array_equal(other.frames([5]), again.frames([5]))
    assert len(made) == 1
