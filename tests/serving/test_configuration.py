"""Configurations are completed and checked against their pipelines, both with and without Triton."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.kernels.cpu.opencv import opencv
from penstock.serving.completion import complete_configuration, explained_choices, is_batched
from penstock.serving.configuration import check_configuration, check_libraries, warn_of_differences
from penstock.serving.probing import TensorInfo, TrialRunError, probe
from penstock.serving.settings import ConfigurationError, Settings


@pytest.mark.parametrize(
    ("text", "batched"),
    [
        ("", True),
        ("max_batch_size: 0", False),
        ("max_batch_size:0", False),
        ("max_batch_size : 0x0", False),
        ("max_batch_size: 8", True),
        ('# max_batch_size: 0\nname: "max_batch_size: 0"', True),
        ("version_policy { max_batch_size: 0 }", True),
        ('input [ { name: "}" } ] parameters < key: "{" >\nmax_batch_size: 0', False),
    ],
)
def test_no_batches_are_told_from_no_entry(text: str, batched: bool) -> None:
    assert is_batched({"max_batch_size": 0}, text) is batched
    assert is_batched({"max_batch_size": 4}, text)


@pipeline_def(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1)
def two(declare: bool = True) -> Any:
    declared = {"dtype": types.FLOAT, "ndim": 2} if declare else {}
    a, b = (fn.external_source(name=name, **declared) for name in "ab")
    return fn.copy(a, name="first"), fn.copy(b, name="second")


@pytest.fixture
def made() -> Iterator[Callable[..., Pipeline]]:
    pipelines = []

    def make(**settings: Any) -> Pipeline:
        pipelines.append(two(**settings))
        return pipelines[-1]

    yield make
    for pipeline in pipelines:
        pipeline.close()


def completed(pipeline: Pipeline, batched: bool = True, **config: Any) -> dict[str, Any]:
    config = {"max_batch_size": 0, "input": [], "output": []} | config
    complete_configuration(config, pipeline, Settings(), batched)
    return config


@pytest.mark.parametrize(
    ("text", "open_fields"),
    [
        ("", ["dynamic_batching", "instance_group"]),
        ("dynamic_batching { }", ["instance_group"]),
        ("instance_group [ { count: 2 } ]", ["dynamic_batching"]),
        ("dynamic_batching { } instance_group { count: 2 }", []),
    ],
)
def test_choices_are_explained_where_the_configuration_leaves_them_open(
    made: Any, text: str, open_fields: list[str]
) -> None:
    pipeline = made()
    explained = explained_choices(completed(pipeline), pipeline, text)
    assert [choice.split(":")[0] for choice in explained] == [
        f"the configuration has no {name}" for name in open_fields
    ]


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]


def test_nothing_given(made: Any) -> None:
    config = completed(made())
    assert config["max_batch_size"] == 4
    assert config["dynamic_batching"] == {}
    assert [(e["name"], e["data_type"], e["dims"], e["allow_ragged_batch"]) for e in config["input"]] == [
        ("a", "TYPE_FP32", [-1, -1], True),
        ("b", "TYPE_FP32", [-1, -1], True),
    ]
    assert [(e["name"], e["data_type"], e["dims"]) for e in config["output"]] == [
        ("first", "TYPE_FP32", [-1, -1]),
        ("second", "TYPE_FP32", [-1, -1]),
    ]


def test_entries_without_names_stand_for_what_is_in_their_place(made: Any) -> None:
    # If a configuration has no name, type or dims, Triton reports empty ones.
    nothing = {"name": "", "data_type": "TYPE_INVALID", "dims": []}
    config = completed(made(), input=[nothing | {"dims": [3, -1]}, nothing | {"name": "a"}], output=[dict(nothing)])
    assert names(config["input"]) == ["b", "a"]
    assert config["input"][0]["dims"] == [3, -1]
    assert names(config["output"]) == ["first", "second"]
    config = completed(made(), input=[dict(nothing), dict(nothing)], output=[nothing | {"name": "renamed"}])
    assert names(config["input"]) == ["a", "b"]
    assert names(config["output"]) == ["renamed", "second"]
    with pytest.raises(ConfigurationError, match=r"The input at index 2 .* does not contain a `name` field"):
        completed(made(), input=[dict(nothing) for _ in range(3)])


def test_outputs_are_known_by_name_else_by_their_place(made: Any) -> None:
    by_name = completed(made(output_ndim=[2, None]), output=[{"name": "second"}])
    assert names(by_name["output"]) == ["second", "first"]
    by_place = completed(made(), output=[{"name": "x"}, {"name": "first"}])
    assert names(by_place["output"]) == ["x", "first"]
    nameless: dict[str, Any] = {}
    assert names(completed(made(), output=[nameless, {"name": "first"}])["output"]) == ["second", "first"]
    assert names(completed(made(), output=[{"name": "x"}, {}])["output"]) == ["x", "second"]


def test_without_batches_the_samples_number_comes_first(made: Any) -> None:
    config = completed(made(), batched=False, input=[{"name": "a", "dims": [-1, 5, -1]}])
    assert config["max_batch_size"] == 0
    assert "dynamic_batching" not in config
    assert [entry["dims"] for entry in config["input"]] == [[-1, 5, -1], [-1, -1, -1]]
    assert config["input"][1]["allow_ragged_batch"] is False
    assert [entry["dims"] for entry in config["output"]] == [[-1, 5, -1], [-1, -1, -1]]
    check_configuration(config, made(), Settings())
    config["input"][0]["dims"] = [5, -1]
    with pytest.raises(ConfigurationError, match="Mismatch in number of dimensions"):
        check_configuration(config, made(), Settings())


def test_what_only_the_configuration_tells_is_what_the_probe_takes(made: Any) -> None:
    entries = [
        {"name": "a", "data_type": "TYPE_INT64", "dims": [7]},
        {"name": "b", "data_type": "TYPE_BOOL", "dims": [2, -1, 3]},
    ]
    config = completed(made(declare=False), input=entries)
    assert [(e["data_type"], e["dims"]) for e in config["output"]] == [("TYPE_INT64", [7]), ("TYPE_BOOL", [2, -1, 3])]


def test_a_rank_that_nobody_tells_is_asked_for(made: Any) -> None:
    with pytest.raises(ConfigurationError, match="the rank of the input 'a' is not known"):
        completed(made(declare=False), input=[{"name": "a", "data_type": "TYPE_FP32"}])


def test_what_a_probe_sees_is_a_warning_only(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    pipeline = made()
    config = completed(pipeline)
    config["output"][1] |= {"data_type": "TYPE_INT8", "dims": [3]}
    check_configuration(config, pipeline, Settings())
    seen = probe(pipeline)
    assert seen is not None
    warn_of_differences(config, pipeline, Settings(), seen)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert 'Mismatch of data_type config for "second"' in record.getMessage()


def test_why_a_probe_fails_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def cropped() -> Any:
        return fn.crop(fn.decoders.image(fn.external_source(name="x")), crop=(5000, 5000))

    pipeline = cropped()
    with caplog.at_level(logging.INFO, "penstock"):
        assert probe(pipeline) is None
    (message,) = [record.getMessage() for record in caplog.records]
    assert "jpeg: " in message
    assert "crop" in message
    assert "audio: " in message
    assert "\n" not in message
    pipeline.close()


@pytest.mark.parametrize("also", [(), ("av",), ("av", "PIL")], ids=["alone", "with PyAV", "with PyAV and Pillow"])
def test_a_probe_that_lacks_a_library_is_no_advice(also: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def coloured() -> Any:
        return fn.debayer(fn.external_source(name="x", dtype=types.UINT8, layout="HW"), blue_position=[0, 0])

    pipeline = coloured()
    opencv.cache_clear()
    for module in ("cv2", *also):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TrialRunError, match=r"debayer: OpenCV is needed"):
        probe(pipeline)
    with pytest.raises(ConfigurationError, match=r"debayer: OpenCV is needed.*pip install penstock-triton\[image\]"):
        check_libraries(pipeline)
    pipeline.close()


def test_a_probe_without_made_up_data_tells_nothing_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def strict() -> Any:
        return fn.decoders.numpy(fn.external_source(name="x"))

    pipeline = strict()
    for module in ("av", "PIL"):
        monkeypatch.setitem(sys.modules, module, None)
    assert probe(pipeline) is None
    pipeline.close()


def test_a_probe_takes_up_with_the_next_kind_of_data(made: Any) -> None:
    """A trial run that failed leaves no data in the sources for the next one."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def mixed() -> Any:
        audio, _ = fn.decoders.audio(fn.external_source(name="sound"), dtype=types.FLOAT, downmix=True)
        return audio, fn.external_source(name="number", dtype=types.INT32, ndim=0)

    pipeline = mixed()
    assert probe(pipeline) == [
        TensorInfo(pipeline.graph.outputs[0].name, types.FLOAT, (-1,)),
        TensorInfo("number", types.INT32, ()),
    ]
    pipeline.close()
