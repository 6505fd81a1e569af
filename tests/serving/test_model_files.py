"""Which file is loaded from a model's folder, and which names are rejected."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Pipeline, compat, fn, pipeline_def, types
from penstock.errors import PenstockError
from penstock.serving.model_files import ModelFolder
from penstock.serving.settings import ConfigurationError

SOURCE = """
from {dali} import fn, pipeline_def, types
from {dali}.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def pipeline():
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1) + {number}
"""
OURS = SOURCE.format(dali="penstock", number=1)
DALIS = SOURCE.format(dali="nvidia.dali", number=2)


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "model" / "1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def without_finder() -> Iterator[None]:
    yield
    compat.uninstall()


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def adding(number: int) -> Any:
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1) + number


def added(pipeline: Pipeline) -> int:
    """Return the number that the pipeline adds to its input."""
    pipeline.build()
    pipeline.feed_input("x", [np.zeros(1, np.float32)] * 2)
    try:
        return int(np.array(pipeline.run()[0][0])[0])
    finally:
        pipeline.close()


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "character"),
    [
        ("../../outside/p.py", "/"),
        ("/tmp/p.py", "/"),
        ("sub/../../../p.py", "/"),
        ("..", "."),
        ("test');import os;os.system('true", "'"),
        ("$(touch x).py", "$"),
        ("a b.py", " "),
        ('a".py', '"'),
        ("a\n.py", "\n"),
        ("päckchen.py", "ä"),
        ("a\0.py", "\0"),
    ],
)
def test_names_that_are_refused(name: str, character: str, version: Path) -> None:
    (version / "dali.py").write_text(OURS)
    with pytest.raises(ConfigurationError, match="contains an invalid character: ") as caught:
        ModelFolder(version, name).load()
    assert f"contains an invalid character: '{character}'" in str(caught.value)
    assert str(caught.value).startswith("Invalid argument: ")


def test_a_file_in_a_subfolder(version: Path) -> None:
    (version / "sub").mkdir()
    (version / "sub" / "mine.py").write_text(OURS)
    assert added(ModelFolder(version, "sub/mine.py").load()) == 1


@pytest.mark.parametrize("named", ["", "dali.py", "linked/p.py"])
def test_links_that_lead_outside_are_refused(named: str, version: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    marker = tmp_path / "executed"
    (outside / "p.py").write_text(f"open({str(marker)!r}, 'w')\n{OURS}")
    (version / "dali.py").symlink_to(outside / "p.py")
    (version / "linked").symlink_to(outside)
    with pytest.raises(ConfigurationError, match="outside of the model's folder"):
        ModelFolder(version, named).load()
    assert not marker.exists()


def test_a_version_that_lies_outside_is_refused(version: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "dali.py").write_text(OURS)
    (version.parent / "2").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigurationError, match="outside of the model's folder"):
        ModelFolder(version.parent / "2").load()


def test_links_within_the_model_and_to_the_model_are_followed(version: Path, tmp_path: Path) -> None:
    (version.parent / "shared.py").write_text(OURS)
    (version / "dali.py").symlink_to("../shared.py")
    assert added(ModelFolder(version).load()) == 1
    (tmp_path / "linked").symlink_to(version.parent)
    assert added(ModelFolder(tmp_path / "linked" / "1").load()) == 1


# -- the file that is loaded -------------------------------------------------------------------------------------------


def test_files_are_tried_in_order(version: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.dali or model\.json or pipeline\.py or dali\.py"):
        ModelFolder(version).load()
    for number, name in enumerate(("dali.py", "pipeline.py", "model.json", "model.dali"), 1):
        if name.endswith(".py"):
            (version / name).write_text(SOURCE.format(dali="penstock", number=number))
        elif name.endswith(".json"):
            adding(number).save(str(version / name))
        else:
            adding(number).serialize(filename=str(version / name))
        assert added(ModelFolder(version).load()) == number


@pytest.mark.parametrize("named", ["model.dali", "model.penstock", "model.py"])
def test_what_triton_fills_in_names_no_file(named: str, version: Path) -> None:
    (version / "pipeline.py").write_text(OURS)
    assert added(ModelFolder(version, named).load()) == 1


def test_dali_py_stands_in_for_a_file_that_is_missing(version: Path) -> None:
    (version / "dali.py").write_text(OURS)
    assert added(ModelFolder(version, "mine.dali").load()) == 1
    (version / "dali.py").rename(version / "pipeline.py")
    with pytest.raises(FileNotFoundError, match=r"put mine\.dali or dali\.py there"):
        ModelFolder(version, "mine.dali").load()


@pytest.mark.parametrize("content", [b"no pipeline", b"", b"\xff\xfe", b"{"])
def test_dali_py_stands_in_for_a_file_that_holds_no_pipeline(
    content: bytes, version: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (version / "model.dali").write_bytes(content)
    with pytest.raises(PenstockError):
        ModelFolder(version).load()
    (version / "dali.py").write_text(OURS)
    with caplog.at_level(logging.WARNING):
        assert added(ModelFolder(version).load()) == 1
    assert "model.dali' holds no pipeline" in caplog.text


# -- nvidia.dali -------------------------------------------------------------------------------------------------------


def test_dalis_imports_mean_penstock_where_the_model_is_dalis(version: Path, without_finder: None) -> None:
    (version / "dali.py").write_text(DALIS)
    assert added(ModelFolder(version, as_dali=True).load()) == 2


# -- paths in pipelines ------------------------------------------------------------------------------------------------


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def reading(path: str) -> Any:
    return fn.io.file.read(types.Constant(np.frombuffer(path.encode(), np.uint8)))


def read(pipeline: Pipeline) -> bytes:
    try:
        return bytes(np.array(pipeline.run()[0][0]))
    finally:
        pipeline.close()


@pytest.mark.parametrize("name", ["model.json", "model.dali"])
def test_saved_pipelines_read_in_their_own_folder(name: str, version: Path, tmp_path: Path) -> None:
    def save(path: str) -> None:
        pipeline = reading(path)
        pipeline.save(str(version / name)) if name.endswith("json") else pipeline.serialize(
            filename=str(version / name)
        )

    (version / "labels.txt").write_text("beside")
    (version.parent / "labels.txt").write_text("above")
    (tmp_path / "labels.txt").write_text("outside")
    for path, content in (("labels.txt", b"beside"), ("../labels.txt", b"above"), (f"{version}/labels.txt", b"beside")):
        save(path)
        assert read(ModelFolder(version).load()) == content
    for path in ("../../../labels.txt", f"{tmp_path}/labels.txt"):
        save(path)
        with pytest.raises(PenstockError, match="outside of what the pipeline is confined to"):
            read(ModelFolder(version).load())
        assert read(ModelFolder(version, allowed_paths=[str(tmp_path)]).load()) == b"outside"
    save("../../../labels.txt")
    assert read(ModelFolder(version, allowed_paths=["../../.."]).load()) == b"outside"


def test_python_files_are_code_but_may_be_confined(version: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("outside")
    path = f"{tmp_path}/labels.txt"
    (version / "pipeline.py").write_text(
        "import numpy as np\nfrom penstock import fn, pipeline_def, types\n"
        "@pipeline_def(batch_size=1, num_threads=1, device_id=None)\n"
        f"def p():\n    return fn.io.file.read(types.Constant(np.frombuffer({path.encode()!r}, np.uint8)))\n"
    )
    assert read(ModelFolder(version).load()) == b"outside"
    with pytest.raises(PenstockError, match="outside of what the pipeline is confined to"):
        read(ModelFolder(version, allowed_paths=["/nowhere"], confines_code=True).load())
