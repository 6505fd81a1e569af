"""The backend in a real Triton: batching, isolation of bad requests, completed and rejected configurations."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import add_model, stopped_later

pytestmark = pytest.mark.exhaustive

TWO_LINES = 'backend: "penstock"\n'
THUMBNAIL = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=8)
def thumbnail():
    encoded = fn.external_source(name="encoded")
    images = fn.decoders.image(encoded, output_type=types.RGB)
    small = fn.resize(images, size=[8, 8], name="small")
    return small, fn.cast(images.shape(), dtype=types.INT32, name="extents")
"""
NUMBERS = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4)
def numbers():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    y = fn.external_source(name="y", dtype=types.INT32, ndim=0)
    return fn.cast(x * 2, dtype=types.FLOAT, name="doubled"), fn.cast(y + 1, dtype=types.INT32, name="next")
"""
BYTES_CONFIG = """backend: "penstock"
max_batch_size: 8
input [ { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 200000 }
"""
RAGGED_CONFIG = """backend: "penstock"
dynamic_batching { max_queue_delay_microseconds: 200000 }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    add_model(repository, "of_bytes", BYTES_CONFIG, THUMBNAIL)
    add_model(repository, "ragged", RAGGED_CONFIG, THUMBNAIL)
    add_model(repository, "numbers", TWO_LINES, NUMBERS)
    add_model(repository, "raising", TWO_LINES, "raise LookupError('the lights are off')")
    add_model(repository, "nothing", TWO_LINES, "", "readme.txt")
    add_model(repository, "future", TWO_LINES, '{"format": "penstock-pipeline", "version": 99}', "model.json")
    add_model(repository, "wrong_name", TWO_LINES + 'input [{ name: "z" data_type: TYPE_FP32 dims: [-1] }]', NUMBERS)
    add_model(
        repository,
        "wrong_type",
        TWO_LINES + 'max_batch_size: 4\noutput [{ name: "doubled" data_type: TYPE_INT64 dims: [-1] }]',
        NUMBERS.replace("batch_size=4", "batch_size=4, output_dtype=[types.FLOAT, None]"),
    )
    with stopped_later(LocalServer(repository, model_host=model_host, allow_failures=True)) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url, concurrency=8) as connected:
        yield connected


def picture(width: int, height: int, kind: str = "PNG") -> bytes:
    pixels = np.random.default_rng(width).integers(0, 255, (height, width, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def of_bytes(client: Any, *files: bytes) -> Any:
    tensor = tritonclient.http.InferInput("encoded", [len(files), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[file] for file in files], dtype=np.object_))
    return client.infer("of_bytes", [tensor])


def ragged(client: Any, *files: bytes) -> Any:
    longest = max(map(len, files))
    padded = np.stack([np.frombuffer(file.ljust(longest, b"\0"), np.uint8) for file in files])
    tensor = tritonclient.http.InferInput("encoded", list(padded.shape), "UINT8")
    tensor.set_data_from_numpy(padded)
    return client.infer("ragged", [tensor])


@pytest.mark.parametrize("send", [of_bytes, ragged])
def test_one_image(client: Any, send: Any) -> None:
    answer = send(client, picture(20, 10))
    assert answer.as_numpy("small").shape == (1, 8, 8, 3)
    assert answer.as_numpy("extents").tolist() == [[10, 20, 3]]


@pytest.mark.parametrize("send", [of_bytes, ragged])
def test_several_images_in_a_request(client: Any, send: Any) -> None:
    answer = send(client, picture(20, 10), picture(5, 6), picture(7, 9, "JPEG"))
    assert answer.as_numpy("extents").tolist() == [[10, 20, 3], [6, 5, 3], [9, 7, 3]]


@pytest.mark.parametrize("send", [of_bytes, ragged])
def test_requests_that_meet_in_a_batch_are_answered_each_for_itself(server: LocalServer, send: Any) -> None:
    files = [picture(10 + i, 20 + i) for i in range(6)]
    files[2] = b"this is no image"
    files[4] = files[4][: len(files[4]) // 2]

    def ask(file: bytes) -> Any:
        with tritonclient.http.InferenceServerClient(server.http_url) as own:
            try:
                return send(own, file).as_numpy("extents").tolist()
            except InferenceServerException as error:
                return error

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, files))
    for index in (0, 1, 3, 5):
        assert answers[index] == [[20 + index, 10 + index, 3]]
    for index in (2, 4):
        assert isinstance(answers[index], InferenceServerException)
        assert answers[index].status() == "400"
        assert "decoders.image" in answers[index].message()


@pytest.mark.parametrize("file", [b"", b"\xff\xd8\xff", b"\0" * 100])
def test_what_is_no_image_is_the_requests_fault(client: Any, file: bytes) -> None:
    with pytest.raises(InferenceServerException) as caught:
        of_bytes(client, file)
    assert caught.value.status() == "400"
    assert of_bytes(client, picture(3, 3)).as_numpy("extents").tolist() == [[3, 3, 3]]


def test_one_bad_image_fails_its_whole_request_and_is_named(client: Any) -> None:
    with pytest.raises(InferenceServerException, match="sample 1 of this request"):
        of_bytes(client, picture(4, 4), b"nonsense")


def numbers(client: Any, x: np.ndarray, y: np.ndarray) -> Any:
    tensors = []
    for name, data, kind in (("x", x, "FP32"), ("y", y, "INT32")):
        tensor = tritonclient.http.InferInput(name, list(data.shape), kind)
        tensor.set_data_from_numpy(data)
        tensors.append(tensor)
    return client.infer("numbers", tensors)


def test_configuration_of_two_lines_is_completed(client: Any) -> None:
    config = client.get_model_config("numbers")
    assert config["max_batch_size"] == 4
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] == [
        ("x", "TYPE_FP32", [-1]),
        ("y", "TYPE_INT32", [1]),
    ]
    assert [(o["name"], o["data_type"], o["dims"]) for o in config["output"]] == [
        ("doubled", "TYPE_FP32", [-1]),
        ("next", "TYPE_INT32", [1]),
    ]
    assert "dynamic_batching" in config


def test_typed_inputs_and_scalars(client: Any) -> None:
    answer = numbers(client, np.ones((2, 3), np.float32), np.array([[5], [6]], np.int32))
    assert answer.as_numpy("doubled").tolist() == [[2, 2, 2], [2, 2, 2]]
    assert answer.as_numpy("next").tolist() == [[6], [7]]


def test_only_what_was_asked_for_is_answered(client: Any) -> None:
    tensor = tritonclient.http.InferInput("encoded", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[picture(4, 4)]], dtype=np.object_))
    wanted = [tritonclient.http.InferRequestedOutput("extents")]
    answer = client.infer("of_bytes", [tensor], outputs=wanted)
    assert [output["name"] for output in answer.get_response()["outputs"]] == ["extents"]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones((2, 3), np.float32), np.ones((1, 1), np.int32)),
        (np.ones((5, 3), np.float32), np.ones((5, 1), np.int32)),
    ],
)
def test_batches_that_do_not_fit(client: Any, x: np.ndarray, y: np.ndarray) -> None:
    with pytest.raises(InferenceServerException) as caught:
        numbers(client, x, y)
    assert caught.value.status() == "400"


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("raising", "the lights are off"),
        ("nothing", "holds no pipeline"),
        ("future", "upgrade Penstock"),
        ("wrong_name", "external sources are"),
        ("wrong_type", "TYPE_FP32"),
    ],
)
def test_models_that_cannot_be_loaded_say_why(server: LocalServer, client: Any, model: str, text: str) -> None:
    (state,) = (entry for entry in server.models() if entry.name == model)
    assert not state.ready
    assert text in state.reason
    assert not client.is_model_ready(model)
    assert client.is_server_live()
