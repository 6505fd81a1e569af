"""Limits on decoded data, and decoding in worker processes, in pipelines."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile
from astropy.io import fits
from lz4 import block
from PIL import Image

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import DecoderDiedError, LimitError, OperatorError
from penstock.kernels.codecs import audio
from penstock.kernels.codecs.headers import images
from penstock.kernels.codecs.headers.declared import Declared
from penstock.pipeline import experimental

pytestmark = pytest.mark.exhaustive

HEIGHT, WIDTH = 40, 60


def image(kind: str = "PNG", height: int = HEIGHT, width: int = WIDTH, **options: Any) -> np.ndarray:
    pixels = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., np.newaxis] + np.array([0, 40, 90])
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def sound(kind: str = "WAV", moments: int = 800, channels: int = 2) -> np.ndarray:
    buffer = io.BytesIO()
    wave = np.sin(np.arange(moments * channels) / 9).reshape(moments, channels).astype(np.float32)
    soundfile.write(buffer, wave, 16000, format=kind)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def clip(frames: int = 6) -> np.ndarray:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as file:
        stream = file.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            pixels = np.full((48, 64, 3), 30 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    return np.frombuffer(buffer.getvalue(), np.uint8)


def array(count: int = 100) -> np.ndarray:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(count, dtype=np.float32))
    return np.frombuffer(buffer.getvalue(), np.uint8)


def made(define: Callable[[Any], Any], batch_size: int, **settings: Any) -> Pipeline:
    options = {"num_threads": 2, "device_id": None, "exec_async": False, "exec_pipelined": False}

    @pipeline_def(batch_size=batch_size, **(options | settings))
    def pipeline() -> Any:
        return define(fn.external_source(name="data"))

    pipe = pipeline()
    pipe.build()
    return pipe


def decoded(define: Callable[[Any], Any], data: Sequence[np.ndarray], **settings: Any) -> list[np.ndarray]:
    pipe = made(define, len(data), **settings)
    pipe.feed_input("data", list(data))
    results = [np.array(sample) for sample in pipe.run()[0]]
    pipe.close()
    return results


def failures(define: Callable[[Any], Any], data: Sequence[np.ndarray], **settings: Any) -> dict[int, OperatorError]:
    """Run a batch in which failing samples do not affect the others; return the errors by the failed samples' numbers."""
    pipe = made(define, len(data), **settings)
    pipe.feed_input("data", list(data))
    failed = pipe.executor.run_once(isolate=True).failures
    pipe.close()
    return failed


def decode_audio(data: Any, **arguments: Any) -> Any:
    return fn.decoders.audio(data, **arguments)[0]


def inflated(data: Any) -> Any:
    return fn.decoders.inflate(data, shape=[1000])


# -- limits ------------------------------------------------------------------------------------------------------------

_SMALL, _LARGE = image(height=10, width=10), image()
_PIXELS = HEIGHT * WIDTH
_PACKED = np.frombuffer(block.compress(bytes(1000), store_size=False), np.uint8)

# For each case: the decoder, a sample, the limit's name, the smallest limit that the sample does not exceed, and a part of the
# error's message for lower limits.
LIMITED: dict[str, tuple[Callable[[Any], Any], np.ndarray, str, int, str]] = {
    **{
        f"pixels of {kind}": (fn.decoders.image, image(kind), "max_pixels", _PIXELS, "40x60 = 2400 pixels")
        for kind in ("JPEG", "PNG", "BMP", "PPM", "WEBP", "GIF", "TIFF", "JPEG2000", "AVIF")
    },
    "pixels of a window": (
        lambda x: fn.decoders.image_crop(x, crop=(5, 5)),
        _LARGE,
        "max_pixels",
        _PIXELS,
        "40x60 = 2400 pixels",
    ),
    "pixels of what is peeked at": (fn.peek_image_shape, _LARGE, "max_pixels", _PIXELS, "2400 pixels"),
    "bytes of an image": (fn.decoders.image, _LARGE, "max_bytes", 3 * _PIXELS, "7200 bytes"),
    "bytes of a gray image of floats": (
        lambda x: fn.decoders.image(x, output_type=types.GRAY, dtype=types.FLOAT),
        _LARGE,
        "max_bytes",
        4 * _PIXELS,
        "9600 bytes",
    ),
    "samples of a recording": (decode_audio, sound(), "max_frames", 1600, "800 x 2 = 1600 samples"),
    "bytes of a recording": (decode_audio, sound(), "max_bytes", 6400, "6400 bytes"),
    "bytes of a recording of integers": (
        lambda x: decode_audio(x, dtype=types.INT16),
        sound("FLAC"),
        "max_bytes",
        3200,
        "3200 bytes",
    ),
    "samples of a resampled recording": (
        lambda x: decode_audio(x, sample_rate=32000.0),
        sound("OGG"),
        "max_frames",
        3200,
        "3200 samples",
    ),
    "samples before they are resampled": (
        lambda x: decode_audio(x, sample_rate=8000.0, downmix=True),
        sound(),
        "max_frames",
        1600,
        "1600 samples",
    ),
    "pixels of a video": (fn.decoders.video, clip(), "max_pixels", 48 * 64, "48x64 = 3072 pixels"),
    "frames of a video": (fn.decoders.video, clip(), "max_frames", 6, "6 frames"),
    "frames that are repeated": (
        lambda x: fn.decoders.video(x, sequence_length=20, pad_mode="edge"),
        clip(),
        "max_frames",
        20,
        "20 frames",
    ),
    "bytes of a video": (fn.decoders.video, clip(), "max_bytes", 6 * 48 * 64 * 3, "55296 bytes"),
    "bytes of what is inflated": (inflated, _PACKED, "max_bytes", 1000, "1000 bytes"),
    "bytes of an array": (fn.decoders.numpy, array(), "max_bytes", 400, "400 bytes"),
    "bytes of a converted array": (
        lambda x: fn.decoders.numpy(x, dtype=types.FLOAT64),
        array(),
        "max_bytes",
        800,
        "800 bytes",
    ),
}


@pytest.mark.parametrize("name", LIMITED)
def test_more_than_the_limit_is_an_error(name: str) -> None:
    define, sample, setting, needed, message = LIMITED[name]
    assert failures(define, [sample], **{setting: needed}) == {}
    (error,) = failures(define, [sample], **{setting: needed - 1}).values()
    assert isinstance(error, LimitError)
    assert message in str(error)
    assert f"`{setting}` of the pipeline allows {needed - 1}" in str(error)


def test_the_others_of_the_batch_go_on() -> None:
    pipe = made(fn.decoders.image, 3, max_pixels=100)
    pipe.feed_input("data", [_SMALL, _LARGE, _SMALL])
    result = pipe.executor.run_once(isolate=True)
    assert list(result.failures) == [1]
    assert [sample.shape for sample in result.outputs[0].samples] == [(10, 10, 3), (0, 0, 0), (10, 10, 3)]


def test_fused_decoders_have_the_same_limits() -> None:
    def chain(data: Any) -> Any:
        images = fn.resize(fn.decoders.image(data), size=(8, 8))
        return fn.crop_mirror_normalize(images, crop=(8, 8), dtype=types.FLOAT)

    for define in (chain, lambda x: fn.crop(fn.decoders.image(x), crop=(4, 4))):
        for passes in (None, []):
            failed = failures(define, [_LARGE, _SMALL], max_pixels=100, passes=passes)
            assert list(failed) == [0]
            assert isinstance(failed[0], LimitError)


def test_pipelines_in_debug_mode_have_the_same_limits() -> None:
    @experimental.pipeline_def(batch_size=1, num_threads=1, device_id=None, debug=True, max_pixels=100)
    def pipeline() -> Any:
        return fn.decoders.image(fn.external_source(source=lambda: [_LARGE], batch=True))

    with pytest.raises(LimitError):
        pipeline().run()


def test_a_fed_video_has_the_same_limits() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False, max_frames=5)
    def pipeline() -> Any:
        return fn.experimental.inputs.video(name="clip", sequence_length=2)

    pipe = pipeline()
    pipe.build()
    pipe.feed_input("clip", [clip(frames=5)])
    assert pipe.run()[0].shape() == [(2, 48, 64, 3), (2, 48, 64, 3)]
    pipe.run()
    pipe.feed_input("clip", [clip(frames=6)])
    with pytest.raises(LimitError, match="max_frames"):
        pipe.run()


@pytest.mark.filterwarnings("ignore:.*readers.sequence:DeprecationWarning")
def test_readers_that_decode_have_the_same_limits(tmp_path: Path) -> None:
    (tmp_path / "stream").mkdir()
    for number in range(2):
        (tmp_path / "stream" / f"{number}.png").write_bytes(_LARGE.tobytes())
    (tmp_path / "a.npy").write_bytes(array().tobytes())
    (tmp_path / "a.mp4").write_bytes(clip().tobytes())
    (tmp_path / "a.wav").write_bytes(sound().tobytes())
    (tmp_path / "list.json").write_text(f'{{"audio_filepath": "{tmp_path}/a.wav"}}\n')

    def sequence() -> Any:
        return fn.readers.sequence(file_root=str(tmp_path), sequence_length=2)

    def numpy() -> Any:
        return fn.readers.numpy(files=[str(tmp_path / "a.npy")])

    def video() -> Any:
        return fn.experimental.readers.video(filenames=[str(tmp_path / "a.mp4")], sequence_length=4)

    def speech() -> Any:
        return fn.readers.nemo_asr(manifest_filepaths=[str(tmp_path / "list.json")], downmix=False)[0]

    fits.ImageHDU(np.zeros((10, 20), np.int16)).writeto(tmp_path / "a.fits")
    fits.CompImageHDU(np.zeros((10, 20), np.int16)).writeto(tmp_path / "b.fits")

    def sky(name: str) -> Callable[[], Any]:
        return lambda: fn.experimental.readers.fits(files=[str(tmp_path / name)], hdu_indices=[2])

    cases: list[tuple[Callable[[], Any], str, int]] = [
        (sky("a.fits"), "max_bytes", 400),
        (sky("b.fits"), "max_bytes", 400),
        (sequence, "max_pixels", _PIXELS),
        (sequence, "max_bytes", 6 * _PIXELS),
        (numpy, "max_bytes", 400),
        (video, "max_frames", 4),
        (video, "max_pixels", 48 * 64),
        (speech, "max_frames", 1600),
    ]
    for define, setting, needed in cases:
        for limit in (needed, needed - 1):
            pipe = Pipeline(1, 1, None, exec_async=False, exec_pipelined=False, **{setting: limit})
            with pipe:
                pipe.set_outputs(define())
            if limit == needed:
                pipe.run()
            else:
                with pytest.raises(LimitError, match=setting):
                    pipe.run()


# -- settings ------------------------------------------------------------------------------------------------------------


def test_settings_are_checked() -> None:
    for setting in ("max_pixels", "max_bytes", "max_frames"):
        for wrong in (0, -1, 1.5, "many", True):
            with pytest.raises(ValueError, match=f"`{setting}` must be a positive integer"):
                Pipeline(1, 1, None, **{setting: wrong})
    with pytest.raises(ValueError, match="use one of none, auto, all"):
        Pipeline(1, 1, None, isolate_decoders="some")
    pipe = Pipeline(1, 1, None)
    assert (pipe.max_pixels, pipe.max_bytes, pipe.max_frames, pipe.isolate_decoders) == (None, None, None, "none")


def test_limits_are_kept_in_the_readable_format_and_overridden_at_load(tmp_path: Path) -> None:
    path = str(tmp_path / "p.json")
    made(fn.decoders.image, 1, max_pixels=100, max_frames=7, isolate_decoders="auto").save(path)
    text = Path(path).read_text()
    assert '"max_pixels": 100' in text
    assert "max_bytes" not in text
    assert "isolate_decoders" not in text  # the setting depends on the machine, so it is not saved
    loaded = Pipeline.load(path)
    assert (loaded.max_pixels, loaded.max_bytes, loaded.max_frames) == (100, None, 7)
    assert loaded.isolate_decoders == "none"
    changed = Pipeline.load(path, max_pixels=5000, max_bytes=30, isolate_decoders="all")
    assert (changed.max_pixels, changed.max_bytes, changed.max_frames) == (5000, 30, 7)
    assert changed.isolate_decoders == "all"


def test_the_wire_format_has_no_limits_and_takes_them_at_load() -> None:
    saved = made(fn.decoders.image, 1, max_pixels=100).serialize()
    assert saved == made(fn.decoders.image, 1).serialize()
    pipe = Pipeline.deserialize(saved, max_pixels=100, isolate_decoders="auto")
    assert (pipe.max_pixels, pipe.isolate_decoders) == (100, "auto")
    pipe.feed_input("data", [_LARGE])
    with pytest.raises(LimitError):
        pipe.run()


# -- isolation -----------------------------------------------------------------------------------------------------------

_KINDS = ("JPEG", "PNG", "BMP", "PPM", "WEBP", "GIF", "TIFF", "JPEG2000", "AVIF", "ICO")
_NOT_TRUSTED = 5  # the number of these kinds whose decoders are not trusted


@pytest.mark.parametrize("output_type", [types.RGB, types.ANY_DATA, types.GRAY, types.YCbCr])
@pytest.mark.parametrize("dtype", [types.UINT8, types.FLOAT])
def test_images_are_the_same_wherever_they_are_decoded(output_type: Any, dtype: Any) -> None:
    files = [*(image(kind, 64, 64) for kind in _KINDS), image("TIFF", 30, 50, tiffinfo={274: 6})]

    def pixels(isolate: str) -> list[np.ndarray]:
        arguments = {"output_type": output_type, "dtype": dtype}
        return decoded(lambda x: fn.decoders.image(x, **arguments), files, isolate_decoders=isolate)

    here = pixels("none")
    assert here[-1].shape[:2] == (50, 30)
    for isolate in ("auto", "all"):
        for one, other in zip(here, pixels(isolate)):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "define",
    [
        lambda x: fn.decoders.image_crop(x, crop=(20, 30)),
        lambda x: fn.crop(fn.decoders.image(x), crop=(20, 30)),
        lambda x: fn.crop_mirror_normalize(fn.resize(fn.decoders.image(x), size=(16, 16)), crop=(12, 12)),
        fn.peek_image_shape,
    ],
    ids=["window", "fused crop", "fused resize", "peek"],
)
def test_other_decoders_are_the_same_wherever_they_decode(define: Callable[[Any], Any]) -> None:
    files = [image(kind, 64, 64) for kind in ("JPEG", "PNG", "TIFF", "JPEG2000")]
    here = decoded(define, files)
    for one, other in zip(here, decoded(define, files, isolate_decoders="all")):
        np.testing.assert_array_equal(one, other)


def test_recordings_and_videos_are_the_same_wherever_they_are_decoded() -> None:
    sounds = [sound(kind) for kind in ("WAV", "FLAC", "OGG", "MP3", "AIFF")]
    cases: list[tuple[Callable[[Any], Any], list[np.ndarray]]] = [
        (decode_audio, sounds),
        (lambda x: decode_audio(x, sample_rate=8000.0, downmix=True, dtype=types.INT16), sounds),
        (fn.decoders.video, [clip(), clip(frames=3)]),
        (lambda x: fn.decoders.video(x, frames=[4, 0, 4]), [clip()]),
    ]
    for define, files in cases:
        here = decoded(define, files)
        for one, other in zip(here, decoded(define, files, isolate_decoders="auto")):
            np.testing.assert_array_equal(one, other)


def _run_counted(define: Callable[[Any], Any], files: list[np.ndarray], isolate: str) -> tuple[int, int]:
    """Decode files; return the number of tasks done by workers, and the number of workers."""
    pipe = made(define, len(files), isolate_decoders=isolate)
    pipe.feed_input("data", files)
    pipe.run()
    pool = pipe.executor.plan.decoding.pool
    assert pool is not None
    counted = pool.decodes, len(pool.pids())
    pipe.close()
    assert pool.pids() == []
    return counted


def test_only_what_is_not_trusted_is_isolated_where_that_is_asked_for() -> None:
    files = [image(kind, 64, 64) for kind in _KINDS]
    # Two tasks per file: to read its header and to decode its image. Headers of JPEGs are read without a library, and so in no worker.
    assert _run_counted(fn.decoders.image, files, "none") == (0, 0)
    # On a busy machine, one of the two threads may decode all files.
    assert _run_counted(fn.decoders.image, files, "auto") in [(2 * _NOT_TRUSTED, workers) for workers in (1, 2)]
    assert _run_counted(fn.decoders.image, files, "all") in [(2 * len(_KINDS) - 1, workers) for workers in (1, 2)]
    assert _run_counted(decode_audio, [sound("WAV"), sound("FLAC")], "auto") == (0, 0)


@pytest.mark.parametrize(
    ("define", "files"),
    [
        (fn.decoders.image, [image("TIFF")[:-3000], image("JPEG2000")[:-300], image("GIF")[:-300]]),
        (decode_audio, [sound("OGG")[:60], sound("AIFF")[:20], np.arange(99, dtype=np.uint8)]),
        (fn.decoders.video, [clip()[:200], np.arange(99, dtype=np.uint8)]),
    ],
    ids=["images", "recordings", "videos"],
)
def test_a_damaged_file_is_the_same_error_wherever_it_is_decoded(
    define: Callable[[Any], Any], files: list[np.ndarray]
) -> None:
    here = failures(define, files)
    assert len(here) == len(files)
    for index, error in failures(define, files, isolate_decoders="auto").items():
        assert (type(error), error.reason) == (type(here[index]), here[index].reason)


def test_a_file_that_kills_its_decoder_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    good, killer = image("JPEG2000", no_jp2=True), image("JPEG2000", no_jp2=True).copy()
    place = killer.tobytes().index(b"\xff\x51") + 22
    killer[place : place + 4] = 0  # the tiles' width
    (refused,) = failures(fn.decoders.image, [killer], isolate_decoders="auto").values()
    assert "its tiles are of 40x0 pixels" in str(refused)

    # The check of the header refuses the file before the library reads it. If the check is removed, the worker process crashes, but
    # not the pipeline.
    known = images.image_format(memoryview(killer))
    assert known is not None
    unchecked = known._replace(check=lambda data: Declared(HEIGHT, WIDTH))
    monkeypatch.setattr("penstock.kernels.codecs.image_header.image_format", lambda data: unchecked)
    pipe = made(fn.decoders.image, 3, isolate_decoders="auto")
    for _ in range(2):
        pipe.feed_input("data", [good, killer, good])
        result = pipe.executor.run_once(isolate=True)
        assert list(result.failures) == [1]
        assert isinstance(result.failures[1], DecoderDiedError)
        assert "The decoder of JPEG 2000 died on this file" in str(result.failures[1])
        assert [sample.shape for sample in result.outputs[0].samples] == [
            (HEIGHT, WIDTH, 3),
            (0, 0, 0),
            (HEIGHT, WIDTH, 3),
        ]
    pool = pipe.executor.plan.decoding.pool
    assert pool is not None
    assert pool.deaths == 2
    pipe.close()


def test_a_kind_of_files_that_ends_the_process_is_decoded_apart_in_any_case() -> None:
    # An animated PNG whose default image is not its first frame: nvImageCodec crashes on damaged files of this kind.
    def chunk(name: bytes, contents: bytes) -> bytes:
        return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))

    frames = [zlib.compress((b"\0" + bytes([value]) * 12) * 4) for value in (10, 100, 200)]
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0))
    data += chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"IDAT", frames[0])
    for number, frame in enumerate(frames[1:]):
        data += chunk(b"fcTL", struct.pack(">IIIIIHHBB", 2 * number, 4, 4, 0, 0, 1, 10, 0, 0))
        data += chunk(b"fdAT", struct.pack(">I", 2 * number + 1) + frame)
    animation = np.frombuffer(data + chunk(b"IEND", b""), np.uint8)
    assert decoded(fn.decoders.image, [animation])[0].tolist() == np.full((4, 4, 3), 100).tolist()  # as DALI does
    assert _run_counted(fn.decoders.image, [animation], "none") == (2, 1)


def test_prefetching_pipelines_isolate_and_close() -> None:
    files = [image(kind) for kind in ("TIFF", "GIF", "PNG", "JPEG2000")]
    pipe = made(fn.decoders.image, 4, isolate_decoders="auto", exec_async=True, exec_pipelined=True)
    for _ in range(6):
        pipe.feed_input("data", files)
    for _ in range(4):
        assert pipe.run()[0].shape() == [(HEIGHT, WIDTH, 3)] * 4
    pool = pipe.executor.plan.decoding.pool
    assert pool is not None
    assert len(pool.pids()) in (1, 2)
    pipe.close()
    assert pool.pids() == []


# -- values ----------------------------------------------------------------------------------------------------------------


# Only Pillow reads files whose tags have type LONG where the format demands SHORT.
@pytest.mark.parametrize("layout", ["<HHIHH", "<HHII"], ids=["nvImageCodec", "Pillow"])
def test_a_tiff_of_32_bits_is_converted_without_a_table_of_all_values(layout: str) -> None:
    values = np.array([[0, 1, 2**24, 2**31 - 1], [2**31, 2**32 - 2, 2**32 - 1, 77]], np.uint32)
    tags = {256: 4, 257: 2, 258: 32, 259: 1, 262: 1, 273: 134, 277: 1, 278: 2, 279: 32, 339: 1}
    kind, padding = (3, [0]) if layout == "<HHIHH" else (4, [])
    entries = b"".join(struct.pack(layout, tag, kind, 1, value, *padding) for tag, value in tags.items())
    data = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + values.tobytes()
    tiff = [np.frombuffer(data, np.uint8)]
    for dtype, top in ((types.UINT8, 255), (types.UINT16, 65535), (types.FLOAT, 1.0)):
        (pixels,) = decoded(lambda x, dtype=dtype: fn.decoders.image(x, dtype=dtype), tiff)
        expected = values / (2**32 - 1) * top
        np.testing.assert_allclose(pixels[..., 0], expected, atol=1e-6 if dtype == types.FLOAT else 0.5)
    (same,) = decoded(lambda x: fn.decoders.image(x, dtype=types.UINT32), tiff)
    np.testing.assert_array_equal(same[..., 0], values)


def test_frames_of_which_ffmpeg_says_that_they_are_damaged_are_errors() -> None:
    # FFmpeg leaves parts of damaged frames uninitialized: they may contain another user's data.
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mpeg") as file:
        stream = file.add_stream("mpeg1video", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(6):
            plane = np.add.outer(np.arange(48) * (number + 2), np.arange(64) * 3).astype(np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.stack([plane] * 3, -1), format="rgb24")))
        file.mux(stream.encode())
    data = np.frombuffer(buffer.getvalue(), np.uint8)
    start = data.tobytes().index(b"\0\0\1\1")  # the first slice of the first picture
    damaged = data.copy()
    damaged[start + 108 : start + 135] = 0xFF
    assert failures(lambda x: fn.decoders.video(x, frames=[0]), [data]) == {}
    (error,) = failures(lambda x: fn.decoders.video(x, frames=[0]), [damaged]).values()
    assert "Frame 0 of the video" in str(error)


# -- recordings in blocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["OGG", "AIFF"])
def test_recordings_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    data = sound(kind, moments=5000)
    (whole,) = decoded(decode_audio, [data])
    monkeypatch.setattr(audio, "_MAX_BLOCK_VALUES", 700)
    (parts,) = decoded(decode_audio, [data])
    np.testing.assert_array_equal(parts, whole)


def test_what_a_recording_lacks_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "_MAX_BLOCK_VALUES", 700)
    data = sound("AIFF", moments=5000)
    recording = audio.open_recording(data)
    output = np.ones((8000, 2), np.float32)
    recording.read_into(output)
    assert output[:5000].any()
    assert not output[5000:].any()
