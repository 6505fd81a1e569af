"""Finding, checking and describing environments to serve from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.distribution import described_pythons
from penstock.serving import environment as module
from penstock.serving.environment import (
    VARIABLE,
    Environment,
    ServingEnvironmentError,
    create_environment,
    default_folder,
    describe,
    find_environment,
)


@pytest.fixture(scope="module")
def serving() -> Environment:
    return find_environment()


def test_describes_the_current_interpreter() -> None:
    here = describe(sys.executable)
    assert here.version == sys.version_info[:2]
    assert here.numpy == np.__version__
    assert here.python == Path(sys.executable)
    assert here.programs == Path(sys.executable).parent


def test_a_folder_and_its_interpreter_are_the_same_environment(serving: Environment) -> None:
    assert describe(serving.python.parent.parent) == serving


def test_the_environment_found_will_do(serving: Environment) -> None:
    assert serving.problems() == []
    assert serving.numpy is not None
    assert serving.numpy.startswith("1.26")
    assert serving.triton is not None
    assert serving.triton.is_file()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"numpy": "2.4.1"}, "numpy 2.4.1 exchanges wrong data"),
        ({"numpy": None}, "numpy is missing"),
        ({"penstock": None}, "penstock is missing"),
        ({"triton": None}, "nvidia-pytriton is missing"),
        ({"version": (3, 10)}, f"Python 3.10 is outside {described_pythons()}"),
        ({"version": (3, 14)}, "this Triton has no stub for Python 3.14"),
    ],
)
def test_what_an_environment_lacks_is_named(serving: Environment, change: dict[str, object], problem: str) -> None:
    (told,) = replace(serving, **change).problems()  # type: ignore[arg-type]
    assert problem in told


def test_a_free_threaded_python_has_a_library_of_its_own_and_no_stub(serving: Environment) -> None:
    free_threaded = replace(serving, version=(3, 14), abi="t")
    assert Path(free_threaded.library).name == "libpython3.14t.so.1.0"
    assert free_threaded.problems() == ["this Triton has no stub for Python 3.14t"]
    assert not any("stub" in problem for problem in free_threaded.problems(native=True))


def test_no_environment_at_a_place(tmp_path: Path) -> None:
    with pytest.raises(ServingEnvironmentError, match="no Python environment at"):
        describe(tmp_path)


def test_an_interpreter_that_does_not_work(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(ServingEnvironmentError, match="does not work: out of order"):
        describe(python)


def test_an_environment_that_is_named_must_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ServingEnvironmentError, match="no Python environment at"):
        find_environment(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(ServingEnvironmentError, match="no Python environment at"):
        find_environment()


def test_the_environment_of_the_current_interpreter_is_found(
    serving: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "describe", lambda _location: serving)
    assert find_environment() == serving


def test_the_named_one_comes_before_the_variable(
    serving: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert find_environment(serving.python) == serving


def test_the_remedy_is_told_where_nothing_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ServingEnvironmentError, match=r"`penstock setup`.*--python-env"):
        find_environment(native=True)
    with pytest.raises(ServingEnvironmentError, match=r"`penstock setup --stub`.*--python-env"):
        find_environment(native=False)


def test_the_cache_follows_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "penstock" / "serve"


def test_an_interpreter_of_another_age_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = describe(sys.executable)
    monkeypatch.setattr(module, "describe", lambda place: replace(here, version=(3, 9)))
    with pytest.raises(ServingEnvironmentError, match=r"Python 3\.9, for which Triton has no stub"):
        create_environment(tmp_path / "new", python=sys.executable)


def test_the_interpreter_to_make_one_from_has_a_numpy_wheel_or_a_compiler() -> None:
    assert module.suitable_python().version in module.STUBS
