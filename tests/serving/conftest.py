"""Fixtures of the serving tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.serving.model_hosts import MODEL_HOSTS
from penstock.serving.server import LocalServer

sys.path.insert(0, str(Path(__file__).parent))

from served import await_stops

START_SECONDS = 600.0
"""How many seconds a server may take to become ready. It compiles kernels: a start that takes 40 s on an idle machine was not complete
after 180 s on a busy one, where the server may get only a twentieth of a core. A server that hangs never becomes ready.
"""
TEST_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS), append=False)


@pytest.fixture(scope="session", autouse=True)
def _patient_starts() -> None:
    defaults = LocalServer.__init__.__kwdefaults__
    assert defaults is not None
    defaults["timeout"] = START_SECONDS


@pytest.fixture(scope="module", params=MODEL_HOSTS)
def model_host(request: pytest.FixtureRequest) -> Any:
    """Return the host of models; each test that uses this fixture runs once for each of the two hosts."""
    return request.param


@pytest.fixture(scope="session", autouse=True)
def _stops() -> Iterator[None]:
    """Before the tests end, wait for the servers that are still being stopped."""
    yield
    await_stops()
