"""The wire format: saved pipelines round-trip byte for byte, damaged ones are rejected with clear errors."""

from __future__ import annotations

import contextlib
import random
import struct
from pathlib import Path

import pytest

from penstock.errors import SerializationError
from penstock.serialize.wire import CPU_ONLY, ArgumentDef, EdgeDef, FeatureDef, OpDef, PipelineDef, decode, encode

SAVED = sorted((Path(__file__).parents[1] / "golden" / "wire").glob("*.dali"))

# The smallest pipeline that DALI runs: the output of an external source, flipped.
FLIP = bytes.fromhex(
    "0802 1004"
    "2a3a 0a0e45787465726e616c536f75726365 1a0a0a015812036370751800"
    "2217 0a06646576696365 1206737472696e67 2a03637075 4000 2a0158 3000"
    "2a55 0a04466c6970 120a0a015812036370751800 1a0a0a017912036370751800"
    "2217 0a06646576696365 1206737472696e67 2a03637075 4000"
    "2217 0a0a686f72697a6f6e74616c 1205696e743634 2001 4000 2a0179 3001"
    "3a0a0a017912036370751800"
    "40e1f2f9ffffffffffff01"
)


def flip_pipeline() -> PipelineDef:
    device = ArgumentDef("device", "string", "cpu")
    source = OpDef("ExternalSource", outputs=[EdgeDef("X", "cpu")], arguments=[device], name="X", logical_id=0)
    flip = OpDef(
        "Flip",
        inputs=[EdgeDef("X", "cpu")],
        outputs=[EdgeDef("y", "cpu")],
        arguments=[device, ArgumentDef("horizontal", "int64", 1)],
        name="y",
        logical_id=1,
    )
    return PipelineDef(
        max_batch_size=4, num_threads=2, operators=[source, flip], outputs=[EdgeDef("y", "cpu")], device_id=CPU_ONLY
    )


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_saved_pipelines_come_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    assert encode(decode(data)) == data


def test_the_smallest_pipeline() -> None:
    assert decode(FLIP) == flip_pipeline()
    assert encode(flip_pipeline()) == FLIP


def test_a_file_written_by_dali() -> None:
    pipeline = decode(next(path for path in SAVED if path.stem == "01_classify").read_bytes())
    assert [op.schema for op in pipeline.operators] == [
        "ExternalSource",
        "decoders__Image",
        "Resize",
        "CropMirrorNormalize",
    ]
    assert pipeline.device_id == CPU_ONLY
    assert pipeline.operators[1].inputs == [EdgeDef(pipeline.operators[0].outputs[0].name, "cpu")]
    assert pipeline.outputs[0].dtype == -1


def test_features_of_a_tfrecord_reader() -> None:
    pipeline = decode(next(path for path in SAVED if path.stem.startswith("10")).read_bytes())
    assert pipeline.operators[0].argument("feature_names") == ["image", "lab", "var", "var2"]
    assert pipeline.operators[0].argument("features") == [
        FeatureDef(1, [], ""),
        FeatureDef(0, [2, 3], -1),
        FeatureDef(2, None, 0.5),
        FeatureDef(0, None, 7),
    ]
    assert pipeline.operators[0].argument("no such argument", 5) == 5


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int64", -(2**63)),
        ("int64", [1, 2, 3]),
        ("int64", []),
        ("float", 0.5),
        ("float", [0.25, float("inf")]),
        ("bool", False),
        ("bool", [True, False]),
        ("string", "Grüße"),
        ("string", ["", "a"]),
        ("string", b"\xff\xfe".decode("utf-8", "surrogateescape")),
    ],
)
def test_values_come_back(kind: str, value: object) -> None:
    pipeline = PipelineDef(1, operators=[OpDef("Op", arguments=[ArgumentDef("a", kind, value)])])
    assert decode(encode(pipeline)) == pipeline


def test_floats_become_single_precision() -> None:
    pipeline = PipelineDef(1, operators=[OpDef("Op", arguments=[ArgumentDef("a", "float", 0.4)])])
    assert decode(encode(pipeline)).operators[0].argument("a") == struct.unpack("f", struct.pack("f", 0.4))[0]


def test_what_is_not_written_stays_unsaid() -> None:
    pipeline = decode(encode(PipelineDef(max_batch_size=3)))
    assert pipeline == PipelineDef(max_batch_size=3)
    assert pipeline.seed is None
    assert pipeline.num_threads is None


def test_unknown_fields_are_ignored() -> None:
    assert decode(FLIP + bytes.fromhex("98060a")) == flip_pipeline()


def test_packed_values_are_accepted() -> None:
    packed = bytes.fromhex("1001 2a15 0a024f70 220f 0a0161 1205696e743634 220107 4000")
    assert decode(packed).operators[0].argument("a") == 7


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "lacks|missing|damaged"),
        (b"\x10", "damaged"),
        (b'{"this": "is JSON"}', "damaged"),
        (FLIP[:-20], "damaged"),
        (FLIP.replace(b"\x12\x03cpu\x18\x00\x22", b"\x12\x03tpu\x18\x00\x22", 1), "neither cpu nor gpu"),
        (FLIP.replace(b"int64", b"int65"), "type of argument 'horizontal' of operator 'y' is not known"),
        (FLIP.replace(b"\x20\x01\x40\x00", b"\x30\x01\x40\x00"), "Expected one int64 in argument 'horizontal'"),
        (FLIP.replace(b"horizontal", b"horizonta\xff"), "not valid UTF-8"),
        (b"\x10\x01\x2a\x80" + b"\x3a\x7f" * 200, "damaged"),
    ],
)
def test_damaged_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        decode(data)


def test_deep_nesting_is_refused() -> None:
    element = bytes.fromhex("0a0161 1205696e743634 4001")
    for _ in range(2000):
        length, size = len(element), b""
        while length > 127:
            size += bytes([length & 127 | 128])
            length >>= 7
        element = bytes.fromhex("0a0161 1205696e743634 4001 3a") + size + bytes([length]) + element
    wrapped = PipelineDef(1, operators=[OpDef("Op")])
    data = encode(wrapped)
    assert decode(data) == wrapped
    with pytest.raises(SerializationError, match="damaged"):
        decode(data[:2] + b"\x2a" + _varint(len(element) + 10) + b"\x0a\x02Op\x22" + _varint(len(element)) + element)


def _varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def test_no_damage_crashes_the_reader() -> None:
    generator = random.Random(0)
    originals = [path.read_bytes() for path in SAVED]
    for _ in range(500):
        data = bytearray(generator.choice(originals))
        for _ in range(generator.randint(1, 8)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        with contextlib.suppress(SerializationError):
            encode(decode(bytes(data[: generator.randint(1, len(data))])))


def test_an_argument_given_twice_is_refused() -> None:
    twice = [ArgumentDef("a", "int64", 1), ArgumentDef("a", "int64", 2)]
    with pytest.raises(SerializationError, match="'a' is given twice in operator 'Op'"):
        encode(PipelineDef(1, operators=[OpDef("Op", arguments=twice)]))
    data = encode(PipelineDef(1, operators=[OpDef("Op", arguments=[twice[0], ArgumentDef("b", "int64", 2)])]))
    with pytest.raises(SerializationError, match="'a' is given twice in operator 'Op'"):
        decode(data.replace(b"\x0a\x01b", b"\x0a\x01a"))


@pytest.mark.parametrize(
    ("kind", "value"), [("int64", 2**63), ("int64", "seven"), ("string", 7), ("float", [None]), ("complex", 1)]
)
def test_values_that_do_not_fit_are_refused(kind: str, value: object) -> None:
    with pytest.raises(SerializationError, match="argument 'a' of operator 'Op'"):
        encode(PipelineDef(1, operators=[OpDef("Op", arguments=[ArgumentDef("a", kind, value)])]))


def test_only_bytes_are_read() -> None:
    with pytest.raises(SerializationError, match="got str"):
        decode("text")  # type: ignore[arg-type]
