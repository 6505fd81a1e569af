"""A real Triton server with instances of a model on each of two GPUs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.http
from test_serving_on_gpu import CHAIN_CONFIG, GROWN, HEADER, RANGED, ROOT, numbers, photograph, write_model

from penstock.serving.server import MODEL_HOSTS, LocalServer

PLACE = """
@pipeline_def(batch_size=8)
def place(device="gpu"):
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1, device="gpu")
    return fn.python_function(x, function=with_device, device="gpu", name="y")

def with_device(x):
    import cupy
    assert x.device.id == cupy.cuda.Device().id
    return cupy.concatenate([x, cupy.full(1, x.device.id, x.dtype)])
"""


def config(gpus: str, count: int = 1) -> str:
    return f"""
backend: "penstock"
max_batch_size: 8
instance_group [ {{ kind: KIND_GPU gpus: {gpus} count: {count} }} ]
parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: {{ string_value: "no" }} }}
"""


@pytest.fixture(scope="module", params=MODEL_HOSTS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    write_model(repository, "place", config("[ 0, 1 ]", 2), HEADER + PLACE)
    write_model(repository, "grown", config("[ 0 ]"), HEADER + GROWN)
    write_model(repository, "ranged", config("[ 1 ]"), HEADER + RANGED)
    write_model(repository, "chain", CHAIN_CONFIG.replace("max_batch_size: 64", "max_batch_size: 8"))
    shutil.copytree(ROOT / "model_repository" / "imagenet_preprocess", repository / "imagenet_preprocess")
    with (repository / "imagenet_preprocess" / "config.pbtxt").open("a") as file:
        file.write("\ninstance_group [ { kind: KIND_GPU gpus: [ 0, 1 ] } ]\n")
    with LocalServer(repository, model_host=request.param) as running:
        yield running


def infer(server: LocalServer, model: str, tensor: tritonclient.http.InferInput, output: str) -> np.ndarray:
    # Each call has a client of its own, as clients are not thread-safe.
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        found: np.ndarray = client.infer(model, [tensor]).as_numpy(output)
        return found


def test_both_gpus_answer(server: LocalServer) -> None:
    places = set()
    with ThreadPoolExecutor(16) as pool:
        for base in (0, 1000):
            values = range(base, base + 200)
            answers = pool.map(lambda value: infer(server, "place", numbers([value]), "y"), values)
            for value, answer in zip(values, answers):
                assert answer[0, 0] == value
                places.add(int(answer[0, 1]))
    assert places == {0, 1}


def test_an_image_is_the_same_from_either(server: LocalServer) -> None:
    tensor = tritonclient.http.InferInput("encoded_image", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[photograph(640, 480, "JPEG")]], np.object_))
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(lambda _: infer(server, "imagenet_preprocess", tensor, "image"), range(64))
    assert first.std() > 0
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_a_tensor_goes_from_one_gpu_to_the_other(server: LocalServer) -> None:
    for value in (3.0, 5.0, 7.0):
        assert infer(server, "chain", numbers([value]), "range").tolist() == [[value, value]]
