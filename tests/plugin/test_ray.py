"""Pipelines as stages of Ray Data, on a cluster of two workers that the tests start."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from PIL import Image

from penstock import Pipeline, fn, pipeline_def
from penstock.plugin.ray import map_pipeline

# Ray's own threads, sockets and files outlive its shutdown.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]

COUNT = 50


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    root = Path(__file__).parents[2]
    folders = [str(root), str(root / "backend")]
    path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False)
    yield
    ray.shutdown()


def png(number: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8 + number % 3, 6), (number, 0, 0)).save(file, "PNG")
    return file.getvalue()


def dataset(broken: int = -1) -> Any:
    rows = [{"number": number, "bytes": b"no image" if number == broken else png(number)} for number in range(COUNT)]
    return ray.data.from_items(rows, override_num_blocks=5)


@pipeline_def(batch_size=8)
def decoded() -> Any:
    images = fn.decoders.image(fn.external_source(name="encoded"))
    return images, fn.resize(images, size=(4, 4))


def rows_of(prepared: Any) -> list[dict[str, Any]]:
    return sorted(prepared.take_all(), key=lambda row: row["number"])


INPUTS, OUTPUTS = {"encoded": "bytes"}, ["image", "small"]


def saved(folder: Path) -> list[Any]:
    pipeline = decoded(num_threads=1, device_id=None)
    pipeline.save(str(folder / "a.json"))
    pipeline.serialize(filename=str(folder / "a.dali"))
    return [decoded, pipeline, folder / "a.json", str(folder / "a.dali")]


@pytest.mark.parametrize("form", range(4))
def test_each_row_gets_the_outputs(form: int, tmp_path: Path) -> None:
    prepared = map_pipeline(
        dataset(), saved(tmp_path)[form], inputs=INPUTS, outputs=OUTPUTS, batch_size=8, concurrency=2
    )
    rows = rows_of(prepared)
    assert [row["number"] for row in rows] == list(range(COUNT))
    for number, row in enumerate(rows):
        assert row["bytes"] == png(number)
        assert np.asarray(row["image"]).shape == (6, 8 + number % 3, 3)
        assert np.asarray(row["small"]).shape == (4, 4, 3)
        assert (np.asarray(row["small"])[..., 0] == number).all()


def test_bad_rows(tmp_path: Path) -> None:
    prepared = map_pipeline(dataset(7), decoded, inputs=INPUTS, outputs=OUTPUTS, batch_size=8, on_error="skip")
    rows = rows_of(prepared)
    assert [row["number"] for row in rows] == [number for number in range(COUNT) if number != 7]
    assert all((np.asarray(row["small"])[..., 0] == row["number"]).all() for row in rows)
    with pytest.raises(Exception, match="sample #7"):
        map_pipeline(dataset(7), decoded, inputs=INPUTS, outputs=OUTPUTS, batch_size=8).take_all()


class DyingOnce:
    """Builds the pipeline in actors; the first actor dies at its third batch."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __call__(self, **settings: Any) -> Pipeline:
        calls = []

        def die_once(encoded: np.ndarray) -> np.ndarray:
            calls.append(1)
            if len(calls) > 20 and not self._mark.exists():
                self._mark.touch()
                os._exit(1)
            return encoded

        @pipeline_def(exec_async=False, exec_pipelined=False)
        def define() -> Any:
            encoded = fn.python_function(fn.external_source(name="encoded"), function=die_once)
            return fn.resize(fn.decoders.image(encoded), size=(4, 4))

        return define(**settings)


def test_every_row_is_there_once_after_a_worker_died(tmp_path: Path) -> None:
    mark = tmp_path / "died"
    prepared = map_pipeline(dataset(), DyingOnce(mark), inputs=INPUTS, outputs=["small"], batch_size=5, concurrency=2)
    rows = rows_of(prepared)
    assert mark.exists()
    assert [row["number"] for row in rows] == list(range(COUNT))
    assert all((np.asarray(row["small"])[..., 0] == row["number"]).all() for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {}}, "Name the pipeline's inputs"),
        ({"outputs": []}, "Name the pipeline's inputs"),
        ({"batch_size": 0}, "must be positive"),
    ],
)
def test_wrong_requests(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        map_pipeline(dataset(), decoded, **{"inputs": INPUTS, "outputs": OUTPUTS, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {"encoded": "data"}}, "There is no column 'data'"),
        ({"outputs": ["image"]}, "has 2 outputs, but 1 columns"),
    ],
)
def test_columns_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    prepared = map_pipeline(dataset(), decoded, **{"inputs": INPUTS, "outputs": OUTPUTS, **arguments})
    with pytest.raises(Exception, match=message):
        prepared.take_all()
