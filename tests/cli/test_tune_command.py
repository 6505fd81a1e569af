"""``penstock tune`` finds the better settings on a real server, and writes them to the right file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from penstock.cli import tune

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))

from served import HEADER, add_model

# The model sleeps for each batch of one sample, so a second instance answers nearly twice as many requests, even on one core.
PIPELINE = (
    HEADER
    + """
import time


def slowly(sample):
    time.sleep(0.02)
    return sample


@autoserialize
@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline():
    values = fn.external_source(name="values", dtype=types.FLOAT, ndim=1)
    return fn.python_function(values, function=slowly, num_outputs=1)
"""
)

CONFIG = """\
# Waits.
backend: "penstock"
input [ { name: "values" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 2 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    add_model(tmp_path / "models", "waiting", CONFIG, PIPELINE)
    np.save(tmp_path / "values.npy", np.ones(2, np.float32))
    return tmp_path / "models" / "waiting"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(tune.command, [str(argument) for argument in arguments], env={"COLUMNS": "400"})
    return result.exit_code, result.output


@pytest.mark.exhaustive
def test_a_second_instance_is_found_and_written(model: Path) -> None:
    data = model.parents[1] / "values.npy"
    code, output = run(model, "--data", data, "--seconds", 0.5, "--clients", 4, "--dry-run")
    assert code == 0, output
    assert re.search(r"best: \d+ instances?", output), output
    assert (model / "config.pbtxt").read_text() == CONFIG

    code, output = run(model, "--data", data, "--seconds", 0.5, "--clients", 4)
    assert code == 0, output
    written = (model / "config.pbtxt").read_text()
    count = re.search(r"instance_group \[ \{ count: (\d+) kind: KIND_CPU \} \]", written)
    assert count is not None, written
    assert int(count[1]) > 1
    assert written.startswith('# Waits.\nbackend: "penstock"\n')
    assert sorted(path.name for path in model.iterdir()) == ["1", "config.pbtxt"]


@pytest.mark.exhaustive
def test_a_limit_of_latency_that_nothing_meets_changes_nothing(model: Path) -> None:
    data = model.parents[1] / "values.npy"
    code, output = run(model, "--data", data, "--seconds", 0.2, "--clients", 2, "--max-p99-ms", 1)
    assert code == 0, output
    assert "the present settings remain" in output
    assert (model / "config.pbtxt").read_text() == CONFIG


@pytest.mark.exhaustive
def test_data_that_the_model_refuses(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "three.npy", np.ones(3, np.float32))
    code, output = run(model, "--data", tmp_path / "three.npy")
    assert code == 2
    assert "the model answers none of the files" in output


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--data", tmp_path)
    assert code == 1
    assert "has no config.pbtxt" in output
