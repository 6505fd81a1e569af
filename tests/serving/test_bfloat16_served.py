"""Outputs of bfloat16 through Triton: over HTTP and gRPC, from both hosts of models; outputs are small or large, and
requests run alone or in a batch.
"""

from __future__ import annotations

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

NUMBERS = """
@pipeline_def(batch_size=4, output_dtype=[types.BFLOAT16, types.UINT16], output_ndim=1)
def numbers():
    values = fn.external_source(name="values", dtype=types.FLOAT, ndim=1)
    return fn.cast(values * 3, dtype=types.BFLOAT16, name="brief"), fn.cast(values, dtype=types.UINT16, name="whole")
"""
TYPED = 'input [ { name: "values" data_type: TYPE_FP32 dims: [ -1 ] } ]'
OUTPUTS = 'output [ { name: "brief" data_type: TYPE_BF16 dims: [ -1 ] }, { name: "whole" data_type: TYPE_UINT16 dims: [ -1 ] } ]'
WRONG = {
    "claimed": f'{TYPED} output [ {{ name: "brief" data_type: TYPE_FP16 dims: [ -1 ] }}, {{ name: "whole" data_type: TYPE_UINT16 dims: [ -1 ] }} ]',
    "taken": 'input [ { name: "values" data_type: TYPE_BF16 dims: [ -1 ] } ]',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("models")
    head = 'backend: "penstock" max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 20000 }'
    for name, entries in {"declared": f"{TYPED} {OUTPUTS}", "completed": "", **WRONG}.items():
        add_model(repository, name, f"{head} {entries}", HEADER + NUMBERS)
    with stopped_later(LocalServer(repository, model_host=model_host, allow_failures=True)) as running:
        yield running


def expected(values: np.ndarray) -> np.ndarray:
    bits = (values * 3).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bits_of(tensor: np.ndarray) -> np.ndarray:
    """Return the 16 bits of each value; clients return bfloat16 as float32 or as a bfloat16 type of NumPy."""
    return tensor.astype(np.float32).view(np.uint32) >> 16


@pytest.mark.parametrize("model", ["declared", "completed"])
@pytest.mark.parametrize("kind", [tritonclient.http, tritonclient.grpc])
@pytest.mark.parametrize(("samples", "count"), [(1, 5), (3, 7), (2, 40_000)])
def test_outputs(server: LocalServer, model: str, kind: Any, samples: int, count: int) -> None:
    values = np.random.default_rng(count).normal(0, 1, (samples, count)).astype(np.float32)
    url = server.http_url if kind is tritonclient.http else server.grpc_url
    with kind.InferenceServerClient(url) as client:
        tensor = kind.InferInput("values", list(values.shape), "FP32")
        tensor.set_data_from_numpy(values)
        answer = client.infer(model, [tensor])
        metadata = client.get_model_metadata(model)
    outputs = (
        metadata["outputs"]
        if kind is tritonclient.http
        else [{"name": own.name, "datatype": own.datatype} for own in metadata.outputs]
    )
    assert {own["name"]: own["datatype"] for own in outputs} == {"brief": "BF16", "whole": "UINT16"}
    np.testing.assert_array_equal(bits_of(answer.as_numpy("brief")), expected(values))
    assert answer.as_numpy("whole").dtype == np.uint16


def test_configurations_that_contradict_the_pipeline(server: LocalServer) -> None:
    reasons = {name: "".join(own.reason for own in server.models() if own.name == name) for name in WRONG}
    assert "Data type defined in pipeline: TYPE_BF16" in reasons["claimed"]
    assert "Input 'values' is TYPE_BF16: pipelines do not compute with bfloat16" in reasons["taken"]
