"""Colours of frames: grey and YCbCr match RGB, and pixels are the same on GPU and CPU, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.kernels.codecs.video import Video
from penstock.kernels.cpu.video_colour import luma_to_grey, planes_to_rgb, planes_to_ycbcr
from penstock.kernels.cuda.video import Colours, Planes, convert_frames

# A real GPU or, if there is none, an emulated one, for which kernels are compiled with g++.
pytestmark = pytest.mark.usefixtures("with_gpu")

HEIGHT, WIDTH, FRAMES, RATE = 34, 50, 12, 25
ONE = np.float32(1)
IMAGE_TYPES = {"rgb": types.RGB, "grey": types.GRAY, "ycbcr": types.YCbCr}
FORMATS = {
    "studio.mp4": ("libx264", "yuv420p", 1),
    "full.mp4": ("libx264", "yuv420p", 2),
    "ten_bits.mkv": ("libx265", "yuv420p10le", 1),
    "not_halved.mkv": ("libx264", "yuv444p", 1),
    "vp9.webm": ("libvpx-vp9", "yuv420p", 1),
}


def picture(number: int) -> np.ndarray:
    coarse = np.random.default_rng(number).integers(0, 256, (HEIGHT // 2, WIDTH // 2, 3), np.uint8)
    return coarse.repeat(2, 0).repeat(2, 1)


@pytest.fixture(scope="module", params=FORMATS)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    codec, pixels, colour_range = FORMATS[request.param]
    path = tmp_path_factory.mktemp("clips") / request.param
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
        stream.codec_context.color_range = colour_range
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24").reformat(format=pixels)
            frame.color_range = colour_range
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return str(path)


def results(define: Any, batch_size: int = 2, batches: int = 2) -> list[list[np.ndarray]]:
    """Return the outputs of some batches, one after the other."""

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=0)
    def pipeline() -> Any:
        outputs = define()
        return tuple(outputs) if isinstance(outputs, list) else outputs

    running = pipeline()
    found = [[np.array(sample) for sample in output.as_cpu()] for _ in range(batches) for output in running.run()]
    running.close()
    return found


def check_equal(define: Any, **arguments: Any) -> None:
    for cpu, gpu in zip(results(lambda: define("cpu")), results(lambda: define("gpu")), strict=True):
        for ours, other in zip(cpu, gpu, strict=True):
            assert ours.dtype == other.dtype
            np.testing.assert_array_equal(ours, other)


@pytest.mark.parametrize("image_type", IMAGE_TYPES)
def test_decoder_on_both_devices(clip: str, image_type: str) -> None:
    def define(device: str) -> Any:
        encoded = fn.readers.file(files=[clip, clip])[0]
        return fn.decoders.video(
            encoded,
            device="mixed" if device == "gpu" else "cpu",
            frames=[3, 9, 3, 40],
            fill_value=[9],
            image_type=IMAGE_TYPES[image_type],
        )

    check_equal(define)


@pytest.mark.parametrize("image_type", IMAGE_TYPES)
def test_reader_on_both_devices(clip: str, image_type: str) -> None:
    def define(device: str) -> Any:
        return fn.experimental.readers.video(
            device=device,
            filenames=[clip],
            labels=[5],
            sequence_length=4,
            stride=2,
            step=3,
            pad_mode="constant",
            fill_value=[1, 2, 3] if image_type != "grey" else [7],
            image_type=IMAGE_TYPES[image_type],
            enable_frame_num="sequence",
            enable_timestamps=True,
        )

    check_equal(define)


def test_decoder_in_worker_processes_on_both_devices(clip: str) -> None:
    found = []
    for device in ("cpu", "mixed"):

        @pipeline_def(batch_size=1, num_threads=1, device_id=0, isolate_decoders="all")
        def pipeline(device: str = device) -> Any:
            encoded = fn.readers.file(files=[clip])[0]
            return fn.decoders.video(encoded, device=device, frames=[1, 20], image_type=types.YCbCr, fill_value=[4])

        running = pipeline()
        found.append(np.array(running.run()[0].as_cpu()[0]))
        running.close()
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_readers_with_dalis_arguments(clip: str, device: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"{clip} 3 2 7\n{clip} 4 -5 12\n")
    common = {"device": device, "file_list": str(tmp_path / "list"), "sequence_length": 3}
    frames, labels, numbers = results(
        lambda: fn.readers.video(**common, file_list_frame_num=True, enable_frame_num="scalar"), batches=1
    )
    assert np.concatenate(labels).tolist() == [3, 4]
    assert np.concatenate(numbers).tolist() == [2, 7]
    video = Video(clip)
    np.testing.assert_array_equal(np.stack(frames), [video.frames([2, 3, 4]), video.frames([7, 8, 9])])
    (exact, _), (scaled, _) = (
        results(
            lambda wanted=wanted: fn.readers.video(
                **common, file_list_frame_num=True, dtype=types.FLOAT, normalized=wanted
            ),
            batches=1,
        )
        for wanted in (False, True)
    )
    assert exact[0].dtype == scaled[0].dtype == np.float32
    assert np.abs(exact[0].clip(0, 255) - frames[0]).max() <= 0.5
    np.testing.assert_allclose(scaled[0], exact[0] / 255, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_times_in_lists_are_rounded_as_dalis_reader_does(clip: str, device: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"{clip} 0 0.13 0.27\n")
    for including, numbers in ((False, [4, 5]), (True, [3, 4, 5, 6])):
        found = results(
            lambda numbers=numbers, including=including: fn.readers.video(
                device=device,
                file_list=str(tmp_path / "list"),
                file_list_include_preceding_frame=including,
                sequence_length=len(numbers),
                enable_frame_num="sequence",
            ),
            batch_size=1,
            batches=1,
        )
        assert found[2][0].tolist() == numbers


def test_last_sequences_are_completed(clip: str) -> None:
    def define(device: str) -> Any:
        return fn.readers.video(
            device=device,
            filenames=[clip],
            labels=[],
            sequence_length=8,
            pad_sequences=True,
            enable_frame_num="sequence",
            enable_timestamps=True,
        )

    check_equal(define)
    frames, labels, numbers, times = results(lambda: define("gpu"), batches=1)
    assert np.concatenate(labels).tolist() == [0, 0]
    assert numbers[1].tolist() == [8, 9, 10, 11, -1, -1, -1, -1]
    assert times[1][4:].tolist() == [-1] * 4
    assert not frames[1][4:].any()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_resized_sequences(clip: str, device: str) -> None:
    (resized,), (expected,) = (
        results(work, batches=1)
        for work in (
            lambda: fn.readers.video_resize(device=device, filenames=[clip], sequence_length=5, size=[20, 30]),
            lambda: fn.resize(fn.readers.video(device=device, filenames=[clip], sequence_length=5), size=[20, 30]),
        )
    )
    assert resized[0].shape == (5, 20, 30, 3)
    np.testing.assert_array_equal(resized, expected)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_bad_file_among_good_ones(clip: str, device: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"This is no video" * 99)

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, on_error="skip")
    def pipeline() -> Any:
        encoded = fn.readers.file(files=[clip, str(bad), clip])[0]
        return fn.decoders.video(encoded, device="mixed" if device == "gpu" else "cpu", sequence_length=2)

    running = pipeline()
    (frames,) = running.run()
    assert len(frames) == 2
    for sample in frames.as_cpu():
        np.testing.assert_array_equal(np.array(sample), Video(clip).frames([0, 1]))
    running.close()


# -- kernels -----------------------------------------------------------------------------------------------------------


def on_gpu(array: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(np.ascontiguousarray(array))


@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize("shape", [(2, 2), (4, 6), (20, 130), (34, 258)])
def test_kernels_are_equal(shape: tuple[int, int], full_range: bool) -> None:
    import cupy

    rng = np.random.default_rng(0)
    halves = shape[0] // 2, shape[1] // 2
    luma, u, v = (rng.integers(0, 256, sides, np.uint8) for sides in (shape, halves, halves))
    rgb, grey, ycbcr = np.empty((*shape, 3), np.uint8), np.empty((*shape, 1), np.uint8), np.empty((*shape, 3), np.uint8)
    planes_to_rgb(luma, u, v, ONE, full_range, rgb)
    luma_to_grey(luma, ONE, full_range, grey)
    planes_to_ycbcr(luma, u, v, ONE, full_range, ycbcr)
    # As in the video engine's frames, u and v alternate, and values have 8 bits or are the upper bits of 16.
    for kind in (np.uint8, np.uint16):
        stored = [on_gpu(plane.astype(kind) << 8 * (kind().itemsize - 1)) for plane in (luma, np.stack([u, v], 2))]
        addresses = [plane.data.ptr for plane in stored]
        for colours, expected in ((Colours.RGB, rgb), (Colours.GREY, grey), (Colours.YCBCR, ycbcr)):
            found = cupy.empty(expected.shape, np.uint8)
            pitch = shape[1] * kind().itemsize
            planes = Planes(
                luma=addresses[0],
                u=addresses[1],
                v=addresses[1] + kind().itemsize,
                target=found.data.ptr,
                luma_pitch=pitch,
                chroma_pitch=pitch,
                height=shape[0],
                width=shape[1],
                step=2,
                halved=1,
                full_range=full_range,
                unit=1 / 256 ** (kind().itemsize - 1),
                factor=1.0,
            )
            convert_frames([planes], colours, np.dtype(kind), np.dtype(np.uint8))
            np.testing.assert_array_equal(found.get(), expected)


def test_grey_and_ycbcr_belong_to_rgb() -> None:
    from penstock.kernels.colour import FROM_YCBCR, LUMA, YCBCR_OFFSET

    shape = 40, 60
    # All of these values are colours that RGB can represent.
    ramp = np.linspace(60, 200, shape[0] * shape[1]).reshape(shape).astype(np.uint8)
    u, v = (np.full((shape[0] // 2, shape[1] // 2), value, np.uint8) for value in (120, 140))
    for full_range in (False, True):
        rgb, grey, ycbcr = (np.empty((*shape, channels), np.uint8) for channels in (3, 1, 3))
        planes_to_rgb(ramp, u, v, ONE, full_range, rgb)
        luma_to_grey(ramp, ONE, full_range, grey)
        planes_to_ycbcr(ramp, u, v, ONE, full_range, ycbcr)
        assert np.abs(rgb @ LUMA - grey[..., 0]).max() < 1.1
        assert np.abs((ycbcr - YCBCR_OFFSET) @ FROM_YCBCR.T - rgb).max() < 2.1
