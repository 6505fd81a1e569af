"""Fixtures of the serving tests."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.serving.model_hosts import MODEL_HOSTS


@pytest.fixture(scope="module", params=MODEL_HOSTS)
def model_host(request: pytest.FixtureRequest) -> Any:
    """How models run: a test that takes it holds for both ways."""
    return request.param
