"""Video decoder and reader, on small generated clips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.operators.decoders.video import VideoDecoder

FRAMES, HEIGHT, WIDTH = 12, 32, 48


@pytest.fixture(scope="module", params=["vp9.webm", "h264.mp4"])
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a clip of plain frames, each brighter than the one before, with every fifth a key frame; return its path."""
    path = tmp_path_factory.mktemp("clips") / request.param
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libvpx-vp9" if path.suffix == ".webm" else "libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = WIDTH, HEIGHT, "yuv420p", 5
        for number in range(FRAMES):
            pixels = np.full((HEIGHT, WIDTH, 3), _shade(number), np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    return str(path)


def _shade(number: int) -> int:
    return 20 + 15 * number


def _run(define: Any, batch_size: int = 1, runs: int = 1) -> list[list[np.ndarray]]:
    """Return the outputs of the last run."""

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def pipeline() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipe = pipeline()
    for _ in range(runs):
        outputs = pipe.run()
    return [[np.array(sample) for sample in output] for output in outputs]


def _numbers(frames: np.ndarray) -> list[int]:
    """Return the frames' numbers in the clip, which their brightness tells."""
    assert frames.dtype == np.uint8
    assert frames.shape[1:] == (HEIGHT, WIDTH, 3)
    return np.rint((frames.mean(axis=(1, 2, 3)) - 20) / 15).astype(int).tolist()


def _decode(clip: str, **arguments: Any) -> np.ndarray:
    return _run(lambda: fn.decoders.video(fn.readers.file(files=[clip])[0], **arguments))[0][0]


def test_all_frames(clip: str) -> None:
    frames = _decode(clip)
    assert _numbers(frames) == list(range(FRAMES))
    assert np.abs(frames.astype(int) - [[[[_shade(i)]]] for i in range(FRAMES)]).max() <= 3


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"start_frame": 5, "sequence_length": 3, "stride": 2}, [5, 7, 9]),
        ({"start_frame": 5, "end_frame": 8}, [5, 6, 7]),
        ({"frames": [7, 2, 2, 11]}, [7, 2, 2, 11]),
        ({"start_frame": 10, "sequence_length": 5, "pad_mode": "none"}, [10, 11]),
        ({"start_frame": 10, "sequence_length": 5, "pad_mode": "edge"}, [10, 11, 11, 11, 11]),
        ({"start_frame": 10, "sequence_length": 5, "pad_mode": "symmetric"}, [10, 11, 11, 10, 9]),
        ({"start_frame": 10, "sequence_length": 5, "pad_mode": "reflect"}, [10, 11, 10, 9, 8]),
        ({"start_frame": 10, "sequence_length": 3, "fill_value": [35, 35, 35]}, [10, 11, 1]),
    ],
)
def test_some_frames(clip: str, arguments: dict[str, Any], numbers: list[int]) -> None:
    assert _numbers(_decode(clip, **arguments)) == numbers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"frames": [0], "stride": 1}, "Cannot specify both `frames` and any of"),
        ({"sequence_length": 1, "end_frame": 1}, "Cannot specify both `sequence_length` and `end_frame`"),
        ({"pad_mode": "mirror"}, "Invalid pad_mode"),
        ({"frames": [12], "pad_mode": "none"}, "out-of-bounds frame index"),
        ({"start_frame": 12}, "out of bounds"),
        ({"start_frame": 5, "end_frame": 3}, "must be greater than start_frame"),
    ],
)
def test_wrong_requests(clip: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        _decode(clip, **arguments)


def test_no_video(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("This is no video." * 9)
    with pytest.raises(RuntimeError, match=r"Failed to create video decoder for .*a\.mp4"):
        _decode(str(tmp_path / "a.mp4"))


def test_reader(clip: str) -> None:
    videos, labels, numbers, times = _run(
        lambda: fn.experimental.readers.video(
            filenames=[clip],
            labels=[7],
            sequence_length=3,
            stride=2,
            step=5,
            enable_frame_num="sequence",
            enable_timestamps=True,
        ),
        batch_size=3,
    )
    assert [_numbers(video) for video in videos] == [[0, 2, 4], [5, 7, 9], [0, 2, 4]]
    assert [n.tolist() for n in numbers] == [[0, 2, 4], [5, 7, 9], [0, 2, 4]]
    assert labels[0].tolist() == [7]
    np.testing.assert_allclose(times[1], [0.2, 0.28, 0.36], atol=1e-6)


def test_reader_of_a_list(clip: str, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{clip} 3 0.1 0.3\n{clip} 4\n")
    arguments = {"file_list": str(tmp_path / "list.txt"), "sequence_length": 5, "pad_mode": "edge"}
    videos, labels = _run(lambda: fn.experimental.readers.video(**arguments), batch_size=5)
    assert [_numbers(video) for video in videos] == [
        [2, 3, 4, 5, 6],
        [7, 7, 7, 7, 7],
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [10, 11, 11, 11, 11],
    ]
    assert np.concatenate(labels).tolist() == [3, 3, 4, 4, 4]


def test_sequences_spread_over_whole_videos(clip: str, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{clip} 3 4 7\n{clip} 4\n")
    arguments = {"file_list": str(tmp_path / "list.txt"), "file_list_format": "frames", "sequence_length": 4}
    videos, _ = _run(lambda: fn.experimental.readers.video(**arguments, uniform_sample=True, stride=9), batch_size=2)
    # Four evenly spaced ones of frames 4 to 6, and of all 12 frames; numbers are rounded, halves away from zero.
    assert [_numbers(video) for video in videos] == [[4, 5, 5, 6], [0, 4, 7, 11]]


def _scaled_by_pyav(clip: str, numbers: list[int], name: str) -> np.ndarray:
    with av.open(clip) as file:
        frames = list(file.decode(video=0))
    options: dict[str, Any] = {"height": 20, "width": 26, "format": "rgb24", "interpolation": name.upper()}
    return np.stack([frames[number].reformat(**options).to_ndarray() for number in numbers])


@pytest.mark.parametrize("name", ["bilinear", "area", "bicubic"])
def test_frames_resized_by_ffmpeg_equal_those_of_pyav(clip: str, name: str) -> None:
    found = _decode(clip, frames=[7, 2, 2, 11], size=(20, 26), interpolation=name)
    np.testing.assert_array_equal(found, _scaled_by_pyav(clip, [7, 2, 2, 11], name))


@pytest.mark.parametrize("isolate", ["none", "all"])
def test_frames_are_resized_in_worker_processes(clip: str, isolate: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, isolate_decoders=isolate)
    def pipeline() -> Any:
        encoded = fn.readers.file(files=[clip])[0]
        return fn.decoders.video(encoded, start_frame=10, sequence_length=3, size=(20, 26), fill_value=[1, 2, 3])

    pipe = pipeline()
    (frames,) = pipe.run()
    found = np.array(frames[0])
    pipe.close()
    np.testing.assert_array_equal(found[:2], _scaled_by_pyav(clip, [10, 11], "bilinear"))
    assert (found[2] == [1, 2, 3]).all()


def test_resized_frames_count_with_their_size(clip: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, max_bytes=12 * 20 * 26 * 3)
    def pipeline(size: tuple[int, int] | None) -> Any:
        return fn.decoders.video(fn.readers.file(files=[clip])[0], size=size)

    (frames,) = pipeline((20, 26)).run()
    assert np.array(frames[0]).shape == (12, 20, 26, 3)
    with pytest.raises(RuntimeError, match="max_bytes"):
        pipeline((20, 27)).run()
    with pytest.raises(RuntimeError, match="max_bytes"):
        pipeline(None).run()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (20,)}, r"`size` must be a height and a width, each from 1 to 16384. Got: \[20\]"),
        ({"size": (0, 20)}, r"each from 1 to 16384. Got: \[0, 20\]"),
        ({"size": (20, 1 << 20)}, "each from 1 to 16384"),
        ({"size": (20, 26), "interpolation": "cubic"}, "`interpolation` must be one of area, .*, spline. Got: 'cubic'"),
        ({"size": (20, 26), "image_type": types.GRAY}, "`size` needs `image_type=types.RGB`"),
        ({"interpolation": "area"}, "`interpolation` needs a `size`"),
    ],
)
def test_wrong_sizes(clip: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=message):
        _decode(clip, **arguments)


def test_resizing_by_ffmpeg_on_a_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="`size` needs `device='cpu'`"):
        VideoDecoder({"size": [20, 26]}, device="mixed")


def test_other_colour_spaces_are_refused(clip: str) -> None:
    with pytest.raises(RuntimeError, match="RGB, GRAY or YCbCr"):
        _run(lambda: fn.experimental.readers.video(filenames=[clip], sequence_length=1, image_type=types.BGR))
    with pytest.raises(RuntimeError, match="RGB, GRAY or YCbCr"):
        _decode(clip, image_type=types.BGR)


_SESSION = b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"


@pytest.mark.parametrize("isolate", ["none", "auto"])
@pytest.mark.parametrize("content", [b"ffconcat version 1.0\nfile 'clip.mp4'\n", _SESSION])
def test_bytes_that_name_other_videos(
    clip: str, content: bytes, isolate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clip.mp4").write_bytes(Path(clip).read_bytes())
    (tmp_path / "list").write_bytes(content)
    monkeypatch.chdir(tmp_path)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, isolate_decoders=isolate)
    def pipeline() -> Any:
        return fn.decoders.video(fn.readers.file(files=["list"])[0])

    pipe = pipeline()
    with pytest.raises(RuntimeError, match=r"Failed to (create|open)"):
        pipe.run()
    pipe.close()
