"""Encoders make files that other libraries decode to the original data."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
import soundfile
from one_batch import isolated, outputs
from PIL import Image

from penstock import fn
from penstock.errors import OperatorError

RNG = np.random.default_rng(47)


def image(*shape: int) -> np.ndarray:
    smooth = cv2.GaussianBlur(RNG.integers(0, 256, shape, np.uint8), (0, 0), 5)
    return smooth.reshape(shape)


IMAGES = [image(40, 60, 3), image(1, 1, 3), image(33, 17, 3)]


def encoded(function: Any, samples: list[np.ndarray], layout: str | None = "HWC", **arguments: Any) -> list[bytes]:
    (files,) = outputs(lambda: function(fn.external_source(name="data", layout=layout), **arguments), data=samples)
    assert all(file.dtype == np.uint8 and file.ndim == 1 for file in files)
    return [file.tobytes() for file in files]


def opened(file: bytes, kind: str) -> np.ndarray:
    with Image.open(io.BytesIO(file)) as found:
        assert found.format == kind
        return np.asarray(found)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("function", "kind", "arguments"),
    [(fn.encoders.png, "PNG", {"compression": 9}), (fn.encoders.webp, "WEBP", {"lossless": True})],
)
def test_files_without_loss(function: Any, kind: str, arguments: dict[str, Any], channels: int) -> None:
    images = [image(20, 30, channels), image(7, 5, channels)]
    if channels == 4:
        # WebP does not preserve the colours of pixels whose alpha is zero.
        for own in images:
            own[..., 3] |= 1
    for own, file in zip(images, encoded(function, images, **arguments)):
        found = opened(file, kind)
        gray = found if found.ndim == 2 or channels > 1 else found[..., 0]
        np.testing.assert_array_equal(gray.reshape(own.shape), own)


@pytest.mark.parametrize(("function", "kind"), [(fn.encoders.jpeg, "JPEG"), (fn.encoders.webp, "WEBP")])
def test_quality(function: Any, kind: str) -> None:
    good, bad = encoded(function, IMAGES[:1], quality=95)[0], encoded(function, IMAGES[:1], quality=5)[0]
    assert len(bad) < len(good)
    errors = [np.abs(opened(file, kind).astype(int) - IMAGES[0]).mean() for file in (good, bad)]
    assert errors[0] < 2 < errors[0] + errors[1]
    assert errors[0] < errors[1]


def test_quality_of_each_sample() -> None:
    def define() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        return fn.encoders.jpeg(images, quality=fn.external_source(name="quality", ndim=0))

    qualities = [np.int32(quality) for quality in (90, 50, 10)]
    (files,) = outputs(define, images=[IMAGES[0]] * 3, quality=qualities)
    assert len(files[0]) > len(files[1]) > len(files[2])
    for quality, file in zip(qualities, files):
        assert file.tobytes() == encoded(fn.encoders.jpeg, IMAGES[:1], quality=int(quality))[0]


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (fn.encoders.jpeg, image(4, 4, 4)),
        (fn.encoders.png, image(4, 4, 2)),
        (fn.encoders.webp, np.zeros((0, 5, 3), np.uint8)),
    ],
)
def test_a_bad_image_fails_alone(function: Any, bad: np.ndarray) -> None:
    files, failures = isolated(
        lambda: function(fn.external_source(name="data", layout="HWC")), data=[IMAGES[0], bad, IMAGES[2]]
    )
    assert list(failures) == [1]
    assert str(list(bad.shape)) in str(failures[1])
    assert [files[0][0].tobytes(), files[0][2].tobytes()] == encoded(function, [IMAGES[0], IMAGES[2]])


SOUNDS = [
    RNG.uniform(-1, 1, 3000).astype(np.float32),
    RNG.uniform(-1, 1, 0).astype(np.float32),
    np.array([-1, 1, 0.5], np.float32),
]
STEPS = {"int16": 2.0**-15, "int24": 2.0**-23, "float": 0.0}


@pytest.mark.parametrize(
    ("function", "encoding"),
    [(fn.encoders.wav, own) for own in STEPS] + [(fn.encoders.flac, own) for own in ("int16", "int24")],
)
def test_sounds(function: Any, encoding: str) -> None:
    # FLAC cannot store empty sounds.
    mono = SOUNDS if function is fn.encoders.wav else SOUNDS[::2]
    stereo = [np.stack([sound, -sound], axis=1) for sound in mono]
    for sounds in (mono, stereo):
        for own, file in zip(sounds, encoded(function, sounds, None, sample_rate=8000, encoding=encoding)):
            found, rate = soundfile.read(io.BytesIO(file), dtype="float32")
            assert rate == 8000
            np.testing.assert_allclose(found, own, atol=1.01 * STEPS[encoding])


def written(sound: np.ndarray, kind: str, subtype: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, 8000, subtype, format=kind)
    return file.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 8])
@pytest.mark.parametrize(("encoding", "subtype"), [("int16", "PCM_16"), ("int24", "PCM_24")])
def test_files_equal_those_of_libsndfile(encoding: str, subtype: str, channels: int) -> None:
    steps = np.arange(-12, 12, dtype=np.float32).reshape(-1, 8) / 4
    halves = np.concatenate([steps * np.float32(2.0**-15), steps * np.float32(2.0**-23), [[-1, 1] * 4]])
    values = [np.concatenate([halves, RNG.uniform(-1, 1, (401, 8))]), RNG.uniform(-1, 1, (3, 8)) * 1e-9]
    real = [np.ascontiguousarray(own[:, :channels], np.float32) for own in values]
    whole = [RNG.integers(-32768, 32768, (count, channels)).astype(np.int16) for count in (100, 1, 33)]
    for function, kind in ((fn.encoders.wav, "WAV"), (fn.encoders.flac, "FLAC")):
        for sounds in (real, whole):
            files = encoded(function, sounds, None, sample_rate=8000, encoding=encoding)
            assert files == [written(sound, kind, subtype) for sound in sounds]


def test_floats_have_libsndfiles_header_without_peaks() -> None:
    sound = RNG.uniform(-3, 3, (50, 2)).astype(np.float32)
    (file,), reference = (
        encoded(fn.encoders.wav, [sound], None, sample_rate=8000, encoding="float"),
        written(sound, "WAV", "FLOAT"),
    )
    peaks = reference.index(b"PEAK")
    rest = reference[:peaks] + reference[reference.index(b"data") :]
    assert file == rest[:4] + (len(rest) - 8).to_bytes(4, "little") + rest[8:]


def test_integers_become_floats_up_to_1() -> None:
    sound = np.array([-32768, 0, 16384], np.int16)
    (file,) = encoded(fn.encoders.wav, [sound], None, sample_rate=8000, encoding="float")
    np.testing.assert_array_equal(soundfile.read(io.BytesIO(file))[0], [-1, 0, 0.5])


def test_whole_numbers_are_kept() -> None:
    sounds = [RNG.integers(-32768, 32768, (100, 2)).astype(np.int16)]
    for function in (fn.encoders.wav, fn.encoders.flac):
        found, _ = soundfile.read(io.BytesIO(encoded(function, sounds, None, sample_rate=44100)[0]), dtype="int16")
        np.testing.assert_array_equal(found, sounds[0])


@pytest.mark.parametrize("bad", [np.array([0, 1.5], np.float32), np.array([0, np.nan], np.float32)])
def test_a_sound_beyond_its_range_fails_alone(bad: np.ndarray) -> None:
    def define() -> Any:
        return fn.encoders.wav(fn.external_source(name="data", ndim=1), sample_rate=8000)

    files, failures = isolated(define, data=[SOUNDS[0], bad, SOUNDS[2]])
    assert list(failures) == [1]
    assert "Values must be from -1 to 1" in str(failures[1])
    assert [files[0][0].tobytes(), files[0][2].tobytes()] == encoded(
        fn.encoders.wav, [SOUNDS[0], SOUNDS[2]], None, sample_rate=8000
    )
    assert encoded(fn.encoders.wav, [bad], None, sample_rate=8000, encoding="float")


@pytest.mark.parametrize(
    ("function", "arguments", "data"),
    [
        (fn.encoders.jpeg, {"quality": 0}, IMAGES[0]),
        (fn.encoders.png, {"compression": 10}, IMAGES[0]),
        (fn.encoders.webp, {"quality": 101}, IMAGES[0]),
        (fn.encoders.jpeg, {}, IMAGES[0].astype(np.float32)),
        (fn.encoders.wav, {"sample_rate": 0}, SOUNDS[0]),
        (fn.encoders.flac, {"sample_rate": 8000, "encoding": "float"}, SOUNDS[0]),
        (fn.encoders.flac, {"sample_rate": 8000}, SOUNDS[1]),
        (fn.encoders.wav, {"sample_rate": 8000}, np.zeros((4, 9), np.float32)),
        (fn.encoders.wav, {"sample_rate": 8000}, np.zeros(4, np.int32)),
    ],
)
def test_what_is_refused(function: Any, arguments: dict[str, Any], data: np.ndarray) -> None:
    with pytest.raises((ValueError, OperatorError)):
        encoded(function, [data] * 2, "HWC" if data.ndim == 3 else None, **arguments)
