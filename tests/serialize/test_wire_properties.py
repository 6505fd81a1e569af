"""Any pipeline survives serialization and loading; any bytes give a pipeline or a clear error."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SerializationError
from penstock.serialize.wire import ArgumentDef, EdgeDef, OpDef, PipelineDef, decode, encode

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
devices = st.sampled_from(["cpu", "gpu"])
edges = st.builds(EdgeDef, names, devices)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
float32 = st.floats(width=32, allow_nan=False)
values = {"int64": int64, "float": float32, "bool": st.booleans(), "string": st.text(max_size=9)}


@st.composite
def arguments(draw: st.DrawFn) -> list[ArgumentDef]:
    made = []
    for name in draw(st.lists(names, unique=True, max_size=4)):
        kind = draw(st.sampled_from(sorted(values)))
        value = draw(values[kind] | st.lists(values[kind], min_size=1, max_size=4))
        made.append(ArgumentDef(name, kind, value))
    return made


@st.composite
def pipelines(draw: st.DrawFn) -> PipelineDef:
    operators = [
        OpDef(
            draw(names),
            inputs=draw(st.lists(edges, max_size=3)),
            outputs=draw(st.lists(edges, min_size=1, max_size=3)),
            arguments=draw(arguments()),
            name=name,
            logical_id=number,
        )
        for number, name in enumerate(draw(st.lists(names, unique=True, max_size=4)))
    ]
    outputs = draw(st.lists(edges, max_size=3))
    return PipelineDef(
        max_batch_size=draw(st.integers(1, 1 << 30)),
        num_threads=draw(st.integers(1, 64)),
        operators=operators,
        outputs=outputs,
    )


@settings(derandomize=True, deadline=None)
@given(pipelines())
def test_a_pipeline_comes_back_as_it_was(pipeline: PipelineDef) -> None:
    data = encode(pipeline)
    assert decode(data) == pipeline
    assert encode(decode(data)) == data


@settings(derandomize=True, deadline=None)
@given(pipelines(), st.data())
def test_changed_bytes_are_a_pipeline_or_a_clear_error(pipeline: PipelineDef, data: st.DataObject) -> None:
    encoded = bytearray(encode(pipeline))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    with contextlib.suppress(SerializationError):
        decode(cut)
