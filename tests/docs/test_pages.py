"""The code on documentation pages prints the output that the pages show."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("run_page.py")
PAGES = [
    page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if "```python\n" in page.read_text("utf-8")
]
# Folders of the repository that the pages' code uses.
FOLDERS = ("client_examples", "model_repository", "training")


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    for name in FOLDERS:
        (folder / name).symlink_to(ROOT / name)
    # Pages serve from the current Python environment, as their readers do.
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_SERVE_ENV"}
    command = [sys.executable, str(RUNNER), str(page)]
    # The process has its own group, so that a server that a page started can be stopped if the test is aborted.
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@pytest.mark.exhaustive
@pytest.mark.timeout(400)  # in a fresh clone, the kernels of all served models must be compiled first
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, tmp_path: Path) -> None:
    run = run_page(page, tmp_path)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "The page shows"),
        ("```python\nprint(1)\n```\n", "does not show"),
        ("```python\nprint(missing)\n```\n", "NameError"),
        ("```console\n$ echo 1\n2\n```\n", "The page shows"),
        ("```console\n$ false\n```\n", "ended with 1"),
    ],
)
def test_wrong_pages_are_found(page: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    run = run_page(path, tmp_path)
    assert run.returncode == 1
    assert reason in run.stderr


def test_output_is_written_into_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "- A list:\n\n    ```python\n    print(1, '\\n2')\n    ```\n\n    ```text\n    ?\n    ```\n", encoding="utf-8"
    )
    subprocess.run([sys.executable, str(RUNNER), str(path), "--write"], cwd=tmp_path, check=True)
    assert re.search(r"    ```text\n    1\n    2\n    ```\n$", path.read_text(encoding="utf-8"))


def test_the_glossary_is_short() -> None:
    terms = re.findall(r"^### (.*)$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(terms) <= 20
    assert terms == sorted(terms, key=str.lower)
