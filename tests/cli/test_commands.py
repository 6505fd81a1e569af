"""The command line, command by command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock import __version__
from penstock.cli._group import penstock

PIPELINE = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4)
def doubled():
    return fn.cast(fn.external_source(name="numbers", dtype=types.FLOAT, ndim=1) * 2, dtype=types.FLOAT, name="twice")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "doubled.py"
    path.write_text(PIPELINE)
    return path


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(penstock, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def penstock_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_help_lists_each_command_with_its_purpose() -> None:
    text = invoke("--help")
    for name in ("export", "info", "inspect", "serve", "setup", "show"):
        assert f"\n  {name} " in text
        assert invoke(name, "--help").startswith("Usage:")


def test_commands_load_when_they_are_asked_for() -> None:
    code = "import sys, penstock.cli._group; print([m for m in sys.modules if 'serving' in m or m == 'numpy'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_options_of_the_stubs_environment_need_stub(tmp_path: Path) -> None:
    result = CliRunner().invoke(penstock, ["setup", str(tmp_path), "--no-gpu", "--with", "onnxruntime"])
    assert result.exit_code == 2
    assert "FOLDER, --gpu/--no-gpu, --with can be given only with --stub" in result.output


def test_version() -> None:
    assert __version__ in invoke("--version")


def test_export_tells_what_it_wrote(source: Path, tmp_path: Path) -> None:
    text = invoke("export", str(source), str(tmp_path / "model"), "--format", "dali", "--batch-size", "2")
    assert text.split() == ["wrote", f"{tmp_path}/model/1/model.dali", "wrote", f"{tmp_path}/model/config.pbtxt"]
    assert "max_batch_size: 2" in (tmp_path / "model" / "config.pbtxt").read_text()


def test_show_names_operators_and_outputs(source: Path, tmp_path: Path) -> None:
    text = invoke("show", str(source))
    for name in ("numbers", "ExternalSource", "Cast", "twice", "batches of up to 4"):
        assert name in text


FUSED = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=4)
def small():
    images = fn.resize(fn.external_source(name="images", dtype=types.UINT8, ndim=3, layout="HWC"), size=[4, 4])
    return fn.crop_mirror_normalize(images, name="normalized")
"""


def test_inspect_tells_what_each_pass_did(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(FUSED)
    text = " ".join(invoke("inspect", str(path)).split())
    assert "prune 3 -> 3 nothing" in text
    assert "fuse 3 -> 2 fused Resize " in text
    assert "; step by step for: volumes" in text
    assert "what runs: ExternalSource, _fused__Image" in text
    assert invoke("inspect", str(path), "--passes", "prune, fold_constants").count("->") == 2
    assert "what runs: ExternalSource, Resize, CropMirrorNormalize" in invoke("inspect", str(path), "--passes", "")


def test_inspect_lists_the_passes_where_one_is_unknown(source: Path) -> None:
    done = penstock_process("inspect", str(source), "--passes", "polish")
    assert done.returncode == 2
    assert "The passes are: prune, " in done.stderr


def test_info_tells_versions_and_where_models_are_served_from() -> None:
    text = invoke("info")
    assert f"penstock     {__version__}" in text
    assert "tritonserver" in text


def test_errors_are_one_clear_message_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    done = penstock_process("export", str(tmp_path / "empty.py"), str(tmp_path / "model"))
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: ")
    assert "must mark exactly one pipeline" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["inspekt", "pipeline.py"], "inspect"),
        (["inspect", "--pases", "prune", "."], "--passes"),
        (["inspect", "{folder}/doubld.py"], "doubled.py"),
        (["show", "{folder}/doubld.py"], "doubled.py"),
        (["export", "{folder}/doubld.py", "model"], "doubled.py"),
        (["inspect", "{folder}/doubled.py", "--passes", "prun"], "prune"),
        (["operators", "resiez"], "resize"),
        (["serve", "{folder}s"], "{name}"),
    ],
)
def test_the_nearest_name_is_offered(arguments: list[str], meant: str, source: Path) -> None:
    folder, meant = str(source.parent), meant.replace("{name}", source.parent.name)
    result = CliRunner().invoke(penstock, [argument.replace("{folder}", folder) for argument in arguments])
    assert f"Did you mean '{meant}'?" in " ".join(result.output.split())


def test_a_wrong_option_points_to_the_help() -> None:
    done = penstock_process("export", "--nope")
    assert done.returncode == 2
    assert "No such option" in done.stderr
