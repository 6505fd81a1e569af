"""Pipelines are saved and loaded in both formats, and hostile files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.errors import SerializationError, UnsupportedVersionError
from penstock.pipeline import OperatorConcurrency, StreamPolicy

WIRE = Path(__file__).parents[1] / "golden" / "wire"
IMAGES = [np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8) for _ in range(2)]


@pipeline_def(batch_size=2, num_threads=2, seed=7, prefetch_queue_depth=1)
def example() -> Any:
    image = fn.external_source(name="image", layout="HWC")
    image = fn.rotate(image, angle=fn.random.uniform(range=[-10.0, 10.0]), fill_value=0)
    image = fn.resize(image, size=[16, 16], interp_type=types.INTERP_CUBIC)
    left, right = fn.cast([image, image * 0.5], dtype=types.FLOAT)
    return fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(), name="out"), left, right[2:, :, 0]


def outputs(pipeline: Pipeline) -> list[np.ndarray]:
    return [np.array(batch.as_array()) for batch in pipeline.run(image=IMAGES)]


def through_wire(pipeline: Pipeline, folder: Path) -> Pipeline:
    pipeline.serialize(filename=str(folder / "model.dali"))
    return Pipeline.deserialize(filename=str(folder / "model.dali"))


def through_text(pipeline: Pipeline, folder: Path) -> Pipeline:
    pipeline.save(str(folder / "model.json"))
    return Pipeline.load(str(folder / "model.json"))


@pytest.mark.parametrize("through", [through_wire, through_text])
def test_loaded_pipelines_give_the_same(through: Callable[[Pipeline, Path], Pipeline], tmp_path: Path) -> None:
    expected = outputs(example())
    loaded = through(example(), tmp_path)
    assert loaded.max_batch_size == 2
    assert loaded.seed == 7
    for a, b in zip(expected, outputs(loaded)):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("through", [through_wire, through_text])
def test_only_operators_that_are_preserved_run_without_a_use(
    through: Callable[[Pipeline, Path], Pipeline], tmp_path: Path
) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        image = fn.external_source(name="image", layout="HWC")
        fn.flip(image, name="preserved", preserve=True)
        fn.flip(image, name="unused")
        return fn.crop(fn.copy(image, name="used", preserve=True), crop=[4, 4], name="cropped")

    graph = through(define(), tmp_path).graph
    assert {operator.name for operator in graph.operators} == {"image", "preserved", "used", "cropped"}
    assert {node.source.name for node in graph.sinks} == {"preserved", "used"}


def test_loaded_pipelines_save_the_same(tmp_path: Path) -> None:
    loaded = through_text(example(), tmp_path)
    loaded.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()


def test_settings_can_be_overridden() -> None:
    loaded = Pipeline.deserialize(example().serialize(), batch_size=5, num_threads=1, prefetch_queue_depth=1)
    assert (loaded.max_batch_size, loaded.num_threads) == (5, 1)


@pytest.mark.parametrize(
    "name", ["00_scratch", "02_arithmetic", "03_subscript", "04_conditionals", "05_random", "06_geometry_colour"]
)
def test_pipelines_saved_by_dali_load(name: str) -> None:
    pipeline = Pipeline.deserialize(filename=str(WIRE / f"{name}.dali"))
    assert pipeline.num_outputs > 0
    again = Pipeline.deserialize(pipeline.serialize())
    assert again.num_outputs == pipeline.num_outputs


def test_the_readable_format_can_be_read(tmp_path: Path) -> None:
    example().save(str(tmp_path / "model.json"))
    text = (tmp_path / "model.json").read_text()
    document = json.loads(text)
    assert document["format"] == "penstock-pipeline"
    names = [entry["operator"] for entry in document["operators"]]
    assert "resize" in names
    assert "random.uniform" in names
    assert '"interp_type": "INTERP_CUBIC"' in text


def edited(change: Callable[[dict[str, Any]], None], folder: Path) -> str:
    path = folder / "model.json"
    example().save(str(path))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return str(path)


def test_future_versions_are_refused(tmp_path: Path) -> None:
    path = edited(lambda d: d.update(version=99), tmp_path)
    with pytest.raises(UnsupportedVersionError, match="upgrade"):
        Pipeline.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format="else"),
        lambda d: d.update(version="one"),
        lambda d: d.update(operators=3),
        lambda d: d.update(outputs=[{"node": "nowhere"}]),
        lambda d: d["settings"].update(surprise=1),
        lambda d: d["operators"][0].update(operator="nothing"),
        lambda d: d["operators"][1].update(inputs=["nowhere"]),
        lambda d: d["operators"][0].update(device="tpu"),
        lambda d: d["operators"][0].update(name=d["operators"][1]["name"]),
        lambda d: d["operators"][0].update(arguments={"nonsense": 1}),
        lambda d: d["operators"][0].update(arguments={"layout": 5}),
        lambda d: d["operators"][0].update(python="os:system"),
        lambda d: d["operators"].clear(),
    ],
)
def test_files_that_make_no_sense_are_refused(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    path = edited(change, tmp_path)
    with pytest.raises(SerializationError):
        Pipeline.load(path)


def test_nothing_is_imported_from_modules_that_are_not_allowed(tmp_path: Path) -> None:
    path = edited(lambda d: d["operators"][0].update(python="os:system"), tmp_path)
    with pytest.raises(SerializationError, match="not among those"):
        Pipeline.load(path, allowed_modules=["mine"])


@pytest.mark.parametrize("data", [b"", b"\x00", b"nonsense", b"\xff" * 100])
def test_bytes_that_are_no_pipeline_are_refused(data: bytes) -> None:
    with pytest.raises((SerializationError, ValueError)):
        Pipeline.deserialize(data)


def test_damaged_files_are_refused_or_load() -> None:
    # Whichever bit is flipped, only the package's errors are raised.
    original = (WIRE / "06_geometry_colour.dali").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(150):
        data = bytearray(original)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(0, 256)
        try:
            Pipeline.deserialize(bytes(data))
        except (RuntimeError, ValueError, TypeError, OverflowError, MemoryError, NotImplementedError):
            continue


@pytest.mark.parametrize("policy", [None, *StreamPolicy])
@pytest.mark.parametrize("concurrency", [None, *OperatorConcurrency])
def test_choices_of_the_executor_are_saved(policy: Any, concurrency: Any) -> None:
    with Pipeline(2, 1, stream_policy=policy, concurrency=concurrency) as pipeline:
        pipeline.set_outputs(fn.external_source(name="x"))
    loaded = Pipeline.deserialize(pipeline.serialize())
    assert loaded.stream_policy == (policy or StreamPolicy.UNSPECIFIED)
    assert loaded.concurrency == (OperatorConcurrency.BACKEND if concurrency is None else concurrency)
