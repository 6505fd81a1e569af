"""Fixtures of the serving tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.serving.model_hosts import MODEL_HOSTS

sys.path.insert(0, str(Path(__file__).parent))

from served import await_stops


@pytest.fixture(scope="module", params=MODEL_HOSTS)
def model_host(request: pytest.FixtureRequest) -> Any:
    """How models run: a test that takes it holds for both ways."""
    return request.param


@pytest.fixture(scope="session", autouse=True)
def _stops() -> Iterator[None]:
    """The tests are over when the last server is."""
    yield
    await_stops()
