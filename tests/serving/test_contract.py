"""The promises of Triton and of the DALI backend, tested in a real Triton: answers, types, partial configurations, omitted inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock import fn, pipeline_def, types
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

# The first test waits for the server, which with the stub starts two processes for each of the models.

TWO_LINES = 'backend: "penstock"\n'
CROPPED = """
@pipeline_def(batch_size=8)
def cropped():
    a = fn.external_source(name="a", dtype=types.FLOAT, ndim=3)
    b = fn.external_source(name="b", dtype=types.INT32, ndim=1)
    return fn.crop(a, crop=(64, 64), name="cropped"), fn.copy(b, name="same")
"""
CROPPED_CONFIG = """backend: "penstock"
max_batch_size: 8
input [ { name: "a" data_type: TYPE_FP32 dims: [ -1, -1, 3 ] } ]
input [ { name: "b" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "cropped" data_type: TYPE_FP32 dims: [ 64, 64, 3 ] } ]
output [ { name: "same" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
TWO_IMAGES = """
@pipeline_def(batch_size=8)
def two_images():
    first = fn.decoders.image(fn.external_source(name="first"))
    second = fn.decoders.image(fn.external_source(name="second"))
    return fn.crop(first, crop=(700, 700), name="cropped"), fn.copy(second, name="whole")
"""
TWO_IMAGES_CONFIG = """backend: "penstock"
max_batch_size: 8
input [ { name: "first" data_type: TYPE_STRING dims: [ 1 ] } ]
input [ { name: "second" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "cropped" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } ]
output [ { name: "whole" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } ]
"""
NOISY = """
@pipeline_def(batch_size=4, seed=42)
def noisy():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.random.uniform(x, range=[0.0, 1.0], name="drawn"), fn.copy(x, name="x_again")
"""
UNTYPED = """
@pipeline_def(batch_size=4)
def untyped():
    x = fn.external_source(name="x")
    return fn.copy(x, name="same"), fn.cast(x.shape(), dtype=types.INT64, name="extents")
"""
UNTYPED_CONFIG = """backend: "penstock"
max_batch_size: 4
input [ { name: "x" data_type: %s dims: %s } ]
"""
DECLARED = """
@pipeline_def(batch_size=4, output_dtype=[types.FLOAT, types.INT32], output_ndim=[1, 2])
def declared():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    y = fn.external_source(name="y", dtype=types.INT32, ndim=2)
    return fn.copy(x, name="x_again"), fn.copy(y, name="y_again")
"""
OPTIONAL = """
@pipeline_def(batch_size=4)
def optional():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    factor = fn.external_source(name="factor", dtype=types.FLOAT, ndim=0)
    offset = fn.external_source(name="offset", dtype=types.FLOAT, ndim=1, repeat_last=True)
    return fn.cast(x * factor + offset, dtype=types.FLOAT, name="y")
"""
OPTIONAL_CONFIG = """backend: "penstock"
max_batch_size: 4
input [ { name: "offset" optional: true } ]
parameters [ { key: "defaults" value: { string_value: "{\\"factor\\": 2}" } } ]
"""
FRAMES = """
@pipeline_def(batch_size=4%s)
def frames():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    first = fn.slice(x, 0, fn.cast(x[0], dtype=types.INT32), axes=[0])
    return fn.reshape(first, shape=[-1, 1], name="parts"), fn.copy(first, name="ones"), fn.copy(x, name="same")
"""
SPLIT = 'parameters [ { key: "split_along_outer_axis" value: { string_value: "parts:ones" } } ]\n'
HELPED = """
from helper import number

@pipeline_def(batch_size=4)
def helped():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=later, name="y")

def later(x):
    import helper
    assert helper.number is number
    return x + helper.number()
"""
SABOTAGED = """
from penstock.operators.sources.external_source import ExternalSource

if not hasattr(ExternalSource, "runs"):
    ExternalSource.runs, well = 0, ExternalSource.run

    def badly(self, workspace):
        # Every seventh time, what was fed is swallowed, and the batch before is given again.
        ExternalSource.runs += 1
        if ExternalSource.runs % 7 == 0 and hasattr(self, "before"):
            self._queue[0] = self.before
        self.before = self._queue[0]
        well(self, workspace)

    ExternalSource.run = badly

@pipeline_def(batch_size=4)
def sabotaged():
    a = fn.external_source(name="a", dtype=types.INT32, ndim=1)
    return fn.copy(a, name="a_again"), fn.copy(fn.external_source(name="b", dtype=types.INT32, ndim=1), name="b_again")
"""
WITHOUT_LIBRARY = """
import sys
sys.modules["lz4.block"] = None

@pipeline_def(batch_size=4)
def inflated():
    return fn.decoders.inflate(fn.external_source(name="x"), dtype=types.UINT8, shape=[3])
"""


def untyped(data_type: str, dims: str) -> str:
    return UNTYPED_CONFIG % (data_type, dims)


REFUSED = {
    "other_type": (
        'input [ { name: "x" data_type: TYPE_FP16 dims: [ -1 ] } ]',
        'Invalid argument: Mismatch of data_type config for "x".\nData type defined in config: TYPE_FP16\n'
        "Data type defined in pipeline: TYPE_FP32",
    ),
    "other_rank": (
        'output [ { name: "x_again" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]',
        'Invalid argument: Mismatch in number of dimensions for "x_again"\nNumber of dimensions defined in config: 2\n'
        "Number of dimensions defined in pipeline: 1",
    ),
    "wrong_setting": (
        'parameters [ { key: "num_threads" value: { string_value: "plenty" } } ]',
        "the parameter 'num_threads' must be a number from 1, got 'plenty'",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("repository")
    add_model(made, "cropped", CROPPED_CONFIG, HEADER + CROPPED)
    add_model(made, "two_images", TWO_IMAGES_CONFIG, HEADER + TWO_IMAGES)
    add_model(made, "noisy", TWO_LINES, HEADER + NOISY)
    add_model(made, "pictures", untyped("TYPE_FP32", "[ -1, -1, 3 ]"), HEADER + UNTYPED)
    add_model(made, "numbers", untyped("TYPE_INT16", "[ 2 ]"), HEADER + UNTYPED)
    add_model(made, "texts", untyped("TYPE_STRING", "[ 1 ]"), HEADER + UNTYPED)
    add_model(made, "unbatched", TWO_LINES + "max_batch_size: 0 # none\n", HEADER + DECLARED)
    add_model(
        made,
        "partial",
        TWO_LINES + 'max_batch_size: 3\ninput [ { dims: [ 7 ] } ]\noutput [ { name: "renamed" }, { dims: [ 2, -1 ] } ]',
        HEADER + DECLARED,
    )
    add_model(made, "fewer", TWO_LINES + 'input [ { name: "y" } ]\noutput [ { name: "y_again" } ]', HEADER + DECLARED)
    add_model(made, "optional", OPTIONAL_CONFIG, HEADER + OPTIONAL)
    for name, (config, _) in REFUSED.items():
        add_model(made, name, f"{TWO_LINES}max_batch_size: 4\n{config}\n", HEADER + DECLARED)
    add_model(made, "split", TWO_LINES + SPLIT, HEADER + FRAMES % "")
    declared = ", output_dtype=types.FLOAT, output_ndim=[2, 1, 1]"
    add_model(made, "split_declared", TWO_LINES + SPLIT, HEADER + FRAMES % declared)
    add_model(
        made,
        "misspelt",
        TWO_LINES + 'parameters [ { key: "num_thread" value: { string_value: "1" } } ]',
        HEADER + DECLARED,
    )
    for name, number in (("helped", 3), ("helped_too", 4)):
        add_model(made, name, TWO_LINES, HEADER + HELPED, helper=f"def number():\n    return {number}\n")
    return made


# With the stub, it takes half a minute to start a process for each of the many models.
@pytest.fixture(scope="module", params=["native", pytest.param("stub", marks=pytest.mark.exhaustive)])
def model_host(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Path:
    return tmp_path_factory.mktemp("log") / "triton.log"


@pytest.fixture(scope="module")
def server(repository: Path, log: Path, model_host: str) -> Iterator[LocalServer]:
    with stopped_later(LocalServer(repository, model_host=model_host, allow_failures=True, log=log)) as running:
        yield running


@pytest.fixture(scope="module")
def saboteurs(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    """Yield a separate server for models that modify Penstock itself, which would affect other models in the same process."""
    made = tmp_path_factory.mktemp("saboteurs")
    add_model(made, "sabotaged", TWO_LINES, HEADER + SABOTAGED)
    add_model(made, "without_library", TWO_LINES, HEADER + WITHOUT_LIBRARY)
    # The sabotaged operator keeps the memory of a request, so Triton, which waits for all requests when it ends, needs a time limit.
    with stopped_later(
        LocalServer(made, model_host=model_host, allow_failures=True, flags=["--exit-timeout-secs=1"])
    ) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def refused(client: Any, model: str, **inputs: Any) -> InferenceServerException:
    with pytest.raises(InferenceServerException) as caught:
        ask(client, model, **inputs)
    return caught.value


# -- each request gets its answer --------------------------------------------------------------------------------------


def test_answers_belong_to_their_requests_where_made_up_data_fails(client: Any) -> None:
    for number in range(1000, 1008):
        image = np.full((1, 80, 90, 3), number, np.float32)
        answer = ask(client, "cropped", str(number), a=image, b=np.array([[number]], np.int32))
        assert answer.get_response()["id"] == str(number)
        assert answer.as_numpy("same").tolist() == [[number]]
        assert (answer.as_numpy("cropped") == number).all()


def test_answers_belong_to_their_requests_after_failed_ones(client: Any) -> None:
    for number in range(6):
        too_small = number % 2 == 0
        image = np.full((1, 8 if too_small else 80, 90, 3), number, np.float32)
        tensors = {"a": image, "b": np.array([[number]], np.int32)}
        if too_small:
            error = refused(client, "cropped", **tensors)
            assert error.status() == "400"
            assert "crop" in error.message()
        else:
            assert ask(client, "cropped", **tensors).as_numpy("same").tolist() == [[number]]


def encoded(height: int, width: int, value: int) -> np.ndarray:
    pixels = f"P6 {width} {height} 255\n".encode() + bytes([value]) * (height * width * 3)
    return np.array([[pixels]], dtype=np.object_)


def test_two_encoded_images_stay_together(client: Any) -> None:
    for number in range(8):
        inputs = {"first": encoded(710 + number, 720, number), "second": encoded(5, 6 + number, 100 + number)}
        if number == 3:
            error = refused(client, "two_images", **{**inputs, "first": encoded(20, 20, 9)})
            assert "crop" in error.message()
        answer = ask(client, "two_images", **inputs)
        assert answer.as_numpy("whole").shape == (1, 5, 6 + number, 3)
        assert (answer.as_numpy("whole") == 100 + number).all()
        assert (answer.as_numpy("cropped") == number).all()


def test_the_first_answer_is_the_pipelines_first(client: Any) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=42)
    def noisy() -> Any:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        return fn.random.uniform(x, range=[0.0, 1.0])

    x = np.zeros((2, 5), np.float32)
    alone = noisy(exec_pipelined=False, exec_async=False)
    for _ in range(3):
        (expected,) = alone.run(x=x)
        np.testing.assert_array_equal(ask(client, "noisy", x=x).as_numpy("drawn"), expected.as_array())
    alone.close()


def test_an_operator_that_swallows_a_batch_gives_errors_and_nobody_elses_data(saboteurs: LocalServer) -> None:
    right, errors = 0, []
    with tritonclient.http.InferenceServerClient(saboteurs.http_url) as client:
        for number in range(40):
            inputs = {"a": np.array([[number]], np.int32), "b": np.array([[100 + number]], np.int32)}
            try:
                answer = ask(client, "sabotaged", **inputs)
            except InferenceServerException as error:
                errors.append((error.status(), "this result answers no request" in error.message()))
                continue
            right += 1
            assert answer.as_numpy("a_again").tolist() == [[number]]
            assert answer.as_numpy("b_again").tolist() == [[100 + number]]
    assert right >= 20
    assert len(errors) >= 5
    assert set(errors) == {("500", True)}


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "x", "data_type", "dims"),
    [
        ("pictures", np.ones((2, 4, 5, 3), np.float32), "TYPE_FP32", [-1, -1, 3]),
        ("numbers", np.ones((3, 2), np.int16), "TYPE_INT16", [2]),
        ("texts", np.array([[b"abc"]], dtype=np.object_), "TYPE_UINT8", [-1]),
    ],
)
def test_types_that_no_source_declares_are_the_configurations(
    client: Any, model: str, x: np.ndarray, data_type: str, dims: list[int]
) -> None:
    answer = ask(client, model, x=x)
    samples = x if x.dtype != np.object_ else np.frombuffer(x[0, 0], np.uint8)[None]
    np.testing.assert_array_equal(answer.as_numpy("same"), samples)
    assert answer.as_numpy("extents").tolist() == [list(samples.shape[1:])] * len(samples)
    output = client.get_model_config(model)["output"][0]
    assert (output["data_type"], output["dims"]) == (data_type, dims)


@pytest.mark.parametrize("model", sorted(REFUSED))
def test_what_the_pipeline_declares_otherwise_is_refused(server: LocalServer, model: str) -> None:
    (state,) = (entry for entry in server.models() if entry.name == model)
    assert not state.ready
    assert REFUSED[model][1] in state.reason


def test_why_made_up_data_fails_is_in_the_log(client: Any, log: Path) -> None:
    lines = [line for line in log.read_text().splitlines() if "the trial run failed for every generated input" in line]
    assert any("penstock.fn.crop" in line or "fn.crop" in line for line in lines)
    assert all(line.startswith("I") for line in lines)


def test_parameters_that_do_nothing_are_in_the_log(client: Any, log: Path) -> None:
    (line,) = [line for line in log.read_text().splitlines() if "'num_thread'" in line]
    assert line.startswith("W")
    assert "Did you mean 'num_threads'?" in line


# -- configurations ----------------------------------------------------------------------------------------------------


def tensors_of(config: Any, kind: str) -> list[tuple[str, str, list[int]]]:
    return [(entry["name"], entry["data_type"], entry["dims"]) for entry in config[kind]]


def test_models_without_batches_count_samples_in_their_tensors(client: Any) -> None:
    config = client.get_model_config("unbatched")
    assert config["max_batch_size"] == 0
    assert "dynamic_batching" not in config
    assert tensors_of(config, "input") == [("x", "TYPE_FP32", [-1, -1]), ("y", "TYPE_INT32", [-1, -1, -1])]
    assert tensors_of(config, "output")[0] == ("x_again", "TYPE_FP32", [-1, -1])
    x, y = np.ones((3, 5), np.float32), np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    answer = ask(client, "unbatched", x=x, y=y)
    np.testing.assert_array_equal(answer.as_numpy("x_again"), x)
    np.testing.assert_array_equal(answer.as_numpy("y_again"), y)


def test_partial_entries_are_completed(client: Any) -> None:
    config = client.get_model_config("partial")
    assert config["max_batch_size"] == 3
    assert tensors_of(config, "input") == [("x", "TYPE_FP32", [7]), ("y", "TYPE_INT32", [-1, -1])]
    assert config["input"][1]["allow_ragged_batch"] is True
    assert [entry[:2] for entry in tensors_of(config, "output")] == [
        ("renamed", "TYPE_FP32"),
        ("y_again", "TYPE_INT32"),
    ]
    assert config["output"][1]["dims"] == [2, -1]
    x, y = np.ones((1, 7), np.float32), np.ones((1, 2, 9), np.int32)
    assert ask(client, "partial", x=x, y=y).as_numpy("renamed").tolist() == x.tolist()


def test_entries_that_are_missing_are_added(client: Any) -> None:
    config = client.get_model_config("fewer")
    assert tensors_of(config, "input") == [("y", "TYPE_INT32", [-1, -1]), ("x", "TYPE_FP32", [-1])]
    assert [entry["name"] for entry in config["output"]] == ["y_again", "x_again"]
    x, y = np.ones((1, 7), np.float32), np.ones((1, 2, 9), np.int32)
    answer = ask(client, "fewer", x=x, y=y)
    assert answer.as_numpy("x_again").tolist() == x.tolist()
    assert answer.as_numpy("y_again").tolist() == y.tolist()


# -- inputs that a request omits ---------------------------------------------------------------------------------------


def test_what_is_left_out_comes_from_the_default_the_request_or_the_last_one(client: Any) -> None:
    assert [entry["optional"] for entry in client.get_model_config("optional")["input"]] == [True, False, True]
    x = np.ones((2, 3), np.float32)
    assert "neither a default nor an earlier value to repeat" in refused(client, "optional", x=x).message()
    offset = np.full((1, 3), 0.5, np.float32)
    assert ask(client, "optional", x=x[:1], offset=offset).as_numpy("y").tolist() == [[2.5] * 3]
    # For both samples, the single sample of the last request that had the input is used.
    assert ask(client, "optional", x=x).as_numpy("y").tolist() == [[2.5] * 3] * 2
    factor = np.array([[3], [4]], np.float32)
    assert ask(client, "optional", x=x, factor=factor).as_numpy("y").tolist() == [[3.5] * 3, [4.5] * 3]
    assert ask(client, "optional", parameters={"factor": 7}, x=x).as_numpy("y").tolist() == [[7.5] * 3] * 2
    assert ask(client, "optional", parameters={"factor": "0.25"}, x=x).as_numpy("y").tolist() == [[0.75] * 3] * 2
    error = refused(client, "optional", parameters={"factor": "seven"}, x=x)
    assert error.status() == "400"
    assert "the parameter 'factor' of the request" in error.message()
    ask(client, "optional", x=x, offset=np.zeros((2, 3), np.float32))
    wanted = "it had 2 samples, this request has 3"
    assert wanted in refused(client, "optional", x=np.ones((3, 3), np.float32)).message()


# -- outputs that are split --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["split", "split_declared"])
def test_samples_of_different_lengths_are_split(client: Any, model: str) -> None:
    outputs = {name: dims for name, _, dims in tensors_of(client.get_model_config(model), "output")}
    assert (outputs["parts"], outputs["ones"], outputs["same"]) == ([1], [1], [-1])
    x = np.array([[2, 1, 5], [3, 8, 9], [1, 0, 0]], np.float32)
    answer = ask(client, model, x=x)
    assert answer.as_numpy("parts").tolist() == [[2], [1], [3], [8], [9], [1]]
    assert answer.as_numpy("ones").tolist() == [[2], [1], [3], [8], [9], [1]]
    assert answer.as_numpy("same").tolist() == x.tolist()


# -- what a model needs besides its file -------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "number"), [("helped", 3), ("helped_too", 4)])
def test_models_import_what_lies_beside_them(client: Any, model: str, number: int) -> None:
    x = np.array([[1, 2]], np.float32)
    assert ask(client, model, x=x).as_numpy("y").tolist() == [[number + 1, number + 2]]


def test_a_missing_library_is_named_when_the_model_is_loaded(saboteurs: LocalServer) -> None:
    (state,) = (entry for entry in saboteurs.models() if entry.name == "without_library")
    assert not state.ready
    assert "decoders.inflate: lz4 is needed, which cannot be loaded" in state.reason
    assert "pip install penstock-triton[readers]" in state.reason
