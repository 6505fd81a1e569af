"""The type stubs are written by the build, are valid, and cover every operator and argument."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from penstock import fn
from penstock.cli._group import penstock as command
from penstock.cli._stub_files import made_files, stale_stubs, stub_files, write_stubs
from penstock.graph.parsing import parse

ROOT = Path(__file__).parents[2]


def functions(text: str) -> dict[str, list[str]]:
    """Return the keyword arguments of each function in the text of a stub file."""
    tree = parse(text)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {node.name: [argument.arg for argument in node.args.kwonlyargs] for node in found}


def test_the_build_writes_them(tmp_path: Path) -> None:
    folders = [
        "egg_info",
        "--egg-base",
        str(tmp_path),
        "build",
        "--build-base",
        str(tmp_path),
        "--build-lib",
        str(tmp_path / "lib"),
    ]
    subprocess.run([sys.executable, "setup.py", "--quiet", *folders], cwd=ROOT, check=True)
    assert stale_stubs(tmp_path / "lib" / "penstock") == []


def test_stubs_are_valid() -> None:
    for path, text in stub_files().items():
        compile(text, str(path), "exec")


def test_functions_have_their_arguments() -> None:
    files = stub_files()
    resize = functions(files[Path("fn/__init__.pyi")])["resize"]
    assert {"size", "resize_shorter", "interp_type", "device", "name"} <= set(resize)
    assert "output_type" in functions(files[Path("fn/decoders/__init__.pyi")])["image"]
    assert "class Image(OperatorWrapper):" in files[Path("ops/decoders/__init__.pyi")]


def test_classes_are_called_with_what_their_functions_take() -> None:
    module = parse(stub_files()[Path("ops/__init__.pyi")])
    cast = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Cast")
    calls = [node for node in cast.body if isinstance(node, ast.FunctionDef) and node.name == "__call__"]
    assert [ast.unparse(call.returns or call) for call in calls] == ["DataNode", "list[DataNode]"]
    assert {"device", "name", "dtype"} <= {argument.arg for argument in calls[0].args.kwonlyargs}


def test_special_functions_stay_those_of_their_modules() -> None:
    assert "import external_source as external_source" in stub_files()[Path("fn/__init__.pyi")]
    assert "import tfrecord as tfrecord" in stub_files()[Path("fn/readers/__init__.pyi")]


def test_python_itself_takes_the_modules() -> None:
    assert Path(fn.__file__ or "").name == "fn.py"


def test_writing_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    assert len(write_stubs(tmp_path)) == len(made_files())
    stray = tmp_path / "fn" / "gone" / "__init__.pyi"
    stray.parent.mkdir()
    stray.touch()
    (tmp_path / "ops" / "__init__.pyi").write_text("")
    assert stale_stubs(tmp_path) == [stray, tmp_path / "ops" / "__init__.pyi"]
    assert CliRunner().invoke(command, ["stubs", "--check", str(tmp_path)]).exit_code == 1
    assert "wrote" in CliRunner().invoke(command, ["stubs", str(tmp_path)]).output
    assert stale_stubs(tmp_path) == []
    assert not stray.exists()


def test_writing_brings_the_index_of_operators_up_to_date(tmp_path: Path) -> None:
    write_stubs(tmp_path)
    index = tmp_path / "operators" / "index.json"
    index.write_text("")
    assert stale_stubs(tmp_path) == [index]
    assert write_stubs(tmp_path) == [index]
    assert index.read_text().count("penstock.operators.image.resize") > 0


def test_dynamic_mode_has_its_functions_and_readers() -> None:
    files = stub_files()
    assert {"size", "batch_size", "device"} <= set(functions(files[Path("dynamic/__init__.pyi")])["resize"])
    assert "rng" in functions(files[Path("dynamic/random/__init__.pyi")])["uniform"]
    assert "class File(_Reader):" in files[Path("dynamic/readers/__init__.pyi")]
    assert "import RNG as RNG" in files[Path("dynamic/random/__init__.pyi")]


def test_results_in_dynamic_mode_are_like_their_inputs() -> None:
    files = stub_files()
    assert results(files[Path("dynamic/__init__.pyi")], "rotate") == ["_Batch", "_Tensor"]
    # The overloads: with an input, with a batch size, and with neither.
    assert results(files[Path("dynamic/random/__init__.pyi")], "uniform") == ["_Batch", "_Batch", "_Tensor"]
    assert results(files[Path("dynamic/__init__.pyi")], "box_encoder") == [
        "tuple[_Batch, _Batch]",
        "tuple[_Tensor, _Tensor]",
    ]


def results(text: str, name: str) -> list[str]:
    """Return the return types of a function's overloads."""
    found = [node for node in parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return [ast.unparse(node.returns) for node in found if node.returns is not None]
