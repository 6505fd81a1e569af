"""Operators and rarely needed modules are loaded when they are first used."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from penstock.cli._stub_files import operator_index
from penstock.schema.operator_index import FILE_NAME

PACKAGE = Path(__file__).parents[2] / "backend" / "penstock"
UNUSED = (
    "PIL",
    "asyncio",
    "cupy",
    "cv2",
    "fsspec",
    "google",
    "llvmlite",
    "logging",
    "multiprocessing",
    "numba",
    "nvidia",
    "scipy",
    "socket",
    "soundfile",
    "ssl",
    "subprocess",
    "tempfile",
    "torch",
)
_OPERATOR = """
from penstock.schema import Operator, Schema, register_operator

print("{name} is loaded")

@register_operator
class {name}(Operator):
    "Does nothing."

    schema = Schema(name="invented__{name}"{more})
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a copy of the package as a build makes it, with an index of the operators."""
    folder = tmp_path_factory.mktemp("built")
    own = folder / "penstock" / "operators"
    own.mkdir(parents=True)
    for entry in PACKAGE.iterdir():
        if entry.name != "operators":
            (folder / "penstock" / entry.name).symlink_to(entry)
    for entry in (PACKAGE / "operators").iterdir():
        if entry.name != FILE_NAME:
            (own / entry.name).symlink_to(entry)
    (own / FILE_NAME).write_text(operator_index(), encoding="utf-8")
    return folder


def told_by(program: str, *paths: Path) -> list[str]:
    """Run a program with ``paths`` as importable folders; return the lines that it prints."""
    # Bytecode files are not written: Python would use an old one if a file changed within a second and kept its size.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (*paths, *sys.path))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", textwrap.dedent(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_functions_are_known_before_anything_is_loaded(built: Path) -> None:
    loaded = told_by(
        """
        import sys, numpy
        before = set(sys.modules)
        import penstock.fn, penstock.fn.decoders
        assert {"resize", "decoders", "external_source"} <= set(dir(penstock.fn)) and "image" in dir(penstock.fn.decoders)
        print(*sorted(set(sys.modules) - before), sep="\\n")
        """,
        built,
    )
    assert "penstock.fn.decoders" in loaded
    assert not set(UNUSED) & set(loaded)
    assert [name for name in loaded if name.startswith("penstock.operators.")] == []


def test_a_pipeline_loads_its_own_operators(built: Path) -> None:
    loaded = told_by(
        """
        import sys
        import numpy as np
        from penstock import fn, pipeline_def

        @pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def halves():
            numbers = fn.external_source(lambda: [np.float32([2, 4])])
            return fn.reshape(numbers * 0.5, shape=[2, 1])

        assert halves().run()[0].as_array().tolist() == [[[1], [2]]]
        print(*sys.modules, sep="\\n")
        """,
        built,
    )
    assert "penstock.operators.generic.reshape" in loaded
    families = {"geometry", "random", "readers", "segmentation", "sequence"}
    assert not {f"penstock.operators.{family}" for family in families} & set(loaded)
    assert not {"asyncio", "ssl", "fsspec", "cv2", "soundfile", "scipy", "PIL"} & set(loaded)


def test_all_operators_are_found(built: Path) -> None:
    program = """
        import inspect
        from penstock import fn, ops
        names = sorted(name for name, own in inspect.getmembers(fn) if inspect.isfunction(own) and name[0] != "_")
        classes = sorted(name for name, own in inspect.getmembers(ops.readers) if inspect.isclass(own))
        print(*names, *classes, fn.hidden.image_decoder is fn.image_decoder, sep="\\n")
        """
    assert told_by(program, built) == told_by(program)


def invented(folder: Path) -> Path:
    """Return the folder of an invented package with two operators."""
    package = folder / "invented"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, more in (("First", ""), ("Second", ', hidden=True, fuses=(("Cast",),)')):
        (package / f"{name.lower()}.py").write_text(_OPERATOR.format(name=name, more=more))
    program = """
        from pathlib import Path
        from penstock.schema.operator_index import FILE_NAME, entry_of, index_text
        from penstock.schema.registry import load_package, find_schema
        load_package("invented")
        entries = [entry_of(find_schema(f"invented__{name}"), f"invented.{name.lower()}") for name in ("First", "Second")]
        package = Path(__import__("invented").__file__).parent
        (package / FILE_NAME).write_text(index_text(package, entries))
        """
    assert told_by(program, folder) == ["First is loaded", "Second is loaded"]
    return package


OFFER = "from penstock.schema.registry import all_schemas, find_schema, fusing_schemas, offer_package, operator_class, register_operator\n"
OFFER += "offer_package('invented')\n"


@pytest.mark.parametrize(
    ("use", "loaded"),
    [
        ("", []),
        ("find_schema('invented__First')", ["First is loaded"]),
        ("operator_class('invented__Second')", ["Second is loaded"]),
        ("fusing_schemas('fuse')", ["Second is loaded"]),
        ("list(all_schemas())", ["First is loaded", "Second is loaded"]),
        ("from penstock import fn; fn.invented.first; fn.invented.first", ["First is loaded"]),
        ("from penstock import ops; ops.invented.hidden.Second", ["Second is loaded"]),
        ("from penstock import fn; assert 'first' in dir(fn.invented)", []),
        ("from penstock import fn; assert not hasattr(fn.invented, 'frist')", ["First is loaded", "Second is loaded"]),
    ],
)
def test_each_is_loaded_when_it_is_asked_for(tmp_path: Path, use: str, loaded: list[str]) -> None:
    invented(tmp_path)
    assert told_by(OFFER + use, tmp_path) == loaded


@pytest.mark.parametrize("how", ["missing", "cut short", "of another version", "longer", "new", "gone"])
def test_what_an_index_does_not_describe_is_loaded_at_once(tmp_path: Path, how: str) -> None:
    package = invented(tmp_path)
    if how == "missing":
        (package / FILE_NAME).unlink()
    elif how == "cut short":
        (package / FILE_NAME).write_text((package / FILE_NAME).read_text()[:-20])
    elif how == "of another version":
        (package / FILE_NAME).write_text((package / FILE_NAME).read_text().replace('"fuses"', '"merges"'))
    elif how == "longer":
        with (package / "first.py").open("a") as file:
            file.write("# a comment\n")
    elif how == "new":
        (package / "third.py").write_text(_OPERATOR.format(name="Third", more=""))
    else:
        (package / "second.py").unlink()
    told = told_by(OFFER, tmp_path)
    assert told == [f"{path.stem.title()} is loaded" for path in sorted(package.glob("[!_]*.py"))]


def test_a_name_that_the_index_does_not_know_yet_is_found(tmp_path: Path) -> None:
    module = invented(tmp_path) / "first.py"
    module.write_text(module.read_text().replace("First", "Other"))  # the file keeps its size
    assert told_by(OFFER + "find_schema('invented__Other')", tmp_path) == ["Other is loaded", "Second is loaded"]


def test_a_name_that_is_taken_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    invented(tmp_path)
    program = OFFER + _OPERATOR.format(name="First", more="").replace("@register_operator\n", "")
    program += "\ntry:\n    register_operator(First)\nexcept ValueError as error:\n    print(error)\n"
    assert told_by(program, tmp_path)[-1] == (
        "Operator 'invented__First' is declared twice: in invented.first and in __main__"
    )


def test_threads_that_ask_at_once_get_the_same(tmp_path: Path) -> None:
    package = invented(tmp_path)
    module = package / "first.py"
    slow = "import time\ntime.sleep(0.3)\n"
    module.write_text(slow + module.read_text() + "\ntime.sleep(0.3)\nCOMPLETE = True\n")
    program = OFFER + textwrap.dedent(
        """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from penstock import fn

        def ask(number):
            function = fn.invented.first
            return function, sys.modules["invented.first"].COMPLETE

        with ThreadPoolExecutor(4) as pool:
            answers = set(pool.map(ask, range(4)))
        assert len(answers) == 1
        """
    )
    index = package / FILE_NAME
    text = index.read_text()
    old = f'"first.py": {module.stat().st_size}'
    sizes = text[text.index('"first.py": ') :].partition(",")[0]
    index.write_text(text.replace(sizes, old))
    assert told_by(program, tmp_path) == ["First is loaded"]
