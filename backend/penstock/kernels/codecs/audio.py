"""Decodes recordings that are not plain WAV files: our kernel decodes FLAC, libsndfile other formats, in this process or in a
worker process.
"""

from __future__ import annotations

import io
from typing import Any, Protocol

import numpy as np

from penstock.kernels.codecs.decoding import FREELY, Decoding
from penstock.kernels.codecs.headers.audio import (
    CorruptRecordingError,
    SoundFormat,
    check_length,
    check_recording,
)
from penstock.kernels.codecs.worker_pool import DecoderPool

# Bytes of a FLAC file's signature and its first metadata block.
_FLAC_HEADER = 42
# libsndfile decodes at most this many values at a time, so that little memory is needed besides the result.
_MAX_BLOCK_VALUES = 1 << 20


class Recording(Protocol):
    """A recording whose header has been read.

    Attributes:
        frames: the length, in samples per channel.
        channels: the number of channels.
        rate: the sampling rate, in samples per second and channel.
    """

    frames: int
    channels: int
    rate: int

    def read_into(self, output: np.ndarray) -> None:
        """Fill an array of shape (frames, channels) and type int16, int32 or float32, and close the file; missing data becomes silence."""


def open_recording(encoded: np.ndarray, decoding: Decoding = FREELY) -> Recording:
    """Read the header of a recording.

    Args:
        encoded: the file's bytes, uint8 of shape (n,).
        decoding: the settings, which determine in which process to decode.

    Raises:
        CorruptRecordingError: the file is not a recording, or damaged.
    """
    known = check_recording(encoded.data)
    recording = _opened(encoded, known, decoding.pool_for(known.trusted))
    check_length(recording.frames, recording.channels, recording.rate, encoded.size)
    return recording


def _opened(encoded: np.ndarray, known: SoundFormat, pool: DecoderPool | None) -> Recording:
    if pool is not None:
        return _Isolated(encoded, known, pool)
    return _Flac.of(encoded) or _InProcess(encoded)


class _Flac:
    """A FLAC recording of a common kind, decoded by our kernel, which is faster than libsndfile."""

    def __init__(self, encoded: np.ndarray, start: int) -> None:
        self._encoded, self._start = encoded, start
        head = bytes(encoded[:_FLAC_HEADER])
        self._largest = int.from_bytes(head[10:12], "big")
        packed = int.from_bytes(head[18:26], "big")
        self.rate, self.channels = packed >> 44, (packed >> 41 & 7) + 1
        self.bits, self.frames = (packed >> 36 & 31) + 1, packed & (1 << 36) - 1

    @classmethod
    def of(cls, encoded: np.ndarray) -> _Flac | None:
        """Return the recording if our kernel supports it, otherwise None."""
        if bytes(encoded[:4]) != b"fLaC":
            return None
        start, last = 4, False
        while not last:
            head = bytes(encoded[start : start + 4])
            if len(head) < 4:
                return None
            last, start = head[0] > 127, start + 4 + int.from_bytes(head[1:], "big")
        recording = cls(encoded, start)
        return recording if recording.frames and recording.bits in (16, 24) else None

    def read_into(self, output: np.ndarray) -> None:
        from penstock.kernels.cpu.flac import MARGIN, decode_flac

        data = np.empty(self._encoded.size + MARGIN, np.uint8)
        data[: self._encoded.size] = self._encoded
        data[self._encoded.size :] = 0
        if output.dtype.kind == "f":
            shift, scale = 0, 1 / (1 << self.bits - 1)
        else:
            shift, scale = output.dtype.itemsize * 8 - self.bits, 1
        shifts = max(shift, 0), max(-shift, 0)
        if not decode_flac(data, self._start, self.bits, self._largest, output, *shifts, scale):
            _InProcess(self._encoded).read_into(output)


class _InProcess:
    """A recording that libsndfile decodes in this process."""

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
            with self._file:
                read = self._read_blocks(output)
        except SoundFileError as error:
            reason = getattr(error, "error_string", error)
            raise CorruptRecordingError(f"Failed to decode the recording: {reason}") from error
        output[read:] = 0

    def _read_blocks(self, output: np.ndarray) -> int:
        """Decode the file into an array of shape (frames, channels); return the number of frames read."""
        frames, channels = output.shape
        block = max(_MAX_BLOCK_VALUES // max(channels, 1), 1)
        for start in range(0, frames, block):
            wanted = min(block, frames - start)
            part = output[start : start + wanted]
            if part.flags.c_contiguous:
                read = len(self._file.read(out=part))
            else:
                values = self._file.read(wanted, dtype=output.dtype.name, always_2d=True)
                read = len(values)
                part[:read] = values
            if read < wanted:
                return start + read
        return frames


class _Isolated:
    """A recording that is decoded in a worker process."""

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
    """Return a recording's number of frames and of channels, and its sampling rate. Runs in the worker."""
    recording = _InProcess(data)
    return [recording.frames, recording.channels, recording.rate]


def decode_in_worker(data: np.ndarray, output: np.ndarray) -> None:
    """Decode a recording into ``output``. Runs in the worker."""
    _InProcess(data).read_into(output)
