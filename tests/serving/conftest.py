"""Fixtures of the serving tests."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.serving.server import WAYS


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    """How models run: a test that takes it holds for both ways."""
    return request.param
