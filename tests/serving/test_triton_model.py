"""Networks in served pipelines: other models of the server, which are called in its process, and files, for which models need a
permission.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock import fn, pipeline_def, types
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later, until

sys.path.insert(0, str(Path(__file__).parents[1] / "operators" / "inference"))

from networks import write_network

CALLED = """
@pipeline_def(batch_size=4)
def called():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y"), fn.copy(x[:1] * 0 + 7, name="seven")
"""
FAILING = """
import time

import numpy as np

def work(x):
    if x[0] < 0:
        raise ValueError("less than nothing")
    if x[0] > 1000:
        time.sleep(float(x[0]) / 1000)
    return x + 1
"""
CALLING = """
@pipeline_def(batch_size=8)
def calling():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    y, seven = fn.triton_model(x, model="called", output_names=["y", "seven"], timeout_seconds={timeout})
    return fn.copy(y * 2, name="z"), fn.copy(seven, name="seven")
"""
"""A pipeline that doubles the result of `called`, which is x + 1."""
SINGLE = """
@pipeline_def(batch_size=4)
def single():
    x = fn.external_source(name="x", dtype=types.{dtype}, ndim=1)
    return fn.triton_model(x, model="{model}", output_names=["y"], name="z")
"""
STRINGS = """
@pipeline_def(batch_size=4, output_ndim=[1, 2])
def strings():
    one = fn.external_source(name="one", dtype=types.UINT8, ndim=1)
    several = fn.external_source(name="several", dtype=types.UINT8, ndim=2)
    return fn.cat(one, one, name="twice"), fn.stack(several[1], several[0], name="reversed")
"""
STRINGS_CONFIG = """
backend: "penstock"
max_batch_size: {size}
input [ {{ name: "one" data_type: TYPE_STRING dims: [ 1 ] }}, {{ name: "several" data_type: TYPE_STRING dims: [ 2 ] }} ]
output [ {{ name: "twice" data_type: TYPE_STRING dims: [ 1 ] }}, {{ name: "reversed" data_type: TYPE_STRING dims: [ 2 ] }} ]
"""
PASSING_STRINGS = """
@pipeline_def(batch_size=4, output_ndim=[1, 2])
def passing():
    one = fn.external_source(name="one", dtype=types.UINT8, ndim=1)
    several = fn.external_source(name="several", dtype=types.UINT8, ndim=2)
    twice, back = fn.triton_model(one, several, model="strings", output_names=["twice", "reversed"])
    return fn.copy(twice, name="twice"), fn.copy(back, name="reversed")
"""
DECOUPLED_CONFIG = """
backend: "penstock"
max_batch_size: 4
model_transaction_policy { decoupled: true }
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
DECOUPLED = """
@pipeline_def(batch_size=4)
def decoupled():
    return fn.copy(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), name="y")
"""
CALLED_CONFIG = """
backend: "penstock"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "seven" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CONFIG = """
backend: "penstock"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_{kind} dims: [ -1 ] }} ]
output [ {{ name: "z" data_type: TYPE_FP32 dims: [ -1 ] }} ]
{more}
"""
SEVEN = 'output [ { name: "seven" data_type: TYPE_FP32 dims: [ 1 ] } ]'


def config(kind: str = "FP32", more: str = "") -> str:
    return CONFIG.format(kind=kind, more=more)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "called", CALLED_CONFIG, HEADER + FAILING + CALLED)
    add_model(repository, "calling", config(more=SEVEN), HEADER + CALLING.format(timeout=60))
    add_model(repository, "hasty", config(more=SEVEN), HEADER + CALLING.format(timeout=0.2))
    add_model(repository, "strings", STRINGS_CONFIG.format(size=4), HEADER + STRINGS)
    add_model(repository, "passing_strings", STRINGS_CONFIG.format(size=4), HEADER + PASSING_STRINGS)
    add_model(repository, "decoupled", DECOUPLED_CONFIG, HEADER + DECOUPLED)
    add_model(repository, "series", config(), HEADER + SINGLE.format(model="decoupled", dtype="FLOAT"))
    add_model(repository, "lost", config(), HEADER + SINGLE.format(model="missing", dtype="FLOAT"))
    add_model(repository, "mistyped", config("INT32"), HEADER + SINGLE.format(model="called", dtype="INT32"))
    for name, model in (("stranger", "hasty"), ("granted", "called")):
        pipeline_def(batch_size=4)(_calling)(model).save(str(repository.parent / "saved.json"))
        add_model(repository, name, config(), (repository.parent / "saved.json").read_text(), "model.json")
    add_model(repository, "selfish", config(), HEADER + SINGLE.format(model="selfish", dtype="FLOAT"))
    network = write_network(
        [("Neg", ["x"], ["y"])], {"x": ["batch", "n"]}, {"y": ["batch", "n"]}, folder=repository.parent
    )
    (repository.parent / "inside.onnx").write_bytes(network.read_bytes())
    for name, path in (
        ("inside", "inside.onnx"),
        ("outside", "../../../network.onnx"),
        ("absolute", str(network)),
        ("nowhere", "nowhere.onnx"),
    ):
        saved = pipeline_def(batch_size=4)(_running)(path)
        saved.save(str(repository.parent / "saved.json"))
        add_model(repository, name, config(), (repository.parent / "saved.json").read_text(), "model.json")
    (repository.parent / "inside.onnx").rename(repository / "inside" / "1" / "inside.onnx")
    with stopped_later(LocalServer(repository, allow_failures=True, settings={"allowed_models": "called"})) as running:
        yield running


def _calling(model: str) -> Any:
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.copy(fn.triton_model(x, model=model, output_names=["y"]), name="z")


def _running(path: str) -> Any:
    return fn.model(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), path=path, name="z")


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    own = tritonclient.http.InferenceServerClient(server.http_url)
    yield own
    own.close()


def test_a_batch_goes_through_both_models(client: Any) -> None:
    before = client.get_inference_statistics("called")["model_stats"][0]["inference_count"]
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    answer = ask(client, "calling", x=x)
    np.testing.assert_array_equal(answer.as_numpy("z"), (x + 1) * 2)
    np.testing.assert_array_equal(answer.as_numpy("seven"), np.full((8, 1), 7))
    statistics = client.get_inference_statistics("called")["model_stats"][0]
    # The called model accepts up to 4 samples in a batch.
    assert statistics["inference_count"] - before == 8


def test_the_called_models_error_is_told(server: LocalServer, client: Any) -> None:
    with pytest.raises(InferenceServerException, match=r"The model 'called' of this server: .*less than nothing"):
        ask(client, "calling", "mine-17", x=np.array([[-1]], np.float32))
    # The call has the id of the request.
    until(lambda: "request_failed model=called version=1 request=mine-17" in server.log_tail(200))
    np.testing.assert_array_equal(ask(client, "calling", x=np.array([[1]], np.float32)).as_numpy("z"), [[4]])


def test_slow_models_are_given_up(client: Any) -> None:
    with pytest.raises(InferenceServerException, match=r"no answer after 0.2 seconds \(`timeout_seconds`\)"):
        ask(client, "hasty", x=np.array([[2000]], np.float32))
    np.testing.assert_array_equal(ask(client, "calling", x=np.array([[1]], np.float32)).as_numpy("z"), [[4]])


def test_models_that_are_not_there(client: Any) -> None:
    with pytest.raises(InferenceServerException, match=r"The model 'missing' of this server is not ready: .*missing"):
        ask(client, "lost", x=np.array([[1]], np.float32))


def test_strings_are_passed_on(client: Any) -> None:
    one = np.array([[b"ab\0"], [b""], [b"a longer one"]], np.object_)
    several = np.array([[b"a", b"bcd"], [b"", b""], ["é".encode(), b"x"]], np.object_)
    answer = ask(client, "passing_strings", one=one, several=several)
    assert answer.as_numpy("twice").ravel().tolist() == [b"ab\0ab\0", b"", b"a longer onea longer one"]
    assert answer.as_numpy("reversed").tolist() == several[:, ::-1].tolist()


def test_decoupled_models_are_refused(client: Any) -> None:
    with pytest.raises(
        InferenceServerException, match=r"'decoupled' of this server is decoupled: .*each sample needs exactly one"
    ):
        ask(client, "series", x=np.array([[1]], np.float32))


def test_a_cancelled_request_cancels_its_calls(server: LocalServer, client: Any) -> None:
    grpc = tritonclient.grpc.InferenceServerClient(server.grpc_url)
    x = tritonclient.grpc.InferInput("x", [1, 1], "FP32")
    x.set_data_from_numpy(np.array([[6000]], np.float32))
    errors: list[Any] = []
    began = time.monotonic()
    running = grpc.async_infer("calling", [x], lambda _, error: errors.append(error))
    time.sleep(0.3)
    running.cancel()
    # The instance of `calling` answers the next request while the instance of `called` is still sleeping for the abandoned one.
    until(lambda: client.get_inference_statistics("calling")["model_stats"][0]["inference_stats"]["fail"]["count"])
    assert time.monotonic() - began < 5
    grpc.close()


def test_types_that_the_model_does_not_take(client: Any) -> None:
    with pytest.raises(InferenceServerException, match=r"takes `x`, float of shape \(batch, \?\). Got int32"):
        ask(client, "mistyped", x=np.array([[1]], np.int32))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("stranger", "saved pipelines may call only models.*--allow-model hasty"),
        ("selfish", "calls its own model 'selfish'"),
        ("outside", "'../../../network.onnx' is outside of what the pipeline is confined to"),
        ("absolute", "network.onnx' is outside of what the pipeline is confined to"),
        ("nowhere", "No such file or directory.*nowhere.onnx"),
    ],
)
def test_models_that_are_not_loaded(server: LocalServer, model: str, reason: str) -> None:
    state = next(own for own in server.models() if own.name == model)
    assert state.state != "READY"
    assert re.search(reason, state.reason)


def test_a_network_beside_a_saved_pipeline(client: Any) -> None:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(ask(client, "inside", x=x).as_numpy("z"), -x)


def test_a_saved_pipeline_calls_a_model_that_the_server_grants(client: Any) -> None:
    np.testing.assert_array_equal(ask(client, "granted", x=np.array([[1, 2]], np.float32)).as_numpy("z"), [[2, 3]])


def test_many_clients_at_once(server: LocalServer) -> None:
    def work(number: int) -> None:
        own = tritonclient.http.InferenceServerClient(server.http_url)
        for turn in range(20):
            x = np.full((1 + (number + turn) % 5, 1 + turn % 3), 10 * number + turn, np.float32)
            np.testing.assert_array_equal(ask(own, "calling", x=x).as_numpy("z"), (x + 1) * 2)
        own.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
