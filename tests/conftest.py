"""Selects the tests of the default run; only `make test-all` runs the others.

The default run takes evenly spread cases of each test with many cases. `@pytest.mark.cases(n)` takes n cases, or with `by`, which returns
a group for a case's identifier, n cases of each group; `@pytest.mark.every_case` takes all. `@pytest.mark.exhaustive` leaves a test out,
as it takes long, such as a server that is killed and restarts.

Test files for other frameworks are collected only where these are installed (`make frameworks`, `make plugins`).

Files that take long run first, so that parallel test processes end at about the same time.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import itertools
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.schema.libraries import ONNX_RUNTIME
from penstock.tensors.cuda import device_count

sys.path.insert(0, str(Path(__file__).parent / "kernels" / "cuda"))
# Tests that load ONNX Runtime themselves send no events about that, either.
os.environ.update(ONNX_RUNTIME.variables)

CASES = 6
# The number of ordinary tests that take as long as one test marked as exhaustive.
_LONG = 100
_FRAMEWORKS = {
    "test_pytorch": ("torch", "torchdata"),
    "test_jax": ("jax",),
    "test_paddle": ("paddle",),
    "test_ray": ("ray",),
    "test_tensorflow": ("tensorflow",),
}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    for start, modules in _FRAMEWORKS.items():
        if collection_path.name.startswith(start):
            return not all(map(importlib.util.find_spec, modules)) or None
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run all tests, also those that take long")


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background jobs of scripts with this signal ignored, and the servers that tests stop by it would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "exhaustive: takes long, runs with --exhaustive alone")
    config.addinivalue_line("markers", "cases(n, by): so many cases, of each group, are in the default run")
    config.addinivalue_line("markers", "every_case: all cases are in the default run")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    if named or config.getoption("markexpr"):
        return
    if not config.getoption("--exhaustive"):
        left_out = {id(item) for item in _left_out(items)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]
    items[:] = _longest_first(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude all objects so far from garbage collection, which they would slow down: tests and modules exist until the end."""
    gc.collect()
    gc.freeze()


def _longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests grouped by file, the file with most tests first; an exhaustive test counts as many tests."""
    worth: Counter[Path] = Counter()
    for item in items:
        worth[item.path] += _LONG if item.get_closest_marker("exhaustive") else 1
    return sorted(items, key=lambda item: -worth[item.path])


def _left_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    for _, group in itertools.groupby(items, key=lambda item: item.nodeid.split("[")[0]):
        cases = list(group)
        if cases[0].get_closest_marker("every_case"):
            continue
        mark = cases[0].get_closest_marker("cases")
        count = mark.args[0] if mark else CASES
        by: Callable[[str], str] = mark.kwargs.get("by", _together) if mark else _together
        yield from _beyond(cases, count, by)
    yield from (item for item in items if item.get_closest_marker("exhaustive"))


def _together(name: str) -> str:
    """Return the same group for each case."""
    return ""


def _beyond(cases: list[pytest.Item], count: int, by: Callable[[str], str]) -> Iterator[pytest.Item]:
    """Yield the cases to leave out: in each group, all but ``count`` evenly spread ones, which include the first and the last."""
    groups: dict[str, list[pytest.Item]] = {}
    for case in cases:
        groups.setdefault(by(case.nodeid.partition("[")[2]), []).append(case)
    for group in groups.values():
        step = (len(group) - 1) / max(count - 1, 1)
        taken = {round(place * step) for place in range(count)} if len(group) > count else set(range(len(group)))
        yield from (case for place, case in enumerate(group) if place not in taken)


@pytest.fixture
def with_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make a GPU available: a real one, or otherwise an emulated one."""
    from emulation import emulated_gpu

    folder = request.config.cache.mkdir("emulated_kernels")
    with contextlib.nullcontext() if device_count() else emulated_gpu(folder):
        yield
