"""Penstock's FLAC decoder returns the same as libsndfile, or leaves the recording to it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import soundfile

from penstock.kernels.codecs import audio
from penstock.kernels.codecs.audio import open_recording

SIGNALS = {
    "silence": lambda n, rng: np.zeros(n),
    "constant": lambda n, rng: np.full(n, 0.3),
    "tone": lambda n, rng: np.sin(np.arange(n) * 0.01) * 0.7,
    "noise": lambda n, rng: rng.uniform(-1, 1, n),
    "square": lambda n, rng: np.sign(np.sin(np.arange(n) * 0.002)) * 0.9 + rng.normal(0, 0.001, n),
    "coarse": lambda n, rng: np.round(np.sin(np.arange(n) * 0.03) * 64) / 128,
}


def encoded(signal: np.ndarray, level: float = 0.5, subtype: str = "PCM_16") -> np.ndarray:
    file = io.BytesIO()
    soundfile.write(file, signal, 44_100, format="FLAC", subtype=subtype, compression_level=level)
    return np.frombuffer(file.getvalue(), np.uint8)


def sound(kind: str, length: int, channels: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    first = SIGNALS[kind](length, rng)
    rest = [first * (1 - 0.1 * channel) + rng.normal(0, 0.0001, length) for channel in range(1, channels)]
    return np.stack([first, *rest], 1).clip(-1, 0.9999)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Use Penstock's decoder; return a list that gets an entry each time that it leaves a recording to libsndfile."""
    left, kind = [], audio._InProcess
    monkeypatch.setattr(audio, "_InProcess", lambda data: left.append(1) or kind(data))
    return left


def expected(data: np.ndarray, dtype: str) -> np.ndarray:
    return soundfile.read(io.BytesIO(data.tobytes()), dtype=dtype, always_2d=True)[0]


def decoded(data: np.ndarray, dtype: str) -> np.ndarray:
    recording = open_recording(data)
    output = np.full((recording.frames, recording.channels), 99, dtype)
    recording.read_into(output)
    assert recording.rate == 44_100
    return output


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
@pytest.mark.parametrize("channels", [1, 2, 3, 8])
@pytest.mark.parametrize("kind", SIGNALS)
def test_recordings(kind: str, channels: int, subtype: str, ours: list[int]) -> None:
    for length, level in ((1, 0.0), (17, 1.0), (9000, 0.3), (20_000, 1.0)):
        data = encoded(sound(kind, length, channels), level, subtype)
        for dtype in ("float32", "int16", "int32"):
            np.testing.assert_array_equal(decoded(data, dtype), expected(data, dtype))
    assert not ours


def test_what_is_left_to_libsndfile(ours: list[int]) -> None:
    data = encoded(sound("tone", 900, 1), subtype="PCM_S8")
    np.testing.assert_array_equal(decoded(data, "int16"), expected(data, "int16"))
    assert len(ours) == 1


@pytest.mark.parametrize("position", [0.4, 0.7, 0.99])
def test_damage_is_left_to_libsndfile(position: float, ours: list[int]) -> None:
    data = encoded(sound("noise", 20_000, 2)).copy()
    data[int(data.size * position)] ^= 1
    recording = open_recording(data)
    output = np.empty((recording.frames, 2), np.float32)
    outcomes: list[Any] = []
    for read in (recording.read_into, lambda out: audio._InProcess(data).read_into(out)):
        try:
            read(output)
            outcomes.append(output.copy())
        except audio.CorruptRecordingError as error:
            outcomes.append(str(error))
    assert len(ours) == 2
    np.testing.assert_array_equal(*outcomes)
