"""Checks the headers of recordings (WAV, FLAC and Ogg), and determines which formats are trusted.

Sources: Microsoft, Multimedia Programming Interface and Data Specifications 1.0 (RIFF WAVE) and WAVEFORMATEXTENSIBLE;
RFC 9639 (FLAC), sections 8.2 and 9; RFC 3533 (Ogg), section 6; Xiph.org, Vorbis I, section 4.2.2; RFC 7845 (Opus in Ogg), 5.1.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.errors import PenstockError

_MAX_CHANNELS = 1024  # libsndfile's limit


class CorruptRecordingError(PenstockError, ValueError):
    """The bytes are not a recording, or the recording is truncated or damaged."""


class SoundFormat(NamedTuple):
    """The format of an encoded recording.

    Attributes:
        title: the format's common name.
        trusted: whether the format's decoder has proven robust against malicious files, so that it runs in this process if isolation is
            ``auto``. This holds for FLAC, and for WAV with plain samples.
    """

    title: str
    trusted: bool = False


def check_recording(data: memoryview) -> SoundFormat:
    """Return the format of a recording; raise CorruptRecordingError for impossible header values."""
    start = bytes(data[:12])
    if start[:4] == b"RIFF" and start[8:] == b"WAVE":
        return _check_wav(data)
    if start[:4] == b"fLaC":
        return _check_flac(data)
    if start[:4] == b"OggS":
        return _check_ogg(data)
    return SoundFormat("audio")


def check_length(frames: int, channels: int, rate: int, available: int) -> None:
    """Raise CorruptRecordingError if a file of ``available`` bytes is too small for the recording that its header declares."""
    _check(0 < channels <= _MAX_CHANNELS, f"it has {channels} channels")
    _check(rate > 0, f"its sample rate is {rate} Hz")
    _check(
        0 <= frames * channels <= max(_MAX_VALUES_PER_BYTE * available, UNCHECKED_VALUES),
        f"{available} bytes cannot hold the {frames * channels} samples that the header declares",
    )


# FLAC's silence is encoded most densely: 65535 samples of each of 8 channels in 42 bytes.
_MAX_VALUES_PER_BYTE = 16_384
UNCHECKED_VALUES = 1 << 24
"""Recordings of up to this many values (frames x channels) are accepted, however small the file."""


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise CorruptRecordingError(f"Damaged recording: {what}")


# -- WAV ---------------------------------------------------------------------------------------------------------------

_PCM, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_BITS = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64), _A_LAW: (8,), _MU_LAW: (8,)}
_MAX_CHUNKS = 4096
_SUB_FORMAT = 24


def _check_wav(data: memoryview) -> SoundFormat:
    position = 12
    for _ in range(_MAX_CHUNKS):
        _check(position + 8 <= len(data), "it is cut short within its header")
        name, length = struct.unpack_from("<4sI", data, position)
        if name == b"fmt ":
            return _check_wav_format(data[position + 8 : position + 8 + length])
        position += 8 + length + (length & 1)
    _check(False, f"its format does not come in its first {_MAX_CHUNKS} chunks")
    raise AssertionError("unreachable")


def _check_wav_format(header: memoryview) -> SoundFormat:
    _check(len(header) >= 16, "it is cut short within its header")
    kind, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", header)
    _check(0 < channels <= _MAX_CHANNELS, f"it has {channels} channels")
    _check(rate > 0, "its sample rate is 0 Hz")
    if kind == _EXTENSIBLE and len(header) >= _SUB_FORMAT + 2:
        (kind,) = struct.unpack_from("<H", header, _SUB_FORMAT)
    plain = bits in _BITS.get(kind, ()) and block == channels * bits // 8
    return SoundFormat("WAV", trusted=plain)


# -- FLAC --------------------------------------------------------------------------------------------------------------


def _check_flac(data: memoryview) -> SoundFormat:
    _check(len(data) >= 42, "it is cut short within its header")
    _check(data[4] & 0x7F == 0 and bytes(data[5:8]) == b"\0\0\x22", "it does not begin with a known chunk")
    smallest, largest = struct.unpack_from(">HH", data, 8)
    _check(16 <= smallest <= largest, f"its blocks are of {smallest} to {largest} samples")
    packed = int.from_bytes(data[18:26], "big")
    rate, channels, bits, frames = (
        packed >> 44,
        (packed >> 41 & 7) + 1,
        (packed >> 36 & 31) + 1,
        packed & (1 << 36) - 1,
    )
    _check(bits >= 4, f"its samples have {bits} bits")
    check_length(frames, channels, rate, len(data))
    return SoundFormat("FLAC", trusted=True)


# -- Ogg ---------------------------------------------------------------------------------------------------------------


def _check_ogg(data: memoryview) -> SoundFormat:
    _check(len(data) >= 28 and data[4] == 0, "it is cut short within its first page, or of an unknown version")
    packet = data[27 + data[26] :]
    start = bytes(packet[:8])
    if start[:7] == b"\x01vorbis":
        _check(len(packet) >= 30, "it is cut short within its header")
        version, channels, rate = struct.unpack_from("<IBI", packet, 7)
        _check(version == 0 and channels > 0 and rate > 0, f"it has {channels} channels of {rate} Hz")
        blocks = packet[28]
        _check(6 <= blocks & 15 <= blocks >> 4 <= 13, "its blocks are of an unknown size")
        return SoundFormat("Ogg Vorbis")
    if start == b"OpusHead":
        _check(len(packet) >= 19 and packet[8] >> 4 == 0, "it is cut short within its header, or of an unknown version")
        _check(packet[9] > 0, "it has no channels")
        return SoundFormat("Ogg Opus")
    return SoundFormat("Ogg")
