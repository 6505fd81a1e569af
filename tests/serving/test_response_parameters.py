"""Outputs as parameters of responses, over HTTP and gRPC."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, stopped_later

ABOUT = """
@pipeline_def(batch_size=4)
def about():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    word = fn.external_source(name="word", dtype=types.UINT8, ndim=1)
    first = x[0]
    outputs = {
        "y": x * 2,
        "length": fn.shapes(x, dtype=types.INT64)[0],
        "first": first,
        "positive": first > 0,
        "word_back": word,
        "copy": x,
    }
    return tuple(fn.copy(output, name=name) for name, output in outputs.items())
"""
CONFIG = """
backend: "penstock"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "word" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "length" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "first" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "positive" data_type: TYPE_BOOL dims: [ 1 ] } ]
output [ { name: "word_back" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "copy" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching { }
parameters { key: "response_parameters" value { string_value: "%s" } }
"""
NAMES = "length:first:positive:word_back"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "about", CONFIG % NAMES, HEADER + ABOUT)
    add_model(repository, "plain", CONFIG % "", HEADER + ABOUT)
    add_model(repository, "misnamed", CONFIG % "lenght", HEADER + ABOUT)
    isolated = 'parameters { key: "isolation" value { string_value: "process" } }'
    add_model(repository, "isolated", CONFIG % NAMES + isolated, HEADER + ABOUT)
    with stopped_later(LocalServer(repository, model_host="native", allow_failures=True)) as running:
        yield running


def answer(
    server: LocalServer, kind: Any, x: np.ndarray, words: list[bytes], **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the client's result, and the parameters of the response."""
    url = server.http_url if kind is tritonclient.http else server.grpc_url
    with kind.InferenceServerClient(url) as client:
        tensors = [
            kind.InferInput("x", list(x.shape), "FP32"),
            kind.InferInput("word", [len(words), 1], "BYTES"),
        ]
        tensors[0].set_data_from_numpy(x)
        tensors[1].set_data_from_numpy(np.array(words, np.object_)[:, None])
        result = client.infer("about", tensors, **options)
    response = result.get_response()
    if kind is tritonclient.http:
        return result, response.get("parameters", {})
    return result, {
        name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in response.parameters.items()
    }


@pytest.mark.parametrize("kind", [tritonclient.http, tritonclient.grpc])
def test_parameters_of_one_sample(server: LocalServer, kind: Any) -> None:
    x = np.array([[0.5, -2, 3]], np.float32)
    result, parameters = answer(server, kind, x, ["grün".encode()])
    assert {name: parameters[name] for name in NAMES.split(":")} == {
        "length": 3,
        "first": 0.5,
        "positive": True,
        "word_back": "grün",
    }
    np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
    np.testing.assert_array_equal(result.as_numpy("copy"), x)
    assert result.as_numpy("length") is None


@pytest.mark.parametrize("kind", [tritonclient.http, tritonclient.grpc])
def test_parameters_of_several_samples_are_lists(server: LocalServer, kind: Any) -> None:
    x = np.array([[1, 2], [-3, 4]], np.float32)
    _, parameters = answer(server, kind, x, [b"a", b"b"])
    assert [json.loads(parameters[name]) for name in NAMES.split(":")] == [[2, 2], [1, -3], [True, False], ["a", "b"]]


def test_only_those_that_are_requested(server: LocalServer) -> None:
    wanted = [tritonclient.http.InferRequestedOutput(name) for name in ("y", "length")]
    _, parameters = answer(server, tritonclient.http, np.ones((1, 2), np.float32), [b""], outputs=wanted)
    assert parameters == {"length": 2}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_lacks_are_strings(server: LocalServer, value: float) -> None:
    _, parameters = answer(server, tritonclient.http, np.full((1, 1), value, np.float32), [b"x"])
    assert parameters["first"] == str(value)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("misnamed", "response_parameters names 'lenght', which is not an output"),
        ("isolated", "response_parameters: models in Triton's Python stub send none"),
    ],
)
def test_what_is_refused(server: LocalServer, model: str, told: str) -> None:
    assert told in "".join(own.reason for own in server.models() if own.name == model)
