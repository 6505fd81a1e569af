"""Runs pytest in forks of a process that has imported common libraries already, but nothing of Penstock."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import loading
import pytest

ROOT = Path(__file__).parents[2]
HOOK = Path(__file__).parent / "hook"
T = TypeVar("T")
R = TypeVar("R")
TIMED_OUT = -1
_POLL_SECONDS = 0.02
# Libraries that most tests import, and that behave the same if they are imported before the tests.
_LIBRARIES = ("numpy", "numba", "PIL.Image", "click", "concurrent.futures", "multiprocessing", "sqlite3", "http.server")


def load_libraries() -> None:
    """Import the libraries that most tests import, once for all forks."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def in_processes(function: Callable[[T], R], values: Iterable[T], count: int) -> Iterator[R]:
    """Call a function for each value in ``count`` processes, which may have child processes.

    Yield the results in the order in which they arrive.
    """
    with ProcessPoolExecutor(count, multiprocessing.get_context("fork")) as pool:
        for future in as_completed([pool.submit(function, value) for value in values]):
            yield future.result()


def run_pytest(
    arguments: Sequence[str],
    variables: dict[str, str],
    seconds: float,
    plugins: Sequence[Any] = (),
    log: str = os.devnull,
) -> int:
    """Run pytest in a fork; if it does not end in time, kill it and all processes that it started.

    Args:
        arguments: command-line arguments for pytest.
        variables: environment variables for the tests; they may contain :data:`loading.MUTANT`, the mutant to load.
        seconds: the time limit in seconds.
        plugins: plugins for pytest.
        log: the path of a file for pytest's output.

    Returns:
        Pytest's exit status, or :data:`TIMED_OUT`.
    """
    assert "penstock" not in sys.modules
    child = os.fork()
    if not child:
        _become_pytest(list(arguments), variables, plugins, log)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                child = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(_POLL_SECONDS)
        return TIMED_OUT
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _become_pytest(arguments: list[str], variables: dict[str, str], plugins: Sequence[Any], log: str) -> None:
    status = 70
    try:
        os.setsid()
        os.chdir(ROOT)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
        os.environ |= {**variables, "PYTHONPATH": path}
        # `python -m pytest` would add the same folder.
        sys.path.insert(0, str(ROOT))
        loading.install()
        # Processes that tests spawn import the main module: it must not be this program, which they would run again.
        sys.modules["__main__"] = ModuleType("__main__")
        common = ["-p", "no:xdist", "--no-header", "--tb=no"]
        status = int(pytest.main([*common, *arguments], plugins=plugins))
    finally:
        sys.stdout.flush()
        os._exit(status)
