"""Models' Python files import modules from their folders."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SerializationError
from penstock.serving.model_imports import Imports, import_file


def written(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "pipeline.py"


def module_of(folder: Path, **files: str) -> Any:
    return import_file(written(folder, **files))


def test_two_models_have_each_their_own_helper(tmp_path: Path) -> None:
    before = list(sys.path)
    first, second = (
        module_of(tmp_path / name, pipeline="import helper\nname = helper.name", helper=f"name = '{name}'")
        for name in ("one", "two")
    )
    assert (first.name, second.name) == ("one", "two")
    assert "helper" not in sys.modules
    assert sys.path == before


def test_imports_in_functions_come_later_and_find_the_same(tmp_path: Path) -> None:
    later = "def later():\n    import helper\n    return helper.name"
    first, second = (module_of(tmp_path / name, pipeline=later, helper=f"name = '{name}'") for name in ("one", "two"))
    assert (first.later(), second.later()) == ("one", "two")


def test_all_ways_to_import(tmp_path: Path) -> None:
    module = module_of(
        tmp_path,
        pipeline="import os.path, lib.deep, lib.deep as renamed\nfrom lib.deep import value\nfrom lib import *\nimport json",
        lib__in____init__="__all__ = ['deep']",
        lib__in__deep="from . import other\nfrom .other import value\nimport top",
        lib__in__other="value = 5",
        top="import math",
    )
    assert module.value == module.lib.deep.value == module.renamed.value == module.deep.value == 5
    assert (module.os, module.json) == (sys.modules["os"], sys.modules["json"])
    assert module.lib.deep.top.math.pi > 3


def test_a_changed_helper_is_loaded_anew(tmp_path: Path) -> None:
    for value in range(3):
        assert module_of(tmp_path, pipeline="from helper import value", helper=f"value = {value}").value == value
    assert not list(tmp_path.rglob("__pycache__"))


def test_modules_can_be_found_by_their_names(tmp_path: Path) -> None:
    """Dataclasses and pickles look modules up by name."""
    source = "from __future__ import annotations\nfrom dataclasses import dataclass, KW_ONLY\n@dataclass\nclass A:\n    _: KW_ONLY\n    x: int = 3"
    module = module_of(tmp_path, pipeline="from helper import A", helper=source)
    assert pickle.loads(pickle.dumps(module.A(x=4))) == module.A(x=4)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"pipeline": "\n1 / 0"}, "line 2, raised ZeroDivisionError"),
        ({"pipeline": "import helper", "helper": "1 / 0"}, "line 1, raised ZeroDivisionError"),
        ({"pipeline": "import not_to_be_found"}, "No module named 'not_to_be_found'"),
        ({"pipeline": "x = ("}, "raised SyntaxError"),
    ],
)
def test_what_goes_wrong_is_told_with_its_line(tmp_path: Path, files: dict[str, str], text: str) -> None:
    with pytest.raises(SerializationError, match=text):
        module_of(tmp_path, **files)


def test_models_are_loaded_at_the_same_time(tmp_path: Path) -> None:
    # Each load clears missing entries from Python's path cache, and of two threads that clear the same entry, one would fail.
    for number in range(8):
        (tmp_path / f"model_{number}.py").write_text(f"number = {number}\n")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def load(number: int) -> int:
        sys.path_importer_cache |= {f"/nowhere/{number}/{entry}": None for entry in range(500)}
        with Imports() as imports:
            found: int = import_file(tmp_path / f"model_{number % 8}.py").number
        imports.forget()
        return found

    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(load, range(64))) == [number % 8 for number in range(64)]
    finally:
        sys.setswitchinterval(before)
