"""Messages declared in Python, and the TensorFlow records read with them."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest

from penstock.kernels.codecs.protobuf import Messages
from penstock.kernels.codecs.tfrecord import FLOAT32, INT64, STRING, Feature, has_values, parse_example, take

MESSAGES = Messages(
    "penstock.tests",
    {
        "Outer": ((1, "name", "required", "bytes"), (2, "inner", "repeated", "Inner")),
        "Inner": ((3, "numbers", "repeated", "int64"),),
    },
)


def test_messages_come_back() -> None:
    outer = MESSAGES.new("Outer")
    outer.name = b"a"
    outer.inner.add(numbers=[1, -1])
    outer.inner.add()
    again = MESSAGES.parse("Outer", memoryview(outer.SerializeToString()))
    assert again == outer
    assert [list(inner.numbers) for inner in again.inner] == [[1, -1], []]


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x12\x03\x18\xff\xff", b"\xff" * 12])
def test_damaged_messages_are_value_errors(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a Outer in protobuf's encoding"):
        MESSAGES.parse("Outer", data)


def test_without_protobuf_the_error_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['google'] = None\n"
        "from penstock.errors import SerializationError\n"
        "from penstock.serialize.wire import decode\n"
        "try:\n    decode(b'')\nexcept SerializationError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install protobuf" in run.stdout


# -- records -------------------------------------------------------------------------------------------------------------


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


def example(feature: bytes) -> memoryview:
    return memoryview(field(1, field(1, field(1, b"x") + field(2, feature))))


FLOATS = [0.5, -2.0, 3.25]
SINGLY = b"".join(b"\x0d" + struct.pack("<f", value) for value in FLOATS)
PACKED = field(1, struct.pack("<3f", *FLOATS))


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (PACKED, FLOATS),
        (SINGLY, FLOATS),
        (PACKED + PACKED, FLOATS * 2),
        (PACKED + SINGLY, FLOATS * 2),
        (SINGLY + PACKED, FLOATS * 2),
        (b"", []),
    ],
    ids=["packed", "one by one", "in two packs", "packed, then one by one", "one by one, then packed", "empty"],
)
def test_floats_however_they_are_written(encoded: bytes, expected: list[float]) -> None:
    taken = take(Feature(FLOAT32, None, 0.0), "x", parse_example(example(field(2, encoded))))
    assert taken.dtype == np.float32
    assert taken.tolist() == expected


@pytest.mark.parametrize("encoded", [b"\x08\x07\x08\x01", field(1, b"\x07\x01")], ids=["one by one", "packed"])
def test_integers_however_they_are_written(encoded: bytes) -> None:
    taken = take(Feature(INT64, None, 0), "x", parse_example(example(field(3, encoded))))
    assert taken.tolist() == [7, 1]


def test_the_first_string_is_taken() -> None:
    held = parse_example(example(field(1, field(1, b"first") + field(1, b"second"))))
    assert bytes(take(Feature(STRING, [1], ""), "x", held)) == b"first"


def test_a_feature_that_holds_nothing_is_as_good_as_none() -> None:
    assert not has_values("x", parse_example(example(b"")))


def test_a_feature_longer_than_the_record_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Damaged TFRecord: its \d+ bytes are not a tf.train.Example"):
        parse_example(example(b"\x12\x7f"))


def test_a_feature_of_two_kinds_is_refused() -> None:
    held = parse_example(example(field(1, b"") + field(3, b"")))
    with pytest.raises(ValueError, match="Damaged TFRecord: the feature 'x' has values of 2 types"):
        has_values("x", held)
    with pytest.raises(ValueError, match="the feature 'x' has values of 2 types"):
        take(Feature(INT64, None, 0), "x", held)


def test_floats_of_no_whole_number_are_refused() -> None:
    held = parse_example(example(field(2, field(1, b"abcde"))))
    with pytest.raises(ValueError, match="truncated"):
        take(Feature(FLOAT32, None, 0.0), "x", held)
