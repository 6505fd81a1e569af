"""The answers of a served model to requests, without Triton."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from penstock.data_types import DALIDataType, numpy_dtype
from penstock.serving.served_model import Kind, Outputs, Refusal, ServedModel
from penstock.serving.settings import ConfigurationError

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model

SUMS = """
@pipeline_def(batch_size=4)
def sums():
    a = fn.external_source(name="a", dtype=types.INT32, ndim=1)
    b = fn.external_source(name="b", dtype=types.INT32, ndim=1)
    return fn.cast(a + b, dtype=types.INT32, name="sum"), a
"""
DECODED = """
@pipeline_def(batch_size=4%s)
def decoded():
    return fn.cast(fn.decoders.image(fn.external_source(name="x")).shape(), dtype=types.INT32, name="size")
"""
BYTES = """
@pipeline_def(batch_size=4)
def sizes():
    return fn.cast(fn.external_source(name="x").shape(), dtype=types.INT32, name="size")
"""


SCALED = """
@pipeline_def(batch_size=8)
def scaled():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    scaled = x * 2 + 0.0
    return scaled, fn.expand_dims(scaled, axes=0)
"""


@dataclass
class Asked:
    """A request made of plain data."""

    inputs: Mapping[str, Any]
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[str, ...] = ("sum", "a", "size")
    cancelled: bool = False
    reserves: bool = False
    reserved: dict[str, np.ndarray] = field(default_factory=dict)

    def reserve(self, name: str, shape: Sequence[int], dtype: DALIDataType) -> np.ndarray | None:
        if self.reserves:
            self.reserved[name] = np.full(shape, 77, numpy_dtype(dtype))
        return self.reserved.get(name)

    def tensor(self, name: str) -> Any:
        return self.inputs.get(name)

    def trace(self) -> int:
        return 0

    def is_cancelled(self) -> bool:
        return self.cancelled


def entry(name: str, data_type: str, *dims: int) -> dict[str, Any]:
    return {"name": name, "data_type": data_type, "dims": list(dims)}


SUMS_CONFIG = {
    "name": "sums",
    "max_batch_size": 4,
    "input": [entry("a", "TYPE_INT32", -1), entry("b", "TYPE_INT32", -1)],
    "output": [entry("sum", "TYPE_INT32", -1), entry("a", "TYPE_INT32", -1)],
}


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ServedModel]]:
    loaded = []

    def loading(source: str, config: Mapping[str, Any]) -> ServedModel:
        add_model(tmp_path, config["name"], "", HEADER + source)
        loaded.append(ServedModel.load(tmp_path / config["name"] / "1", config, None))
        return loaded[-1]

    yield loading
    for model in loaded:
        model.close()


def numbers(first: int, count: int = 1, **more: Any) -> Asked:
    a = np.arange(first, first + count, dtype=np.int32)[:, None]
    return Asked({"a": a, "b": np.full((count, 1), 100, np.int32)} | more)


def sums(answers: list[Any]) -> list[Any]:
    return [
        answer.tensors["sum"].ravel().tolist() if isinstance(answer, Outputs) else answer.kind for answer in answers
    ]


def test_requests_share_a_batch_and_bad_ones_fail_alone(load: Any) -> None:
    model = load(SUMS, SUMS_CONFIG)
    requests = [
        numbers(1),
        numbers(2, b=np.zeros((2, 1), np.int32)),
        numbers(3, a=None),
        numbers(4, 2),
        numbers(5, a=np.zeros((1, 1, 1), np.int32)),
    ]
    assert sums(model.answer(requests)) == [[101], Kind.REQUEST, Kind.REQUEST, [104, 105], Kind.REQUEST]


def test_requests_that_are_together_more_than_a_batch_are_several(load: Any) -> None:
    model = load(SUMS, SUMS_CONFIG)
    requests = [numbers(10, 3), numbers(20, 2), numbers(30, 2), numbers(40, 5), numbers(50, 4)]
    assert sums(model.answer(requests)) == [
        [110, 111, 112],
        [120, 121],
        [130, 131],
        Kind.REQUEST,
        [150, 151, 152, 153],
    ]


def test_a_batch_that_is_refused_as_a_whole_is_tried_one_by_one(load: Any) -> None:
    model = load(SUMS, SUMS_CONFIG)
    wide = numbers(7, a=np.ones((1, 2), np.int32), b=np.ones((1, 3), np.int32))
    for _ in range(3):
        answers = model.answer([numbers(1), wide, numbers(2)])
        assert sums(answers) == [[101], Kind.OPERATOR, [102]]
        assert "Can't broadcast shapes" in answers[1].message


def test_only_what_is_wanted_is_given(load: Any) -> None:
    model = load(SUMS, SUMS_CONFIG)
    asked = numbers(1)
    asked.wanted = ("a",)
    (answer,) = model.answer([asked])
    assert list(answer.tensors) == ["a"]


def png(height: int, width: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("own", "parameters", "limit"),
    [("", {"max_pixels": "100"}, 100), (", max_pixels=50", {"max_pixels": "100"}, 50), (", max_pixels=200", {}, 200)],
)
def test_images_are_as_large_as_model_and_pipeline_both_allow(
    load: Any, own: str, parameters: dict[str, str], limit: int
) -> None:
    config = {
        "name": "sizes",
        "max_batch_size": 4,
        "input": [entry("x", "TYPE_STRING", 1)],
        "output": [entry("size", "TYPE_INT32", 3)],
        "parameters": {name: {"string_value": text} for name, text in parameters.items()},
    }
    model = load(DECODED % own, config)
    small, large = model.answer([Asked({"x": [png(limit // 10, 10)]}), Asked({"x": [png(limit // 10, 11)]})])
    assert small.tensors["size"].tolist() == [[limit // 10, 10, 3]]
    assert large.kind is Kind.LIMIT
    assert f"`max_pixels` of the pipeline allows {limit}" in large.message


def test_made_up_data_is_not_limited(load: Any, caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "name": "sizes",
        "max_batch_size": 4,
        "input": [entry("x", "TYPE_STRING", 1)],
        "output": [entry("size", "TYPE_INT32", 3)],
        "parameters": {"max_pixels": {"string_value": "10"}},
    }
    with caplog.at_level("INFO", "penstock"):
        load(DECODED % "", config)
    assert not caplog.records


def test_cancelled_requests_are_not_run(load: Any) -> None:
    model = load(SUMS, SUMS_CONFIG)
    gone = numbers(1)
    gone.cancelled = True
    assert sums(model.answer([gone, numbers(2)])) == [Kind.CANCELLED, [102]]


def test_byte_strings_come_as_lists_as_well(load: Any) -> None:
    config = {
        "name": "sizes",
        "max_batch_size": 4,
        "input": [entry("x", "TYPE_STRING", 1)],
        "output": [entry("size", "TYPE_INT32", 1)],
    }
    model = load(BYTES, config)
    (answer,) = model.answer([Asked({"x": [b"abc", b"de"]})])
    assert answer.tensors["size"].tolist() == [[3], [2]]


def test_whoever_gives_another_batch_answers_nobody(load: Any) -> None:
    """If a source returns a batch a second time, no request is answered with it."""
    model = load(SUMS, SUMS_CONFIG)
    answered, refused = 0, 0
    for number in range(20):
        source = model._runner.sources["a" if number % 2 else "b"]
        if number % 3 == 2:
            give_again(source)
        answers = model.answer([numbers(number), numbers(1000 + number)])
        if isinstance(answers[0], Refusal):
            assert [answer.kind for answer in answers] == [Kind.INTERNAL] * 2
            assert "this result answers no request" in answers[0].message
            refused += 1
        else:
            assert sums(answers) == [[100 + number], [1100 + number]]
            answered += 1
    assert (answered, refused) == (14, 6)


def give_again(source: Any) -> None:
    """Sabotage a source, so that its next run returns data that was fed for another batch."""
    run = source.run

    def sabotaged(workspace: Any) -> None:
        source._queue.appendleft(type(source._queue[0])(source._queue[0].batch))
        run(workspace)

    source.run = sabotaged


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"input": [entry("a", "TYPE_FP32", -1), entry("b", "TYPE_INT32", -1)]}, "Mismatch of data_type"),
        ({"input": [entry("a", "TYPE_INT32", -1)]}, 'Missing config for "b" input'),
        ({"input": [*SUMS_CONFIG["input"], entry("aa", "TYPE_INT32", -1)]}, "Did you mean 'a'"),
        ({"output": SUMS_CONFIG["output"][:1]}, "number of outputs .*\nModel config outputs: 1\nPipeline outputs: 2"),
        ({"output": [*SUMS_CONFIG["output"], entry("x", "TYPE_INT32", -1)]}, "Model config outputs: 3"),
        ({"parameters": {"split_along_outer_axis": {"string_value": "a:q"}}}, r"split_along_outer_axis names \['q'\]"),
        ({"parameters": {"defaults": {"string_value": '{"z": 1}'}}}, "names \\['z'\\]"),
        ({"parameters": {"defaults": {"string_value": "[1]"}}}, "JSON object"),
    ],
)
def test_configurations_that_are_refused(load: Any, change: Mapping[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        load(SUMS, SUMS_CONFIG | change)


def scaled_config() -> dict[str, Any]:
    return {
        "name": "scaled",
        "max_batch_size": 8,
        "input": [entry("x", "TYPE_FP32", -1)],
        "output": [entry("scaled", "TYPE_FP32", -1), entry("row", "TYPE_FP32", 1, -1)],
    }


def rows(first: float, samples: int, length: int = 10_000, **more: Any) -> Asked:
    x = np.arange(first, first + samples, dtype=np.float32)[:, None] * np.ones((1, length), np.float32)
    return Asked({"x": x}, wanted=("scaled", "row"), reserves=True, **more)


def test_outputs_are_written_to_the_memory_of_their_answers(load: Any) -> None:
    model = load(SCALED, scaled_config())
    requests = [rows(1, 1), rows(2, 3, length=20_000), rows(5, 2, length=10)]
    for request, answer in zip(requests, model.answer(requests)):
        np.testing.assert_array_equal(answer.tensors["scaled"], request.inputs["x"] * 2)
        np.testing.assert_array_equal(answer.tensors["row"], request.inputs["x"][:, None] * 2)
    # No memory is reserved for small outputs, nor for outputs that no operator writes; these are copied.
    for request, answer in zip(requests[:2], model.answer(requests[:2])):
        assert answer.tensors["scaled"] is request.reserved["scaled"]
        assert set(request.reserved) == {"scaled"}
    assert not requests[2].reserved


def test_only_answers_with_memory_for_an_output_are_written_to(load: Any) -> None:
    model = load(SCALED, scaled_config())
    requests = [rows(1, 2), rows(3, 2), rows(5, 2)]
    requests[0].wanted, requests[1].reserves = ("row",), False
    answers = model.answer(requests)
    assert list(answers[0].tensors) == ["row"]
    assert not requests[0].reserved
    assert not requests[1].reserved
    assert answers[2].tensors["scaled"] is requests[2].reserved["scaled"]
    for request, answer in zip(requests, answers):
        np.testing.assert_array_equal(answer.tensors["row"], request.inputs["x"][:, None] * 2)


CROPPED = """
@pipeline_def(batch_size=8)
def cropped():
    x = fn.external_source(name="x", dtype=types.UINT8, ndim=3, layout="HWC")
    end = fn.external_source(name="end", dtype=types.FLOAT, ndim=0)
    return fn.copy(fn.slice(x, rel_start=[0.0], rel_end=end, axes=[0]), name="part")
"""


def test_reserved_memory_is_not_answered_where_a_sample_failed(load: Any) -> None:
    config = {
        "name": "cropped",
        "max_batch_size": 8,
        "input": [entry("x", "TYPE_UINT8", -1, -1, 3), entry("end", "TYPE_FP32", 1)],
        "output": [entry("part", "TYPE_UINT8", -1, -1, 3)],
    }
    model = load(CROPPED, config)
    x = np.random.default_rng(0).integers(0, 255, (2, 200, 200, 3), np.uint8)

    def asked(*ends: float) -> Asked:
        end = np.array(ends, np.float32)[:, None]
        return Asked({"x": x[: len(ends)], "end": end}, wanted=("part",), reserves=True)

    requests = [asked(1.0, 1.0), asked(1.0, 2.0), asked(0.5, 1.0), asked(0.5)]
    whole, outside, unequal, half = model.answer(requests)
    assert whole.tensors["part"] is requests[0].reserved["part"]
    np.testing.assert_array_equal(whole.tensors["part"], x)
    assert isinstance(outside, Refusal)
    assert isinstance(unequal, Refusal)
    assert "different shapes" in unequal.message
    assert half.tensors["part"] is requests[3].reserved["part"]
    np.testing.assert_array_equal(half.tensors["part"], x[:1, :100])


SOUND = """
@pipeline_def(batch_size=4)
def sound():
    clip = fn.external_source(name="x", dtype=types.UINT8, ndim=1)
    frames, heard, rate = fn.decoders.video(clip, sequence_length=5, enable_audio=True)
    size = fn.cast(frames.shape(), dtype=types.INT32, name="size")
    return size, fn.copy(heard, name="heard"), fn.copy(rate, name="rate")
"""


def film(rate: int) -> bytes:
    """Return a clip with ten frames at 25 Hz and one second of stereo sound."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mov") as file:
        pictures, track = file.add_stream("libx264", rate=25), file.add_stream("pcm_s16le", rate=rate, layout="stereo")
        pictures.width, pictures.height, pictures.pix_fmt = 48, 32, "yuv420p"
        for shade in range(0, 200, 20):
            frame = av.VideoFrame.from_ndarray(np.full((32, 48, 3), shade, np.uint8), format="rgb24")
            file.mux(pictures.encode(frame))
        file.mux(pictures.encode())
        values = np.arange(2 * rate, dtype=np.int16)[None]
        waves = av.AudioFrame.from_ndarray(values, format="s16", layout="stereo")
        waves.sample_rate = rate
        file.mux(track.encode(waves))
        file.mux(track.encode())
    return buffer.getvalue()


def test_sound_beside_frames_is_as_long_as_each_request_s_own(load: Any) -> None:
    config = {
        "name": "sound",
        "max_batch_size": 4,
        "input": [entry("x", "TYPE_STRING", 1)],
        "output": [
            entry("size", "TYPE_INT32", 4),
            entry("heard", "TYPE_FP32", -1, -1),
            entry("rate", "TYPE_FP32", 1),
        ],
    }
    model = load(SOUND, config)
    rates = (8000, 16000)
    requests = [Asked({"x": [film(rate)]}, wanted=("size", "heard", "rate")) for rate in rates]
    requests.insert(1, Asked({"x": [b"no film at all"]}))
    first, bad, second = model.answer(requests)
    assert bad.kind is Kind.OPERATOR
    for answer, rate in zip((first, second), rates, strict=True):
        assert answer.tensors["size"].tolist() == [[5, 32, 48, 3]]
        assert answer.tensors["rate"].ravel().tolist() == [rate]
        expected = np.arange(2 * rate, dtype=np.int16)[: 2 * rate // 5].reshape(1, -1, 2) / np.float32(32768)
        np.testing.assert_array_equal(answer.tensors["heard"], expected)
