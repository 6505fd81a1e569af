"""How Penstock finds Triton, and prepares the backend directory for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.serving.environment import find_environment
from penstock.serving.installation import Installation, InstallationError, check_stub, find_installation, lay_out


@pytest.fixture(scope="module")
def wheel() -> Installation:
    return find_installation(find_environment())


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    """Create the relevant files of an installed Triton, all empty, and return the installation."""
    backends = tmp_path / "tritonserver" / "backends"
    (backends / "python").mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_stub"):
        (backends / "python" / name).touch()
    binary = tmp_path / "tritonserver" / "bin" / "tritonserver"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    return Installation(binary, backends, backends / "python" / "triton_python_backend_stub", from_wheel=False)


def test_the_wheel_is_laid_out_in_a_folder_of_its_own(wheel: Installation, tmp_path: Path) -> None:
    backends = lay_out(wheel, tmp_path)
    assert backends == tmp_path / "backends"
    # Triton refuses a link to this library, but the stub must be a link, as it finds its libraries relative to its real location.
    assert not (backends / "python" / "libtriton_python.so").is_symlink()
    assert (backends / "python" / "triton_python_backend_stub").resolve() == wheel.stub.resolve()
    assert "TritonPythonModel" in (backends / "penstock" / "model.py").read_text()


def test_laying_out_again_changes_nothing(wheel: Installation, tmp_path: Path) -> None:
    assert lay_out(wheel, tmp_path) == lay_out(wheel, tmp_path)


def test_an_installed_triton_comes_first_and_gets_our_backend(
    installed: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(installed.binary.parent), prepend=os.pathsep)
    found = find_installation(find_environment())
    assert found == installed
    assert lay_out(found, tmp_path / "unused") == installed.backends
    assert (installed.backends / "penstock" / "model.py").is_file()
    assert not (tmp_path / "unused").exists()


def test_another_backend_of_a_name_is_left_alone(installed: Installation, tmp_path: Path) -> None:
    dali = installed.backends / "dali"
    dali.mkdir()
    (dali / "libtriton_dali.so").touch()
    with pytest.raises(InstallationError, match="dali' is another backend of that name: move it"):
        lay_out(installed, tmp_path, ("penstock", "dali"))
    assert [path.name for path in dali.iterdir()] == ["libtriton_dali.so"]
    dali.rename(installed.backends.parent / "dali")
    lay_out(installed, tmp_path, ("penstock", "dali"))
    assert (installed.backends / "dali" / "model.py").is_file()


def test_a_directory_that_cannot_be_written(wheel: Installation, tmp_path: Path) -> None:
    (tmp_path / "backends").write_text("a file, where a folder should go")
    with pytest.raises(InstallationError, match=r"backend directory '.*backends' cannot be written"):
        lay_out(wheel, tmp_path)


def test_an_installed_triton_without_python_backend(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.stub.unlink()
    monkeypatch.setenv("PATH", str(installed.binary.parent))
    with pytest.raises(InstallationError, match="cannot run Python backends"):
        find_installation(None)


def test_no_triton_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InstallationError, match=r"tritonserver was not found.*`penstock setup`"):
        find_installation(None)


def test_the_stub_has_its_libraries(wheel: Installation) -> None:
    environment = find_environment()
    variables = dict(os.environ)
    if environment.libraries is not None:
        variables["LD_LIBRARY_PATH"] = str(environment.libraries)
    check_stub(wheel, variables)


def test_a_stub_without_its_python_is_refused(wheel: Installation, tmp_path: Path) -> None:
    # A copy of the stub does not find the wheel's libraries, which are in the folder of the original.
    copy = tmp_path / wheel.stub.name
    copy.write_bytes(wheel.stub.read_bytes())
    copy.chmod(0o755)
    with pytest.raises(InstallationError, match=r"needs libraries that are missing here: .*libcudart"):
        check_stub(replace(wheel, stub=copy), {"PATH": os.environ["PATH"]})
