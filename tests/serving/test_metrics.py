"""Metrics of a served model's instances, and a log line for each failed request, in a real Triton."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
import pytest
import tritonclient.http
from PIL import Image
from tritonclient.utils import InferenceServerException

from penstock import Pipeline, fn, types
from penstock.errors import CancelledError, DecoderDiedError, LimitError, operator_error
from penstock.serving.accounting import Accounts
from penstock.serving.metrics import Changes, Metric, Tally
from penstock.serving.metrics_page import MetricsPage, MetricsWriter
from penstock.serving.pipeline_runner import PipelineRunner
from penstock.serving.refusals import Fault, Kind, refusal_of
from penstock.serving.server import LocalServer
from penstock.serving.settings import Settings
from penstock.tensors import TensorListCPU

sys.path.insert(0, str(Path(__file__).parent))

from served import add_model, stopped_later

pytestmark = pytest.mark.exhaustive

HALVES = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=8)
def halves():
    x = fn.external_source(name="x", dtype=types.FLOAT, layout="HWC")
    height = fn.external_source(name="height", dtype=types.FLOAT, ndim=0)
    return fn.copy(fn.crop(x / 2, crop_w=2, crop_h=height), name="y")
"""
PICTURES = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=8)
def pictures():
    images = fn.decoders.image(fn.external_source(name="encoded"), output_type=types.RGB)
    return fn.resize(images, size=[8, 8], name="small")
"""
PICTURES_CONFIG = """backend: "penstock"
parameters { key: "isolate_decoders" value { string_value: "all" } }
parameters { key: "max_pixels" value { string_value: "500000" } }
"""
CONFIG = """backend: "penstock"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, -1, 3 ] }, { name: "height" data_type: TYPE_FP32 dims: [ 1 ] } ]
max_batch_size: 8
instance_group [ { count: 2 kind: KIND_CPU } ]
parameters { key: "log_failures" value { string_value: "error" } }
parameters { key: "slow_execution_seconds" value { string_value: "0" } }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_host: str) -> Iterator[LocalServer]:
    repository = tmp_path_factory.mktemp("repository")
    quiet = CONFIG.replace('"error"', '"none"').replace('"0"', '"none"').replace("count: 2", "count: 1")
    models = {"halves": (HALVES, CONFIG), "quiet": (HALVES, quiet), "pictures": (PICTURES, PICTURES_CONFIG)}
    for name, (source, config) in models.items():
        add_model(repository, name, config, source)
    flags = ["--model-control-mode=explicit", "--load-model=*"]
    with stopped_later(LocalServer(repository, model_host=model_host, flags=flags)) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(server.http_url) as connected:
        yield connected


def ask(client: Any, model: str, samples: int, extent: int = 4, request: str = "", heights: Any = 2) -> np.ndarray:
    """Request a crop of two pixels from the middle of square images; it fails for narrower images."""
    tensors = []
    for name, data in (("x", np.ones((samples, extent, extent, 3))), ("height", np.ones((samples, 1)) * heights)):
        tensors.append(tritonclient.http.InferInput(name, list(data.shape), "FP32"))
        tensors[-1].set_data_from_numpy(data.astype(np.float32))
    return client.infer(model, tensors, request_id=request).as_numpy("y")


def page(server: LocalServer, model: str) -> dict[str, float]:
    """Return the model's series on the metrics page, without the labels that all series have."""
    with urllib.request.urlopen(server.metrics_url) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        series = re.fullmatch(r"(penstock_\w+)\{(.*)\} (\S+)", line)
        if series and f'model="{model}"' in series[2]:
            labels = sorted(set(series[2].split(",")) - {f'model="{model}"', 'version="1"'})
            found[f"{series[1]}{{{','.join(labels)}}}"] = float(series[3])
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


def test_requests_of_all_instances_are_counted_by_what_became_of_them(server: LocalServer, client: Any) -> None:
    for _ in range(4):
        assert ask(client, "halves", 3, 4).shape == (3, 2, 2, 3)
    for _ in range(2):
        with pytest.raises(InferenceServerException):
            ask(client, "halves", 2, 1)
    with pytest.raises(InferenceServerException, match="different shapes"):
        ask(client, "halves", 2, heights=[[1], [2]])
    until(lambda: page(server, "halves").get("penstock_requests_total{}") == 7)
    seen = page(server, "halves")
    assert seen["penstock_samples_total{}"] == 4 * 3 + 3 * 2
    assert seen['penstock_failed_requests_total{fault="client",kind="operator",operator="penstock.fn.crop"}'] == 2
    assert seen['penstock_failed_requests_total{fault="client",kind="bad_request",operator=""}'] == 1
    assert seen["penstock_batch_size_count{}"] == 7
    assert seen["penstock_batch_size_sum{}"] == 18
    assert seen['penstock_batch_size_bucket{le="2"}'] == 3
    assert seen['penstock_batch_size_bucket{le="4"}'] == 7
    by_operator = {name: value for name, value in seen.items() if "operator_seconds" in name}
    assert 'penstock_operator_seconds_total{device="cpu",operator="penstock.fn.crop"}' in by_operator
    assert 0 < sum(by_operator.values()) < seen["penstock_execution_seconds_total{}"] < 60
    assert [name for name in seen if "host_memory" in name]


def picture(width: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 1000)).save(buffer, "PNG")
    return buffer.getvalue()


def test_decodes_in_processes_of_their_own_and_files_beyond_limits(server: LocalServer, client: Any) -> None:
    for width in (5, 500, 501):
        data = np.frombuffer(picture(width), np.uint8)[None]
        tensor = tritonclient.http.InferInput("encoded", list(data.shape), "UINT8")
        tensor.set_data_from_numpy(data)
        if width <= 500:
            assert client.infer("pictures", [tensor]).as_numpy("small").shape == (1, 8, 8, 3)
        else:
            with pytest.raises(InferenceServerException, match="max_pixels"):
                client.infer("pictures", [tensor])
    until(lambda: page(server, "pictures").get("penstock_requests_total{}") == 3)
    seen = page(server, "pictures")
    assert seen["penstock_isolated_decodes_total{}"] >= 2
    assert seen['penstock_fused_samples_total{how="fused",operator="penstock.fn.resize"}'] == 2
    assert "penstock_isolated_decodes_total{}" not in page(server, "halves")
    assert (
        seen['penstock_failed_requests_total{fault="client",kind="limit",operator="penstock.fn.decoders.image"}'] == 1
    )
    assert "penstock_decoder_deaths_total{}" not in seen


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (LimitError("too large"), "limit"),
        (DecoderDiedError("died"), "decoder_died"),
        (ValueError("not an image"), "operator"),
        (CancelledError(), "cancelled"),
    ],
)
def test_each_failure_is_of_one_kind(cause: Exception, kind: str) -> None:
    error = cause if kind == "cancelled" else operator_error(cause, "penstock.fn.decoders.image", "cpu", 5, ())
    refusal = refusal_of(error, start=3)
    accounts = Accounts("model", "1", Settings(log_failures="none"))
    for deaths in (4, 6, 1):
        accounts.end(accounts.begin(), [SimpleNamespace(id="")], {0: refusal}, {Metric.DECODER_DEATHS: deaths})
    counts = accounts.tally.take().counts
    assert counts[Metric.FAILED_REQUESTS, ("client", kind, refusal.operator)] == 3
    # The third reading comes from a rebuilt pipeline, whose counts begin at 0.
    assert counts[Metric.DECODER_DEATHS, ()] == 6 + 1
    assert refusal.sample == (None if kind == "cancelled" else 2)


def test_samples_that_are_computed_step_by_step_are_counted_by_the_reason() -> None:
    accounts = Accounts("model", "1", Settings())
    with Pipeline(batch_size=4, num_threads=1, device_id=None) as pipe:
        values = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        pipe.set_outputs(fn.cast(values * 2 + 1, dtype=types.INT32))
    runner = PipelineRunner(pipe)
    for length in (3, 3, 100_000):
        execution = accounts.begin()
        watch = SimpleNamespace(operator_ran=execution.operator_ran, cancelled=lambda: ())
        runner.run({"x": TensorListCPU(np.zeros((2, length), np.float32))}, 2, watch)
        accounts.end(execution, [], {}, {})
    pipe.close()
    counts = accounts.tally.take().counts
    assert counts[Metric.FUSED_SAMPLES, ("penstock.fn.cast", "small samples")] == 4
    assert counts[Metric.FUSED_SAMPLES, ("penstock.fn.cast", "fused")] == 2


def test_slow_executions_add_up_an_operator_that_ran_on_both_devices(caplog: pytest.LogCaptureFixture) -> None:
    accounts = Accounts("model", "1", Settings(slow_execution_seconds=0.0))
    execution = accounts.begin()
    execution.operators["fn.resize", "cpu"] += 1.5
    execution.operators["fn.resize", "gpu"] += 0.25
    execution.operators["fn.crop", "cpu"] += 1.6
    accounts.end(execution, [], {}, {})
    assert "slowest=fn.resize slowest_seconds=1.750" in caplog.text


def test_each_metric_is_explained_on_the_page(server: LocalServer, client: Any) -> None:
    with pytest.raises(InferenceServerException):
        ask(client, "quiet", 1, 1)
    until(lambda: "penstock_requests_total{}" in page(server, "quiet"))
    with urllib.request.urlopen(server.metrics_url) as answer:
        text = answer.read().decode()
    for metric in set(Metric) - {
        Metric.GPU_BYTES,
        Metric.FUSED_SAMPLES,
        Metric.ISOLATED_DECODES,
        Metric.DECODER_DEATHS,
    }:
        assert f"# HELP {metric.value.name} {metric.value.doc}\n" in text
        assert f"# TYPE {metric.value.name} {metric.value.kind.lower()}\n" in text


def test_counters_outlive_the_model_and_its_memory_is_given_back(server: LocalServer, client: Any) -> None:
    def held() -> list[float]:
        return [value for name, value in page(server, "quiet").items() if "host_memory" in name]

    counted = page(server, "quiet").get("penstock_requests_total{}", 0) + 1
    ask(client, "quiet", 8, 400, heights=400)  # smaller outputs do not come from the pool
    until(lambda: page(server, "quiet").get("penstock_requests_total{}") == counted)
    assert sum(held()) > 0
    client.unload_model("quiet")
    until(lambda: sum(held()) == 0)
    client.load_model("quiet")
    ask(client, "quiet", 1, 4)
    until(lambda: page(server, "quiet")["penstock_requests_total{}"] == counted + 1)


def test_what_changes_while_the_page_is_written_is_written_too() -> None:
    tally, written = Tally(), list[float]()

    class Page:
        def write(self, changes: Changes) -> None:
            written.append(changes.counts[Metric.SAMPLES, ()])
            if len(written) == 1:
                with tally as more:
                    more.counts[Metric.SAMPLES, ()] += 2
                closing.start()
                assert writer._closed.wait(10)

        def clear(self) -> None:
            written.append(0)

    writer = MetricsWriter(cast(MetricsPage, Page()), tally)
    closing = threading.Thread(target=writer.close)
    with tally as changes:
        changes.counts[Metric.SAMPLES, ()] += 1
    until(lambda: not writer._thread.is_alive())
    closing.join()
    assert written == [1, 2, 0]


def lines(server: LocalServer, event: str, **wanted: str) -> list[dict[str, str]]:
    """Return the fields of the log lines about an event."""
    found = []
    for text in re.findall(rf'[EWI]\d{{4}} .*\] "({event} .*)"$', server.log.read_text(), re.M):
        head, _, message = text.partition(" message=")
        fields = {name: unquote(value) for name, value in (pair.split("=", 1) for pair in head.split()[1:])}
        if wanted.items() <= fields.items():
            found.append(fields | ({"message": message} if message else {}))
    return found


def test_a_failed_request_is_found_in_the_log_by_its_id(server: LocalServer, client: Any) -> None:
    forged = "abc 17 kind=none\nI1122 forged"
    with pytest.raises(InferenceServerException):
        ask(client, "halves", 2, 1, forged)
    until(lambda: bool(lines(server, "request_failed", request=forged)))
    (line,) = lines(server, "request_failed", request=forged)
    assert line.pop("message").startswith("penstock.fn.crop: ")
    assert line == {
        "model": "halves",
        "version": "1",
        "request": forged,
        "fault": "client",
        "kind": "operator",
        "operator": "penstock.fn.crop",
        "sample": "0",
    }


def test_who_wants_no_lines_gets_none(server: LocalServer, client: Any) -> None:
    with pytest.raises(InferenceServerException):
        ask(client, "quiet", 2, 1, "hushed")
    ask(client, "halves", 1, 4, "told")
    until(lambda: bool(lines(server, "slow_execution", requests="told")))
    assert "hushed" not in server.log.read_text()
    (line,) = lines(server, "slow_execution", requests="told")
    assert line["samples"] == "1"
    assert line["slowest"].startswith("penstock.")


def test_what_is_counted_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "watching-a-server.md").read_text(encoding="utf-8")
    missing = [
        name
        for name in (*(m.value.name for m in Metric), *(member.value for member in (*Kind, *Fault)))
        if f"`{name}`" not in text
    ]
    assert not missing
