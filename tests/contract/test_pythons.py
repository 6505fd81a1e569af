"""`requires-python` alone defines the supported versions of Python; every other mention agrees with it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import distribution
from penstock.distribution import described_pythons, python_bounds, supports
from penstock.schema.libraries import Library


class Version(NamedTuple):
    major: int
    minor: int


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("requirement", [">=3.11,<3.16", "<3.16,>=3.11", ">= 3.11, < 3.16"])
def test_bounds_are_read_in_any_order(requirement: str) -> None:
    assert distribution._parse_bounds(requirement) == ((3, 11), (3, 16))


def test_bounds_are_those_of_the_project() -> None:
    oldest, too_new = python_bounds()
    assert supports(oldest)
    assert not supports(too_new)
    assert not supports((oldest[0], oldest[1] - 1))
    assert supports((too_new[0], too_new[1] - 1))


def test_an_installed_package_reads_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "checkout", lambda: None)
    assert distribution._requires_python() == importlib.metadata.metadata("penstock-triton")["Requires-Python"]


LEAVES_OUT = [
    "lz4-more>=1; python_version < '3.12'",
    "lz4>=4.3; python_version < '3.15'",
    "lz4-python; python_version < '3.13'",
]


@pytest.mark.parametrize(
    "requirements", [LEAVES_OUT, [line.replace("'", '"') + ' and extra == "readers"' for line in LEAVES_OUT]]
)
def test_libraries_without_wheels_are_named(monkeypatch: pytest.MonkeyPatch, requirements: list[str]) -> None:
    monkeypatch.setattr(distribution, "_requirements", lambda: requirements)
    library = Library("LZ4", "no_such_module", "lz4", "readers")
    for version, remedy in [
        ((3, 14), "pip install penstock-triton[readers]"),
        ((3, 15), "lz4 has no wheel for Python 3.15 yet; use one before 3.15"),
    ]:
        monkeypatch.setattr(sys, "version_info", Version(*version))
        assert (
            library.missing() == f"LZ4 is needed, which cannot be loaded (No module named 'no_such_module'): {remedy}"
        )


def test_what_is_left_out_is_in_the_requirements() -> None:
    assert distribution.first_python_without("numba") is None
    assert distribution.first_python_without("simplejpeg") == "3.15"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md", "docs/tutorials/index.md"])
def test_pages_name_the_supported_pythons(page: str) -> None:
    assert re.findall(r"Python (3\.\d+ to 3\.\d+)", (ROOT / page).read_text()) == [described_pythons()]


def test_make_refuses_other_pythons(tmp_path: Path) -> None:
    python = tmp_path / "python"
    too_new = python_bounds()[1]
    pretended = f"import sys; sys.version_info = {(*too_new, 0)}; sys.version = '{too_new[0]}.{too_new[1]}.0 (main)'"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c \"{pretended}; exec('''$2''')\"\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "--always-make", f"PYTHON={python}", f"VENV={tmp_path}/venv", "setup"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert (
        f"penstock needs Python >={described_pythons().split()[0]},<{too_new[0]}.{too_new[1]}, this is " in done.stderr
    )
