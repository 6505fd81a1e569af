"""Tensors on a GPU in a real Triton: between the models of an ensemble, and in clients' shared memory, they stay on the GPU."""

from __future__ import annotations

import base64
import io
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import pytest
import tritonclient.http
from PIL import Image

from penstock import Pipeline
from penstock.serving.model_files import load_pipeline
from penstock.serving.model_hosts import MODEL_HOSTS
from penstock.serving.server import LocalServer

ROOT = Path(__file__).parents[2]
# Tensors are exchanged only by DLPack: such a model always runs in Triton's stub, where DLPack works with every version of NumPy.
JUDGE = """
import cupy
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            image = pb_utils.get_input_tensor_by_name(request, "image")
            on_gpu = not image.is_cpu()
            values = cupy.from_dlpack(image.to_dlpack()) if on_gpu else cupy.asarray(np.from_dlpack(image))
            found = {"on_gpu": cupy.full((len(values), 1), on_gpu, np.uint8), "values": values}
            outputs = [pb_utils.Tensor.from_dlpack(name, cupy.array(array)) for name, array in found.items()]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
"""
JUDGE_CONFIG = """
backend: "python"
max_batch_size: 64
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
output [ { name: "on_gpu" data_type: TYPE_UINT8 dims: [ 1 ] }, { name: "values" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
parameters [ { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: { string_value: "no" } } ]
instance_group [ { kind: KIND_GPU } ]
"""
ENSEMBLE_CONFIG = """
platform: "ensemble"
max_batch_size: 64
input [ { name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "on_gpu" data_type: TYPE_UINT8 dims: [ 1 ] }, { name: "values" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
ensemble_scheduling { step [
  { model_name: "imagenet_preprocess" model_version: -1
    input_map { key: "encoded_image" value: "encoded_image" } output_map { key: "image" value: "image" } },
  { model_name: "judge" model_version: -1 input_map { key: "image" value: "image" }
    output_map { key: "on_gpu" value: "on_gpu" } output_map { key: "values" value: "values" } }
] }
"""


HEADER = """
from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize
"""
GROWN = """
@autoserialize
@pipeline_def(batch_size=64, output_dtype=types.FLOAT, output_ndim=3)
def grown(device="gpu"):
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1, device="gpu")
    plane = fn.resize(fn.reshape(x, shape=[1, 1, 1], layout="HWC"), size=(1024, 1024), interp_type=types.INTERP_NN)
    return fn.cat(plane, plane, plane, axis=2, name="large")
"""
RANGED = """
@autoserialize
@pipeline_def(batch_size=64)
def ranged(device="gpu"):
    large = fn.external_source(name="large", dtype=types.FLOAT, ndim=3, device="gpu")
    return fn.stack(fn.reductions.min(large), fn.reductions.max(large), name="range")
"""
ON_GPU_CONFIG = """
backend: "penstock"
max_batch_size: 64
instance_group [ { kind: KIND_GPU count: 2 } ]
parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: { string_value: "no" } }
"""
CHAIN_CONFIG = """
platform: "ensemble"
max_batch_size: 64
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "range" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [
  { model_name: "grown" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "large" value: "large" } },
  { model_name: "ranged" model_version: -1 input_map { key: "large" value: "large" } output_map { key: "range" value: "range" } }
] }
"""
LARGE = (1024, 1024, 3)


@pytest.fixture(scope="module", params=MODEL_HOSTS)
def model_host(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "model_repository" / "imagenet_preprocess", repository / "imagenet_preprocess")
    write_model(repository, "judge", JUDGE_CONFIG, JUDGE, "model.py")
    write_model(repository, "both", ENSEMBLE_CONFIG)
    write_model(repository, "grown", ON_GPU_CONFIG, HEADER + GROWN)
    write_model(repository, "ranged", ON_GPU_CONFIG, HEADER + RANGED)
    write_model(repository, "chain", CHAIN_CONFIG)
    # A small pool suffices for the native backend, as outputs that do not fit into the pool go through the host.
    pool = {"gpu_pool_bytes": 64 << 20} if model_host == "native" else {}
    with LocalServer(repository, model_host=model_host, **pool) as running:
        yield running


def write_model(repository: Path, name: str, config: str, source: str = "", file: str = "pipeline.py") -> None:
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(config)
    if source:
        (repository / name / "1" / file).write_text(source)


def photograph(width: int, height: int, kind: str) -> bytes:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], -1).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def on_cpu(files: list[bytes]) -> np.ndarray:
    path = ROOT / "pipelines" / "imagenet_preprocess.py"
    pipeline: Pipeline = load_pipeline(path, batch_size=64, num_threads=2, prefetch_queue_depth=1)
    return np.array(pipeline.run(encoded_image=[np.frombuffer(f, np.uint8) for f in files])[0].as_array())


def test_tensors_stay_on_the_gpu_and_equal_the_cpus(server: LocalServer) -> None:
    files = [photograph(640, 480, "PNG"), photograph(300, 500, "PNG"), photograph(512, 512, "JPEG")]
    tensor = tritonclient.http.InferInput("encoded_image", [len(files), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[file] for file in files], dtype=np.object_))
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        answer = client.infer("both", [tensor])
    assert answer.as_numpy("on_gpu").all()
    values, expected = answer.as_numpy("values"), on_cpu(files)
    one_step = 1 / (0.224 * 255)
    difference = np.abs(values - expected) / one_step
    assert difference[:2].max() <= 1.01
    # GPU and CPU decode JPEGs with different transforms and chroma interpolation, so they agree on average, but not pixel by pixel.
    assert difference[2].mean() <= 1


def numbers(values: list[float]) -> tritonclient.http.InferInput:
    tensor = tritonclient.http.InferInput("x", [len(values), 1], "FP32")
    tensor.set_data_from_numpy(np.array(values, np.float32)[:, None])
    return tensor


def test_a_model_takes_over_what_another_left_on_the_gpu(server: LocalServer) -> None:
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        for count in (1, 3, 7):
            values = [10.0 * count + number for number in range(count)]
            found = client.infer("chain", [numbers(values)]).as_numpy("range")
            assert found.tolist() == [[value, value] for value in values]


def test_sixty_four_large_outputs_in_flight_are_all_right(server: LocalServer) -> None:
    def ranges_of(value: int) -> list[list[float]]:
        # Each thread has a client of its own, as clients are not thread-safe.
        with tritonclient.http.InferenceServerClient(server.http_url) as client:
            found: list[list[float]] = client.infer("chain", [numbers([value])]).as_numpy("range").tolist()
            return found

    with ThreadPoolExecutor(64) as pool:
        for base in (100, 200):
            values = range(base, base + 64)
            assert list(pool.map(ranges_of, values)) == [[[value, value]] for value in values]


def test_outputs_on_the_gpu_reach_a_client_on_the_host(server: LocalServer) -> None:
    with tritonclient.http.InferenceServerClient(server.http_url) as client:
        large = client.infer("grown", [numbers([3, 4])]).as_numpy("large")
    assert large.shape == (2, *LARGE)
    assert (large[0] == 3).all()
    assert (large[1] == 4).all()


@contextmanager
def shared(client: Any, name: str, size: int) -> Iterator[cupy.ndarray]:
    """Register GPU memory with the server under a name inside the context; the contents are arbitrary at first."""
    address = cupy.cuda.runtime.malloc(size)
    try:
        memory = cupy.cuda.UnownedMemory(address, size, None, 0)
        view = cupy.ndarray(size // 4, np.float32, cupy.cuda.MemoryPointer(memory, 0))
        view[:] = -1
        cupy.cuda.Device(0).synchronize()
        handle = cupy.cuda.runtime.ipcGetMemHandle(address)
        client.register_cuda_shared_memory(name, base64.b64encode(handle), 0, size)
        try:
            yield view
        finally:
            client.unregister_cuda_shared_memory(name)
    finally:
        cupy.cuda.runtime.free(address)


def test_clients_give_and_take_tensors_in_memory_of_the_gpu(server: LocalServer) -> None:
    elements = int(np.prod(LARGE))
    with (
        tritonclient.http.InferenceServerClient(server.http_url) as client,
        shared(client, "given", 4 * elements) as given,
        shared(client, "taken", 4 * elements) as taken,
        shared(client, "range", 8) as found,
    ):
        large = tritonclient.http.InferRequestedOutput("large", binary_data=True)
        large.set_shared_memory("taken", 4 * elements)
        client.infer("grown", [numbers([5])], outputs=[large])
        assert (taken.get() == 5).all()

        given[:] = cupy.arange(elements, dtype=np.float32)
        cupy.cuda.Device(0).synchronize()
        tensor = tritonclient.http.InferInput("large", [1, *LARGE], "FP32")
        tensor.set_shared_memory("given", 4 * elements)
        ranged = tritonclient.http.InferRequestedOutput("range", binary_data=True)
        ranged.set_shared_memory("range", 8)
        client.infer("ranged", [tensor], outputs=[ranged])
        assert found.get().tolist() == [0, elements - 1]
