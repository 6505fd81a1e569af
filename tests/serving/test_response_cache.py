"""Triton's response cache, which models may use only at the operator's risk: why, as seen on the real server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from served import HEADER, add_model, ask, stopped_later
from tritonclient.utils import InferenceServerException

from penstock.serving.server import LocalServer

TENSOR = 'name: "{}" data_type: TYPE_FP32 dims: [ 1 ]'
CONFIG = f"""
backend: "penstock" max_batch_size: 4
input [ {{ {TENSOR.format("x")} }} ] output [ {{ {TENSOR.format("y")} }} ]
response_cache {{ enable: true }}
"""
REFUSING = (
    HEADER
    + """
def positive(x):
    if x[0] < 0:
        raise ValueError("it is negative")
    return x


@autoserialize
@pipeline_def(batch_size=4)
def pipeline():
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=positive, name="y")
"""
)
FLAGS = ["--cache-config=local,size=1048576"]


def test_models_that_ask_for_it_are_refused(tmp_path: Path, model_host: str) -> None:
    add_model(tmp_path, "cached", CONFIG, REFUSING)
    reports: list[str] = []
    server = LocalServer(tmp_path, flags=FLAGS, model_host=model_host, allow_failures=True, report=reports.append)
    with stopped_later(server):
        (model,) = server.models()
        assert model.failed
        assert "penstock serve --unsafe-response-cache" in model.reason
        assert any("repeats requests that failed" in line for line in reports)


def test_failures_are_repeated_as_successes(tmp_path: Path) -> None:
    """As long as this holds of Triton, models are refused."""
    add_model(tmp_path, "cached", CONFIG, REFUSING)
    settings = {"unsafe_response_cache": "true"}
    with (
        stopped_later(LocalServer(tmp_path, flags=FLAGS, settings=settings)) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
    ):
        negative = np.array([[-1]], np.float32)
        with pytest.raises(InferenceServerException, match="it is negative"):
            ask(client, "cached", x=negative)
        assert ask(client, "cached", x=negative).get_response()["outputs"] == []
