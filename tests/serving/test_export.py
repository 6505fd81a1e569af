"""Model folders written from pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Pipeline
from penstock.errors import SerializationError
from penstock.serving.completion import ModelConfiguration, TensorConfiguration
from penstock.serving.export import ExportError, configuration_text, export_model, export_preset, model_file
from penstock.serving.model_files import load_pipeline

DOUBLED = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4)
def doubled({arguments}):
    numbers = fn.external_source(name="numbers", dtype=types.FLOAT, ndim=1)
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.cast(numbers * 2, dtype=types.FLOAT, name="twice"), fn.copy(encoded, name="same")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "doubled.py"
    path.write_text(DOUBLED.format(arguments=""))
    return path


@pytest.mark.parametrize(("form", "file"), [("json", "model.json"), ("dali", "model.dali"), ("python", "pipeline.py")])
def test_each_form_is_a_pipeline_again(source: Path, tmp_path: Path, form: str, file: str) -> None:
    written = export_model(source, tmp_path / "model", form=form)
    assert written == [tmp_path / "model" / "1" / file, tmp_path / "model" / "config.pbtxt"]
    pipeline = load_pipeline(written[0])
    assert isinstance(pipeline, Pipeline)
    assert pipeline.max_batch_size == 4
    assert [node.name for node in pipeline.graph.outputs] == ["twice", "same"]


def test_the_configuration_tells_inputs_and_outputs(source: Path, tmp_path: Path) -> None:
    export_model(source, tmp_path / "model")
    assert (tmp_path / "model" / "config.pbtxt").read_text().splitlines() == [
        'backend: "penstock"',
        "max_batch_size: 4",
        'input [ { name: "numbers" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true } ]',
        'input [ { name: "encoded" data_type: TYPE_STRING dims: [1] } ]',
        'output [ { name: "twice" data_type: TYPE_FP32 dims: [-1] } ]',
        'output [ { name: "same" data_type: TYPE_UINT8 dims: [-1] } ]',
        "dynamic_batching { }",
    ]


def test_encoded_data_can_stay_uint8(source: Path, tmp_path: Path) -> None:
    export_model(source, tmp_path / "model", as_bytes=False)
    assert "TYPE_STRING" not in (tmp_path / "model" / "config.pbtxt").read_text()


def test_a_definition_that_takes_a_device_stays_python(tmp_path: Path) -> None:
    source = tmp_path / "doubled.py"
    source.write_text(DOUBLED.format(arguments='device="cpu"'))
    assert export_model(source, tmp_path / "model")[0].name == "pipeline.py"


def test_other_forms_of_the_same_version_are_removed(source: Path, tmp_path: Path) -> None:
    export_model(source, tmp_path / "model", form="dali")
    export_model(source, tmp_path / "model", form="json")
    assert [path.name for path in (tmp_path / "model" / "1").iterdir()] == ["model.json"]


def test_a_saved_pipeline_can_be_exported_too(source: Path, tmp_path: Path) -> None:
    (saved, _) = export_model(source, tmp_path / "first", form="dali")
    assert export_model(saved, tmp_path / "second", batch_size=16)[0].name == "model.json"
    assert "max_batch_size: 16" in (tmp_path / "second" / "config.pbtxt").read_text()
    with pytest.raises(ExportError, match="not Python source"):
        export_model(saved, tmp_path / "third", form="python")


def test_a_pipeline_without_batch_size_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "doubled.py"
    source.write_text(DOUBLED.format(arguments="").replace("batch_size=4", "num_threads=1"))
    with pytest.raises(ExportError, match="--batch-size"):
        export_model(source, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_file_without_pipeline_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "empty.py"
    source.write_text("")
    with pytest.raises(SerializationError, match="0 pipelines"):
        export_model(source, tmp_path / "model")


@pytest.mark.parametrize(("crops", "dims"), [(True, "3, 32, 40"), (False, "3, -1, -1")])
def test_a_preset_tells_the_extents_that_all_images_share(tmp_path: Path, crops: bool, dims: str) -> None:
    configuration = tmp_path / "preprocessor_config.json"
    processor = {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 48},
        "do_center_crop": crops,
        "crop_size": {"height": 32, "width": 40},
    }
    configuration.write_text(json.dumps(processor))
    export_preset(configuration, tmp_path / "model")
    assert (
        f'output [ {{ name: "pixel_values" data_type: TYPE_FP32 dims: [{dims}]'
        in (tmp_path / "model" / "config.pbtxt").read_text()
    )


def test_finds_the_file_of_a_model_folder(source: Path, tmp_path: Path) -> None:
    for version in (2, 10):
        export_model(source, tmp_path / "model", version=version)
    assert model_file(source) == source
    assert model_file(tmp_path / "model") == tmp_path / "model" / "10" / "model.json"
    assert model_file(tmp_path / "model" / "2") == tmp_path / "model" / "2" / "model.json"
    with pytest.raises(FileNotFoundError, match="holds no pipeline"):
        model_file(tmp_path)


def test_configuration_as_text() -> None:
    tensor = TensorConfiguration("image", "TYPE_FP32", (3, 224, 224))
    assert configuration_text(ModelConfiguration(8, (), (tensor,))) == (
        'backend: "penstock"\nmax_batch_size: 8\n'
        'output [ { name: "image" data_type: TYPE_FP32 dims: [3, 224, 224] } ]\ndynamic_batching { }\n'
    )
