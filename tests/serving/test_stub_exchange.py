"""Plain Python models, written as Triton's documentation shows them, in the stub with this environment's numpy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from penstock.serving.environment import describe, find_environment
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import ask, stopped_later

MODEL = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        config = pb_utils.get_output_config_by_name(json.loads(args["model_config"]), "OUTPUT")
        self.output_dtype = pb_utils.triton_string_to_numpy(config["data_type"])

    def execute(self, requests):
        responses = []
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
            VALUES
            tensor = pb_utils.Tensor("OUTPUT", values.astype(self.output_dtype))
            assert isinstance(tensor, pb_utils.Tensor)
            assert np.array_equal(tensor.as_numpy(), values)
            responses.append(pb_utils.InferenceResponse(output_tensors=[tensor]))
        return responses
"""
CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_%s dims: [ -1, -1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_%s dims: [ -1, -1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""
TYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
# What the model does with its input, by the model's name.
STEPS = {
    "in_place": "values += 1",
    "not_contiguous": "values = values[:, ::2].transpose(0, 2, 1)",
    "read_only": "values = np.broadcast_to(values[:, :1], values.shape)",
    "big_endian": "values = values.astype('>f4')",
}
NUMPY_2 = int(np.__version__.split(".")[0]) >= 2


def add_model(repository: Path, name: str, step: str, given: str, made: str) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL.replace("VALUES", step))
    (folder.parent / "config.pbtxt").write_text(CONFIG % (given, made))


@pytest.fixture(scope="module")
def reports() -> list[str]:
    return []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, reports: list[str]) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    for name in TYPES:
        add_model(repository, name, "", name, name)
    for name, step in STEPS.items():
        add_model(repository, name, step, "FP32", "FP32")
    add_model(repository, "takes_strings", "", "STRING", "STRING")
    add_model(repository, "makes_strings", "values = values.astype(np.bytes_)", "FP32", "STRING")
    environment = replace(describe(sys.executable), triton=find_environment().triton)
    with stopped_later(LocalServer(repository, environment=environment, report=reports.append)) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def answer(client: Any, model: str, values: np.ndarray) -> np.ndarray:
    received: np.ndarray = ask(client, model, INPUT=values).as_numpy("OUTPUT")
    return received


@pytest.mark.parametrize("shape", [(1, 3, 5), (2, 1, 1), (1, 0, 4), (3, 200, 70)])
@pytest.mark.parametrize("name", sorted(TYPES))
def test_tensors_of_each_type_are_received_and_sent(client: Any, name: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(len(name)).integers(0, 100, shape).astype(TYPES[name])
    assert np_to_triton_dtype(values.dtype) == name
    received = answer(client, name, values)
    assert received.shape == shape
    assert np.array_equal(received, values)


def test_models_may_change_their_inputs_and_send_any_arrays(client: Any) -> None:
    values = np.arange(24, dtype=np.float32).reshape(1, 4, 6)
    assert np.array_equal(answer(client, "in_place", values), values + 1)
    assert np.array_equal(answer(client, "not_contiguous", values), values[:, ::2].transpose(0, 2, 1))
    assert np.array_equal(answer(client, "read_only", values), np.broadcast_to(values[:, :1], values.shape))
    assert np.array_equal(answer(client, "big_endian", values), values)


def test_memory_is_given_back_without_complaints(server: LocalServer, client: Any) -> None:
    values = np.zeros((1, 1000, 1000), np.float32)

    def resident() -> int:
        (stub,) = (stub for stub in server.stubs() if stub.instance.startswith("FP32_"))
        return int(Path(f"/proc/{stub.pid}/statm").read_text().split()[1]) * 4096

    for _ in range(5):
        answer(client, "FP32", values)
    before = resident()
    for _ in range(40):
        answer(client, "FP32", values)
    assert resident() < before + 10 * values.nbytes
    assert server.log is not None
    assert "PyCapsule" not in server.log.read_text()


@pytest.mark.parametrize("model", ["takes_strings", "makes_strings"])
def test_byte_strings_are_exchanged_or_refused_with_the_remedy(client: Any, reports: list[str], model: str) -> None:
    strings = np.array([[[b"1.0", b"2.5"]]], object)
    values = strings if model == "takes_strings" else strings.astype(np.float32)
    if not NUMPY_2:
        assert answer(client, model, values).tolist() == strings.tolist()
        return
    (report,) = (line for line in reports if f"{model}: " in line)
    assert "cannot exchange byte strings (TYPE_STRING): serve from an environment with numpy 1.26" in report
    for _ in range(2):
        with pytest.raises(InferenceServerException, match=r"cannot exchange byte strings.*penstock setup --stub"):
            answer(client, model, values)
