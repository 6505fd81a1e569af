"""WAV files are read as libsndfile reads them, and resampled and mixed like other recordings; unusual files are left to
libsndfile.
"""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import numpy as np
import pytest
import soundfile

from penstock import fn, pipeline_def, types
from penstock.core.codecs import Encoding, read_recordings
from penstock.kernels.cpu.recordings import compute_recordings
from penstock.kernels.levels import from_unit
from penstock.kernels.resampling import lobes_of_quality, resample_signal

RATE = 44_100
ENCODINGS = {
    "PCM_U8": Encoding.UINT8,
    "PCM_16": Encoding.INT16,
    "PCM_24": Encoding.INT24,
    "PCM_32": Encoding.INT32,
    "FLOAT": Encoding.FLOAT32,
    "DOUBLE": Encoding.FLOAT64,
    "ALAW": Encoding.A_LAW,
    "ULAW": Encoding.MU_LAW,
}


def noise(frames: int, channels: int) -> np.ndarray:
    return np.random.default_rng(frames + channels).uniform(-1, 1, (frames, channels)).astype(np.float32)


def encoded(signal: np.ndarray, subtype: str = "PCM_16", kind: str = "WAV") -> np.ndarray:
    file = io.BytesIO()
    soundfile.write(file, signal, RATE, format=kind, subtype=subtype)
    return np.frombuffer(file.getvalue(), np.uint8)


def wav(tag: int, bits: int, data: bytes) -> np.ndarray:
    chunk = struct.pack("<4sIHHIIHH", b"fmt ", 16, tag, 1, RATE, RATE * bits // 8, bits // 8, bits)
    file = b"WAVE" + chunk + struct.pack("<4sI", b"data", len(data)) + data
    return np.frombuffer(struct.pack("<4sI", b"RIFF", len(file)) + file, np.uint8)


def read(*files: np.ndarray) -> np.ndarray:
    return read_recordings(np.array([file.ctypes.data for file in files]), np.array([file.size for file in files]))[0]


def computed(
    file: np.ndarray, dtype: Any, downmix: bool = False, scale: float = 1.0, lobes: int = 16, threads: int = 1
) -> np.ndarray:
    recordings = read(file)
    frames, channels = recordings["frames"][0], recordings["channels"][0]
    length = math.ceil(frames * scale)
    out = np.full((length,) if downmix else (length, channels), 99, dtype)
    given = np.array([out.ctypes.data]), np.array([length]), np.array([scale])
    compute_recordings(recordings, *given, downmix, lobes, out.dtype, threads)
    return out


def expected(file: np.ndarray, dtype: str, downmix: bool, scale: float, lobes: int) -> np.ndarray:
    """Return the result of libsndfile and numpy for a file."""
    converts = scale != 1 or downmix
    signal = soundfile.read(io.BytesIO(file.tobytes()), dtype="float32" if converts else dtype, always_2d=True)[0]
    if not converts:
        return signal
    if downmix:
        signal = signal.mean(axis=1)
    if scale != 1 and signal.size:
        signal = resample_signal(signal, scale, math.ceil(len(signal) * scale), lobes)
    out = np.empty(signal.shape, dtype)
    from_unit(signal, out)
    return out


@pytest.mark.parametrize("subtype", ENCODINGS)
def test_all_encodings(subtype: str) -> None:
    for kind, channels in (("WAV", 1), ("WAVEX", 3)):
        file = encoded(noise(3001, channels), subtype, kind)
        found = read(file)[0]
        assert (found["encoding"], found["frames"], found["channels"], found["rate"]) == (
            ENCODINGS[subtype],
            3001,
            channels,
            RATE,
        )
        for dtype in ("float32", "int16", "int32"):
            np.testing.assert_array_equal(computed(file, dtype), expected(file, dtype, False, 1, 0))


@pytest.mark.parametrize("channels", [2, 7, 8, 21, 128])
@pytest.mark.parametrize("scale", [1, 0.37, 1.6])
def test_downmix_and_resampling(channels: int, scale: float) -> None:
    for dtype, quality in (("float32", 50.0), ("int16", 100.0)):
        file, lobes = encoded(noise(2500, channels)), lobes_of_quality(quality)
        for downmix in (True, False):
            if downmix or scale != 1:
                result = computed(file, dtype, downmix, scale, lobes)
                np.testing.assert_array_equal(result, expected(file, dtype, downmix, scale, lobes))


def test_far_apart_positions() -> None:
    file = encoded(noise(9000, 2))
    for scale in (1 / 3000, 1 / 4500.3, 7.5):
        np.testing.assert_array_equal(
            computed(file, "float32", True, scale), expected(file, "float32", True, scale, 16)
        )


@pytest.mark.parametrize("scale", [1, 0.5])
def test_long_recordings_are_shared(scale: float) -> None:
    # As floats, these recordings are larger than the processor's caches.
    file = encoded(noise(2_200_001, 2) if scale == 1 else noise(400_000, 2))
    for downmix in (False, True):
        result = computed(file, "float32", downmix, scale, threads=3)
        np.testing.assert_array_equal(result, expected(file, "float32", downmix, scale, 16))


@pytest.mark.parametrize("bits", [32, 64])
def test_floats_become_integers_as_in_libsndfile(bits: int) -> None:
    edges = [0.5, 1.5, 32767.5, 32768, -32768.5, -40000, 2147483520, 2147483648, 3e9, -3e9, np.inf, -np.inf, np.nan]
    file = wav(3, bits, np.array(edges, f"<f{bits // 8}").tobytes())
    for dtype in ("int16", "int32"):
        np.testing.assert_array_equal(computed(file, dtype), expected(file, dtype, False, 1, 0))


def test_files_at_odd_addresses() -> None:
    file = encoded(noise(999, 2), "DOUBLE")
    block = np.empty(file.size + 1, np.uint8)
    block[1:] = file
    np.testing.assert_array_equal(computed(block[1:], "float32"), expected(file, "float32", False, 1, 0))


def put(file: np.ndarray, place: int, contents: bytes) -> np.ndarray:
    changed = file.copy()
    changed[place : place + len(contents)] = np.frombuffer(contents, np.uint8)
    return changed


PLAIN = encoded(noise(10, 2))
UNUSUAL = {
    "nothing": PLAIN[:0],
    "cut short in the header": PLAIN[:40],
    "cut short": PLAIN[:-1],
    "big-endian": put(PLAIN, 0, b"RIFX"),
    "no channels": put(PLAIN, 22, b"\0\0"),
    "too many channels": put(PLAIN, 22, b"\x81\0"),
    "no rate": put(PLAIN, 24, bytes(4)),
    "another size of frames": put(PLAIN, 32, b"\x08"),
    "12 bits": put(PLAIN, 34, b"\x0c"),
    "ADPCM": put(PLAIN, 20, b"\x11"),
    "a long format": put(PLAIN, 16, b"\xff\xff\xff\xff"),
    "a part of a frame": put(PLAIN, 40, b"\x27"),
    "more than there is": put(PLAIN, 40, b"\xff\xff\xff\xff"),
    "an unknown chunk": put(PLAIN, 36, b"what"),
    "another extension": put(encoded(noise(10, 2), kind="WAVEX"), 50, b"\1"),
    "a chunk after the samples": np.append(encoded(noise(10, 2), "FLOAT"), PLAIN[36:44]),
    "another list": put(np.insert(encoded(noise(10, 2), "PCM_24"), [36] * 12, 0), 36, b"LIST\4\0\0\0exif"),
    "FLAC": encoded(noise(10, 2), kind="FLAC"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_left_to_libsndfile(name: str) -> None:
    file = UNUSUAL[name]
    (found,) = read(file if file.size else np.empty(1, np.uint8)[:0])
    assert found["encoding"] == Encoding.UNUSUAL
    assert found["frames"] == 0


@pytest.mark.parametrize("subtype", ["FLOAT", "PCM_24", "ULAW"])
def test_changed_headers_are_read_as_by_libsndfile(subtype: str) -> None:
    random, whole, taken = np.random.default_rng(7), encoded(noise(40, 2), subtype), 0
    header = whole.size - 40 * read(whole)["channels"][0]
    for _ in range(1500):
        file = put(whole, int(random.integers(min(header, 100))), bytes(random.integers(0, 256, 1, np.uint8)))
        if random.random() < 0.3:
            file = put(file, int(random.integers(100)), bytes(random.integers(0, 4, 1, np.uint8)))
        if read(file)["encoding"][0] != Encoding.UNUSUAL:
            taken += 1
            np.testing.assert_array_equal(computed(file, "int16"), expected(file, "int16", False, 1, 0))
    assert taken > 100


def test_one_batch_of_many_kinds() -> None:
    @pipeline_def(batch_size=6, num_threads=2, device_id=None)
    def decoding() -> Any:
        return tuple(fn.decoders.audio(fn.external_source(name="files"), sample_rate=16_000.0, downmix=True))

    signal = noise(4000, 2)
    files = [
        encoded(signal),
        encoded(signal, "FLOAT"),
        encoded(signal, kind="FLAC"),
        encoded(signal[:0]),
        encoded(signal, "VORBIS", "OGG"),
        encoded(signal, "DOUBLE"),
    ]
    pipe = decoding()
    pipe.feed_input("files", files)
    sounds, rates = pipe.run()
    scale = 16_000 / RATE
    for file, sound, rate in zip(files, map(np.array, sounds), map(np.array, rates)):
        np.testing.assert_array_equal(sound, expected(file, "float32", True, scale, 16))
        assert rate == 16_000


def test_damaged_files_fail_alone() -> None:
    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def decoding() -> Any:
        return fn.decoders.audio(fn.external_source(name="files"), dtype=types.INT16)[0]

    pipe = decoding()
    good = encoded(noise(100, 2))
    pipe.feed_input("files", [good, put(good, 24, bytes(4)), good])
    with pytest.raises(RuntimeError, match=r"(?s)0 Hz.*1|1.*0 Hz"):
        pipe.run()
