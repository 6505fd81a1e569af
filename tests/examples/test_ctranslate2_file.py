"""Weights are read from files in CTranslate2's format, and damaged files are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from penstock.examples.speech.ctranslate2_file import WeightsFileError, read_weights

WEIGHTS = {
    "layer/weight": np.arange(6, dtype=np.float16).reshape(2, 3),
    "layer/bias": np.array([1.5, -2], np.float32),
    "heads": np.array(6, np.int16),
    "scales": np.array([[-128, 127]], np.int8),
    "none": np.zeros((0, 3), np.int32),
}
_NUMBERS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def text(value: str) -> bytes:
    content = value.encode() + b"\0"
    return struct.pack("<H", len(content)) + content


def entry(name: str, values: np.ndarray) -> bytes:
    shape = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
    return text(name) + shape + struct.pack("<BI", _NUMBERS[values.dtype.name], values.nbytes) + values.tobytes()


def file(entries: list[bytes], aliases: list[tuple[str, str]] | None = None, version: int = 6) -> bytes:
    content = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<II", 3, len(entries)) + b"".join(entries)
    pairs = [text(alias) + text(name) for alias, name in aliases or []]
    return content + struct.pack("<I", len(pairs)) + b"".join(pairs)


GOOD = file([entry(*weight) for weight in WEIGHTS.items()], [("projection", "layer/weight")])


def test_weights_are_read() -> None:
    found = read_weights(GOOD, "WhisperSpec")
    assert list(found) == list(WEIGHTS)
    for name, values in WEIGHTS.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def test_every_truncation_is_refused() -> None:
    for size in range(len(GOOD)):
        with pytest.raises(WeightsFileError):
            read_weights(GOOD[:size], "WhisperSpec")


def test_damaged_files_are_refused_or_read() -> None:
    """Whichever byte is changed, the reader raises either its own error or none."""
    refused = 0
    for place in range(len(GOOD)):
        for value in (0, 0x7F, 0xFF):
            damaged = bytearray(GOOD)
            damaged[place] = value
            try:
                read_weights(bytes(damaged), "WhisperSpec")
            except WeightsFileError:
                refused += 1
    assert refused > len(GOOD)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (file([], version=5), "format in version 6"),
        (GOOD + b"\0", "1 bytes follow the weights"),
        (file([entry("a", WEIGHTS["heads"])] * 2), "a occurs twice"),
        (file([entry("a", WEIGHTS["heads"])], [("b", "c")]), "'b' is another name of 'c'"),
        (file([entry("a", WEIGHTS["heads"])], [("a", "a")]), "'a' is another name of 'a'"),
        (file([text("a") + bytes([200]) + b"\0" * 2000]), "'a' has 200 dimensions"),
        (file([text("a") + struct.pack("<BBI", 0, 5, 2) + b"\0\0"]), "'a' is of type 5"),
        (file([text("a") + struct.pack("<BIBI", 1, 1 << 31, 0, 4) + b"\0" * 4]), "'a' has 4 bytes"),
        (file([struct.pack("<H", 2) + b"\xff\0"]), "a name is not valid text"),
    ],
)
def test_reasons_are_given(content: bytes, reason: str) -> None:
    with pytest.raises(WeightsFileError, match=reason):
        read_weights(content, "WhisperSpec")


def test_other_networks_are_refused() -> None:
    with pytest.raises(WeightsFileError, match="holds a 'WhisperSpec' instead of a TransformerSpec"):
        read_weights(GOOD, "TransformerSpec")
