"""The program that starts the processes of models without a shell; the tests call it as Triton does."""

import os
import subprocess
from pathlib import Path

import pytest

from penstock.serving.stub_launcher import Trusted, lay_out_launcher
from penstock.serving.stubs import Stubs

REST = "penstock_ab12_0 1048576 1048576 77 /tmp/backends/python 336 {model} /tmp/backends/penstock"


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """Write a program that prints its arguments and its environment, to be used as the stub; return its path."""
    path = tmp_path / "triton_python_backend_stub"
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$MARK" "$PATH"\n')
    path.chmod(0o755)
    return path


TRUSTING = Trusted(environments=True)


def call(tmp_path: Path, *words: str, trusted: Trusted = TRUSTING) -> list[str]:
    """Call the launcher with these arguments; return the lines that it prints."""
    launcher = lay_out_launcher(tmp_path / "launcher", tmp_path / "records", trusted)
    variables = os.environ | {"PATH": f"{launcher}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", *words], env=variables, capture_output=True, text=True, check=True, cwd=tmp_path)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "file", ["dali.py", "$(touch executed).py", "a'b.py", 'a"b', "a b;touch executed", "`touch executed`"]
)
@pytest.mark.parametrize("model", ["plain", "$(touch executed)", "two words"])
def test_names_are_handed_over_as_they_are(file: str, model: str, stub: Path, tmp_path: Path) -> None:
    told = call(tmp_path, "-c", f" exec {stub} /models/m/1/{file} {REST.format(model=model)}")
    assert told[:1] + told[7:8] == [f"/models/m/1/{file}", model]
    assert told[1:7] == ["penstock_ab12_0", "1048576", "1048576", "77", "/tmp/backends/python", "336"]
    assert told[8] == "/tmp/backends/penstock"
    assert not (tmp_path / "executed").exists()
    # PATH is unchanged, so programs that the model starts find the usual shell.
    assert told[10] == os.environ["PATH"]


def test_an_environment_of_the_models_own_is_activated(stub: Path, tmp_path: Path) -> None:
    (tmp_path / "activate").write_text("export MARK=activated\n")
    command = (
        f"source {tmp_path}/activate && exec env LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH {stub} /m/1/$(touch executed).py"
    )
    told = call(tmp_path, "-c", f"{command} {REST.format(model='m')}")
    assert told[0] == "/m/1/$(touch executed).py"
    assert told[9] == "activated"
    assert not (tmp_path / "executed").exists()


def test_an_environment_of_a_model_that_need_not_be_code_is_refused(stub: Path, tmp_path: Path) -> None:
    (tmp_path / "activate").write_text("touch activated\n")
    command = f"source {tmp_path}/activate && exec env LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH {stub} /m/1/model.py"
    told = call(tmp_path, "-c", f"{command} {REST.format(model='m')}", trusted=Trusted())
    assert "EXECUTION_ENV_PATH" in Path(told[0]).read_text()
    assert not (tmp_path / "activated").exists()
    # A plain Python model runs code anyway, so it needs no grant.
    plain = REST.format(model="m").replace("/tmp/backends/penstock", "DEFAULT")
    assert call(tmp_path, "-c", f"{command} {plain}", trusted=Trusted())[0] == "/m/1/model.py"


@pytest.mark.parametrize("path", ["/tmp/folderA/1/model.py", "/models-2/m/1/model.py", "/models/../tmp/m/1/model.py"])
def test_models_outside_of_the_repositories_are_refused(path: str, stub: Path, tmp_path: Path) -> None:
    trusted = Trusted([Path("/models"), Path("/more models")])
    (told, *_) = call(tmp_path, "-c", f" exec {stub} {path} {REST.format(model='m')}", trusted=trusted)
    assert "--allow-model-upload" in Path(told).read_text()
    for repository in ("/models", "/more models"):
        command = f" exec {stub} {repository}/m/1/model.py {REST.format(model='m')}"
        assert call(tmp_path, "-c", command, trusted=trusted)[0] == f"{repository}/m/1/model.py"


def test_starts_are_recorded(stub: Path, tmp_path: Path) -> None:
    stub.write_text('#!/bin/sh\necho $$ $(cut -d" " -f22 /proc/$$/stat)\n')
    told = call(tmp_path, "-c", f" exec {stub} /models/m/1/a b;c.py {REST.format(model='two words_0_0')}")
    stubs = Stubs(0, tmp_path / "records")
    (tmp_path / "records" / "77").write_bytes(b"77\x00123\x00")  # a record that is still being written
    (recorded,) = stubs.started()
    assert f"{recorded.pid} {recorded.started}" == told[0]
    assert (recorded.instance, str(recorded.model_file)) == ("two words_0_0", "/models/m/1/a b;c.py")
    assert not recorded.running()
    assert stubs.started() == []


def test_processes_start_without_a_place_for_records(stub: Path, tmp_path: Path) -> None:
    lay_out_launcher(tmp_path / "launcher", tmp_path / "records", Trusted())
    (tmp_path / "records").rmdir()
    (tmp_path / "records").write_text("")
    command = f" exec {stub} /models/m/1/model.py {REST.format(model='m')}"
    program = [tmp_path / "launcher" / "bash", "-c", command]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("/models/m/1/model.py\n")
    assert done.stderr == ""


def test_all_else_is_left_to_the_shell(tmp_path: Path) -> None:
    assert call(tmp_path, "-c", 'echo "$1 $0"', "b", "a") == ["a b"]
    (tmp_path / "script.sh").write_text("echo $((1 + 1))\n")
    assert call(tmp_path, "script.sh") == ["2"]
