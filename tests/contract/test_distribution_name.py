"""Messages and pages tell users to install this package, rather than another package with a similar name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from penstock.serving.environment import DISTRIBUTION

ROOT = Path(__file__).parents[2]
# Commands that would install the package `penstock`, which is not this project's.
_STRANGERS_PACKAGE = re.compile(
    r"""(?:pip install|uv add)[^\n`]*?["' ]penstock(?=[\["'`\s=]|$)|(?<![\w/-])penstock\[[a-z]"""
)


def test_the_project_has_this_name() -> None:
    assert f'\nname = "{DISTRIBUTION}"\n' in (ROOT / "pyproject.toml").read_text()


def test_nothing_installs_another_package() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in files.split("\0"):
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".pbtxt"} or path.name in {"Makefile", "Dockerfile"}:
            if path == Path(__file__) or not path.is_file():
                continue
            lines = path.read_text().splitlines()
            found += [f"{name}: {line}" for line in lines if _STRANGERS_PACKAGE.search(line)]
    assert found == []
