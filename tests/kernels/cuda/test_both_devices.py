"""Operators give on an emulated GPU what they give on the CPU; tests/gpu compares with a real one."""

from __future__ import annotations

import pytest
from both_devices import CLOSE, EXACT, NORMALIZED, check_close, check_equal


@pytest.mark.parametrize("name", EXACT)
def test_equal(name: str) -> None:
    check_equal(EXACT[name])


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    check_close(CLOSE[name])


@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized(name: str) -> None:
    check_close(NORMALIZED[name], tolerance=1 / 60 + 1e-3)
