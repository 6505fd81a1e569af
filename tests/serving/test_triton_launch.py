"""The launch of a process before it becomes Triton."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.serving.triton_launch import launch_command

SHOW = """
import os, resource, sys
print(os.environ.get("LD_LIBRARY_PATH"), os.environ.get("GREETING"), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def launched(variables: dict[str, str], **options: object) -> str:
    command, environment = launch_command([sys.executable, "-c", SHOW], variables)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, **options)  # type: ignore[call-overload]
    return str(done.stdout.strip())


def test_only_the_command_gets_the_search_path_of_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If the variables for the library loader applied to Python, too, it would load this file as a library, and could not start.
    (tmp_path / "libffi.so.8").write_bytes(b"no library")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    shown = launched({"LD_LIBRARY_PATH": str(tmp_path), "GREETING": "hello"})
    assert shown == f"{tmp_path} hello {(hard, hard)}"
    assert launched({"GREETING": "hello"}) == f"None hello {(hard, hard)}"


def test_nothing_is_launched_for_a_supervisor_that_is_gone() -> None:
    command, environment = launch_command([sys.executable, "-c", SHOW], dict(os.environ))
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"the supervisor ended before Triton began" in done.stderr
