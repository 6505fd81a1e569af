"""The sound during frames, from readers and decoders."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.kernels.codecs.video import Video
from penstock.kernels.codecs.video_frames import span_of

FRAMES, RATE, SIDE = 60, 25, 32
# For each file: the codecs of pictures and sound, the sample rate, and the number of samples by which the sound may be shifted.
FILES = {
    "flac.mkv": ("libx264", "flac", 48000, 48),
    "aac.mp4": ("libx264", "aac", 44100, 0),
    "pcm.avi": ("mpeg4", "pcm_s16le", 22050, 0),
    "pcm.mov": ("libx264", "pcm_s24le", 48000, 0),
    "opus.webm": ("libvpx-vp9", "libopus", 48000, 48),
    "mp2.ts": ("mpeg2video", "mp2", 48000, 1),
}
EXACT = ("flac.mkv", "pcm.avi", "pcm.mov")


def tone(rate: int, channels: int = 2) -> np.ndarray:
    """Return a sound of rising pitch, of shape (time, channels), which lasts 0.3 seconds longer than the pictures.

    Each channel has a different pitch.
    """
    times = np.arange(round((FRAMES / RATE + 0.3) * rate)) / rate
    phases = 2 * np.pi * (200 * times[:, None] * np.arange(1, channels + 1) + 150 * times[:, None] ** 2)
    return (0.5 * np.sin(phases)).astype(np.float32)


def write(path: Path, pictures: str, sound: str | None, rate: int = 48000, delay: float = 0.0) -> str:
    """Write a video whose sound begins ``delay`` seconds after the first picture."""
    with av.open(str(path), "w") as file:
        video = file.add_stream(pictures, rate=RATE)
        video.width, video.height, video.pix_fmt = SIDE, SIDE, "yuv420p"
        track = file.add_stream(sound, rate=rate, layout="stereo") if sound else None
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(np.full((SIDE, SIDE, 3), 20 + 3 * number, np.uint8), format="rgb24")
            file.mux(video.encode(frame))
        file.mux(video.encode())
        if track is not None:
            waves = (tone(rate).T * 32767).astype(np.int16).T.reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(waves), format="s16", layout="stereo")
            frame.sample_rate, frame.time_base, frame.pts = rate, Fraction(1, rate), round(delay * rate)
            fitting = av.AudioResampler(format=track.codec_context.format, layout="stereo", rate=rate)
            for part in (*fitting.resample(frame), *fitting.resample(None)):
                file.mux(track.encode(part))
            file.mux(track.encode())
    return str(path)


@pytest.fixture(scope="module", params=FILES)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    pictures, sound, rate, _ = FILES[request.param]
    return write(tmp_path_factory.mktemp("clips") / request.param, pictures, sound, rate)


def run(define: Callable[[], Any], **settings: Any) -> list[list[np.ndarray]]:
    pipeline = pipeline_def(define, **({"batch_size": 1, "num_threads": 2, "device_id": None} | settings))()
    outputs = [[np.array(sample) for sample in output] for output in pipeline.run()]
    pipeline.close()
    return outputs


def check_heard(name: str, heard: np.ndarray, start: float) -> None:
    """Raise AssertionError unless the sound is the tone from ``start`` seconds on."""
    _, _, rate, slack = FILES[name]
    whole = tone(rate)
    first = round(start * rate)
    assert heard.dtype == np.float32
    assert heard.shape[1] == 2
    # Codecs change values a little, and containers whose timestamps are milliseconds shift sound by up to one millisecond.
    errors = {
        shift: np.abs(heard - whole[first + shift :][: len(heard)]).mean()
        for shift in range(-min(slack, first), slack + 1)
    }
    assert min(errors.values()) < (1e-4 if name in EXACT else 0.03), errors


@pytest.mark.parametrize("isolate", ["none", "all"])
def test_decoder(clip: str, isolate: str) -> None:
    name = Path(clip).name
    for arguments, start, count in (
        ({"start_frame": 0, "sequence_length": 5}, 0.0, 5),
        ({"start_frame": 20, "sequence_length": 10}, 20 / RATE, 10),
        ({"frames": [44, 40]}, 40 / RATE, 5),
        ({"start_frame": 58, "sequence_length": 5, "pad_mode": "edge"}, 58 / RATE, 2),
    ):
        frames, heard, rate = run(
            lambda arguments=arguments: tuple(
                fn.decoders.video(fn.readers.file(files=[clip])[0], enable_audio=True, **arguments)
            ),
            isolate_decoders=isolate,
        )
        assert rate[0] == FILES[name][2]
        assert abs(len(heard[0]) - count / RATE * float(rate[0])) <= 0.002 * rate[0] + 1
        check_heard(name, heard[0], start)
        assert frames[0].shape[0] == arguments.get("sequence_length", 2)


def test_reader(clip: str) -> None:
    name = Path(clip).name

    def define() -> Any:
        return tuple(
            fn.experimental.readers.video(
                filenames=[clip], sequence_length=12, enable_frame_num="scalar", enable_audio=True
            )
        )

    _, numbers, heard, rates = run(define, batch_size=5)
    for number, own, rate in zip(numbers, heard, rates, strict=True):
        assert rate == FILES[name][2]
        check_heard(name, own, number[0] / RATE)
    # The sound of each sequence begins where the sound of the one before ends.
    joined = np.concatenate(heard)
    assert abs(len(joined) - FRAMES / RATE * rates[0]) <= 0.002 * rates[0] + 1


def test_sound_that_begins_later(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mov", "libx264", "pcm_s16le", delay=0.5)
    heard = np.empty((48000, 2), np.float32)
    Video(path).fill_sound(0.25, heard)
    assert not heard[: 48000 // 4].any()
    np.testing.assert_allclose(heard[48000 // 4 :], tone(48000)[: 48000 * 3 // 4], atol=1e-4)


def test_no_sound(tmp_path: Path) -> None:
    silent, loud = write(tmp_path / "a.mp4", "libx264", None), write(tmp_path / "b.mp4", "libx264", "aac")

    def define() -> Any:
        encoded = fn.readers.file(files=[silent, loud])[0]
        return tuple(fn.decoders.video(encoded, sequence_length=3, enable_audio=True))

    frames, heard, rates = run(define, batch_size=2)
    assert [sample.shape for sample in heard] == [(0, 1), (5760, 2)]
    assert [float(rate) for rate in rates] == [0, 48000]
    assert frames[0].shape == frames[1].shape


def test_limits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", "libx264", "aac")

    def define() -> Any:
        return tuple(fn.decoders.video(fn.readers.file(files=[path])[0], sequence_length=3, enable_audio=True))

    assert run(define, max_frames=20_000)[1][0].shape == (5760, 2)
    with pytest.raises(RuntimeError, match="The recording has 5760 x 2"):
        run(define, max_frames=10_000)


def test_saved(tmp_path: Path) -> None:
    from penstock import Pipeline

    path = write(tmp_path / "a.mp4", "libx264", "aac")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return tuple(fn.experimental.readers.video(filenames=[path], sequence_length=3, enable_audio=True))

    pipeline = define()
    loaded = Pipeline.deserialize(pipeline.serialize())
    for one, other in zip(pipeline.run(), loaded.run(), strict=True):
        np.testing.assert_array_equal(one.as_array(), other.as_array())


def test_spans() -> None:
    times = np.array([0.0, 0.1, 0.4])
    assert span_of(times, [0]) == (0.0, 0.1)
    assert span_of(times, [2, -1, 1]) == pytest.approx((0.1, 0.7))
    assert span_of(times, [-1]) == (0.0, 0.0)
    assert span_of(np.array([0.0]), [0]) == (0.0, 0.04)
