"""An ensemble whose tensors stay on the GPU, in a real Triton."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from PIL import Image

from penstock import Pipeline
from penstock.serving.model_files import load_pipeline
from penstock.serving.server import LocalServer

ROOT = Path(__file__).parents[2]
JUDGE = """
import json

import cupy
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            image = pb_utils.get_input_tensor_by_name(request, "image")
            on_gpu = not image.is_cpu()
            values = cupy.from_dlpack(image.to_dlpack()).get() if on_gpu else image.as_numpy()
            outputs = [pb_utils.Tensor("on_gpu", np.array([[on_gpu]] * len(values))), pb_utils.Tensor("values", values)]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
"""
JUDGE_CONFIG = """
backend: "python"
max_batch_size: 64
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
output [ { name: "on_gpu" data_type: TYPE_BOOL dims: [ 1 ] }, { name: "values" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
parameters [ { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value: { string_value: "no" } } ]
instance_group [ { kind: KIND_GPU } ]
"""
ENSEMBLE_CONFIG = """
platform: "ensemble"
max_batch_size: 64
input [ { name: "encoded_image" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "on_gpu" data_type: TYPE_BOOL dims: [ 1 ] }, { name: "values" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
ensemble_scheduling { step [
  { model_name: "imagenet_preprocess" model_version: -1
    input_map { key: "encoded_image" value: "encoded_image" } output_map { key: "image" value: "image" } },
  { model_name: "judge" model_version: -1 input_map { key: "image" value: "image" }
    output_map { key: "on_gpu" value: "on_gpu" } output_map { key: "values" value: "values" } }
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "model_repository" / "imagenet_preprocess", repository / "imagenet_preprocess")
    (repository / "judge" / "1").mkdir(parents=True)
    (repository / "judge" / "1" / "model.py").write_text(JUDGE)
    (repository / "judge" / "config.pbtxt").write_text(JUDGE_CONFIG)
    (repository / "both" / "1").mkdir(parents=True)
    (repository / "both" / "config.pbtxt").write_text(ENSEMBLE_CONFIG)
    with LocalServer(repository) as running:
        yield running


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
    # GPU and CPU decode JPEG with different transforms and chroma interpolation: alike on average, not pixel by pixel.
    assert difference[2].mean() <= 1
