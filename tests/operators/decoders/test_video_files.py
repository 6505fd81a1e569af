"""Videos in many containers: frames in any order equal those that PyAV decodes from the whole file."""

from __future__ import annotations

import functools
import random
import resource
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.kernels.codecs.limits import UNLIMITED
from penstock.kernels.codecs.video import Video
from penstock.kernels.codecs.video_frames import frames_at_rate
from penstock.kernels.cpu.video_colour import planes_to_rgb
from penstock.operators.readers._open_videos import OpenVideos
from penstock.storage import ANYWHERE

FRAMES, HEIGHT, WIDTH, RATE = 50, 48, 64, 30
# The codec and the container of each file.
KINDS = {
    "a.mp4": ("libx264", "mp4"),
    "a.mkv": ("libx264", "matroska"),
    "a.avi": ("libx264", "avi"),
    "a.ts": ("libx264", "mpegts"),
    "a.h264": ("libx264", "h264"),
    "a.hevc": ("libx265", "hevc"),
    "hevc.mp4": ("libx265", "mp4"),
    "a.mpg": ("mpeg1video", "mpeg"),
    "a.vob": ("mpeg2video", "vob"),
    "mpeg4.avi": ("mpeg4", "avi"),
    "vp8.webm": ("libvpx", "webm"),
    "vp9.webm": ("libvpx-vp9", "webm"),
    "mjpeg.avi": ("mjpeg", "avi"),
}
OPTIONS = {
    "libx265": {"x265-params": "log-level=none:keyint=12"},
    "libvpx": {"auto-alt-ref": "1", "lag-in-frames": "16", "cpu-used": "8"},
    "libvpx-vp9": {"cpu-used": "8", "deadline": "realtime"},
}


@functools.cache
def picture(number: int) -> np.ndarray:
    """Return the frame with this number, uint8 of shape (H, W, 3); all frames differ."""
    coarse = np.random.default_rng(number).integers(20, 236, (HEIGHT // 16, WIDTH // 16, 3), np.uint8)
    return coarse.repeat(16, 0).repeat(16, 1)


def write(path: Path, codec: str, container: str, times: list[int] | None = None) -> str:
    """Write a video, with frames at ``times`` in milliseconds; return its path."""
    with av.open(str(path), "w", format=container) as file:
        stream = file.add_stream(codec, rate=RATE, options=OPTIONS.get(codec, {}))
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.codec_context.gop_size = 12
        if codec.startswith("mpeg"):
            stream.codec_context.max_b_frames = 2
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24").reformat(format=stream.pix_fmt)
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return str(path)


@pytest.fixture(scope="module", params=KINDS)
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("videos") / request.param, *KINDS[request.param])


def numbers_of(frames: np.ndarray) -> list[int]:
    """Return the numbers of the frames, which their pixels tell."""
    known = np.stack([picture(number) for number in range(FRAMES)]).astype(np.int16)
    return [int(np.abs(known - frame).mean((1, 2, 3)).argmin()) for frame in frames]


def test_frames_in_any_order(video: str) -> None:
    with av.open(video) as file:
        decoded = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    opened = Video(video)
    assert len(opened) == len(decoded) == FRAMES
    found = opened.frames(range(FRAMES))
    # PyAV's colours differ slightly.
    assert np.abs(found.astype(int) - decoded).mean() < 4
    assert numbers_of(found) == numbers_of(np.stack(decoded)) == list(range(FRAMES))
    order = random.Random(0)
    for _ in range(15):
        wanted = order.sample(range(FRAMES), 3)
        np.testing.assert_array_equal(opened.frames(wanted), found[wanted])
    # With the index of an earlier decoder, a decoder can begin anywhere.
    np.testing.assert_array_equal(Video(video, index=opened.index).frames([31]), found[31:32])


def _analyses(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which each opening of a file from now on appends whether FFmpeg analyses the file."""
    seen: list[bool] = []
    opened = Video._opened

    def opening(self: Video, source: Any, is_analysed: bool = True) -> Any:
        seen.append(is_analysed)
        return opened(self, source, is_analysed)

    monkeypatch.setattr(Video, "_opened", opening)
    return seen


def test_a_file_of_which_all_is_told_is_analysed_once(video: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Video(video)
    # Matroska does not store how frames of H.264 are reordered.
    assert first.index.tells_all == (Path(video).name in ("a.mp4", "hevc.mp4", "vp8.webm", "vp9.webm"))
    seen = _analyses(monkeypatch)
    again = Video(video, index=first.index)
    assert seen == [not first.index.tells_all]
    assert (again.size, again._stream.time_base) == (first.size, first._stream.time_base)
    for wanted in ([0, 1, 49], [13], [25, 24]):
        np.testing.assert_array_equal(again.frames(wanted), first.frames(wanted))


def test_a_header_that_tells_another_size_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.mp4", "libx264", "mp4")
    expected = Video(path).frames([30])
    contents = bytearray(Path(path).read_bytes())
    # Width and height are 24 bytes after the sample entry's type, `avc1`.
    at = contents.rindex(b"avc1") + 28
    assert contents[at : at + 4] == WIDTH.to_bytes(2, "big") + HEIGHT.to_bytes(2, "big")
    contents[at : at + 2] = (WIDTH // 2).to_bytes(2, "big")
    Path(path).write_bytes(contents)
    index = Video(path).index
    assert not index.tells_all
    seen = _analyses(monkeypatch)
    np.testing.assert_array_equal(Video(path, index=index).frames([30]), expected)
    assert seen == [True]


def test_times_are_those_of_the_rate(video: str) -> None:
    # Elementary streams do not contain their frame rate: 25 is assumed.
    rate = 25 if video.endswith((".h264", ".hevc")) else RATE
    np.testing.assert_allclose(Video(video).times, np.arange(FRAMES) / rate, atol=0.001)


def test_contents_as_files(video: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.decoders.video(fn.readers.file(files=[video])[0], frames=[44, 0, 13, 44])

    assert numbers_of(np.array(define().run()[0][0])) == [44, 0, 13, 44]


@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize("shape", [(2, 2), (4, 6), (20, 130), (34, 258)])
def test_colours(shape: tuple[int, int], full_range: bool) -> None:
    rng = np.random.default_rng(0)
    # Each row is followed by padding bytes, as in a decoder's memory.
    luma, u, v = (
        rng.integers(0, 256, (rows, columns + 9), np.uint8)[:, :columns]
        for rows, columns in (shape, (shape[0] // 2, shape[1] // 2), (shape[0] // 2, shape[1] // 2))
    )
    output = np.empty((*shape, 3), np.uint8)
    planes_to_rgb(luma, u, v, np.float32(1), full_range, output)
    y = luma.astype(np.float32) if full_range else (luma.astype(np.float32) - 16) * np.float32(255 / 219)
    scale = np.float32(1 if full_range else 255 / 224)
    u, v = (doubled(doubled((plane.astype(np.float32) - 128) * scale, 0), 1) for plane in (u, v))
    red = y + np.float32(1.402) * v
    green = y + np.float32(-0.344136) * u + np.float32(-0.714136) * v
    blue = y + np.float32(1.772) * u
    np.testing.assert_array_equal(output, np.clip(np.rint(np.stack([red, green, blue], 2)), 0, 255))


def doubled(plane: np.ndarray, axis: int) -> np.ndarray:
    moved = np.moveaxis(plane, axis, 0)
    before, after = np.concatenate([moved[:1], moved[:-1]]), np.concatenate([moved[1:], moved[-1:]])
    pairs = [moved * np.float32(0.75) + other * np.float32(0.25) for other in (before, after)]
    return np.moveaxis(np.stack(pairs, 1).reshape(-1, *moved.shape[1:]), 0, axis)


# -- times ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a video of frames every 20 ms, with a pause of half a second before each tenth."""
    times = [20 * number + 480 * (number // 10) for number in range(FRAMES)]
    return write(tmp_path_factory.mktemp("uneven") / "a.mkv", "libx264", "matroska", times)


def decode(path: str, isolate: str = "none", **arguments: Any) -> list[int]:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, isolate_decoders=isolate)
    def define() -> Any:
        return fn.decoders.video(fn.readers.file(files=[path])[0], **arguments)

    pipeline = define()
    try:
        return numbers_of(np.array(pipeline.run()[0][0]))
    finally:
        pipeline.close()


@pytest.mark.parametrize("isolate", ["none", "auto"])
@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"timestamps": [0.0, 0.019, 0.02, 0.5, 0.68, 99.0, 0.1]}, [0, 0, 1, 9, 10, 49, 5]),
        ({"timestamps": np.float32([0.041])}, [2]),
        ({"fps": 10.0, "sequence_length": 9}, [0, 5, 9, 9, 9, 9, 9, 11, 16]),
        ({"fps": 10.0, "start_frame": 6, "sequence_length": 3, "stride": 2}, [9, 16, 19]),
        ({"fps": 10.0, "frames": [8, 0, 8]}, [16, 0, 16]),
        ({"fps": 100.0, "sequence_length": 5}, [0, 0, 1, 1, 2]),
        ({"fps": 0.0, "sequence_length": 2}, [0, 1]),
        ({"fps": 1.0}, [0, 19, 29]),
        ({"fps": 1.0, "start_frame": 2, "sequence_length": 3, "pad_mode": "edge"}, [29, 29, 29]),
    ],
)
def test_frames_by_time(uneven: str, isolate: str, arguments: dict[str, Any], numbers: list[int]) -> None:
    assert decode(uneven, isolate, **arguments) == numbers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timestamps": [0.5], "frames": [1]}, "both `timestamps` and any of"),
        ({"timestamps": [0.5], "fps": 5.0}, "both `timestamps` and any of"),
        ({"timestamps": [-0.5]}, "seconds since the first frame"),
        ({"timestamps": [float("nan")]}, "seconds since the first frame"),
        ({"fps": -1.0}, "`fps` must be"),
        ({"fps": float("inf")}, "`fps` must be"),
        ({"fps": 1e12}, "more than"),
    ],
)
def test_times_that_are_none(uneven: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        decode(uneven, **arguments)


@pytest.mark.parametrize(("count", "rate"), [(1, 30.0), (300, 30.0), (300, 10.0), (300, 29.97), (300, 0.001)])
def test_rates(count: int, rate: float) -> None:
    times = np.arange(count) / 30
    expected = [min(int(np.floor(k / rate * 30 + 1e-4)), count - 1) for k in range(max(round(count / 30 * rate), 1))]
    assert abs(len(frames_at_rate(times, rate)) - len(expected)) <= 1
    assert frames_at_rate(times, rate)[: len(expected)].tolist() == expected


# -- the reader ----------------------------------------------------------------------------------------------------


def read(batch_size: int = 4, threads: int = 2, **arguments: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=threads, device_id=None, seed=1)
    def define() -> Any:
        outputs = fn.experimental.readers.video(name="videos", **arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipeline = define()
    pipeline.build()
    return pipeline


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_reader_of_all_kinds(threads: int, shuffle: bool, tmp_path: Path) -> None:
    files = [write(tmp_path / name, *KINDS[name]) for name in ("a.mp4", "a.avi", "a.ts", "a.vob", "a.h264")]
    pipeline = read(
        6, threads, filenames=files, sequence_length=7, stride=2, step=9, enable_frame_num="sequence",
        random_shuffle=shuffle,
    )  # fmt: skip
    count = pipeline.epoch_size("videos")
    assert count == 5 * 5
    seen = []
    for _ in range(2 * count // 6 + 1):
        frames, numbers = pipeline.run()
        for sequence, told in zip(frames, numbers):
            assert numbers_of(np.array(sequence)) == np.array(told).tolist()
            seen.append((sequence.source_info(), int(np.array(told)[0])))
    assert len(set(seen[:count])) == count


def test_reader_at_a_rate(uneven: str, tmp_path: Path) -> None:
    frames, numbers = read(3, filenames=[uneven], sequence_length=3, fps=10.0, enable_frame_num="sequence").run()
    assert np.array(numbers.as_array()).tolist() == [[0, 5, 9], [9, 9, 9], [9, 11, 16]]
    assert [numbers_of(np.array(sequence)) for sequence in frames] == numbers.as_array().tolist()
    spread = read(1, filenames=[uneven], sequence_length=3, fps=10.0, uniform_sample=True)
    assert numbers_of(np.array(spread.run()[0][0])) == [0, 27, 49]
    (tmp_path / "list.txt").write_text(f"{uneven} 3 0.68 0.78\n{uneven} 4 1.3 2\n")
    listed = read(2, file_list=str(tmp_path / "list.txt"), sequence_length=2, step=100)
    assert [numbers_of(np.array(sequence)) for sequence in listed.run()[0]] == [[10, 11], [19, 20]]


def test_a_file_written_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", "libx264", "mp4")
    pipeline = read(1, filenames=[path], sequence_length=2, prefetch_queue_depth=1)
    pipeline.run()
    write(tmp_path / "a.mp4", "libx264", "mp4", [7 * number for number in range(FRAMES)])
    for _ in range(4):
        (frames,) = pipeline.run()
    assert numbers_of(np.array(frames[0]))[0] == 8


def test_a_decoder_continues_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", "libx264", "mp4")
    videos = OpenVideos(ANYWHERE)
    with videos.lent(path, 0, UNLIMITED) as first, videos.lent(path, 40, UNLIMITED) as second:
        first.frames([0, 1])
        second.frames([40])
    assert first is not second
    with videos.lent(path, 2, UNLIMITED) as again:
        assert again is first
        assert again.cost(2) == 0
    with videos.lent(path, 41, UNLIMITED) as again:
        assert again is second
    with pytest.raises(ValueError, match="fails"), videos.lent(path, 0, UNLIMITED) as failed:
        raise ValueError("fails")
    with videos.lent(path, 0, UNLIMITED) as other:
        assert other is not failed


def test_memory_stays_over_ten_epochs(tmp_path: Path) -> None:
    files = [write(tmp_path / name, *KINDS[name]) for name in ("a.mp4", "a.vob", "a.h264")]
    pipeline = read(4, filenames=files, sequence_length=8, random_shuffle=True)
    batches = pipeline.epoch_size("videos") // 4
    for _ in range(3 * batches):
        pipeline.run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10 * batches):
        pipeline.run()
    # The peak of resident memory, in KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096
