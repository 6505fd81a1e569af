"""Decodes recordings with libsndfile, in this process or in a worker."""

from __future__ import annotations

import io
from typing import Any, Protocol

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.audio import (
    CorruptRecordingError,
    PcmSamples,
    SoundFormat,
    check_length,
    check_recording,
    find_pcm_samples,
)
from penstock.kernels.codecs.worker_pool import DecoderPool


class Recording(Protocol):
    """A recording whose header was read.

    Attributes:
        frames: its length, in samples per channel.
        channels: their number.
        rate: samples per second and channel.
    """

    frames: int
    channels: int
    rate: int

    def read_into(self, output: np.ndarray) -> None:
        """Fills (frames, channels) of int16, int32 or float32, and closes the file; missing data becomes silence."""


def open_recording(encoded: np.ndarray, decoding: Decoding = FREELY) -> Recording:
    """Reads the header of a recording.

    Args:
        encoded: the file's bytes, uint8 of shape (n,).
        decoding: where to decode.

    Raises:
        CorruptRecordingError: it is not a recording, or damaged.
    """
    known = check_recording(encoded.data)
    plain = find_pcm_samples(encoded.data)
    pool = decoding.pool_for(known.trusted)
    recording: Recording
    if plain is not None:
        recording = _Pcm(encoded, plain)
    else:
        recording = _InProcess(encoded) if pool is None else _Isolated(encoded, known, pool)
    check_length(recording.frames, recording.channels, recording.rate, encoded.size)
    return recording


class _Pcm:
    """16-bit samples, for which no library is needed; they become numbers as in libsndfile."""

    def __init__(self, encoded: np.ndarray, where: PcmSamples) -> None:
        self.frames, self.channels, self.rate = where.frames, where.channels, where.rate
        self._samples = np.frombuffer(encoded, "<i2", where.frames * where.channels, where.start)

    def read_into(self, output: np.ndarray) -> None:
        samples = self._samples.reshape(self.frames, self.channels)
        if output.dtype == np.float32:
            np.multiply(samples, np.float32(2.0**-15), out=output)
        elif output.dtype == np.int32:
            np.left_shift(samples, np.int32(16), out=output)
        else:
            output[...] = samples


class _InProcess:
    """A recording decoded in this process."""

    def __init__(self, encoded: np.ndarray) -> None:
        from soundfile import SoundFile, SoundFileError

        try:
            self._file: Any = SoundFile(io.BytesIO(encoded.tobytes()))
        except SoundFileError as error:
            reason = getattr(error, "error_string", error)
            raise CorruptRecordingError(f"Failed to open encoded data: {reason}") from error
        self.frames, self.channels, self.rate = self._file.frames, self._file.channels, self._file.samplerate

    def read_into(self, output: np.ndarray) -> None:
        from soundfile import SoundFileError

        try:
            with self._file as file:
                read = file.read(output.shape[0], dtype=output.dtype.name, always_2d=True)
        except SoundFileError as error:
            reason = getattr(error, "error_string", error)
            raise CorruptRecordingError(f"Failed to decode the recording: {reason}") from error
        output[: len(read)] = read
        output[len(read) :] = 0


class _Isolated:
    """A recording decoded in a worker process."""

    def __init__(self, encoded: np.ndarray, known: SoundFormat, pool: DecoderPool) -> None:
        self._encoded, self._title, self._pool = encoded, known.title, pool
        facts = pool.run("read_recording_header", known.title, encoded)
        try:
            self.frames, self.channels, self.rate = map(int, facts)
        except (TypeError, ValueError) as error:
            raise CorruptRecordingError("Damaged recording: the worker process returned invalid data") from error

    def read_into(self, output: np.ndarray) -> None:
        self._pool.run("decode_recording", self._title, self._encoded, None, output)


# -- in the worker -----------------------------------------------------------------------------------------------------


def read_header_in_worker(data: np.ndarray, output: None) -> list[int]:
    """The worker's part of opening."""
    recording = _InProcess(data)
    return [recording.frames, recording.channels, recording.rate]


def decode_in_worker(data: np.ndarray, output: np.ndarray) -> None:
    """The worker's part of reading."""
    _InProcess(data).read_into(output)
