"""A model that cannot answer because of a fault of the server is not reported ready until it can answer again."""

from __future__ import annotations

import errno
import http.client
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

from penstock import fn, pipeline_def, types
from penstock.errors import operator_error
from penstock.graph import DataNode
from penstock.pipeline import Pipeline
from penstock.serving import self_check
from penstock.serving.metrics import Metric, Tally
from penstock.serving.probing import run_trial
from penstock.serving.refusals import refusal_of
from penstock.serving.requests import RequestError
from penstock.serving.self_check import SelfCheck
from penstock.serving.server import LocalServer
from penstock.tensors import TensorListCPU

sys.path.insert(0, str(Path(__file__).parent))

from served import HEADER, add_model, ask, stopped_later

CHECKED = """
backend: "penstock"
parameters { key: "self_check_seconds" value { string_value: "SECONDS" } }
"""
WRITES = """
import errno
from pathlib import Path

def work(x):
    if Path(%r).exists(): raise OSError(errno.ENOSPC, "No space left on device")
    return x

@pipeline_def(batch_size=4)
def writes():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.python_function(x, function=work, name="y")
"""
DRAWS = """
@pipeline_def(batch_size=4, seed=7)
def draws():
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
    return fn.copy(x + fn.random.uniform(range=(0, 1)), name="y")
"""

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ {
    model_name: "writes"
    model_version: -1
    input_map { key: "x" value: "X" }
    output_map { key: "y" value: "Y" }
} ] }
"""


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.serving.readiness.READ_SECONDS", 0.2)
    monkeypatch.setattr("penstock.serving.readiness.FIRST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr("penstock.serving.readiness.LONGEST_PAUSE_SECONDS", 0.5)


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert condition()


def status(server: LocalServer, path: str) -> int:
    connection = http.client.HTTPConnection(server.http_url, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def sent(client: Any, model: str, *numbers: float) -> list[float]:
    answer: list[float] = ask(client, model, x=np.array([numbers], np.float32)).as_numpy("y")[0].tolist()
    return answer


@pytest.mark.parametrize("model_host", ["native", pytest.param("stub", marks=pytest.mark.exhaustive)])
def test_a_model_that_cannot_answer_is_not_ready_until_it_can(tmp_path: Path, model_host: str) -> None:
    full, reports = tmp_path / "full", list[str]()
    add_model(tmp_path / "models", "writes", CHECKED.replace("SECONDS", "0.5"), HEADER + WRITES % str(full))
    add_model(tmp_path / "models", "draws", CHECKED.replace("SECONDS", "0.5"), HEADER + DRAWS)
    (tmp_path / "models" / "ensemble" / "1").mkdir(parents=True)
    (tmp_path / "models" / "ensemble" / "config.pbtxt").write_text(ENSEMBLE)
    affected = ["health", "models/writes", "models/ensemble"]
    with (
        stopped_later(LocalServer(tmp_path / "models", model_host=model_host, report=reports.append)) as server,
        tritonclient.http.InferenceServerClient(server.http_url) as client,
    ):
        assert sent(client, "writes", 1, 2) == [1, 2]
        full.touch()
        with pytest.raises(InferenceServerException, match="No space left on device") as raised:
            sent(client, "writes", 1, 2)
        assert raised.value.status() == "503"
        until(lambda: status(server, "/v2/models/writes/ready") != 200)
        until(lambda: any("writes cannot answer yet" in line for line in reports))
        assert [status(server, f"/v2/{path}/ready") for path in affected] == [400] * 3
        assert status(server, "/v2/models/draws/ready") == 200
        assert len(sent(client, "draws", 1, 2)) == 2
        full.unlink()
        until(lambda: status(server, "/v2/models/writes/ready") == 200)
        until(lambda: any("writes serves again" in line for line in reports))
        until(lambda: all(status(server, f"/v2/{path}/ready") == 200 for path in affected))
        assert sent(client, "writes", 1, 2) == [1, 2]
        log = Path(server.log or "").read_text()
    assert "the self-check of 'writes' fails, so it cannot answer requests: penstock.fn.python_function: " in log
    assert [line.partition(" (")[0] for line in reports if "draws" in line] == []
    told = next(line for line in reports if "writes cannot answer yet" in line)
    assert "the model cannot answer any request here" in told
    assert "No space left on device" in told


def test_self_checks_draw_no_random_numbers_and_are_not_counted(tmp_path: Path) -> None:
    for name, seconds in {"checked": "0.1", "unchecked": "none"}.items():
        add_model(tmp_path, name, CHECKED.replace("SECONDS", seconds), HEADER + DRAWS)
    with stopped_later(LocalServer(tmp_path)) as server:
        with tritonclient.http.InferenceServerClient(server.http_url) as client:
            for _ in range(4):
                assert sent(client, "checked", 1, 2) == sent(client, "unchecked", 1, 2)
                time.sleep(1)

        def counted() -> dict[str, float]:
            with urllib.request.urlopen(server.metrics_url, timeout=10) as page:
                lines = [line for line in page.read().decode().splitlines() if 'model="checked"' in line]
            return {line.partition("{")[0]: float(line.split()[-1]) for line in lines}

        until(lambda: counted().get("penstock_requests_total") == 4)
        assert counted()["penstock_samples_total"] == 4
        assert counted()["penstock_model_cannot_answer"] == 0


# -- when to check -----------------------------------------------------------------------------------------------------


def doubling(x: np.ndarray) -> np.ndarray:
    return x * 2


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def plain() -> DataNode:
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1) * 2


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def with_function() -> DataNode:
    return fn.python_function(fn.external_source(name="x", dtype=types.FLOAT, ndim=1), function=doubling)


class Checked:
    """A self-check, with a clock that the test sets."""

    def __init__(self, pipeline: Pipeline, every: float | None = 30.0, with_sample: bool = True) -> None:
        trial = run_trial(pipeline)
        assert trial is not None
        pipeline.close()
        self.now = 1000.0
        self.sample = trial.sample
        self._tally = Tally()
        sample = trial.sample if with_sample else None
        self.check = SelfCheck("model", pipeline, sample, every, self._tally, lambda: self.now)

    def due_after(self, seconds: float) -> bool:
        self.now += seconds
        return self.check.is_due()

    def failing(self) -> float | None:
        """Return the value that was published last; None if none was."""
        return self._tally.take().gauges.get(Metric.CANNOT_ANSWER)


ANSWERED = object()
OF_SERVER = refusal_of(MemoryError())
OF_CLIENT = refusal_of(RequestError("no input"))


def test_a_model_is_checked_while_it_has_no_answered_requests() -> None:
    checked = Checked(plain())
    assert [checked.due_after(seconds) for seconds in (29, 2)] == [False, True]
    checked.check.run()
    assert [checked.due_after(seconds) for seconds in (29, 2)] == [False, True]
    checked.check.note([ANSWERED, OF_SERVER])
    assert [checked.due_after(seconds) for seconds in (29, 2)] == [False, True]


def test_a_model_is_checked_at_once_if_all_its_requests_fail_because_of_the_server() -> None:
    checked = Checked(with_function())
    for answers, due in ((OF_CLIENT, False), (OF_SERVER, True), (OF_CLIENT, True), (ANSWERED, False)):
        checked.check.note([answers])
        assert checked.due_after(6) == due


def test_functions_of_models_are_not_called_without_need() -> None:
    checked = Checked(with_function())
    assert not checked.due_after(1000)


def test_models_without_self_checks_and_without_a_sample_are_not_checked() -> None:
    for checked in (Checked(plain(), every=None), Checked(plain(), with_sample=False)):
        checked.check.note([OF_SERVER])
        assert not checked.due_after(1000)


def test_the_first_answered_sample_is_kept_if_it_is_small() -> None:
    checked = Checked(plain(), with_sample=False)
    assert checked.check.wants_sample
    large = TensorListCPU(np.zeros((1, self_check.MAX_SAMPLE_BYTES), np.float32))
    checked.check.keep({"x": large})
    assert checked.check.wants_sample
    values = np.ones((2, 4), np.float32)
    checked.check.keep({"x": TensorListCPU(values)})
    values[:] = np.nan
    assert not checked.check.wants_sample
    assert checked.due_after(31)
    checked.check.run()
    assert checked.failing() == 0


def test_a_check_that_fails_because_of_the_server_is_published_until_it_succeeds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checked = Checked(plain())
    assert checked.failing() == 0
    for error, failing in (
        (OSError(errno.EMFILE, "Too many open files"), 1),
        (MemoryError(), None),
        (ValueError("no image"), 0),
        (ValueError("no image"), None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(self_check, "run_sample", raising(operator_error(error, "penstock.fn.resize", "cpu", 0, ())))
            assert checked.due_after(31)
            checked.check.run()
        assert checked.failing() == failing
    assert "the self-check of 'model' fails, so it cannot answer requests: penstock.fn.resize: " in caplog.text
    assert "Too many open files" in caplog.text


def raising(error: Exception) -> Callable[..., object]:
    def function(*_: object) -> object:
        raise error

    return function


def test_checks_take_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = Checked(plain())

    def slow(*_: object) -> None:
        checked.now += 10

    monkeypatch.setattr(self_check, "run_sample", slow)
    assert checked.due_after(31)
    checked.check.run()
    assert [checked.due_after(seconds) for seconds in (490, 11)] == [False, True]
