"""Selects the tests of the default run; only `make test-all` runs the others.

By rule: of a test with many cases the default run takes some, evenly spread. `@pytest.mark.cases(n)` takes n of them, or n of
each group that `by` tells from a case's identifier; `@pytest.mark.every_case` takes all. What takes long, such as a server
that is killed and comes back, is `@pytest.mark.exhaustive`.

Files about other people's frameworks are collected where those are installed (`make frameworks`, `make plugins`).

Files that take long come first, so that processes that share the tests end at about the same time.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.tensors.cuda import device_count

sys.path.insert(0, str(Path(__file__).parent / "kernels" / "cuda"))

CASES = 6
# This many ordinary tests take as long as one that is marked as exhaustive.
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
    """Spare garbage collections the thousands of tests and the frameworks' modules, which are never garbage."""
    gc.collect()
    gc.freeze()


def _longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with their files in another order: by number, where one that is known to take long is worth
    many.
    """
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
    """Return all cases in one group."""
    return ""


def _beyond(cases: list[pytest.Item], count: int, by: Callable[[str], str]) -> Iterator[pytest.Item]:
    """Yield the cases that are not among ``count`` of their group, evenly spread from its first to its last."""
    groups: dict[str, list[pytest.Item]] = {}
    for case in cases:
        groups.setdefault(by(case.nodeid.partition("[")[2]), []).append(case)
    for group in groups.values():
        step = (len(group) - 1) / max(count - 1, 1)
        taken = {round(place * step) for place in range(count)} if len(group) > count else set(range(len(group)))
        yield from (case for place, case in enumerate(group) if place not in taken)


@pytest.fixture
def with_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Provide a GPU: a real one, or else an emulated one."""
    from emulation import emulated_gpu

    folder = request.config.cache.mkdir("emulated_kernels")
    with contextlib.nullcontext() if device_count() else emulated_gpu(folder):
        yield
